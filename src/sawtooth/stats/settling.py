"""How a run settles: whether its first seconds, with slow start in them, change the mean of the rest.

Where the beginning ends is found by the marginal standard error rule, MSER (White 1997, *An effective truncation
heuristic for bias reduction in simulation output*, Simulation 69): the cut that makes the rest's own standard error
smallest; here the earliest one that comes within a tenth of that, so that chance does not move it. Several seeds are
averaged second by second first (Welch 1983), because they begin alike; of very long series neighbours are averaged
(MSER-m, White and Spratt 2000), which moves the cut by less than one such batch.
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
"""Of the mean. A beginning that changes it by less is not worth a word."""
_NEARLY = 1.1
_NO_ERROR = 1e-6
"""Of the mean: rounding."""
FEWEST = 10
"""Samples. Of fewer, half of them say nothing of the rest."""
MOST = 1 << 16
"""Samples, or batches of them, among which the cut is looked for."""


@dataclass(frozen=True)
class Settling:
    """The first ``samples`` differ from the rest: the mean is ``whole`` with them and ``rest`` without."""

    samples: int
    whole: float
    rest: float

    @property
    def change(self) -> float:
        """By how much the beginning changes the mean, as a share of the rest's; infinite where the rest is 0."""
        return abs(self.whole - self.rest) / self.rest if self.rest > 0 else math.inf


def settling(series: Sequence[ArrayLike], *, least: float = MATERIAL) -> Settling | None:
    """What the beginning of runs, which differ in their seeds only, does to their mean; None: nothing that matters.

    It matters when it changes the mean by ``least`` of the rest's or more, and to outside the 95% interval of the mean
    of the rest: less than that may be chance.
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
    """Means of ``size`` neighbours; what is left over at the end has none."""
    whole = series.size // size
    return series[: whole * size].reshape(whole, size).mean(axis=1) if size > 1 else series


def _truncation(series: Samples) -> int:
    """Samples to be left out, at most half of them, by MSER."""
    import numpy as np

    # Sums over everything from each sample on.
    left = np.arange(series.size, 0, -1)
    centred = series - series.mean()
    sums, squares = np.cumsum(centred[::-1])[::-1], np.cumsum(centred[::-1] ** 2)[::-1]
    error = (squares - sums**2 / left) / left.astype(float) ** 2
    error = error[: series.size // 2 + 1]
    negligible = (_NO_ERROR * series.mean()) ** 2
    return int(np.argmax(error <= _NEARLY**2 * max(error.min(), 0.0) + negligible))
