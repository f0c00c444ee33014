"""scamper's ping results as ``sc_warts2json`` prints them: one JSON object per line, RTTs in ms, times as sec and
usec."""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np

from sawtooth.link_estimate.inputs.record import Record, bad
from sawtooth.link_estimate.series import Remark, RttSeries

_MOST_PROBES = 65536
"""Most probes of one ping: scamper counts them in 16 bits."""
_TIME_EXCEEDED = (11, 3)
_ECHO_REPLY = (0, 129)

_Row = tuple[float, float, str, str, int]


def read(records: list[Record], source: str) -> list[RttSeries]:
    """One series per method, source, target and TTL. Raises SawtoothError ``not-a-series``."""
    groups: dict[tuple[str, ...], list[Record]] = defaultdict(list)
    for record in records:
        if record.text("type") == "ping":
            groups[tuple(record.text(name) for name in ("method", "src", "dst", "ttl"))].append(record)
    if not groups:
        raise bad("none of its objects is a ping of scamper or a result of RIPE Atlas", records[0].line)
    return [_series(pings, source) for pings in groups.values()]


def _series(pings: list[Record], source: str) -> RttSeries:
    rows: list[_Row] = []
    for ping in pings:
        rows += _rows(ping)
    if not rows:
        raise pings[0].wrong("no probe was sent")
    rows.sort(key=lambda row: row[0])
    first = pings[0]
    sent_s, rtt_s, address, reply, duplicates = zip(*rows, strict=True)
    pace_s = _wait_s(first)
    remarks = []
    if pace_s <= 0:
        raise first.wrong('"wait" is not above 0')
    if any(_wait_s(ping) != pace_s for ping in pings):
        remarks.append(Remark("irregular-pace", "its pings were sent at different paces"))
    expired = "time-exceeded" in reply
    return RttSeries(
        np.array(sent_s),
        np.array(rtt_s),
        pace_s,
        source,
        label=" ".join(part for part in (first.text("method"), first.text("dst"), f"ttl {first.text('ttl')}") if part),
        target=first.text("dst"),
        hop=int(first.number("ttl")) if expired and "ttl" in first.values else None,
        address=np.array(address, dtype=object),
        reply=np.array(reply, dtype=object),
        duplicates=np.array(duplicates, dtype=np.int64),
        remarks=tuple(remarks),
    )


def _rows(ping: Record) -> list[_Row]:
    wait_s, sent = _wait_s(ping), ping.number("ping_sent")
    if not 0 <= sent <= _MOST_PROBES:
        raise ping.wrong(f'"ping_sent" is {sent:g}')
    start = ping.record("start")
    answers: dict[int, list[Record]] = defaultdict(list)
    for response in ping.records("responses"):
        answers[_sequence(response)].append(response)
    times = {_sequence(one): _time(one) for one in ping.records("no_responses")}
    found = []
    for sequence in sorted({*range(int(sent)), *answers, *times}):
        here = answers.get(sequence, [])
        sent_s = next((time for one in here if (time := _time(one)) is not None), times.get(sequence))
        if sent_s is None:
            if start is None:
                raise ping.wrong('neither the ping has a "start" nor each probe a "tx"')
            sent_s = start.number("sec") + start.number("usec", 0) / 1e6 + sequence * wait_s
        if not here:
            found.append((sent_s, math.nan, "", "", 0))
            continue
        first = min(here, key=lambda one: one.number("rtt"))
        kind = _kind(first)
        rtt_s = first.number("rtt") / 1e3 if kind != "unreachable" else math.nan
        _agree(first, rtt_s)
        found.append((sent_s, rtt_s, first.text("from"), kind, len(here) - 1))
    return found


def _sequence(record: Record) -> int:
    number = record.number("seq")
    if not 0 <= number < _MOST_PROBES or number != int(number):
        raise record.wrong(f'"seq" is {number:g}')
    return int(number)


def _time(record: Record, name: str = "tx") -> float | None:
    time = record.record(name)
    return None if time is None else time.number("sec") + time.number("usec", 0) / 1e6


def _kind(response: Record) -> str:
    if response.text("reply_proto") != "icmp" or "icmp_type" not in response.values:
        return response.text("reply_proto")
    kind = int(response.number("icmp_type"))
    if kind in _TIME_EXCEEDED and not (kind == 3 and ":" not in response.text("from")):
        return "time-exceeded"
    if kind in _ECHO_REPLY:
        return "echo-reply"
    port = (3, 3), (1, 4)
    return "port-unreachable" if (kind, int(response.number("icmp_code", -1))) in port else "unreachable"


def _agree(response: Record, rtt_s: float) -> None:
    """Checks that the RTT in ms equals the difference between sending and arrival; otherwise one has another unit."""
    sent_s, arrived_s = _time(response), _time(response, "rx")
    if sent_s is None or arrived_s is None or math.isnan(rtt_s):
        return
    if abs(arrived_s - sent_s - rtt_s) > 0.002 + 0.1 * rtt_s:
        message = f'"rtt" is {rtt_s * 1e3:g} ms, but "rx" is {(arrived_s - sent_s) * 1e3:.6g} ms after "tx"'
        raise response.wrong(message)


def _wait_s(ping: Record) -> float:
    return ping.number("wait", 0 if "wait_us" in ping.values else 1) + ping.number("wait_us", 0) / 1e6
