"""The command ``watch``: the connections of this host, live."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from sawtooth.cli.command import Command
from sawtooth.cli.terminal import is_quiet, say, tell, width
from sawtooth.errors import InputError

if TYPE_CHECKING:
    from sawtooth.watch import Seen, Watcher

SHORTEST_S = 0.1
_SORTS = ["goodput", "received", "delivery", "loss", "retransmits", "rtt", "cwnd", "peer"]


@click.command(cls=Command, short_help="Watch the connections of this host.")
@click.argument("words", metavar="[FILTER]...", nargs=-1)
@click.option("--once", is_flag=True, help="Look twice, an interval apart, say it and end.")
@click.option("--interval", default=1.0, show_default=True, metavar="SECONDS", help="Between two looks.")
@click.option("--count", type=click.IntRange(1), help="End after so many.")
@click.option("--sort", default="goodput", show_default=True, type=click.Choice(_SORTS), help="What comes first.")
@click.option("--top", type=click.IntRange(1), help="So many connections; all of them as JSON, else 50.")
@click.option("--netns", metavar="NAME|PID", help="Another network namespace: its name, or a process in it.")
@click.option("--json", "as_json", is_flag=True, help="Print a line of JSON for each look.")
def watch(
    words: tuple[str, ...],
    once: bool,
    interval: float,
    count: int | None,
    sort: str,
    top: int | None,
    netns: str | None,
    as_json: bool,
) -> None:
    """What holds the connections of this host back, now, and what loss costs them?

    FILTER chooses connections in the words of ss: dst 192.0.2.0/24, dport = :443, port 443, process NAME, cc cubic,
    joined by and, or, not and brackets. It needs no privilege; what cannot be seen is named.

    \b
    sawtooth watch --once
    sawtooth watch dst 192.0.2.0/24 and not cc bbr
    sawtooth watch --json --count 60 > connections.jsonl
    """
    from sawtooth.watch import Connections, Watcher

    if not SHORTEST_S <= interval <= 3600:
        message = f"{interval:g} s between two looks is not possible"
        fix = f"take {SHORTEST_S:g} to 3600"
        raise InputError("out-of-range", message, field="--interval", fix=fix)
    if once and count is not None:
        raise InputError("bad-usage", "--once is one", field="--count", fix="leave out one of them")
    with Connections(netns) as source:
        watcher = Watcher(source, filter=" ".join(words))
        _print(_looks(watcher, interval, 1 if once else count), sort, top, as_json=as_json)


def _looks(watcher: Watcher, interval: float, count: int | None) -> Iterator[Seen]:
    """At an even pace; what came too late is left out. The first look only begins the first interval."""
    watcher.look()
    due = time.monotonic()
    for _ in range(count) if count is not None else itertools.count():
        now = time.monotonic()
        due = max(due + interval, now)
        time.sleep(due - now)
        yield watcher.look()


def _print(seen: Iterator[Seen], sort: str, top: int | None, *, as_json: bool) -> None:
    from sawtooth.watch.text import lines, unseen

    said: list[str] = []
    for number, one in enumerate(seen):
        if as_json:
            say(json.dumps(one.describe(one.first(sort, top)), ensure_ascii=False, allow_nan=False))
            continue
        if number:
            say("")
        say("\n".join(lines(one, one.first(sort, top or 50), width())))
        new = [line for line in unseen(one) if line not in said]
        if new and not is_quiet():
            tell("\n".join(new))
            said += new
