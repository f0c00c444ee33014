"""Shows connections as text lines for a terminal or a pipe."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from sawtooth.io.text_table import aligned, folded
from sawtooth.watch.connection import Connection
from sawtooth.watch.watcher import Moment
from sawtooth.whatif.text import rate, share, span, with_interval

if TYPE_CHECKING:
    from sawtooth.watch.estimated import Expected, Range

_ABSENT = "-"


def lost(one: Connection) -> str:
    """The share of segments lost."""
    return _ABSENT if one.loss is None else share(one.loss)


def lost_between(one: Connection) -> str:
    """The share lost with its confidence interval."""
    if one.loss is None or one.loss_low is None or one.loss_high is None:
        return _ABSENT
    return f"{share(one.loss)} ({share(one.loss_low)} … {share(one.loss_high)})"


def holder(one: Connection) -> str:
    """The process that holds the connection."""
    return _ABSENT if one.process is None else f"{one.process}/{one.pid}"


def _rate(value: float | None) -> str:
    return _ABSENT if value is None else rate(value)


def _span(value: float | None) -> str:
    return _ABSENT if value is None else span(value)


def _window(one: Connection) -> str:
    return _ABSENT if one.cwnd_segments is None else f"{one.in_flight_segments}/{one.cwnd_segments}"


Cell = Callable[[Connection], str]
COLUMNS: tuple[tuple[str, Cell, bool], ...] = (
    ("peer", lambda one: one.ends, True),
    ("cc", lambda one: one.cc or _ABSENT, True),
    ("goodput", lambda one: _rate(one.goodput_bps), False),
    ("loss", lost, False),
    ("limit", lambda one: one.limit, True),
    ("rtt", lambda one: _span(one.rtt_s), False),
    ("min rtt", lambda one: _span(one.rtt_min_s), False),
    ("retrans", lambda one: _ABSENT if one.retransmits is None else str(one.retransmits), False),
    ("flight/cwnd", _window, False),
    ("delivery", lambda one: _rate(one.delivery_bps), False),
    ("received", lambda one: _rate(one.received_bps), False),
    ("process", holder, True),
    ("local", lambda one: one.begins, True),
)
"""Name, content, and whether it is text. The first columns are those shown on a narrow terminal."""


def lines(seen: Moment, shown: Sequence[Connection], width: int | None = None) -> list[str]:
    """Headings and one line per connection, with as many columns as fit into ``width`` (None: no limit)."""
    cells = [[cell(one) for _, cell, _ in COLUMNS] for one in shown]
    widths = [max([len(name), *(len(row[at]) for row in cells)]) for at, (name, _, _) in enumerate(COLUMNS)]
    kept, taken = 0, -2
    while kept < len(widths) and (width is None or kept < 4 or taken + 2 + widths[kept] <= width):
        taken += 2 + widths[kept]
        kept += 1
    rows = [[name for name, _, _ in COLUMNS[:kept]], *(row[:kept] for row in cells)]
    table = aligned(rows, [at for at, (_, _, words) in enumerate(COLUMNS[:kept]) if words])
    return [*folded(heading(seen, len(shown)), width).splitlines(), *(line[:width] for line in table)]


def heading(seen: Moment, shown: int, time: str | None = None) -> str:
    """The number of connections and, unless it is shown elsewhere, the time."""
    matching, total = seen.matching, seen.total
    said = f"{seen.time if time is None else time}  {matching if total is None else total} connections"
    if total is not None and matching != total:
        said += f", {matching} match"
    if shown < matching:
        said += f", {shown} shown"
    if seen.short:
        said += f"; {seen.short} opened and closed since the last sample"
    return said


def unseen(seen: Moment) -> list[str]:
    """What cannot be seen, one line each."""
    return [f"unseen: {one}" for one in seen.unseen]


def expected_lines(one: Connection, expected: Expected) -> list[str]:
    """The estimate for a connection, or the reason why there is none."""
    if expected.reason is not None:
        return [f"{one.ends}: {one.why}; {expected.reason}"]
    found_lines = [f"{one.ends} ({one.cc}, {_rate(one.mean_bps)}): {one.why}"]
    if expected.lossless is not None:
        found_lines.append(f"  without the loss: {between(expected.lossless)}")
    return [*found_lines, *(f"  with {each.cc}: {between(each)}" for each in expected.controls)]


def between(goodput: Range) -> str:
    """Median and 90% interval, or the known end of the interval."""
    if goodput.goodput_bps is None or goodput.high_bps is None:
        return f"at least {rate(goodput.low_bps)}: the bottleneck was never full"
    return "{} ({})".format(*with_interval(goodput.goodput_bps, goodput.low_bps, goodput.high_bps, rate))


def in_short(goodput: Range) -> str:
    """The median, or the known end of the interval."""
    if goodput.goodput_bps is None or goodput.high_bps is None:
        return f"≥ {rate(goodput.low_bps)}"
    return with_interval(goodput.goodput_bps, goodput.low_bps, goodput.high_bps, rate)[0]
