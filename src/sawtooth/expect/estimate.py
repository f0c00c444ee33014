"""Estimate: a value worked out of several means, with its interval.

Each mean is over the same seeds, so what one seed did to all of them is one sample: the value is taken as a plane
through the means (the delta method: van der Vaart, *Asymptotic Statistics*, chapter 3), which for sums and multiples it
is, and Student's t is that of the seeds' distances from it. This is the paired interval, which holds whether the same
seed makes two points alike or not. One seed has the interval within its run, where a measure has one, as independent
means (Welch 1947).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sawtooth.stats.interval import SAME, SEEDS, WITHIN, Interval, t_quantile

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_SEEDS = 1000
"""More are not advised: the value is about as close to 0."""
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
        """How many seeds would tell its sign, if value and spread stay.

        None: more than ``MOST_SEEDS``, or not known.
        """
        distance = abs(self.interval.mean)
        if math.isnan(self.spread) or math.isnan(distance):
            return None
        for seeds in range(2, MOST_SEEDS + 1):
            if t_quantile(seeds - 1) * self.spread / math.sqrt(seeds) < distance:
                return seeds
        return None


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
        half = t_quantile(count - 1) * spread / math.sqrt(count)
        return Estimate(Interval(middle, middle - half, middle + half, count, SEEDS), spread)
    return _within(middle, slopes, samples)


def _within(middle: float, slopes: Mapping[Any, float], samples: Mapping[Any, Sample]) -> Estimate:
    """Of one seed."""
    unknown = Estimate(Interval(middle, math.nan, math.nan, 1), math.nan)
    errors: list[tuple[float, int]] = []
    for name, one in samples.items():
        if slopes[name] == 0:
            continue
        if one.within is None or one.within.n < 2 or math.isnan(one.within.low):
            return unknown
        half = (one.within.high - one.within.low) / 2 / t_quantile(one.within.n - 1)
        errors.append((slopes[name] * half, one.within.n))
    variance = sum(error**2 for error, _ in errors)
    if variance == 0:
        return Estimate(Interval(middle, middle, middle, 1, WITHIN), 0.0)
    freedom = variance**2 / sum(error**4 / (n - 1) for error, n in errors)
    half = t_quantile(freedom) * math.sqrt(variance)
    return Estimate(Interval(middle, middle - half, middle + half, round(freedom) + 1, WITHIN), math.sqrt(variance))


def _slope(value: Callable[[Mapping[Any, float]], float], means: Mapping[Any, float], name: Any) -> float:
    step = _STEP * (abs(means[name]) or 1.0)
    above, below = (value({**means, name: means[name] + one}) for one in (step, -step))
    return (above - below) / (2 * step)
