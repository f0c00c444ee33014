"""Confidence intervals of a mean: of independent samples, of samples that are correlated, and of sums of means.

All intervals over seeds come from here. The spread of runs is often skewed: one seed in ten meets many timeouts, the
others fill the line. Student's t then misses the mean on the side of the long tail. Hall's transformation takes the
skewness of the mean out before t is used (Hall 1992, *On the removal of skewness by transformation*, Journal of the
Royal Statistical Society B 54, 221-228, the cubic one); without skewness it is Student's t. How often such an interval
holds the mean is measured by ``tools/coverage_of_intervals.py``; docs/explanation/measures.md has the table.

A second of TCP throughput resembles the second before it, so the textbook interval of n independent samples is too
narrow. Non-overlapping batch means (Law and Kelton, *Simulation Modeling and Analysis*, section 9.5.3; Schmeiser 1982)
cut the series into batches that are long enough to be nearly independent and use Student's t on the batches' means.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

CONFIDENCE = 0.95
MOST_BATCHES = 30
"""Schmeiser 1982: more than 30 batches hardly narrow the interval, and shorter batches are less independent."""
FEWEST_BATCHES = 10
SHORTEST_BATCH = 2
"""Samples. Series of fewer than 20 samples get no interval."""
MOST_SEEDS = 1000
"""More are not advised: the difference is about as large as what it is compared with."""


SEEDS, WITHIN, SAME = "seeds", "run", "same"
"""What an interval is of: the means of several seeds, the batches within one run, or seeds that all gave the same."""


@dataclass(frozen=True)
class Mean:
    """A mean and what is known of its error, in the samples' own unit.

    ``error`` is the standard error (NaN: not known), ``third`` the third central moment of the mean, in the unit's
    third power (0: not skewed), ``freedom`` the degrees of freedom of Student's t.
    """

    value: float
    error: float
    third: float
    freedom: float

    @classmethod
    def of(cls, samples: Sequence[float]) -> Mean:
        """Of independent samples. Raises ValueError without any."""
        n = len(samples)
        if n == 0:
            raise ValueError("an interval needs at least one sample")
        mean = math.fsum(samples) / n
        if n == 1:
            return cls(mean, math.nan, 0.0, 0.0)
        variance = math.fsum((sample - mean) ** 2 for sample in samples) / (n - 1)
        third = math.fsum((sample - mean) ** 3 for sample in samples) / n
        return cls(mean, math.sqrt(variance / n), third / n**2, n - 1)

    @classmethod
    def total(cls, value: float, parts: Iterable[tuple[float, Mean]]) -> Mean:
        """``value``, which differs from its own mean as the sum of factors times independent means does.

        The degrees of freedom are those of Welch and Satterthwaite (Welch 1947). The error is NaN where one part's is.
        """
        known = [(factor, one) for factor, one in parts if factor != 0]
        variances = [(factor * one.error) ** 2 for factor, one in known]
        variance, third = math.fsum(variances), math.fsum(factor**3 * one.third for factor, one in known)
        if not variance > 0:
            return cls(value, variance, 0.0, min((one.freedom for _, one in known), default=0.0))
        freedom = variance**2 / math.fsum(
            part**2 / one.freedom for part, (_, one) in zip(variances, known, strict=True) if part
        )
        return cls(value, math.sqrt(variance), third, freedom)

    def half(self, confidence: float = CONFIDENCE) -> float:
        """Half of the interval by Student's t alone, which is as wide on both sides."""
        return t_quantile(self.freedom, confidence) * self.error if self.freedom > 0 else math.nan

    def bounds(self, confidence: float = CONFIDENCE) -> tuple[float, float]:
        """The two-sided interval; NaN where the error is not known."""
        if self.error == 0:
            return self.value, self.value
        if not self.freedom > 0 or math.isnan(self.error):
            return math.nan, math.nan
        t, skewness = t_quantile(self.freedom, confidence), self.third / self.error**3
        return self.value - self.error * _unskewed(t, skewness), self.value - self.error * _unskewed(-t, skewness)


def _unskewed(t: float, skewness: float) -> float:
    """The standardised mean whose transform is ``t``, of a mean with that skewness: the inverse of Hall's cubic."""
    if abs(skewness) < 1e-9:
        return t
    return 3 / skewness * (math.cbrt(1 + skewness * (t - skewness / 6)) - 1)


@dataclass(frozen=True)
class Interval:
    """A mean and its bounds in the samples' own unit; ``n`` is how many samples it is of. NaN bounds: not enough.

    ``of`` is SEEDS (``n`` seeds), WITHIN (``n`` batches), SAME (``n`` seeds, no bounds), or empty: not said. ``source``
    has what the bounds were made of, where that is known.
    """

    mean: float
    low: float
    high: float
    n: int
    of: str = ""
    source: Mean | None = field(default=None, compare=False, repr=False)

    @classmethod
    def around(cls, source: Mean, n: int, of: str = "", *, confidence: float = CONFIDENCE) -> Interval:
        return cls(source.value, *source.bounds(confidence), n, of, source)

    def known(self) -> Mean:
        """The mean with its error; one that has bounds only is taken as symmetric, by the wider side, at 95%."""
        if self.source is not None:
            return self.source
        if self.of == SAME:
            return Mean(self.mean, 0.0, 0.0, self.n - 1)
        if self.n < 2:
            return Mean(self.mean, math.nan, 0.0, 0.0)
        # What is possible cuts one side at most.
        half = max(self.mean - self.low, self.high - self.mean)
        return Mean(self.mean, half / t_quantile(self.n - 1), 0.0, self.n - 1)

    def within(self, least: float, most: float) -> Interval:
        """The same with bounds that are possible: none below ``least`` or above ``most``, and the mean inside them."""
        if math.isnan(self.low):
            return self
        low, high = max(self.low, least), min(self.high, most)
        return replace(self, low=min(low, self.mean), high=max(high, self.mean))


def independent(samples: Sequence[float], *, confidence: float = CONFIDENCE) -> Interval:
    """The interval of the mean of independent samples, for instance the means of runs with different seeds.

    Two samples are the fewest that give bounds. Raises ValueError without any sample.
    """
    return Interval.around(Mean.of(samples), len(samples), confidence=confidence)


def batch_count(samples: int) -> int:
    """Batches for a series of that many samples: a tenth of them, between 10 and 30; 0 when it is too short."""
    if samples < FEWEST_BATCHES * SHORTEST_BATCH:
        return 0
    return max(FEWEST_BATCHES, min(MOST_BATCHES, samples // 10))


def batch_means(series: ArrayLike, *, confidence: float = CONFIDENCE) -> Interval:
    """The interval of the mean of one run, sampled evenly, by non-overlapping batch means.

    A remainder that fills no batch is left out at its start, where slow start is. The centre is the mean of all
    samples, not of those in batches only. It is symmetric: of batches that are not quite independent the skewness is
    not known. Raises ValueError without any sample.
    """
    import numpy as np

    samples = np.asarray(series, dtype=float)
    if samples.size == 0:
        raise ValueError("an interval needs at least one sample")
    mean = float(samples.mean())
    batches = batch_count(samples.size)
    if not batches:
        return Interval(mean, math.nan, math.nan, 0, WITHIN)
    length = samples.size // batches
    means = samples[samples.size - batches * length :].reshape(batches, length).mean(axis=1).tolist()
    return Interval.around(replace(Mean.of(means), value=mean, third=0.0), batches, WITHIN, confidence=confidence)


def seeds_to_decide(spreads: Sequence[float], distance: float) -> int | None:
    """How many seeds of each mean would tell a sum of independent means from what is ``distance`` away, by Student's t.

    ``spreads`` are the standard deviations from seed to seed, if they stay. None: more than ``MOST_SEEDS``, or not
    known.
    """
    for seeds in range(2, MOST_SEEDS + 1):
        means = [(1.0, Mean(0.0, spread / math.sqrt(seeds), 0.0, seeds - 1)) for spread in spreads]
        if Mean.total(0.0, means).half() < distance:
            return seeds
    return None


def t_quantile(freedom: float, confidence: float = CONFIDENCE) -> float:
    """Student's t: half of the two-sided interval, in standard errors. ``freedom`` may be broken, as Welch's is."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 0.5 + confidence / 2))
