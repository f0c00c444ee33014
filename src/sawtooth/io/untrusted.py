"""Reads foreign text with the same checks everywhere: what other programs and people wrote, and saved files that may be
damaged.

Files are regular and of bounded size, JSON of bounded depth. Numbers must be finite and at most 1e21 (bit/s, bytes or
ns: no path and no clock has more). Text becomes one line that a terminal may show. Every reader of such text uses this
module, and words its own errors.
"""

from __future__ import annotations

import errno
import json
import math
import os
import stat
import sys
from dataclasses import dataclass
from os import PathLike
from typing import Any, BinaryIO, Self

from sawtooth.errors import InputError
from sawtooth.sanitize import plain

LARGEST = 1e21
"""Largest number. A larger one is not a measurement, and overflows when squared and multiplied."""
DEEPEST = 64
"""Deepest nesting of objects and lists."""
MOST_PARTS = 4_000_000
"""Most objects and lists in one JSON text: a gigabyte of memory."""
LONGEST_LINE = 4000
"""Most characters of a line that is matched with a pattern: programs print no longer ones."""
_LONGEST_NUMBER = 100
"""Most characters of a number."""
_PIECE = 1 << 20


def read_bytes(path: str | PathLike[str], most: int) -> bytes:
    """A file, or standard input for "-"; one byte more than ``most`` if it is larger.

    Raises SawtoothError ``file-not-found`` or ``file-unreadable``.
    """
    try:
        if str(path) == "-":
            if sys.stdin is None:
                raise OSError(errno.EBADF, "standard input is closed")
            return _pieces(sys.stdin.buffer, most)
        regular(path)
        with open(path, "rb") as file:
            return _pieces(file, most)
    except FileNotFoundError:
        fix = "check the name and the directory"
        raise InputError("file-not-found", "there is no such file", file=path, fix=fix) from None
    except InputError:
        raise
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise InputError(
            "file-unreadable", f"cannot read it: {why}", file=path, fix="make it readable, or give another file"
        ) from None


def regular(path: str | PathLike[str]) -> None:
    """Refuses what would block or never end: a directory, a pipe, a socket, a device.

    Raises SawtoothError ``file-unreadable``. A missing file is left to the reader.
    """
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return
    if not stat.S_ISREG(mode):
        fix = "give a regular file, or - for standard input where the command reads it"
        raise InputError("file-unreadable", f"it is {_kind(mode)}, not a file", file=path, fix=fix)


def part(path: str | PathLike[str], start: int, most: int) -> bytes:
    """Up to ``most`` bytes of a file from ``start``, which another process may replace by a link or a pipe; empty for
    those and for a missing file."""
    try:
        opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            return b""
        with open(opened, "rb", closefd=False) as file:
            file.seek(start)
            return file.read(most)
    finally:
        os.close(opened)


def _kind(mode: int) -> str:
    kinds = {stat.S_IFDIR: "a directory", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
    return kinds.get(stat.S_IFMT(mode), "a device")


def _pieces(file: BinaryIO, most: int) -> bytes:
    """In pieces, because a read of a given size takes that much memory at once."""
    pieces, size = [], 0
    while size <= most and (piece := file.read(min(_PIECE, most + 1 - size))):
        pieces.append(piece)
        size += len(piece)
    return b"".join(pieces)


def json_value(text: str) -> Any:
    """The value of a JSON text. Raises ValueError with a sentence: not JSON, too deep, too large, or an impossible
    number."""
    if text.count("{") + text.count("[") > MOST_PARTS:
        raise ValueError(f"more than {MOST_PARTS:,} objects and lists")
    try:
        value = json.loads(text, parse_float=decimal, parse_int=_int, parse_constant=decimal)
    except RecursionError:
        raise ValueError(f"nested more than {DEEPEST} deep") from None
    if deeper_than(value, DEEPEST):
        raise ValueError(f"nested more than {DEEPEST} deep")
    return value


def deeper_than(value: object, most: int) -> bool:
    """Whether lists and dictionaries are nested deeper than this, computed without recursion."""
    level: list[Any] = [value]
    for _ in range(most + 1):
        level = [one for one in level if isinstance(one, (dict, list)) and one]
        if not level:
            return False
        level = [part for one in level for part in (one.values() if isinstance(one, dict) else one)]
    return True


def decimal(text: str) -> float:
    """A finite number of at most 1e21. Raises ValueError with a sentence."""
    if len(text) > _LONGEST_NUMBER:
        raise ValueError(f"'{plain(text, 20)}' is no number: it has more than {_LONGEST_NUMBER} characters")
    try:
        # Python also reads 1_000, which nobody else writes.
        number = math.nan if "_" in text else float(text)
    except ValueError:
        number = math.nan
    if -LARGEST <= number <= LARGEST:
        return number
    if math.isnan(number):
        raise ValueError(f"'{plain(text, 40)}' is no number")
    raise ValueError(f"'{plain(text, 40)}' is no number up to {LARGEST:g}")


def _int(text: str) -> int:
    decimal(text)
    return int(text)


@dataclass(frozen=True)
class Record:
    """A JSON object with one getter per type of field. Each getter raises what ``wrong`` makes of a sentence."""

    values: dict[str, Any]
    line: int = 1

    def wrong(self, message: str) -> InputError:
        """The reader's error, with its code and fix."""
        raise NotImplementedError

    def part(self, values: dict[str, Any]) -> Self:
        """Another object of the same text."""
        return type(self)(values, self.line)

    def number(self, name: str, default: float | None = None, *, least: float = -LARGEST) -> float:
        """A finite number of at least ``least``; ``default`` if it is missing or null."""
        value = self.values.get(name)
        value = default if value is None else value
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.wrong(f'"{name}" is no number')
        if not abs(value) <= LARGEST:
            raise self.wrong(f'"{name}" is no finite number of at most {LARGEST:g}')
        if value < least:
            raise self.wrong(f'"{name}" is {value:.6g}, below {least:g}')
        return float(value)

    def count(self, name: str, default: int | None = None) -> int:
        """A whole number, 0 or more; ``default`` if it is missing."""
        number = self.number(name, default, least=0)
        if number != int(number):
            raise self.wrong(f'"{name}" is {number:.6g}, no whole number')
        return int(number)

    def text(self, name: str) -> str:
        """A word or number as one short line; empty if it is missing."""
        value = self.values.get(name)
        if value is None:
            return ""
        if isinstance(value, (dict, list)):
            raise self.wrong(f'"{name}" is no text')
        return plain(value)

    def records(self, name: str) -> list[Self]:
        """A list of objects; empty if it is missing."""
        value = self.values.get(name)
        value = [] if value is None else value
        if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
            raise self.wrong(f'"{name}" is no list of objects')
        return [self.part(one) for one in value]

    def record(self, name: str) -> Self | None:
        """An object; None if it is missing."""
        value = self.values.get(name)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self.wrong(f'"{name}" is no object')
        return self.part(value)
