"""Deviations of a delay, read from foreign text with strict checks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from sawtooth.errors import InputError
from sawtooth.io.untrusted import read_bytes
from sawtooth.sanitize import plain
from sawtooth.scenario.sizes import lines_of, version

_MOST_DEVIATIONS = 16 * 1024
"""netem's limit."""
_LARGEST_FILE = 1024 * 1024
"""Bytes."""
_LOWEST, _HIGHEST = -(2**15), 2**15 - 1


def read_deviations(name: str) -> tuple[int, ...]:
    """Equally likely deviations in 1/8192 of the standard deviation, from a file in tc-netem's format: whole numbers
    separated by white space, ``#`` for comments.

    Raises SawtoothError: ``file-not-found``, ``file-unreadable``, ``bad-table`` with the line.
    """
    return _read(name, version(name))


@lru_cache(maxsize=16)
def _read(path: str, version: object) -> tuple[int, ...]:
    data = read_bytes(path, _LARGEST_FILE)
    try:
        return _numbers(lines_of(data, _LARGEST_FILE))
    except ValueError as error:
        fix = f"give whole numbers from {_LOWEST} to {_HIGHEST}, as netem's tables have"
        raise InputError("bad-table", f"it is no table of deviations: {error}", file=path, fix=fix) from None


def _numbers(lines: Sequence[str]) -> tuple[int, ...]:
    found: list[int] = []
    for number, line in enumerate(lines, 1):
        for text in line.partition("#")[0].split():
            digits = text.removeprefix("-")
            whole = digits.isascii() and digits.isdigit() and len(digits) <= 5
            if not whole or not _LOWEST <= int(text) <= _HIGHEST:
                raise ValueError(f"line {number}: {plain(text, 40)} is no whole number of 16 bits")
            found.append(int(text))
        if len(found) > _MOST_DEVIATIONS:
            raise ValueError(f"more than {_MOST_DEVIATIONS} numbers")
    if not found:
        raise ValueError("it has no numbers")
    return tuple(found)
