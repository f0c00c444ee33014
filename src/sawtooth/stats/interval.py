"""Confidence intervals of a mean: of independent samples, and of samples that are correlated.

A second of TCP throughput resembles the second before it, so the textbook interval of n independent samples is too
narrow. Non-overlapping batch means (Law and Kelton, *Simulation Modeling and Analysis*, section 9.5.3; Schmeiser 1982)
cut the series into batches that are long enough to be nearly independent and use Student's t on the batches' means.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

CONFIDENCE = 0.95
MOST_BATCHES = 30
"""Schmeiser 1982: more than 30 batches hardly narrow the interval, and shorter batches are less independent."""
FEWEST_BATCHES = 10
SHORTEST_BATCH = 2
"""Samples. Series of fewer than 20 samples get no interval."""


SEEDS, WITHIN, SAME = "seeds", "run", "same"
"""What an interval is of: the means of several seeds, the batches within one run, or seeds that all gave the same."""


@dataclass(frozen=True)
class Interval:
    """A mean and its bounds in the samples' own unit; ``n`` is what the t quantile counted. NaN bounds: not enough.

    ``of`` is SEEDS (``n`` seeds), WITHIN (``n`` batches), SAME (``n`` seeds, no bounds), or empty: not said.
    """

    mean: float
    low: float
    high: float
    n: int
    of: str = ""


def independent(samples: Sequence[float], *, confidence: float = CONFIDENCE) -> Interval:
    """The interval of the mean of independent samples, for instance the means of runs with different seeds.

    Two samples are the fewest that give bounds. Raises ValueError without any sample.
    """
    n = len(samples)
    if n == 0:
        raise ValueError("an interval needs at least one sample")
    mean = math.fsum(samples) / n
    if n == 1:
        return Interval(mean, math.nan, math.nan, 1)
    variance = math.fsum((sample - mean) ** 2 for sample in samples) / (n - 1)
    half = t_quantile(n - 1, confidence) * math.sqrt(variance / n)
    return Interval(mean, mean - half, mean + half, n)


def batch_count(samples: int) -> int:
    """Batches for a series of that many samples: a tenth of them, between 10 and 30; 0 when it is too short."""
    if samples < FEWEST_BATCHES * SHORTEST_BATCH:
        return 0
    return max(FEWEST_BATCHES, min(MOST_BATCHES, samples // 10))


def batch_means(series: ArrayLike, *, confidence: float = CONFIDENCE) -> Interval:
    """The interval of the mean of one run, sampled evenly, by non-overlapping batch means.

    A remainder that fills no batch is left out at its start, where slow start is. The centre is the mean of all
    samples, not of those in batches only. Raises ValueError without any sample.
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
    spread = independent(means, confidence=confidence)
    half = (spread.high - spread.low) / 2
    return Interval(mean, mean - half, mean + half, batches, WITHIN)


def t_quantile(freedom: float, confidence: float = CONFIDENCE) -> float:
    """Student's t: half of the two-sided interval, in standard errors. ``freedom`` may be broken, as Welch's is."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 0.5 + confidence / 2))
