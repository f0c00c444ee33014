"""Confidence intervals of a mean: of independent samples, of correlated samples, and of sums of means.

All intervals over seeds come from here. The spread of runs is often skewed: one seed in ten meets many timeouts, the
others fill the line. Student's t then misses the mean on the side of the long tail. Hall's transformation removes the
skewness of the mean before t is used (Hall 1992, *On the removal of skewness by transformation*, Journal of the Royal
Statistical Society B 54, 221-228, the cubic one). Without skewness it equals Student's t.
``experiments/coverage_of_intervals.py`` measures how often such an interval contains the mean;
docs/explanation/measures.md has the table.

A second of TCP throughput resembles the previous one, so the textbook interval of n independent samples is too narrow.
Non-overlapping batch means (Law and Kelton, *Simulation Modeling and Analysis*, section 9.5.3; Schmeiser 1982) cut the
series into batches that are long enough to be nearly independent, and use Student's t on their means.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

CONFIDENCE = 0.95
MOST_BATCHES = 30
"""Schmeiser 1982: more than 30 batches hardly narrow the interval, and shorter batches are less independent."""
FEWEST_BATCHES = 10
SHORTEST_BATCH = 2
"""Samples per batch. Series of fewer than 20 samples get no interval."""
MOST_SEEDS = 1000
"""More seeds are not advised: the difference is about as large as the limit it is compared with."""


SEEDS, WITHIN, SAME = "seeds", "run", "same"
"""What an interval is computed from: the means of several seeds, the batches of one run, or seeds that all gave the
same."""


@dataclass(frozen=True)
class Mean:
    """A mean and its error, in the unit of the samples.

    ``error`` is the standard error (NaN: unknown), ``third`` the third central moment of the mean, in the unit's third
    power (0: not skewed), ``freedom`` the degrees of freedom of Student's t.
    """

    value: float
    error: float
    third: float
    freedom: float

    @classmethod
    def of(cls, samples: Sequence[float]) -> Mean:
        """The mean of independent samples. Raises ValueError without any."""
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
        """A mean ``value`` whose error is the sum of factors times the errors of independent means.

        The degrees of freedom are those of Welch and Satterthwaite (Welch 1947). The error is NaN if a part's is.
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
        """Half the width of the symmetric interval by Student's t alone."""
        return t_quantile(self.freedom, confidence) * self.error if self.freedom > 0 else math.nan

    def bounds(self, confidence: float = CONFIDENCE) -> tuple[float, float]:
        """The two-sided interval; NaN if the error is unknown."""
        if self.error == 0:
            return self.value, self.value
        if not self.freedom > 0 or math.isnan(self.error):
            return math.nan, math.nan
        t, skewness = t_quantile(self.freedom, confidence), self.third / self.error**3
        return self.value - self.error * _unskewed(t, skewness), self.value - self.error * _unskewed(-t, skewness)


def _unskewed(t: float, skewness: float) -> float:
    """Inverse of Hall's cubic: the standardized mean whose transform is ``t``, for a mean with that skewness."""
    if abs(skewness) < 1e-9:
        return t
    return 3 / skewness * (math.cbrt(1 + skewness * (t - skewness / 6)) - 1)


@dataclass(frozen=True)
class Interval:
    """A mean and its bounds in the unit of the samples; ``n`` is the number of samples. NaN bounds: too few samples.

    ``of`` is SEEDS (``n`` seeds), WITHIN (``n`` batches), SAME (``n`` seeds, no bounds), or empty (unknown). ``source``
    is the ``Mean`` behind the bounds, if known.
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
        """The mean with its error. If only bounds are known, the wider side is taken for both, at 95%."""
        if self.source is not None:
            return self.source
        if self.of == SAME:
            return Mean(self.mean, 0.0, 0.0, self.n - 1)
        if self.n < 2:
            return Mean(self.mean, math.nan, 0.0, 0.0)
        # ``within`` cuts at most one side.
        half = max(self.mean - self.low, self.high - self.mean)
        return Mean(self.mean, half / t_quantile(self.n - 1), 0.0, self.n - 1)

    def describe(self) -> dict[str, float | None]:
        """As JSON values; what is not finite is None."""
        values = {"mean": self.mean, "low": self.low, "high": self.high}
        return {name: value if math.isfinite(value) else None for name, value in values.items()}

    def within(self, least: float, most: float) -> Interval:
        """The same interval limited to possible values: no bound below ``least`` or above ``most``, and the mean
        inside."""
        if math.isnan(self.low):
            return self
        low, high = max(self.low, least), min(self.high, most)
        return replace(self, low=min(low, self.mean), high=max(high, self.mean))


def independent(samples: Sequence[float], *, confidence: float = CONFIDENCE) -> Interval:
    """The interval of the mean of independent samples, such as the means of runs with different seeds.

    Bounds need at least two samples. Raises ValueError without any sample.
    """
    return Interval.around(Mean.of(samples), len(samples), confidence=confidence)


def batch_count(samples: int) -> int:
    """Number of batches for a series of ``samples``: a tenth of them, between 10 and 30; 0 if the series is too
    short."""
    if samples < FEWEST_BATCHES * SHORTEST_BATCH:
        return 0
    return max(FEWEST_BATCHES, min(MOST_BATCHES, samples // 10))


def batch_means(series: ArrayLike, *, confidence: float = CONFIDENCE) -> Interval:
    """The interval of the mean of one evenly sampled run, by non-overlapping batch means.

    A remainder that fills no batch is left out at the start, where slow start is. The center is the mean of all
    samples. The interval is symmetric, because the skewness of batches that are not quite independent is unknown.
    Raises ValueError without any sample.
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
    """How many seeds per mean would separate a sum of independent means from a value ``distance`` away, by Student's t.

    ``spreads`` are the standard deviations between seeds, assumed to stay. None: more than ``MOST_SEEDS``, or unknown.
    """
    for seeds in range(2, MOST_SEEDS + 1):
        means = [(1.0, Mean(0.0, spread / math.sqrt(seeds), 0.0, seeds - 1)) for spread in spreads]
        if Mean.total(0.0, means).half() < distance:
            return seeds
    return None


def t_quantile(freedom: float, confidence: float = CONFIDENCE) -> float:
    """Student's t: half of the two-sided interval, in standard errors. ``freedom`` may be fractional, as Welch's is."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 0.5 + confidence / 2))


def beyond(samples: Sequence[float] | NDArray[np.float64], part: float) -> float:
    """The value below which the share ``part`` of further draws lies: the k-th of n draws has k / (n + 1) below it
    (Weibull)."""
    import numpy as np

    return float(np.quantile(samples, part, method="weibull"))
