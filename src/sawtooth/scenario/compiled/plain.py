"""Converts parts of the core's JSON for Python's records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Tagged = tuple[str, Any]
"""A kind with its parameters."""


def tuples(told: Any) -> Any:
    """Nested lists as tuples."""
    return tuple(tuples(one) for one in told) if isinstance(told, list) else told


def pair(told: list[int] | None) -> tuple[int, int] | None:
    """A pair, or None."""
    return None if told is None else (told[0], told[1])


def tagged(told: Mapping[str, Any]) -> Tagged:
    """A kind with its parameters."""
    ((kind, value),) = told.items()
    return kind, tuples(value)
