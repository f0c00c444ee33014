"""Settling: whether a run's first seconds, with slow start in them, change the mean of the rest.

The marginal standard error rule, MSER, finds the end of the beginning (White 1997, *An effective truncation heuristic
for bias reduction in simulation output*, Simulation 69): the cut that makes the standard error of the rest smallest.
Here it is the earliest cut within a tenth of that, so that chance does not move it. Several seeds are first averaged
second by second (Welch 1983), because they begin alike. In very long series neighboring samples are averaged (MSER-m,
White and Spratt 2000), which moves the cut by less than one such batch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sawtooth.stats.interval import batch_means, independent

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    Samples = NDArray[np.float64]

MATERIAL = 0.01
"""Relative to the mean. A beginning that changes it by less is not reported."""
_NEARLY = 1.1
_NO_ERROR = 1e-6
"""Relative to the mean: rounding."""
FEWEST = 10
"""Fewest samples. With fewer, half of them say nothing about the rest."""
MOST = 1 << 16
"""Most samples, or batches of them, among which the cut is searched."""


@dataclass(frozen=True)
class Settling:
    """The first ``samples`` differ from the rest: the mean is ``whole`` with them and ``rest`` without them."""

    samples: int
    whole: float
    rest: float

    @property
    def change(self) -> float:
        """The change of the mean by the beginning, as a share of ``rest``; infinite if ``rest`` is 0."""
        return abs(self.whole - self.rest) / self.rest if self.rest > 0 else math.inf


def settling(series: Sequence[ArrayLike], *, least: float = MATERIAL) -> Settling | None:
    """How the beginning of runs (which differ only in their seeds) changes their mean; None if it does not matter.

    It matters if it changes the mean by at least ``least`` of the rest's, and to outside the rest's 95% interval: less
    may be chance.
    """
    import numpy as np

    runs = [run for run in (np.asarray(one, dtype=float) for one in series) if run.size]
    shortest = min((run.size for run in runs), default=0)
    if shortest < FEWEST:
        return None
    together: Samples = np.mean([run[:shortest] for run in runs], axis=0)
    batch = -(-shortest // MOST)
    cut = batch * _truncation(_batched(together, batch))
    rest = together[cut:]
    found = Settling(cut, float(together.mean()), float(rest.mean()))
    if not cut or found.change < least:
        return None
    spread = independent([float(run[cut:].mean()) for run in runs])
    if math.isnan(spread.low) or spread.low == spread.high:
        spread = batch_means(rest)
    if math.isnan(spread.low):
        spread = independent(rest.tolist())
    return None if spread.low <= found.whole <= spread.high else found


def _batched(series: Samples, size: int) -> Samples:
    """Means of ``size`` neighbors; a remainder is dropped."""
    whole = series.size // size
    return series[: whole * size].reshape(whole, size).mean(axis=1) if size > 1 else series


def _truncation(series: Samples) -> int:
    """Number of samples to leave out by MSER, at most half of them."""
    import numpy as np

    # Sums from each sample to the end.
    left = np.arange(series.size, 0, -1)
    centred = series - series.mean()
    sums, squares = np.cumsum(centred[::-1])[::-1], np.cumsum(centred[::-1] ** 2)[::-1]
    error = (squares - sums**2 / left) / left.astype(float) ** 2
    error = error[: series.size // 2 + 1]
    negligible = (_NO_ERROR * series.mean()) ** 2
    return int(np.argmax(error <= _NEARLY**2 * max(error.min(), 0.0) + negligible))
