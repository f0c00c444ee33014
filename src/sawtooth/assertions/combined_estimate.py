"""Combined estimate: a value computed from several means, with its interval.

Each mean is over the same seeds, so one seed's effect on all of them is one sample. The value is linearized around the
means (the delta method: van der Vaart, *Asymptotic Statistics*, chapter 3), which is exact for sums and multiples; the
interval is that of the seeds' deviations (``stats.interval``). This is the paired interval, valid whether or not the
same seed makes two points alike. With one seed, the intervals within its run are combined as independent means, where
measures have one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sawtooth.stats.interval import SAME, SEEDS, WITHIN, Interval, Mean, seeds_to_decide

if TYPE_CHECKING:
    from numpy.typing import NDArray

_STEP = 1e-6
_NOTHING = 1e-12
"""Relative to the parts of a value: a smaller spread is rounding."""


@dataclass(frozen=True)
class Sample:
    """One measure: one value per seed, in the order of the seeds; for a single seed also the interval within its
    run."""

    values: NDArray[Any]
    within: Interval | None = None


@dataclass(frozen=True)
class Estimate:
    """A value, its interval, and the spread between seeds (NaN: unknown)."""

    interval: Interval
    spread: float

    def seeds_to_decide(self) -> int | None:
        """How many seeds would decide its sign, if value and spread stay; None: too many, or unknown."""
        return seeds_to_decide([self.spread], abs(self.interval.mean))


def estimate(value: Callable[[Mapping[Any, float]], float], samples: Mapping[Any, Sample]) -> Estimate:
    """``value`` of the samples' means. The interval's bounds are NaN with too few seeds."""
    import numpy as np

    count = min((one.values.size for one in samples.values()), default=1)
    means = {name: float(one.values.mean()) if one.values.size else math.nan for name, one in samples.items()}
    middle = value(means)
    slopes = {name: _slope(value, means, name) for name in samples}
    if count > 1:
        apart = np.zeros(count)
        for name, one in samples.items():
            apart = apart + slopes[name] * (one.values - means[name])
        scale = sum(abs(slopes[name] * mean) for name, mean in means.items()) + abs(middle)
        spread = float(apart.std(ddof=1))
        if spread <= _NOTHING * scale:
            return Estimate(Interval(middle, middle, middle, count, SAME), 0.0)
        return Estimate(Interval.around(replace(Mean.of(apart.tolist()), value=middle), count, SEEDS), spread)
    return _within(middle, slopes, samples)


def _within(middle: float, slopes: Mapping[Any, float], samples: Mapping[Any, Sample]) -> Estimate:
    """The estimate from one seed."""
    unknown = Estimate(Interval(middle, math.nan, math.nan, 1), math.nan)
    parts: list[tuple[float, Mean]] = []
    for name, one in samples.items():
        if slopes[name] == 0:
            continue
        if one.within is None or one.within.n < 2 or math.isnan(one.within.low):
            return unknown
        parts.append((slopes[name], one.within.known()))
    total = Mean.total(middle, parts)
    if total.error == 0:
        return Estimate(Interval(middle, middle, middle, 1, WITHIN), 0.0)
    return Estimate(Interval.around(total, round(total.freedom) + 1, WITHIN), total.error)


def _slope(value: Callable[[Mapping[Any, float]], float], means: Mapping[Any, float], name: Any) -> float:
    step = _STEP * (abs(means[name]) or 1.0)
    above, below = (value({**means, name: means[name] + one}) for one in (step, -step))
    return (above - below) / (2 * step)
