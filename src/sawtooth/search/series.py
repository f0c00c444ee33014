"""Series: fields with several values each, for the search of the worst case: the packets that a link loses, and the
values of a field over time.

Both are written with how many there are: ``path.loss.packets=8 of 500..10000``, ``path.changes.rate=6 of
1..50Mbit/s``. The search sees them as numbers on scales, like other unknowns.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from sawtooth.errors import InputError
from sawtooth.sanitize import plain
from sawtooth.scenario import Scenario, Span
from sawtooth.search.unknown import Unknown

MOST_PACKETS, MOST_CHANGES = 100, 12
DECADE = 10
RUNS = 3
"""Losses are at most this many runs of consecutive packets. A stall needs that: single losses are repaired at once."""
_SERIES = re.compile(r"([^=]+)=\s*([0-9]{1,6})\s+of\s+(.+)", re.DOTALL)
_PACKETS, _CHANGES = "packets", "changes"

Ends = tuple[float, float]


def parse(text: str, scale: str | None, scenario: Scenario) -> LostPackets | OverTime | None:
    """None if the text has no number of values. Raises SawtoothError as ``Unknown.parse`` does."""
    found = _SERIES.fullmatch(text)
    if found is None:
        return None
    field, count = found[1].strip(), int(found[2])
    *above, last = field.split(".")
    if last == _PACKETS and above:
        return LostPackets(field, _limited(field, count, MOST_PACKETS), _numbers(field, found[3]))
    if above[-1:] == [_CHANGES]:
        of = range_of(f"{field}={found[3]}", scale)
        return OverTime(field, _limited(field, count, MOST_CHANGES), of, scenario.duration.ns)
    fix = f"give its range only: {plain(field, 80)}={plain(found[3], 60)}"
    raise InputError("bad-override", "this field has one value, not several", field=field, fix=fix)


def range_of(text: str, scale: str | None, scenario: Scenario | None = None) -> Unknown:
    """A range over a decade or more is logarithmic unless ``scale`` says otherwise: small values are as likely to break
    something as large ones. Raises SawtoothError as ``Unknown.parse`` does."""
    found = Unknown.parse(text, scale, scenario)
    wide = scale is None and 0 < found.low <= found.high / DECADE
    return replace(found, scale="log") if wide else found


def _limited(field: str, count: int, most: int) -> int:
    if not 1 <= count <= most:
        raise InputError("out-of-range", f"{count} values are not possible", field=field, fix=f"write 1 to {most} of")
    return count


def _numbers(field: str, text: str) -> Unknown:
    found = Unknown.parse(f"{field}={text}", "linear")
    if not found.is_whole or found.low < 1:
        fix = "write it like path.loss.packets=8 of 500..10000"
        raise InputError("bad-quantity", "packets are whole numbers from 1 on", field=field, fix=fix)
    return found


@dataclass(frozen=True)
class LostPackets:
    """Up to ``count`` packets, in up to three runs of consecutive ones. A value is the numbers in ascending order."""

    field: str
    count: int
    of: Unknown

    @property
    def spans(self) -> list[Ends]:
        """The place of the first run, the distances of the others, and the length of each."""
        length = (0.0, math.log(self.count + 0.5))
        distance = (0.0, math.log(self.of.high - self.of.low + 1.5))
        return [(self.of.low, self.of.high), length, *(distance, length) * (min(RUNS, self.count) - 1)]

    def value(self, *places: float) -> tuple[float, ...]:
        found: list[float] = []
        at = float(round(places[0]))
        for start in range(0, len(places), 2):
            if start:
                at += max(0, round(math.exp(places[start])) - 1)
            for _ in range(max(1, round(math.exp(places[start + 1])))):
                if at <= self.of.high and len(found) < self.count:
                    found.append(at)
                at += 1
        return tuple(found)

    def setting(self, value: tuple[float, ...]) -> list[int]:
        return [int(number) for number in value]

    def settings(self, value: tuple[float, ...]) -> dict[str, Any]:
        # The whole table: the file may have another kind of loss.
        return {self.field.rpartition(".")[0]: {_PACKETS: self.setting(value)}}

    def text(self, value: tuple[float, ...]) -> str:
        """Runs in short: "7–9, 12"."""
        runs: list[list[int]] = []
        for number in self.setting(value):
            if runs and number == runs[-1][-1] + 1:
                runs[-1].append(number)
            else:
                runs.append([number])
        return ", ".join(f"{run[0]}–{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)

    def named(self, value: tuple[float, ...]) -> str:
        return f"{self.field} = {self.text(value)}"

    def rounded(self, value: tuple[float, ...]) -> Iterator[tuple[float, ...]]:
        """None: packets next to each other have no rounder numbers."""
        yield from ()

    @property
    def limits(self) -> list[str]:
        return self.of.limits

    @property
    def corners(self) -> list[tuple[float, ...]]:
        return [(self.of.low,), (self.of.high,)]

    def describe(self) -> str:
        return f"{self.field}, up to {self.count} of {self.of.text(self.of.low)} … {self.of.text(self.of.high)}"


@dataclass(frozen=True)
class OverTime:
    """A field that changes at ``count`` times, evenly over the run. A value is pairs: which of the times, and what the
    field is from then on."""

    field: str
    count: int
    of: Unknown
    duration_ns: int

    @property
    def spans(self) -> list[Ends]:
        return self.of.spans * self.count

    def value(self, *places: float) -> tuple[tuple[int, float], ...]:
        return tuple((at, self.of.value(place)) for at, place in enumerate(places))

    def setting(self, value: tuple[tuple[int, float], ...]) -> list[dict[str, Any]]:
        name = self.field.rpartition(".")[2]
        return [{"at": self._at(at), name: self.of.setting(one)} for at, one in value]

    def settings(self, value: tuple[tuple[int, float], ...]) -> dict[str, Any]:
        return {self.field.rpartition(".")[0]: self.setting(value)}

    def _at(self, number: int) -> str:
        return str(Span(self.duration_ns * number // self.count))

    def text(self, value: tuple[tuple[int, float], ...]) -> str:
        return ", ".join(f"{self.of.text(one)} from {self._at(at)}" for at, one in value)

    def named(self, value: tuple[tuple[int, float], ...]) -> str:
        return f"{self.field} = {self.text(value)}"

    def rounded(self, value: tuple[tuple[int, float], ...]) -> Iterator[tuple[tuple[int, float], ...]]:
        """Everything to so many digits."""
        for digits in zip(*(self.of.rounded(one) for _, one in value), strict=True):
            yield tuple((at, one) for (at, _), one in zip(value, digits, strict=True))

    @property
    def limits(self) -> list[str]:
        return self.of.limits

    @property
    def corners(self) -> list[tuple[tuple[int, float], ...]]:
        return [tuple((at, end) for at in range(self.count)) for end in self.of.corners]

    def describe(self) -> str:
        return f"{self.field}, at {self.count} times: {self.of.describe().partition(', ')[2]}"
