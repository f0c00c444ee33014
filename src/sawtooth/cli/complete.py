"""Shell completion of words: shipped studies, engines, congestion controls, fields of --set."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import click
from click.shell_completion import CompletionItem

_ONE = re.compile(r"([a-z]+)\.\d+\.")


def _beginning(typed: str, names: Iterable[str]) -> list[CompletionItem]:
    return [CompletionItem(name) for name in names if name.startswith(typed)]


def studies(_: click.Context, __: click.Parameter, typed: str) -> list[CompletionItem]:
    """Shipped studies, and files."""
    from sawtooth.study.shipped import shipped

    return _beginning(typed, shipped()) or [CompletionItem(typed, type="file")]


def replications(_: click.Context, __: click.Parameter, typed: str) -> list[CompletionItem]:
    """Shipped replications, and folders."""
    from sawtooth.replication.shipped import shipped

    return _beginning(typed, shipped()) or [CompletionItem(typed, type="dir")]


def engines(_: click.Context, __: click.Parameter, typed: str) -> list[CompletionItem]:
    """Names of engines."""
    from sawtooth.engines import NAMES

    return _beginning(typed, NAMES)


def schemas(_: click.Context, __: click.Parameter, typed: str) -> list[CompletionItem]:
    """Names of the available JSON Schemas."""
    from sawtooth.api import SCHEMAS

    return _beginning(typed, SCHEMAS)


def states(_: click.Context, __: click.Parameter, typed: str) -> list[CompletionItem]:
    """Names of the states of results."""
    from sawtooth.results import STATES

    return _beginning(typed, STATES)


def controls(_: click.Context, __: click.Parameter, typed: str) -> list[CompletionItem]:
    """Names of congestion controls."""
    from sawtooth.scenario import CONGESTION_CONTROLS

    return _beginning(typed, CONGESTION_CONTROLS)


def assignments(_: click.Context, __: click.Parameter, typed: str) -> list[CompletionItem]:
    """Fields by dotted path; after ``=``, the allowed words if the field has a fixed list."""
    from sawtooth.scenario import CONGESTION_CONTROLS

    # flows.0.cc is the field of the first flow, flows.cc that of all flows.
    one = _ONE.match(typed)
    field = typed.partition("=")[0] if "=" in typed else ""
    if field == "flows.cc" or (one and field == f"{one[0]}cc"):
        words = [f"{field}={name}" for name in CONGESTION_CONTROLS]
    elif one:
        words = [f"{one[0]}{name.partition('.')[2]}=" for name in _fields() if name.startswith(f"{one[1]}.")]
    else:
        words = [f"{name}=" for name in _fields()]
    return [CompletionItem(word) for word in words if word.startswith(typed)]


def _fields() -> list[str]:
    """Each field of each table; those of a list without an index: ``flows.cc`` means all flows."""
    from sawtooth import _core

    schema = _core.Scenario.schema()
    found: list[str] = []
    for table, definition in schema["properties"].items():
        below = _table_in(definition)
        inner = {} if below is None else schema["$defs"][below]["properties"]
        found += [f"{table}.{field}" for field in inner] or [table]
    return sorted(found)


def _table_in(definition: Mapping[str, Any]) -> str | None:
    """The name of the table inside a table, a list or tables by name; None if there is none."""
    inside = [definition, *definition.get("anyOf", ())]
    inside += [definition[key] for key in ("items", "additionalProperties") if isinstance(definition.get(key), dict)]
    names = [one["$ref"].rpartition("/")[2] for one in inside if "$ref" in one]
    return next((name for name in names if name not in ("Rate", "Span", "Size", "Loss", "Burst", "Queue")), None)
