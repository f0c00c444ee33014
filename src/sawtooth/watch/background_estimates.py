"""Simulates estimates for connections that were seen, even if they close meanwhile."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from itertools import chain

from sawtooth.watch.connection import Connection
from sawtooth.watch.expected import Expectations, why_not
from sawtooth.watch.watcher import LiveMoment

_SAMPLE_AGAIN_S = 0.1


def awaited(
    samples: Iterable[LiveMoment], sort: str, top: int | None, most: int, expectations: Expectations, patience_s: float
) -> tuple[LiveMoment, Sequence[Connection]]:
    """Sample until there are answers. Returns the first sample and its connections in order, at most ``top``. The first
    ``most`` of them are as they were after enough samples for an estimate, or when they were last seen. Ends when all
    estimates are known, or after ``patience_s`` seconds.
    """
    until = time.monotonic() + patience_s
    coming = iter(samples)
    first = next(coming)
    order = first.first(sort, top)
    held = {one.cookie: one for one in order[:most]}
    for seen in chain([first], coming):
        now = {one.cookie: one for one in seen.first(sort)}
        for cookie, one in held.items():
            # Keep a sample that an estimate can be made from: in later samples the connection may be idle or closed.
            if why_not(one) is not None and cookie in now:
                held[cookie] = now[cookie]
        expectations.ask(held.values())
        waits = any(cookie in now and (reason := why_not(one)) and reason.pending for cookie, one in held.items())
        if not waits or time.monotonic() > until:
            break
    while _pending(held.values(), expectations) and time.monotonic() < until:
        time.sleep(_SAMPLE_AGAIN_S)
        expectations.ask(held.values())
    return first, [held.get(one.cookie, one) for one in order]


def _pending(held: Iterable[Connection], expectations: Expectations) -> bool:
    return any(expectations.of(one).pending for one in held if why_not(one) is None)
