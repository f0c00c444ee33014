"""Plain: records of a compiled scenario as lists and dictionaries, and what is read back in parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

KEYS = {"source": "from", "target": "to"}
"""Names that Python does not have for an attribute."""
_WHERE_SET = (
    *(
        "aggregation_ns",
        "variant",
        "writes",
        "arrivals",
        "datagrams",
        "poisson",
        "reads",
        "asks",
        "on_off_ns",
        "discipline",
        "pace",
        "losses",
        "delays",
        "jitter",
        "reorder",
        "duplicate",
        "corrupt",
        "policer",
        "peakrate_bps",
        "minburst_bytes",
    ),
    *("table", "correlation_ppb"),
    *("ecn", "ecn_insists", "ce_threshold_ns", "harddrop", "gro_ns", "queue_delays"),
)
"""Written only where they are set."""
_TAGGED = ("times", "sizes", "think")
"""Fields that are so told."""
Tagged = tuple[str, Any]
"""A kind, and what there is to say of it."""


def plain(value: Any) -> Any:
    """Tuples as lists, records as dictionaries; under its ``kind`` a record that has one."""
    if isinstance(value, tuple):
        return [plain(one) for one in value]
    if not is_dataclass(value):
        return value
    kind = getattr(value, "kind", None)
    return record(value) if kind is None else {kind: record(value)}


def record(one: Any) -> dict[str, Any]:
    """A record's fields, without its kind."""
    told = {}
    for field in fields(one):
        value = getattr(one, field.name)
        # Engines make of a module what they can run.
        if field.name != "module" and (value or field.name not in _WHERE_SET):
            told[KEYS.get(field.name, field.name)] = _tag(value) if field.name in _TAGGED else plain(value)
    return told


def _tag(value: Tagged) -> dict[str, Any]:
    kind, told = value
    return {kind: plain(told)}


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
