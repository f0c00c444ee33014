"""Estimate: a value worked out of several means, with its interval.

Each mean is over the same seeds, so what one seed did to all of them is one sample: the value is taken as a plane
through the means (the delta method: van der Vaart, *Asymptotic Statistics*, chapter 3), which for sums and multiples it
is, and the interval is that of the seeds' distances from it (``stats.interval``). This is the paired interval, which
holds whether the same seed makes two points alike or not. One seed has the interval within its run, where a measure has
one, as independent means.
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
"""Of what a value is made of: a spread below it is that of rounding."""


@dataclass(frozen=True)
class Sample:
    """One measure: a value a seed, in the order of the seeds; of a single seed also the interval within its run."""

    values: NDArray[Any]
    within: Interval | None = None


@dataclass(frozen=True)
class Estimate:
    """A value, its interval, and the spread from seed to seed (NaN: not known)."""

    interval: Interval
    spread: float

    def seeds_to_decide(self) -> int | None:
        """How many seeds would tell its sign, if value and spread stay; None: too many, or not known."""
        return seeds_to_decide([self.spread], abs(self.interval.mean))


def estimate(value: Callable[[Mapping[Any, float]], float], samples: Mapping[Any, Sample]) -> Estimate:
    """``value`` of the samples' means. Its interval has NaN bounds where seeds are too few."""
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
    """Of one seed."""
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
