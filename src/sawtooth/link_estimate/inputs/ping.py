"""The output of ping: iputils with and without -D, BusyBox, macOS; also several pings in one file."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

import numpy as np

from sawtooth.io.untrusted import LONGEST_LINE, decimal
from sawtooth.link_estimate.inputs.record import bad
from sawtooth.link_estimate.series import Remark, RttSeries
from sawtooth.sanitize import plain

_START = re.compile(r"^PING6?\s*(?:\(\d[^)]*\)\s*)?(?:\S+ --> )?([^\s(]+)")
_STAMP = re.compile(r"^\[(\d{1,12}\.\d+)\] ")
_ANSWER = re.compile(r"(?<!\d)\d+ bytes from (.{1,300}?)[:,] (?:icmp_)?seq=(\d{1,9})\b(.*)")
_TIME = re.compile(r"\btime[=<] ?(\d+(?:\.\d*)?) ?(\S*)")
_SILENT = re.compile(r"(?:no answer yet for icmp_seq=|Request timeout for icmp_seq )(\d{1,9})\b")
_FAILED = re.compile(r"From (\S{1,300}?):? icmp_seq=(\d{1,9}) (.+)")
_FAILED_UNCOUNTED = re.compile(r"(?<!\d)\d+ bytes from (\S{1,300}?): ([A-Z][a-z].*)")
_TOTAL = re.compile(r"^(\d{1,9}) packets transmitted, .*?(?:time (\d{1,12}) ?ms)?$")
_BACK = re.compile(r"time of day goes back")
_KNOWN = re.compile(
    r"^\s*$|^--- .* ---$|^(rtt|round-trip) min/avg|^ping6?: |^Vr HL TOS|^ *[0-9a-f]+ +[0-9a-f]+ +[0-9a-f]+ |^\^C"
)
_WRAP = 1 << 16
_DEFAULT_PACE_S = 1.0
_LOOKED_AT = 50


@dataclass
class _Ping:
    """One ping while its lines are read; sequence numbers continue when 16 bits wrap."""

    line: int
    target: str = ""
    first: int | None = None
    transmitted: int | None = None
    total_s: float | None = None
    last: int | None = None
    rtt_s: dict[int, float] = field(default_factory=dict)
    arrived_s: dict[int, float] = field(default_factory=dict)
    address: dict[int, str] = field(default_factory=dict)
    reply: dict[int, str] = field(default_factory=dict)
    duplicates: dict[int, int] = field(default_factory=dict)
    failed: int = 0
    set_back: int = 0
    unknown: list[int] = field(default_factory=list)

    def number(self, printed: int) -> int:
        """Ping prints 16 bits; reordering makes small steps back."""
        if self.last is None or printed >= _WRAP:
            found = printed
        else:
            found = self.last + (printed - self.last + _WRAP // 2) % _WRAP - _WRAP // 2
        self.last = max(found, self.last if self.last is not None else found)
        return found


def is_ping(text: str) -> bool:
    """Whether one of the first lines is ping's."""
    lines = [line for line in text[:100_000].split("\n")[:_LOOKED_AT] if len(line) <= LONGEST_LINE]
    return any(_START.match(line) or _ANSWER.search(line) or _SILENT.search(line) for line in lines)


def read(text: str, source: str, pace_s: float | None) -> list[RttSeries]:
    """One series per ping. Raises SawtoothError ``not-a-series``, naming the line."""
    pings: list[_Ping] = []
    for number, line in enumerate(text.split("\n"), 1):
        line = line[: LONGEST_LINE + 1].rstrip("\r")
        if len(line) > LONGEST_LINE:
            line = "longer than what ping prints"
        if begin := _START.match(line):
            pings.append(_Ping(number, target=plain(begin[1], 80)))
            # iputils counts from 1 and prints "bytes of data", the others from 0 and print "data bytes".
            pings[-1].first = 1 if "bytes of data" in line or re.search(r"\) \d+ data bytes", line) else 0
            continue
        if not pings:
            pings.append(_Ping(number))
        _line(pings[-1], line, number)
    found = [_series(one, source, pace_s) for one in pings if one.last is not None]
    if not found:
        raise bad("ping was never answered, and says of no probe that it was lost", pings[0].line if pings else 1)
    if len(found) > 1:
        return [RttSeries(**{**vars(one), "label": f"{one.target} ({index})"}) for index, one in enumerate(found, 1)]
    return found


def _line(ping: _Ping, line: str, number: int) -> None:
    stamp = _STAMP.match(line)
    if answer := _ANSWER.search(line):
        _answer(ping, answer, _number(stamp[1], number) if stamp else None, number)
    elif silent := _SILENT.search(line):
        ping.number(int(silent[1]))
    elif failed := _FAILED.search(line):
        sequence = ping.number(int(failed[2]))
        ping.address[sequence], ping.reply[sequence] = plain(failed[1], 80), plain(failed[3].strip(), 80)
        ping.failed += 1
    elif _FAILED_UNCOUNTED.search(line):
        ping.failed += 1
    elif total := _TOTAL.match(line.rstrip()):
        ping.transmitted = int(total[1])
        ping.total_s = int(total[2]) / 1e3 if total[2] else None
    elif _BACK.search(line):
        ping.set_back += 1
    elif not _KNOWN.search(line):
        ping.unknown.append(number)


def _answer(ping: _Ping, answer: re.Match[str], stamp_s: float | None, line: int) -> None:
    time = _TIME.search(answer[3])
    if time is None:
        # A truncated line, or a payload too short for a time.
        ping.unknown.append(line)
        return
    unit = {"ms": 1e-3, "us": 1e-6, "usec": 1e-6, "s": 1.0, "sec": 1.0}.get(time[2])
    if unit is None:
        raise bad(f'an RTT in "{plain(time[2], 20)}": ping prints ms', line, "give the output as ping printed it")
    sequence = ping.number(int(answer[2]))
    if sequence in ping.rtt_s:
        ping.duplicates[sequence] = ping.duplicates.get(sequence, 0) + 1
        return
    ping.rtt_s[sequence] = _number(time[1], line) * unit
    ping.address[sequence] = plain(answer[1], 80)
    ping.reply[sequence] = "echo-reply"
    if stamp_s is not None:
        ping.arrived_s[sequence] = stamp_s


def _number(text: str, line: int) -> float:
    try:
        return decimal(text)
    except ValueError as error:
        raise bad(str(error), line) from None


def _series(ping: _Ping, source: str, given_s: float | None) -> RttSeries:
    numbers = sorted({*ping.rtt_s, *ping.reply})
    last = ping.last if ping.last is not None else 0
    first = min(numbers[0] if numbers else last, last if ping.first is None else ping.first)
    if ping.transmitted is not None:
        last = max(last, first + min(ping.transmitted, last - first + _WRAP) - 1)
    if last - first > 100 * len(numbers) + 2 * _WRAP:
        raise bad(f"sequence numbers go from {first} to {last} with {len(numbers)} answers", ping.line)
    count = last - first + 1
    sent_s, pace_s, clock, remarks = _times(ping, first, count, given_s)
    remarks += _remarks(ping)

    def column(values: dict[int, str]) -> np.ndarray:
        return np.array([values.get(first + index, "") for index in range(count)], dtype=object)

    return RttSeries(
        sent_s,
        np.array([ping.rtt_s.get(first + index, math.nan) for index in range(count)]),
        pace_s,
        source,
        label=ping.target,
        target=ping.target,
        clock="unix" if clock else "counted",
        address=column(ping.address),
        reply=column(ping.reply),
        duplicates=np.array([ping.duplicates.get(first + index, 0) for index in range(count)], dtype=np.int64),
        remarks=tuple(remarks),
    )


def _times(ping: _Ping, first: int, count: int, given_s: float | None) -> tuple[np.ndarray, float, bool, list[Remark]]:
    """When each probe was sent, the pace, whether it was measured, and remarks."""
    index = np.arange(count)
    stamped = np.array(sorted(ping.arrived_s))
    if len(stamped) >= 2:
        known_s = np.array([ping.arrived_s[one] - ping.rtt_s[one] for one in stamped])
        steps_s = np.diff(known_s) / np.diff(stamped)
        pace_s = float(np.median(steps_s))
        if pace_s <= 0:
            raise bad("its times do not go on", ping.line)
        at = stamped - first
        sent_s = np.interp(index, at, known_s)
        # Probes lost at either end continued at the pace.
        sent_s = np.where(index < at[0], known_s[0] + (index - at[0]) * pace_s, sent_s)
        sent_s = np.where(index > at[-1], known_s[-1] + (index - at[-1]) * pace_s, sent_s)
        return sent_s, pace_s, True, []
    if given_s is not None:
        return index * given_s, given_s, False, []
    if ping.total_s and ping.transmitted and ping.transmitted > 1:
        pace_s = ping.total_s / (ping.transmitted - 1)
        text = f"times are counted at the {pace_s:.4g} s a probe that ping took; ping -D prints them"
    else:
        pace_s = _DEFAULT_PACE_S
        text = f"nothing says the pace: {pace_s:g} s is taken, ping's default; give it, or use ping -D"
    return index * pace_s, pace_s, False, [Remark("counted-times", text)]


def _remarks(ping: _Ping) -> list[Remark]:
    found = []
    if ping.unknown:
        lines = ", ".join(map(str, ping.unknown[:5])) + (", …" if len(ping.unknown) > 5 else "")
        found.append(Remark("unknown-lines", f"{len(ping.unknown)} lines are not understood: {lines}"))
    if ping.transmitted is None:
        found.append(
            Remark("cut", "ping's summary is not there: it was cut or killed, and its last probes are not known")
        )
    if ping.failed:
        found.append(Remark("errors", f"{ping.failed} answers are errors without an RTT: counted as lost"))
    if ping.set_back:
        found.append(
            Remark("clock-set-back", f"ping says {ping.set_back} times that the clock was set back", doubt=True)
        )
    return found
