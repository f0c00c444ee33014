"""Plain: parts of the core's JSON as Python's records have them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Tagged = tuple[str, Any]
"""A kind, and what there is to say of it."""


def tuples(told: Any) -> Any:
    """Lists, and lists in them, as tuples."""
    return tuple(tuples(one) for one in told) if isinstance(told, list) else told


def pair(told: list[int] | None) -> tuple[int, int] | None:
    """Two, or none."""
    return None if told is None else (told[0], told[1])


def tagged(told: Mapping[str, Any]) -> Tagged:
    """A kind, and what there is to say of it."""
    ((kind, value),) = told.items()
    return kind, tuples(value)
