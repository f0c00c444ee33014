"""Fairness: how evenly connections share, by the index of Jain, Chiu and Hawe (DEC-TR-301, 1984, equation 2); and how
much one flow harms another, by Ware, Mukerjee, Seshan and Sherry (*Beyond Jain's Fairness Index*, HotNets 2019, section
3).
"""

from __future__ import annotations

import math
from collections.abc import Sequence


def jain(rates: Sequence[float]) -> float:
    """(sum of x)^2 / (n * sum of x^2): 1 if all get the same, 1/n if one gets everything. NaN for fewer than two rates
    or if nothing was delivered. The unit of ``rates`` does not matter."""
    squares = math.fsum(rate**2 for rate in rates)
    if len(rates) < 2 or squares == 0:
        return math.nan
    return math.fsum(rates) ** 2 / (len(rates) * squares)


def harm(solo: float, competing: float) -> float:
    """(solo - competing) / solo, for a measure where more is better: 0 without harm, 1 if nothing is left, negative if
    the flow does better in company. NaN if ``solo`` is 0."""
    return (solo - competing) / solo if solo > 0 else math.nan
