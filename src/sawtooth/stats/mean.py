"""The mean of runs that differ only in their seeds, with an interval that says what it is computed from.

Several seeds: the interval of the seeds' means, which are independent. It says what other seeds would give.

One seed: batch means within the run. They only say how much the mean depends on the observed seconds. Every run begins
with slow start, so seconds that differ from the rest (``settling``) count in the mean but not in its spread. Seconds
that repeat others (``fast``) count in the mean only.

Several seeds that all gave the same: nothing in the run is random. There is no interval; n runs are not n samples.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from sawtooth.stats.interval import SAME, SEEDS, Interval, Mean, batch_means, independent
from sawtooth.stats.settling import settling

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def of_runs(series: Sequence[ArrayLike], *, observed: int | None = None, most: float = math.inf) -> Interval:
    """The 95% interval of the mean throughput; one evenly sampled series per run.

    ``observed``: the number of samples after which the first run repeats others; None: it does not. ``most`` is the
    highest possible mean; no bound is above it, or below 0. Raises ValueError without any sample.
    """
    import numpy as np

    runs = [run for run in (np.asarray(one, dtype=float) for one in series) if run.size]
    if len(runs) > 1:
        if all(np.array_equal(run, runs[0]) for run in runs[1:]):
            return Interval(float(runs[0].mean()), math.nan, math.nan, len(runs), SAME)
        return replace(independent([float(run.mean()) for run in runs]), of=SEEDS).within(0.0, most)
    one = runs[0] if runs else np.empty(0)
    seen = one[:observed]
    found = settling([seen], least=0.0)
    begins = 0 if found is None else found.samples
    rest = batch_means(seen[begins:])
    if begins and math.isnan(rest.low):
        begins, rest = 0, batch_means(seen)
    if not begins and seen.size == one.size:
        return rest.within(0.0, most)
    # Only the rest's part of the mean varies.
    varies = Mean.total(float(one.mean()), [((one.size - begins) / one.size, rest.known())])
    return Interval.around(varies, rest.n, rest.of).within(0.0, most)
