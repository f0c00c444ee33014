"""Compare: the same scenario or study from several engines or settings, side by side."""

from sawtooth.compare.comparison import Comparison, compare, tolerance
from sawtooth.compare.figure import draw

__all__ = ["Comparison", "compare", "draw", "tolerance"]
