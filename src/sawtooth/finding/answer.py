"""What answers of one unknown and of several have in common."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Check:
    """What another engine says at one value, or at one of each unknown: means of both sides over ``seeds``, and whether
    it clearly holds there ("yes", "no", or "unclear": these seeds are inconclusive)."""

    engine: str
    value: Any
    left: float
    right: float
    seeds: int
    holds: str


def known(value: float) -> float | None:
    """Of JSON, which has no NaN."""
    return None if math.isnan(value) else value


def rounded(value: float) -> float:
    """As it is told."""
    return float(f"{value:.3g}") if abs(value) < 1000 else float(f"{value:.4g}")
