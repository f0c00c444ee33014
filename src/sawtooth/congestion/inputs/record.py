"""Record: one JSON object of a foreign file, read with care; and the error that names its line."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

from sawtooth.errors import InputError

FIX = "give what sawtooth probe wrote, the output of ping, scamper's or RIPE Atlas' JSON, or CSV like sent_s,rtt_ms"


def bad(message: str, line: int | None = None, fix: str = FIX) -> InputError:
    """What is wrong with a file, and in which line, counted from 1."""
    where = "" if line is None else f"line {line}: "
    return InputError("not-a-series", where + message, fix=fix)


@dataclass(frozen=True)
class Record:
    """``values`` of the object that starts in ``line``. Every getter raises SawtoothError ``not-a-series``."""

    values: dict[str, Any]
    line: int

    def number(self, name: str, default: float | None = None) -> float:
        """A finite number; ``default`` where it is absent."""
        value = self.values.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.wrong(f'"{name}" is no number')
        try:
            found = float(value)
        except OverflowError:
            found = math.inf
        if not math.isfinite(found):
            raise self.wrong(f'"{name}" is no finite number')
        return found

    def text(self, name: str) -> str:
        """Empty where it is absent."""
        value = self.values.get(name)
        return "" if value is None else str(value)[:200]

    def records(self, name: str) -> list[Record]:
        """A list of objects; empty where it is absent."""
        value = self.values.get(name, [])
        if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
            raise self.wrong(f'"{name}" is no list of objects')
        return [Record(one, self.line) for one in value]

    def record(self, name: str) -> Record | None:
        """An object; None where it is absent."""
        value = self.values.get(name)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self.wrong(f'"{name}" is no object')
        return Record(value, self.line)

    def wrong(self, message: str) -> InputError:
        """The error that names this record's line."""
        return bad(message, self.line, "give the file as it was written")


def records(text: str) -> list[Record]:
    """A JSON array of objects, one object, or an object a line. Raises SawtoothError ``not-a-series``."""
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
    try:
        json.loads(line.strip("\ufeff \t\r"))
    except (ValueError, RecursionError):
        return False
    return True


def _parsed(text: str, line: int) -> Any:
    try:
        return json.loads(text.strip("\ufeff") if line == 1 else text)
    except json.JSONDecodeError as error:
        message = f"not whole JSON: {error.msg} (column {error.colno})"
        fix = "give the file as it was written; of a file that was cut, leave out what is not whole"
        raise bad(message, line + error.lineno - 1, fix) from None
    except (ValueError, RecursionError) as error:
        raise bad(f"not JSON: {error}", line) from None


def _object(value: Any, line: int) -> Record:
    if not isinstance(value, dict):
        raise bad("not an object of JSON", line)
    return Record(value, line)
