"""Reads what mtr reports about the hops of a path: its text (``mtr --report``) or its JSON (``mtr --json``)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from sawtooth.errors import InputError
from sawtooth.io import untrusted
from sawtooth.io.untrusted import LONGEST_LINE, decimal
from sawtooth.sanitize import plain

_HEAD = re.compile(r"^\s*(?:HOST:|Host)\s.*Loss%\s+Snt\s+Last\s+Avg\s+Best\s+Wrst\s+StDev\s*$")
_HOP = re.compile(r"^\s*(\d{1,3})\.\s*(?:\|--)?\s*(\S{1,300})((?:\s+\S{1,40}){7})\s*$")
_FIX = "give what mtr --report or mtr --json printed, as it was printed"
MOST_HOPS = 255


@dataclass(frozen=True)
class Hop:
    """One hop: probes ``sent`` and ``lost``; round trips in s, None if nothing answered."""

    number: int
    host: str
    sent: int
    lost: int
    best_s: float | None
    mean_s: float | None
    worst_s: float | None


def is_mtr(text: str) -> bool:
    """Whether this is mtr's report as text."""
    return any(len(line) <= LONGEST_LINE and _HEAD.match(line) for line in text.splitlines()[:10])


def from_text(text: str) -> tuple[Hop, ...]:
    """The hops of a report. Raises SawtoothError ``not-a-measurement``."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if len(line) <= LONGEST_LINE and (hop := _HOP.match(line)):
            try:
                loss, sent, _, mean, best, worst, _ = (decimal(cell.rstrip("%")) for cell in hop[3].split())
                found.append(_hop(int(hop[1]), hop[2], loss, sent, best, mean, worst))
            except ValueError as error:
                raise _wrong(f"line {number} of mtr's report: {error}") from None
    return _whole(found)


def from_json(content: dict[str, Any]) -> tuple[Hop, ...]:
    """The hops of mtr's JSON. Raises SawtoothError ``not-a-measurement``."""
    report = _Report(content).record("report")
    hubs = [] if report is None else report.records("hubs")
    found = []
    for number, hub in enumerate(hubs, 1):
        numbers = [hub.number(name, least=0) for name in ("Loss%", "Snt", "Best", "Avg", "Wrst")]
        try:
            found.append(_hop(number, hub.text("host"), *numbers))
        except ValueError as error:
            raise _wrong(f"hop {number} of mtr's JSON: {error}") from None
    return _whole(found)


class _Report(untrusted.Record):
    def wrong(self, message: str) -> InputError:
        return _wrong(f"this JSON is not a whole report of mtr: {message}")


def _wrong(message: str) -> InputError:
    return InputError("not-a-measurement", message, fix=_FIX)


def _hop(number: int, host: str, loss: float, sent: float, best: float, mean: float, worst: float) -> Hop:
    """Loss in percent, times in ms. Raises ValueError."""
    if not (0 <= loss <= 100 and 0 <= sent <= 1e9 and 0 <= best <= worst <= 3.6e6 and 0 <= mean <= 3.6e6):
        raise ValueError("no hop has such a loss, number of probes or round trip")
    lost = round(sent * loss / 100)
    times = (best / 1e3, mean / 1e3, worst / 1e3) if lost < sent and worst > 0 else (None, None, None)
    return Hop(number, plain(host, 80), round(sent), lost, *times)


def _whole(found: list[Hop]) -> tuple[Hop, ...]:
    if not found or not any(hop.best_s is not None for hop in found):
        raise _wrong("mtr's report has no hop that answered")
    if len(found) > MOST_HOPS:
        raise _wrong(f"mtr's report has more than {MOST_HOPS} hops")
    return tuple(found)


def lost_from(hops: tuple[Hop, ...]) -> Hop | None:
    """The first hop from which on every answering hop loses probes. None if the last one loses nothing: loss at a hop
    in between is then the router's own limit on answers."""
    found = None
    for hop in reversed(hops):
        if hop.best_s is None:
            continue
        if not hop.lost:
            break
        found = hop
    return found
