"""Fields set by dotted path, as ``--set`` and the axes of a study do.

``path.rtt`` a field; ``host.hz`` all hosts; ``hosts.h1.hz`` one; ``flows.cc`` every flow that has one;
``flows.0.cc`` the first; ``flows.NAME.cc`` and ``links.NAME.loss`` by name.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from sawtooth.errors import InputError, suggestion
from sawtooth.plain import plain
from sawtooth.scenario.toml import DEEPEST, parse_toml

LISTS = ("flows", "links", "probes", "routes")


def parse_assignment(text: str) -> tuple[str, Any]:
    """``KEY=VALUE`` from the command line. VALUE is TOML where it is that (``3``, ``true``, ``["a"]``), else text.

    Raises SawtoothError ``bad-override``.
    """
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise InputError(
            "bad-override",
            f'"{plain(text, 80)}" is not FIELD=VALUE',
            field="--set",
            fix='write it like path.rtt="140 ms"',
        )
    return key.strip(), parse_value(value.strip())


def parse_value(text: str) -> Any:
    """A TOML value, or the text itself when it is none."""
    try:
        read = parse_toml(f"value = {text}")
    except InputError:
        return text
    return read["value"] if list(read) == ["value"] else text


def apply(tables: Mapping[str, Any], changes: Mapping[str, Any], names: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """A copy of a scenario's ``tables`` with ``changes`` made. ``names`` has the names of the items of each list.

    Tables on the way that are absent are made. Whether the result means something is for the validation to say; this
    raises SawtoothError ``bad-override`` for a path that leads nowhere and ``unknown-name`` for an unknown item.
    """
    changed: dict[str, Any] = copy.deepcopy(dict(tables))
    named = dict(names)
    # Copied: a change of a whole table may be followed by one of a field in it.
    for key, value in copy.deepcopy(dict(changes)).items():
        steps = key.split(".")
        if not all(steps):
            raise InputError(
                "bad-override", f'"{plain(key)}" is not a field', field=key or None, fix="write it like path.rtt"
            )
        if len(steps) > DEEPEST:
            message = f"no field is {len(steps)} levels deep"
            raise InputError("bad-override", message, field=key, fix="write it like path.rtt")
        if steps[0] in LISTS and len(steps) > 1:
            _set_in_list(changed, key, steps, value, named.get(steps[0], ()))
            continue
        _set(changed, key, steps, value)
        if steps[0] in LISTS:
            # Another list: what follows means its items, by the names that they were given.
            items = value if isinstance(value, list) else []
            named[steps[0]] = [item.get("name", "") if isinstance(item, dict) else "" for item in items]
    return changed


def _set_in_list(tables: dict[str, Any], key: str, steps: list[str], value: Any, names: Sequence[str]) -> None:
    items = tables.get(steps[0]) or []
    if not isinstance(items, list):
        fix = f"give it as a list of tables, or set single fields, like {steps[0]}.0.{steps[-1][:20]}"
        raise InputError("bad-override", f"{steps[0]} is no list of tables", field=key, fix=fix)
    if not items:
        fix = f"add [[{steps[0]}]] to the scenario first"
        raise InputError("bad-override", f"there are no {steps[0]} to set", field=key, fix=fix)
    if steps[1].isdigit() and len(steps[1]) < 10:
        if int(steps[1]) >= len(items):
            message = f"the scenario has {len(items)} of these {steps[0]}, counted from 0"
            raise InputError(
                "bad-override",
                message,
                field=key,
                fix="choose 0" if len(items) == 1 else f"choose 0 … {len(items) - 1}",
            )
        chosen, rest = [items[int(steps[1])]], steps[2:]
    elif steps[1] in names:
        chosen, rest = [items[list(names).index(steps[1])]], steps[2:]
    elif len(steps) == 2 or steps[1] in ("forward", "backward", "replace", "source"):
        chosen, rest = items, steps[1:]
        if rest[0] == "cc" and not all(_datagrams(item) for item in items):
            chosen = [item for item in items if not _datagrams(item)]
    else:
        message = f'none of the {steps[0]} is named "{plain(steps[1], 60)}"'
        raise InputError("unknown-name", message, field=key, fix=suggestion(steps[1], names))
    if not rest:
        fix = f"name a field of it, like {plain(key)}.{'loss' if steps[0] == 'links' else 'start'}"
        raise InputError("bad-override", f'"{plain(key)}" is a whole table', field=key, fix=fix)
    for item in chosen:
        _set(item, key, rest, value)


def _datagrams(flow: Any) -> bool:
    """Whether it has no congestion control that could be another one."""
    source = flow.get("source") if isinstance(flow, dict) else None
    return isinstance(source, dict) and source.get("kind") == "udp"


def _set(table: Any, key: str, steps: Sequence[str], value: Any) -> None:
    for step in steps[:-1]:
        if not isinstance(table, dict):
            break
        if step == "cc" and isinstance(table.get(step), str):
            # A name makes room for a module, and gets a variant.
            table[step] = {"name": table[step]} if steps[-1] == "variant" else {}
        if step == "queue" and isinstance(table.get(step), str):
            # The limit of a tail-drop queue is none of another kind's.
            table[step] = {}
        table = table.setdefault(step, {})
    if not isinstance(table, dict):
        fix = "write it like path.rtt"
        raise InputError(
            "bad-override", f'"{plain(key)}" names a field below one that is not a table', field=key, fix=fix
        )
    table[steps[-1]] = value
