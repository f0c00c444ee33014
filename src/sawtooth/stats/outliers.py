"""Outliers: seeds whose mean is far from all others, by a stated rule.

The rule is the generalized extreme studentized deviate test (Rosner 1983, *Percentage points for a generalized ESD
many-outlier procedure*, Technometrics 25), at 1%, for up to half of the samples minus one. Outliers less than
1% away from the median are not reported.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

RULE = "Rosner's test at 1%"
FEWEST = 4
"""Fewest samples: among three, each is far from the other two."""
_LEVEL = 0.01
_MATERIAL = 0.01


def outliers(samples: Sequence[float]) -> list[int]:
    """The positions of outliers among independent samples, in order; empty for fewer than ``FEWEST``."""
    import numpy as np

    values = np.asarray(samples, dtype=float)
    if values.size < FEWEST or not np.isfinite(values).all():
        return []
    from scipy.special import stdtrit

    left, found, taken = list(range(values.size)), 0, []
    while len(left) > max(2, values.size // 2 + 1):
        rest = values[left]
        away = np.abs(rest - rest.mean())
        deviation, n = float(rest.std(ddof=1)), len(left)
        if deviation == 0:
            break
        worst = int(away.argmax())
        t = float(stdtrit(n - 2, 1 - _LEVEL / (2 * n)))
        limit = (n - 1) * t / math.sqrt((n - 2 + t * t) * n)
        taken.append(left.pop(worst))
        if away[worst] / deviation > limit:
            # All candidates removed before it are outliers too: otherwise they would hide each other.
            found = len(taken)
    median = float(np.median(values))
    return sorted(at for at in taken[:found] if abs(values[at] - median) >= _MATERIAL * abs(median))
