"""Fairness: how evenly connections share, by the index of Jain, Chiu and Hawe (DEC-TR-301, 1984, equation 2); and what
one flow does to another, by the harm of Ware, Mukerjee, Seshan and Sherry (*Beyond Jain's Fairness Index*, HotNets
2019, section 3).
"""

from __future__ import annotations

import math
from collections.abc import Sequence


def jain(rates: Sequence[float]) -> float:
    """(sum of x)^2 / (n * sum of x^2): 1 when all get the same, 1/n when one gets all. NaN of fewer than two, or of
    nothing delivered. The unit of ``rates`` does not matter.
    """
    squares = math.fsum(rate**2 for rate in rates)
    if len(rates) < 2 or squares == 0:
        return math.nan
    return math.fsum(rates) ** 2 / (len(rates) * squares)


def harm(solo: float, competing: float) -> float:
    """(solo - competing) / solo, of what is better the more there is of it, as throughput: 0 without harm, 1 where
    nothing is left. Negative where it fares better in company. NaN without anything alone.
    """
    return (solo - competing) / solo if solo > 0 else math.nan
