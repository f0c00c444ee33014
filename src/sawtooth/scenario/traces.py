"""Traces of a link: Mahimahi's packet-delivery times, and CSV of time, rate, delay, loss. Foreign text, checked
strictly.

Each line of Mahimahi's is a time in ms at which 1,500 bytes can leave; the trace repeats after its last time. A CSV has
named columns: ``t_s``, and any of ``rate_bps``, ``delay_s``, ``loss`` (a share); a row holds until the next.
"""

from __future__ import annotations

import csv
import hashlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from sawtooth.errors import InputError
from sawtooth.io.untrusted import decimal, read_bytes
from sawtooth.sanitize import plain
from sawtooth.scenario.compiled_form import Trace
from sawtooth.scenario.header_sizes import ETHERNET
from sawtooth.scenario.sizes import lines_of, version

MOST_STEPS = 1_000_000
"""Most steps of one direction in one run."""
LARGEST = 64 * 1024 * 1024
"""Bytes."""
OPPORTUNITY_BYTES = 1500 + ETHERNET
"""A frame with 1,500 bytes of IP: one opportunity."""
_MOST_LINES = 5_000_000
_LONGEST_MS = 30 * 86_400_000
_COLUMNS = ("rate_bps", "delay_s", "loss")
_SHIPPED = Path(__file__).parents[1] / "data" / "traces"


@dataclass(frozen=True)
class Steps:
    """Start times (ns) and new values: bit/s, ns, parts per billion; each in order, no time twice."""

    rates: tuple[tuple[int, int], ...] = ()
    delays: tuple[tuple[int, int], ...] = ()
    losses: tuple[tuple[int, int], ...] = ()


def shipped() -> dict[str, Path]:
    """Traces that come with sawtooth, by name."""
    return {path.name: path for path in sorted(_SHIPPED.iterdir()) if path.suffix != ".md"}


def found(name: str) -> Path:
    """A file of that name, or the bundled trace."""
    path = Path(name)
    if name in shipped() and not path.exists():
        return shipped()[name]
    return path


def read_trace(name: str) -> Trace | Steps:
    """A trace: opportunities from Mahimahi's times, steps from CSV.

    Raises SawtoothError: ``file-not-found``, ``file-unreadable``, ``bad-trace`` with the line.
    """
    path = found(name)
    if not path.exists() and path.name == name:
        message = "there is no such file, and no trace of that name is shipped"
        fix = f"give a file, or one of those that are shipped: {', '.join(shipped())}"
        raise InputError("file-not-found", message, file=name, fix=fix)
    return _read(str(path), version(str(path)))


@lru_cache(maxsize=16)
def _read(path: str, version: object) -> Trace | Steps:
    data = read_bytes(path, LARGEST)
    try:
        lines = lines_of(data, LARGEST)
        if not lines:
            raise ValueError("it is empty")
        return _steps(lines) if "t_s" in lines[0].split(",") else _opportunities(lines)
    except ValueError as error:
        fix = "give times in ms, one a line, or CSV with t_s and rate_bps, delay_s or loss"
        raise InputError("bad-trace", f"it is no trace: {error}", file=path, fix=fix) from None


def trace_digest(name: str) -> str:
    """SHA-256 of its content; empty if the file is gone."""
    try:
        return hashlib.sha256(found(name).read_bytes()).hexdigest()
    except (OSError, ValueError):
        return ""


def _opportunities(lines: list[str]) -> Trace:
    if len(lines) > _MOST_LINES:
        raise ValueError(f"more than {_MOST_LINES} lines")
    times: list[int] = []
    before = 0
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not (text.isascii() and text.isdigit() and len(text) < 12):
            raise ValueError(f"line {number}, '{plain(text, 40)}', is no time in ms")
        time = int(text)
        if time < before:
            raise ValueError(f"line {number}: {time} ms is before {before} ms")
        if time > _LONGEST_MS:
            raise ValueError(f"line {number}: {time} ms is more than 30 days")
        times.append(time)
        before = time
    if before == 0:
        raise ValueError("all its times are 0, so it would repeat at once")
    return Trace(times_ms=tuple(times), period_ms=before, bytes=OPPORTUNITY_BYTES)


def _steps(lines: list[str]) -> Steps:
    if len(lines) > MOST_STEPS + 1:
        raise ValueError(f"more than {MOST_STEPS} rows")
    if '"' in "".join(lines[:2]) or any("\0" in line for line in lines):
        raise ValueError("its fields are quoted")
    rows = csv.reader(lines, strict=True)
    try:
        names = [name.strip() for name in next(rows)]
        unknown = [name for name in names if name not in ("t_s", *_COLUMNS)]
        if unknown or len(set(names)) < len(names):
            raise ValueError(f"column '{plain((unknown or names)[0], 40)}' is unknown, or there twice")
        if len(names) < 2:
            raise ValueError("it has no column but t_s")
        values: dict[str, list[tuple[int, int]]] = {name: [] for name in names}
        before = -1
        for row in rows:
            number = rows.line_num
            if len(row) != len(names):
                raise ValueError(f"line {number} has {len(row)} fields, not {len(names)}")
            told = {name: _number(name, text, number) for name, text in zip(names, row, strict=True)}
            if told["t_s"] <= before:
                raise ValueError(f"line {number}: its time is not after the one before")
            if before < 0 and told["t_s"] != 0:
                raise ValueError(f"line {number}: the first time is not 0")
            before = told["t_s"]
            for name in names:
                values[name].append((before, told[name]))
    except csv.Error as error:
        raise ValueError(f"line {rows.line_num}: {plain(str(error), 60)}") from None
    if before < 0:
        raise ValueError("it has no rows")
    return Steps(*(tuple(values.get(name, ())) for name in _COLUMNS))


_LIMITS = {"t_s": (10**9, 30 * 86_400), "rate_bps": (1, 10**13), "delay_s": (10**9, 3600), "loss": (10**9, 1)}
"""For each column: how many internal units one is, and its largest value."""


def _number(name: str, text: str, line: int) -> int:
    if not text.strip():
        raise ValueError(f"line {line}: {name} is missing")
    scale, most = _LIMITS[name]
    try:
        value = decimal(text)
    except ValueError as error:
        raise ValueError(f"line {line}: {error}") from None
    if not 0 <= value <= most:
        raise ValueError(f"line {line}: {name} is {value:g}, not 0 … {most:g}")
    return round(value * scale)
