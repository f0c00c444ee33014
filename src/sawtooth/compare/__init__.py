"""Compare: the same scenario or study as several engines or settings answered it, side by side."""

from sawtooth.compare.comparison import Comparison, compare, tolerance
from sawtooth.compare.figure import draw

__all__ = ["Comparison", "compare", "draw", "tolerance"]
