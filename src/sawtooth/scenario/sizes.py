"""Distributions of sizes, read from foreign text with strict checks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from sawtooth.errors import InputError
from sawtooth.io.untrusted import decimal, read_bytes
from sawtooth.sanitize import plain

MOST_POINTS = 100_000
"""Most points of a distribution."""
_LARGEST_FILE = 16 << 20
_LARGEST = 10**15
"""Bytes of a transfer."""
_PPB = 10**9


def read_cdf(name: str) -> tuple[tuple[int, int], ...]:
    """Points of a distribution: bytes, and the share that is no larger in parts per billion. Neither decreases, and the
    last share is everything.

    Raises SawtoothError: ``file-not-found``, ``file-unreadable``, ``bad-cdf`` with the line.
    """
    return _read(name, version(name))


def version(name: str) -> object:
    """A value that changes with the file; None if there is none."""
    try:
        about = Path(name).stat()
    except (OSError, ValueError):
        return None
    return about.st_mtime_ns, about.st_size


@lru_cache(maxsize=16)
def _read(path: str, version: object) -> tuple[tuple[int, int], ...]:
    data = read_bytes(path, _LARGEST_FILE)
    try:
        return _points(lines_of(data, _LARGEST_FILE))
    except ValueError as error:
        fix = "give lines of a size in bytes and a cumulative share, 0 to 1 or 0 to 100, in order"
        raise InputError("bad-cdf", f"it is no distribution: {error}", file=path, fix=fix) from None


def lines_of(data: bytes, most: int) -> list[str]:
    """The lines of a text. Raises ValueError with a sentence."""
    if len(data) > most:
        raise ValueError(f"it is larger than {most >> 20} MiB")
    try:
        return data.decode().splitlines()
    except UnicodeDecodeError as error:
        raise ValueError(f"it is not UTF-8 text (byte {error.start})") from None


def _points(lines: Sequence[str]) -> tuple[tuple[int, int], ...]:
    found: list[tuple[float, float, int]] = []
    for number, line in enumerate(lines, 1):
        text = line.partition("#")[0].replace(",", " ").split()
        if not text:
            continue
        if len(text) != 2:
            raise ValueError(f"line {number} has {len(text)} fields, not 2")
        try:
            size, share = (decimal(one) for one in text)
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from None
        if not 0 <= size <= _LARGEST:
            raise ValueError(f"line {number}: a size of {plain(text[0], 40)} bytes")
        if not 0 <= share <= 100:
            raise ValueError(f"line {number}: {plain(text[1], 40)} is no share, 0 to 1 or 0 to 100")
        if found and size < found[-1][0]:
            raise ValueError(f"line {number}: {size:g} bytes are fewer than the {found[-1][0]:g} before")
        if found and share < found[-1][1]:
            raise ValueError(f"line {number}: the share falls, from {found[-1][1]:g} to {share:g}")
        found.append((size, share, number))
        if len(found) > MOST_POINTS:
            raise ValueError(f"more than {MOST_POINTS} points")
    if not found:
        raise ValueError("it has no points")
    whole = found[-1][1]
    if whole not in (1, 100):
        raise ValueError(f"the last share is {whole:g}, neither 1 nor 100")
    if found[0][0] < 1 and found[0][1] > 0:
        raise ValueError(f"line {found[0][2]}: transfers of 0 bytes")
    if round(found[-1][0]) < 1:
        raise ValueError("all transfers have 0 bytes")
    return tuple((round(size), _PPB if share == whole else round(share / whole * _PPB)) for size, share, _ in found)
