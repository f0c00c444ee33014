"""Lists of transfers, read from foreign text with strict checks."""

from __future__ import annotations

import csv
from functools import lru_cache

from sawtooth.errors import InputError
from sawtooth.io.untrusted import decimal, read_bytes
from sawtooth.sanitize import plain
from sawtooth.scenario.sizes import lines_of, version

MOST = 1_000_000
"""Most transfers of a list."""
_LARGEST_FILE = 64 << 20
_LARGEST = 10**15
_LONGEST_S = 30 * 86_400


class Listed:
    """The transfers of a file: times in ns, in order, and bytes; empty if the file has no such column."""

    def __init__(self, times_ns: tuple[int, ...], bytes: tuple[int, ...]) -> None:
        self.times_ns, self.bytes = times_ns, bytes


def read_transfers(name: str) -> Listed:
    """Reads a list of transfers: CSV with the column ``t_s`` and optionally ``bytes``.

    Raises SawtoothError: ``file-not-found``, ``file-unreadable``, ``bad-transfers`` with the line.
    """
    return _read(name, version(name))


@lru_cache(maxsize=4)
def _read(path: str, version: object) -> Listed:
    data = read_bytes(path, _LARGEST_FILE)
    try:
        return _listed(lines_of(data, _LARGEST_FILE))
    except ValueError as error:
        fix = "give CSV with t_s, seconds since the flow's start in order, and bytes"
        raise InputError("bad-transfers", f"it is no list of transfers: {error}", file=path, fix=fix) from None


def _listed(lines: list[str]) -> Listed:
    if not lines:
        raise ValueError("it is empty")
    if len(lines) > MOST + 1:
        raise ValueError(f"more than {MOST:,} transfers")
    names = [name.strip() for name in lines[0].split(",")]
    if sorted(names) not in (["t_s"], ["bytes", "t_s"]):
        raise ValueError(f"line 1: its columns are '{plain(lines[0], 60)}', not t_s and bytes")
    if any('"' in line or "\0" in line for line in lines):
        raise ValueError("its fields are quoted")
    values: dict[str, list[int]] = {name: [] for name in names}
    before = 0
    for number, row in enumerate(csv.reader(lines[1:]), 2):
        if len(row) != len(names):
            raise ValueError(f"line {number} has {len(row)} fields, not {len(names)}")
        fields = dict(
            zip(names, (_number(text, name, number) for name, text in zip(names, row, strict=True)), strict=True)
        )
        time = round(fields["t_s"] * 10**9)
        if not 0 <= fields["t_s"] <= _LONGEST_S:
            raise ValueError(f"line {number}: t_s is {fields['t_s']:g}, not 0 … {_LONGEST_S}")
        if time < before:
            raise ValueError(f"line {number}: {fields['t_s']:g} s is before the line above")
        before = time
        values["t_s"].append(time)
        if "bytes" in fields:
            if fields["bytes"] != int(fields["bytes"]) or not 1 <= fields["bytes"] <= _LARGEST:
                raise ValueError(f"line {number}: {fields['bytes']:g} is no number of bytes from 1 on")
            values["bytes"].append(int(fields["bytes"]))
    if not values["t_s"]:
        raise ValueError("it has no transfers")
    return Listed(tuple(values["t_s"]), tuple(values.get("bytes", ())))


def _number(text: str, name: str, line: int) -> float:
    if not text.strip():
        raise ValueError(f"line {line}: {name} is missing")
    try:
        return decimal(text.strip())
    except ValueError as error:
        raise ValueError(f"line {line}: {error}") from None
