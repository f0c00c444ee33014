"""Writes a figure's columns as compact JSON: seven digits, and evenly spaced columns by their start, step and
length."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Column = Sequence[float] | NDArray[Any]
else:
    Column = Any

_DIGITS = 7
"""More digits than a screen shows, even after zooming in a thousandfold."""
_FEW = 4
"""Up to this many numbers, the list is as short as start, step and length."""


def column(values: Column) -> list[float | None] | dict[str, float]:
    """The numbers, or ``{"from", "step", "count"}`` if they are evenly spaced to the last digit."""
    import numpy as np

    numbers = np.asarray(values, dtype=float)
    if len(numbers) > _FEW and np.isfinite(numbers).all():
        step = (numbers[-1] - numbers[0]) / (len(numbers) - 1)
        even = numbers[0] + step * np.arange(len(numbers))
        if step > 0 and np.abs(even - numbers).max() < step * 1e-6:
            return {"from": _short(numbers[0], 12), "step": _short(step, 12), "count": len(numbers)}
    return [_short(value) if math.isfinite(value) else None for value in numbers.tolist()]


def _short(value: float, digits: int = _DIGITS) -> float:
    rounded = float(f"{value:.{digits}g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e15 else rounded


def plain(value: Any) -> float | int | str | None:
    """A table's value as a JSON value."""
    found = value.item() if hasattr(value, "item") else value
    if found is None or (isinstance(found, float) and not math.isfinite(found)):
        return None
    return found if isinstance(found, (int, float, str)) else str(found)
