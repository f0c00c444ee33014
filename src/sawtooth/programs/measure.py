"""A number of a program: how long it took, its exit status, or one that it printed, by a JSON pointer (RFC 6901) or a
regular expression.
"""

from __future__ import annotations

import math
import re
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sawtooth.errors import InputError
from sawtooth.io.untrusted import json_value
from sawtooth.sanitize import plain

if TYPE_CHECKING:
    from sawtooth.programs.result import Finished
    from sawtooth.scenario import Scenario

_FIX = (
    'write "seconds", "stdout:/time_total" (a JSON pointer) or "stdout:([0-9.]+) Mbits" (a regular expression with '
    "one group)"
)


def check(scenario: Scenario) -> None:
    """Raises InputError ``bad-measure`` where a program of the scenario is asked for what is no place, ``conflict`` for
    a name that two have, ``file-not-found`` for a directory or a file that is not there.
    """
    names: set[str] = set()
    for number, program in enumerate(scenario.programs):
        field = f"programs.{number}"
        for name, place in program.measure.items():
            check_place(place, field=f"{field}.measure.{name}")
            if name in names:
                fix = f"give this one another name, like {name}_2"
                raise InputError("conflict", f"two measures are named {name}", field=f"{field}.measure.{name}", fix=fix)
            names.add(name)
        paths = [("directory", program.directory), *((f"files.{at}", one) for at, one in enumerate(program.files))]
        for what, path in paths:
            if path is not None and not Path(path).exists():
                message, fix = f"there is no {plain(path, 80)}", "make it, or name another one"
                raise InputError("file-not-found", message, field=f"{field}.{what}", fix=fix)


def check_place(place: str, *, field: str = "measure") -> None:
    """Raises InputError ``bad-measure`` where it names no place."""
    stream, colon, where = place.partition(":")
    if place in ("seconds", "status") or (stream in ("stdout", "stderr") and where):
        try:
            is_one = where.startswith("/") or not colon or re.compile(where).groups == 1
        except re.error as error:
            raise InputError("bad-measure", f'"{place[:80]}": {error}', field=field, fix=_FIX) from None
        if is_one:
            return
        raise InputError("bad-measure", f'"{place[:80]}" has not one group', field=field, fix=_FIX)
    raise InputError("bad-measure", f'"{place[:80]}" is no place in an output', field=field, fix=_FIX)


def value_of(place: str, program: Finished, *, field: str = "measure") -> float:
    """The number at ``place``: ``seconds`` from start to end, ``status`` as a shell has it, ``stdout:/a/0/b`` in JSON,
    or ``stderr:REGEX`` with one group, its last match.

    Raises InputError ``bad-measure``: as ``check_place``, or where there is no such number.
    """
    check_place(place, field=field)
    stream, _, where = place.partition(":")
    if place == "status":
        return float(program.exit_status)
    if place == "seconds":
        found: Any = program.seconds
    else:
        text = (program.stdout if stream == "stdout" else program.stderr).decode(errors="replace")
        found = _pointed(text, where) if where.startswith("/") else _matched(text, where)
    try:
        if math.isfinite(number := float(found)):
            return number
        raise ValueError
    except (TypeError, ValueError):
        said = "is not there" if found is None else f"is {str(found)[:60]!r}, which is no number"
        message = f'"{place[:80]}" of the program "{program.name}" {said}'
        printed = plain(" ".join((program.stdout or program.stderr)[:400].decode(errors="replace").split()), 80)
        fix = f'name a number that it prints; its output begins with "{printed}"' if printed else "it printed nothing"
        raise InputError("bad-measure", message, field=field, fix=fix) from None


def _pointed(text: str, pointer: str) -> object:
    try:
        value = json_value(text)
        for part in pointer[1:].split("/"):
            key = part.replace("~1", "/").replace("~0", "~")
            value = value[int(key)] if isinstance(value, list) else value[key]
    except (ValueError, KeyError, IndexError, TypeError):
        return None
    return value if not isinstance(value, bool) else None


def _matched(text: str, expression: str) -> object:
    found = deque(re.finditer(expression, text), maxlen=1)
    return found[0][1] if found else None
