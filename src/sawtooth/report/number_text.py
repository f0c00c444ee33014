"""Formats numbers for the page. Unknown values are a dash."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from sawtooth.study.mean_counts import count_text

UNKNOWN = "–"


def number(value: float | None, digits: int = 2) -> str:
    """A number with separators, like 1,234.50."""
    return UNKNOWN if value is None or math.isnan(value) else f"{_zeroed(value, digits):,.{digits}f}".replace("-", "−")


def short(value: float) -> str:
    """A number with four digits."""
    return UNKNOWN if math.isnan(value) else f"{value:.4g}"


def counted(value: float | None) -> str:
    """A count, or the mean of counts over runs: 17,654, 5,884.7, 0.33."""
    if value is None or math.isnan(value):
        return UNKNOWN
    return f"{value:,.{0 if value == round(value) else 1}f}" if value >= 1 else count_text(value)


def percent(share: float) -> str:
    """A fraction as percent: 12.5%."""
    return UNKNOWN if math.isnan(share) else f"{share:.1%}"


def signed(value: float | None) -> str:
    """A change in percent: −12.5%. A change that rounds to zero has no sign."""
    if value is None or math.isnan(value):
        return UNKNOWN
    rounded = _zeroed(value, 1)
    return f"{rounded:+.1f}%".replace("-", "−") if rounded else "0.0%"


def _zeroed(value: float, digits: int) -> float:
    """Round, and remove the sign of zero."""
    return 0.0 if round(value, digits) == 0 else value


def known(rows: Sequence[Mapping[Any, Any]], *columns: str) -> bool:
    """Whether any row has a value in any of these columns."""
    return any(row.get(name) is not None and row[name] == row[name] for row in rows for name in columns)
