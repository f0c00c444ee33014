"""Samples at a regular interval, of this host or from a recording."""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Any

from sawtooth.errors import InputError, suggestion
from sawtooth.watch.filter import condition
from sawtooth.watch.netlink import Connections
from sawtooth.watch.replay import Recording
from sawtooth.watch.watcher import SORTS, LiveMoment, Moment, Watcher, described

SHORTEST_S = 0.1
"""Least interval between two samples, in seconds."""


def check_interval(interval_s: float, field: str) -> None:
    """Raises SawtoothError ``out-of-range`` for an interval that is not allowed."""
    if not SHORTEST_S <= interval_s <= 3600:
        message = f"{interval_s:g} s is not a possible interval"
        raise InputError("out-of-range", message, field=field, fix=f"choose {SHORTEST_S:g} to 3600")


def samples(watcher: Watcher, interval_s: float, count: int | None) -> Iterator[LiveMoment]:
    """Yield samples at a regular interval; times that were missed are skipped. The first sample only starts the first
    interval."""
    watcher.sample()
    due = time.monotonic()
    for _ in range(count) if count is not None else itertools.count():
        now = time.monotonic()
        due = max(due + interval_s, now)
        time.sleep(due - now)
        yield watcher.sample()


def describing(
    filter: str,
    *,
    interval_s: float,
    count: int | None,
    sort: str,
    top: int | None,
    netns: str | None,
    replay: str | PathLike[str] | None,
) -> Iterator[dict[str, Any]]:
    """Yield each sample as JSON values. Invalid arguments raise at once, not at the first sample."""
    check_interval(interval_s, "interval")
    if sort not in SORTS:
        raise InputError("unknown-name", f'"{sort}" is not a sort order', field="sort", fix=suggestion(sort, SORTS))
    for name, value in {"count": count, "top": top}.items():
        if value is not None and value < 1:
            raise InputError("out-of-range", f"{value} is not possible", field=name, fix="choose 1 or more")
    if replay is not None and netns is not None:
        raise InputError("bad-usage", "a recording has no network namespace", field="netns", fix="remove netns")
    condition(filter)
    stack = contextlib.ExitStack()
    if replay is not None:
        recording = stack.enter_context(Recording(Path(replay), filter=filter))
        return _described(stack, itertools.islice(recording.samples(), count), sort, top)
    source = stack.enter_context(Connections(netns))
    return _described(stack, samples(Watcher(source, filter=filter), interval_s, count), sort, top)


def _described(
    stack: contextlib.ExitStack, found: Iterator[Moment], sort: str, top: int | None
) -> Iterator[dict[str, Any]]:
    with stack:
        for seen in found:
            yield described(seen, seen.first(sort, top))
