"""CSV with a header that names columns and their units, as the prober writes it and others may."""

from __future__ import annotations

import csv
import math
import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any, cast, get_args

import numpy as np
from numpy.typing import NDArray

from sawtooth.errors import InputError
from sawtooth.io.untrusted import decimal
from sawtooth.link_estimate.inputs.record import FIX, bad
from sawtooth.link_estimate.inputs.silent import with_lost
from sawtooth.link_estimate.series import COLUMNS, Clock, Remark, RttSeries
from sawtooth.sanitize import plain

_UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ns": 1e-9}
_HEADER = re.compile(r"(.+?)[ _]*[\[(_ ](s|ms|us|µs|μs|ns)[\])]?", re.DOTALL)
_TIMES = {
    "sent_s": ("sent", "time", "t", "timestamp", "unix"),
    "rtt_s": ("rtt", "delay", "latency"),
    "late_s": ("late",),
    "pace_s": ("pace", "interval"),
}
_WORDS = {
    "series": ("series", "label", "name"),
    "target": ("target", "destination", "dst"),
    "hop": ("hop", "ttl"),
    "address": ("address", "from", "router"),
    "reply": ("reply",),
    "clock": ("clock",),
    "probe": ("probe", "seq"),
    "duplicates": ("duplicates",),
}
_LOST = ("", "nan", "*", "lost", "na", "null", "none")
_COUNTS = ("duplicates", "hop", "probe")
_MOST = 1e12
_MOST_COLUMNS = 1000
_LONGEST_NAME = 80
_FIRST_UNIX_S = 1e8
"""Larger times count from 1970 if nothing says otherwise: no measurement lasts three years."""


@dataclass
class _Rows:
    """The rows of one series."""

    line: int
    values: dict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))


def read(text: str, source: str, pace_s: float | None) -> list[RttSeries]:
    """One series per value of the column ``series``; an RTT that is empty, nan, * or "lost" means a lost probe. If
    there are none, probes missing from the numbers or times count as lost; but not in the prober's files, which record
    losses.

    Raises SawtoothError: ``not-a-series`` naming the line, ``missing-unit``, ``missing-field``.
    """
    lines = text.lstrip("\ufeff").split("\n")
    start = next((number for number, line in enumerate(lines) if line.strip() and not line.startswith("#")), None)
    if start is None:
        raise bad("it has comments only")
    header = lines[start].rstrip("\r")
    delimiter = max(",;\t", key=header.count)
    names = _cells(header, delimiter, start + 1)
    if len(names) > _MOST_COLUMNS:
        raise bad(f"{len(names)} columns; at most {_MOST_COLUMNS}", start + 1)
    columns, ignored = _columns([name.strip() for name in names], start + 1)
    if tuple(names) == COLUMNS and lines[-1].strip():
        fix = "leave out its last line, or copy it again"
        raise bad("the file is cut: its last line has no end", len(lines), fix)
    groups: dict[str, _Rows] = {}
    for number, line in enumerate(lines[start + 1 :], start + 2):
        if not line.strip() or line.startswith("#"):
            continue
        row = _cells(line.rstrip("\r"), delimiter, number)
        if len(row) != len(names):
            raise bad(f"{len(row)} columns, the header has {len(names)}", number)
        _add(groups, columns, row, number)
    if not groups:
        raise bad("a header, and no rows")
    remarks: tuple[Remark, ...] = ()
    if ignored:
        remarks = (Remark("ignored-columns", f"columns that nothing is known of: {plain(', '.join(ignored))}"),)
    found = [_series(label, rows, source, pace_s, remarks) for label, rows in groups.items()]
    if tuple(names) == COLUMNS:
        # The prober records losses, so a probe missing from its file was never sent.
        return [series for series, _ in found]
    return [with_lost(series, numbers) for series, numbers in found]


def _cells(line: str, delimiter: str, number: int) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=delimiter))
    except (csv.Error, StopIteration) as error:
        raise bad(f"not CSV: {error}", number) from None


def _columns(names: list[str], line: int) -> tuple[dict[int, tuple[str, float]], list[str]]:
    """For each known column its name and the factor to s (0: text); and the names of the others."""
    known: dict[int, tuple[str, float]] = {}
    ignored = []
    for index, name in enumerate(names):
        lower = name.lower()
        found = _HEADER.fullmatch(lower) if len(lower) <= _LONGEST_NAME else None
        bare = found[1] if found else lower
        time = next((ours for ours, theirs in _TIMES.items() if bare in theirs), None)
        word = next((ours for ours, theirs in _WORDS.items() if lower in theirs), None)
        if found and time:
            known[index] = (time, _UNITS[found[2]])
        elif time and not word:
            fix = f'rename it with its unit: "{bare}_ms" or "{bare}_s"'
            raise InputError("missing-unit", f"line {line}: the column has no unit", field=name[:80], fix=fix)
        elif word:
            known[index] = (word, 0.0)
        else:
            ignored.append(name)
    ours = [name for name, _ in known.values()]
    for name in ours:
        if ours.count(name) > 1:
            raise bad(f"two columns are {name}", line, "leave one out")
    if "rtt_s" not in ours:
        raise bad(f'no column of RTTs in the header "{plain(",".join(names), 80)}"', line, FIX)
    return known, ignored


def _add(groups: dict[str, _Rows], columns: dict[int, tuple[str, float]], row: list[str], line: int) -> None:
    read: dict[str, Any] = {}
    for index, (name, factor) in columns.items():
        cell = row[index].strip()
        if factor:
            read[name] = _number(cell, name, line, lost=name != "sent_s") * factor
        elif name in _COUNTS:
            read[name] = _number(cell, name, line, lost=True)
            if read[name] < 0 or read[name] > _MOST:
                raise bad(f'"{plain(cell, 40)}" is no count', line).at(field=name)
        else:
            read[name] = plain(cell)
    rows = groups.setdefault(str(read.get("series", "")), _Rows(line))
    for name, value in read.items():
        rows.values[name].append(value)


def _number(cell: str, name: str, line: int, *, lost: bool) -> float:
    if lost and cell.lower() in _LOST:
        return math.nan
    try:
        return decimal(cell)
    except ValueError as error:
        raise bad(str(error), line).at(field=name) from None


def _series(
    label: str, rows: _Rows, source: str, pace_s: float | None, remarks: tuple[Remark, ...]
) -> tuple[RttSeries, NDArray[np.float64] | None]:
    """The rows as a series, and the source's probe numbers."""
    values = rows.values
    count = len(values["rtt_s"])
    column_s = float(values["pace_s"][0]) if "pace_s" in values else math.nan
    clock = str(values["clock"][0]) if "clock" in values else ""
    if clock and clock not in get_args(Clock):
        raise bad(f'there is no clock "{plain(clock, 40)}"', rows.line, f"one of {', '.join(get_args(Clock))}")
    pace_s = _pace_s(column_s, values.get("sent_s"), pace_s, rows.line)
    if "sent_s" in values:
        sent_s = np.array(values["sent_s"])
        clock = clock or ("unix" if np.abs(sent_s).max() >= _FIRST_UNIX_S else "start")
    else:
        sent_s, clock = np.arange(count) * pace_s, "counted"
    hop = values.get("hop", [math.nan])[0]
    if label == "near" and _FROM_TARGET.intersection(values.get("reply", [])):
        text = "the target itself answered the near probes, and ends no link there"
        remarks = (*remarks, Remark("target-reached", text, doubt=True))
    series = RttSeries(
        sent_s,
        np.array(values["rtt_s"]),
        pace_s,
        source,
        label=label,
        target=str(values.get("target", [""])[0]),
        hop=None if math.isnan(hop) else int(hop),
        clock=cast("Clock", clock),
        late_s=np.array(values["late_s"]) if "late_s" in values else None,
        address=np.array(values["address"], dtype=object) if "address" in values else None,
        reply=np.array(values["reply"], dtype=object) if "reply" in values else None,
        duplicates=np.nan_to_num(values["duplicates"]).astype(np.int64) if "duplicates" in values else None,
        remarks=remarks,
    )
    return series, np.array(values["probe"]) if "probe" in values else None


_FROM_TARGET = {"echo-reply", "port-unreachable"}
"""Answers that come from a target, never from a router on the path."""


def _pace_s(column_s: float, sent_s: list[float] | None, option_s: float | None, line: int) -> float:
    if column_s > 0:
        return column_s
    if column_s <= 0:
        raise bad(f"the pace is {column_s} s", line)
    if option_s is not None:
        return option_s
    steps_s = np.diff(sent_s) if sent_s is not None else np.array([])
    forward = steps_s[steps_s > 0]
    if len(forward):
        return float(np.median(forward))
    if sent_s is not None and len(sent_s) == 1:
        return 1.0
    message = "the file does not say how long it is from one probe to the next"
    fix = 'add a column sent_s, or say it: --pace "100 ms"'
    raise InputError("missing-field", message, field="sent_s", fix=fix)
