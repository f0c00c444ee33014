"""Code that answers with one unknown and with several share."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Check:
    """The result of another engine at one value (or one value per unknown): means of both sides over ``seeds``, and
    whether the goal clearly holds there: "yes", "no", or "unclear" (these seeds are inconclusive)."""

    engine: str
    value: Any
    left: float
    right: float
    seeds: int
    holds: str


def known(value: float) -> float | None:
    """A number for JSON, which has neither NaN nor infinity."""
    return value if math.isfinite(value) else None


def rounded(value: float) -> float:
    """A number as displayed."""
    return float(f"{value:.3g}") if abs(value) < 1000 else float(f"{value:.4g}")
