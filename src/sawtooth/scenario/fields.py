"""Fields of a scenario by dotted path, as for ``--set``; used for shell completion."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sawtooth import _core


def fields() -> list[str]:
    """Each field of each table; those of a list without an index: ``flows.cc`` means all flows."""
    schema = _core.Scenario.schema()
    found: list[str] = []
    for table, told in schema["properties"].items():
        below = _table_in(told)
        inner = {} if below is None else schema["$defs"][below]["properties"]
        found += [f"{table}.{field}" for field in inner] or [table]
    return sorted(found)


def _table_in(told: Mapping[str, Any]) -> str | None:
    """The name of the table inside a table, a list or tables by name; None if there is none."""
    inside = [told, *told.get("anyOf", ())]
    inside += [told[key] for key in ("items", "additionalProperties") if isinstance(told.get(key), dict)]
    names = [one["$ref"].rpartition("/")[2] for one in inside if "$ref" in one]
    return next((name for name in names if name not in ("Rate", "Span", "Size", "Loss", "Burst", "Queue")), None)
