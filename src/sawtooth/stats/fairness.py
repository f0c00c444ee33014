"""Fairness: how evenly connections share, by the index of Jain, Chiu and Hawe (DEC-TR-301, 1984, equation 2)."""

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
