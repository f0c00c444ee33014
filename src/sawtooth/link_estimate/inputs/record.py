"""Record: one JSON object in a file of probes, with checked access; errors name its line."""

from __future__ import annotations

import json
from typing import Any

from sawtooth.errors import InputError
from sawtooth.io import untrusted
from sawtooth.io.untrusted import json_value

FIX = "give what sawtooth probe wrote, the output of ping, scamper's or RIPE Atlas' JSON, or CSV like sent_s,rtt_ms"


def bad(message: str, line: int | None = None, fix: str = FIX) -> InputError:
    """An error about a file, with the line counted from 1."""
    where = "" if line is None else f"line {line}: "
    return InputError("not-a-series", where + message, fix=fix)


class Record(untrusted.Record):
    """``values`` of the object that starts in ``line``. Every getter raises SawtoothError ``not-a-series``."""

    def wrong(self, message: str) -> InputError:
        """The error that names this record's line."""
        return bad(message, self.line, "give the file as it was written")


def records(text: str) -> list[Record]:
    """A JSON array of objects, one object, or one object per line. Raises SawtoothError ``not-a-series``."""
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip("\ufeff \t\r")]
    first_line, first = lines[0]
    if first.lstrip("\ufeff \t").startswith("{") and _whole(first):
        return [_object(_parsed(line, number), number) for number, line in lines]
    whole = _parsed(text.lstrip("\ufeff"), 1)
    objects = whole if isinstance(whole, list) else [whole]
    if not objects:
        raise bad("an array without an object", first_line)
    return [_object(one, first_line) for one in objects]


def _whole(line: str) -> bool:
    """Whether a line completes an object: it is JSON, or invalid in a way that more lines would not repair."""
    try:
        json_value(line.strip("\ufeff \t\r"))
    except json.JSONDecodeError:
        return False
    except ValueError:
        return True
    return True


def _parsed(text: str, line: int) -> Any:
    try:
        return json_value(text.strip("\ufeff") if line == 1 else text)
    except json.JSONDecodeError as error:
        message = f"not whole JSON: {error.msg} (column {error.colno})"
        fix = "give the unedited file; if it was cut off, remove the incomplete last part"
        raise bad(message, line + error.lineno - 1, fix) from None
    except ValueError as error:
        raise bad(f"not JSON that can be read: {error}", line) from None


def _object(value: Any, line: int) -> Record:
    if not isinstance(value, dict):
        raise bad("not an object of JSON", line)
    return Record(value, line)
