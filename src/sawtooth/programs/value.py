"""Extracts a number from a program's output: by a JSON pointer (RFC 6901) or a regular expression."""

from __future__ import annotations

import math
import re

from sawtooth.errors import InputError
from sawtooth.foreign import json_value

_STREAMS = ("stdout", "stderr")
_FIX = 'write "stdout:/time_total", a JSON pointer, or "stdout:([0-9.]+) Mbits", a regular expression with one group'


def value_of(wanted: str, stdout: str, stderr: str, *, field: str = "measure") -> float:
    """The number that ``wanted`` names: ``stdout:/a/0/b`` in JSON, or ``stderr:REGEX`` with one group, its last match.

    Raises InputError ``bad-measure`` if ``wanted`` has another form, or the output has no such number.
    """
    stream, colon, place = wanted.partition(":")
    if not colon or stream not in _STREAMS or not place:
        raise InputError("bad-measure", f'"{wanted[:80]}" is no place in an output', field=field, fix=_FIX)
    text = stdout if stream == "stdout" else stderr
    found = _pointed(text, place) if place.startswith("/") else _matched(text, place, field)
    try:
        if math.isfinite(number := float(found)):  # type: ignore[arg-type]
            return number
        raise ValueError
    except (TypeError, ValueError):
        said = "has nothing there" if found is None else f"has {str(found)[:60]!r} there, which is no number"
        raise InputError(
            "bad-measure", f'the {stream} of the program {said}: "{place[:80]}"', field=field, fix=_FIX
        ) from None


def _pointed(text: str, pointer: str) -> object:
    try:
        value = json_value(text)
        for part in pointer[1:].split("/"):
            key = part.replace("~1", "/").replace("~0", "~")
            value = value[int(key)] if isinstance(value, list) else value[key]
    except (ValueError, KeyError, IndexError, TypeError):
        return None
    return value if not isinstance(value, bool) else None


def _matched(text: str, expression: str, field: str) -> object:
    try:
        found = list(re.finditer(expression, text))
        return found[-1][1] if found else None
    except (re.error, IndexError) as error:
        raise InputError("bad-measure", f'"{expression[:80]}": {error}', field=field, fix=_FIX) from None
