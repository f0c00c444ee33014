"""Unknown: the field whose value is searched, its range, and the position of a value on it.

A logarithmic range that begins at 0 uses the inverse hyperbolic sine of the value over ``least``: logarithmic above
``least``, the smallest value that differs measurably from 0, and linear below it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

from sawtooth.errors import InputError, SawtoothError
from sawtooth.sanitize import plain
from sawtooth.scenario import Scenario
from sawtooth.scenario.expressions import NUMBER, Amount
from sawtooth.search.smallest_effect import least, runs_at_zero

Scale = Literal["log", "linear"]
SCALES: tuple[Scale, ...] = ("log", "linear")

_LOG = ("loss", "ack_loss", "rate", "reverse_rate", "queue", "limit", "down", "up", "wifi", "access_rate")
"""Last words of fields that are searched on a logarithmic scale."""
_RANGE = re.compile(r"([^=]+)=\s*(.+?)\s*\.\.\s*(.+?)\s*", re.DOTALL)
_END = re.compile(
    r"([+-]?(?:[0-9]{1,15}(?:\.[0-9]{0,12})?|\.[0-9]{1,12})(?:[eE][+-]?[0-9]{1,2})?)\s*([^\s0-9][^0-9]*)?"
)
_EXAMPLE = "write it like path.loss=0.0001%..5%"
_QUANTA = {"%": 1e-7, "packets": 1.0, "packet": 1.0, "p": 1.0, "bdp": 1e-9}
"""The finest step of a unit; for others 1 ns, 1 bit/s, 1 byte."""
_COUNTED = ("packets", "packet", "p", "bdp")
_DIGITS = 4
_NEAR = 1e-6
"""A value this near to a whole number is that number."""


@dataclass(frozen=True)
class Unknown:
    """``field`` from ``low`` to ``high``, both in ``unit``; ``step`` is the field's finest step, 0 if none. ``least``
    is the smallest value that differs measurably from 0 if the range contains 0, else 0; ``least_of`` describes it.
    ``from_zero``: the range began at 0, which the field cannot be, and begins at the smallest value instead.
    """

    field: str
    low: float
    high: float
    unit: str
    scale: Scale
    step: float
    least: float = 0.0
    least_of: str = ""
    from_zero: bool = False

    @classmethod
    def parse(cls, text: str, scale: str | None = None, scenario: Scenario | None = None) -> Unknown:
        """Parses ``path.loss=0.0001%..5%``. Loss, rates and queues are logarithmic unless ``scale`` says otherwise.
        With ``scenario``, a range from 0 knows its smallest measurable value.

        Raises SawtoothError: ``bad-override``, ``bad-quantity``, ``missing-unit``, ``unknown-unit``, ``unknown-name``,
        ``empty-axis``, ``out-of-range``, ``conflict`` for the seed.
        """
        found = _RANGE.fullmatch(text)
        if found is None:
            raise InputError("bad-override", f'"{plain(text, 80)}" is not FIELD=LOW..HIGH', fix=_EXAMPLE)
        field = found[1].strip()
        if field == "seed":
            fix = "vary another field: find runs several seeds for each value anyway"
            raise InputError("conflict", "find sets the seed of each run itself", field=field, fix=fix)
        (low, low_unit), (high, unit) = _end(found[2], field), _end(found[3], field)
        unit, low_unit = unit or low_unit, low_unit or unit
        if low_unit != unit:
            low = low * _factor(low_unit, unit, field)
        if not low < high:
            message = f"the range {plain(found[2], 30)} .. {plain(found[3], 30)} is empty"
            turned = f"{plain(field, 80)}={plain(found[3], 30)}..{plain(found[2], 30)}"
            raise InputError("empty-axis", message, field=field, fix=f"write the smaller end first: {turned}")
        if scenario is not None and not unit:
            _check_unit(scenario, field, found[2], found[3])
        whole = not unit and low.is_integer() and high.is_integer() and "." not in found[2] + found[3]
        step = 1.0 if whole else _step(unit, field)
        if scale is not None and scale not in SCALES:
            raise InputError("unknown-name", f'no scale is called "{plain(scale, 30)}"', fix="choose log or linear")
        chosen: Scale = scale or ("log" if field.split(".")[-1] in _LOG and low >= 0 else "linear")
        if chosen == "log" and low < 0:
            fix = "begin at 0 or above, or give --scale linear"
            raise InputError("out-of-range", "a logarithmic scale cannot go below 0", field=field, fix=fix)
        if low > 0:
            return cls(field, low, high, unit, chosen, step)
        smallest, of = (1.0, "one") if whole else least(scenario, field, unit, high)
        smallest = max(float(f"{smallest:.2g}"), step)
        if low == 0 and smallest < high and not runs_at_zero(scenario, field, unit):
            return cls(field, smallest, high, unit, chosen, step, 0.0, of, from_zero=True)
        return cls(field, low, high, unit, chosen, step, smallest, of)

    @property
    def is_whole(self) -> bool:
        """Whether only whole numbers exist: flows, packets."""
        return self.step == 1.0

    def place(self, value: float) -> float:
        """The position of a value: its logarithm, or itself; see the module for a range from 0."""
        if self.scale == "linear":
            return value
        return math.asinh(value / self.least) if self.least else math.log(value)

    def _at(self, place: float) -> float:
        """The number at a position."""
        if self.scale == "linear":
            return place
        return self.least * math.sinh(place) if self.least else math.exp(place)

    def value(self, place: float) -> float:
        """The allowed value nearest to a position, within the range."""
        value = min(max(self._at(place), self.low), self.high)
        if self.step == 1.0:
            return float(round(value))
        value = float(f"{value:.{_DIGITS}g}")
        value = round(value / self.step) * self.step if self.step else value
        return min(max(float(f"{value:.12g}"), self.low), self.high)

    @property
    def spans(self) -> list[tuple[float, float]]:
        """The positions of both ends, as a list of one."""
        return [(self.place(self.low), self.place(self.high))]

    def rounded(self, value: float) -> Iterator[float]:
        """The nearest values with one, two and three digits."""
        for digits in (1, 2, 3):
            yield self.value(self.place(min(max(float(f"{value:.{digits}g}"), self.low), self.high)))

    def reach(self, place: float, within: float) -> float:
        """The distance on the scale of values that differ by the share ``within``; below ``least`` by that share of
        ``least``."""
        if self.scale == "log" and not self.least:
            return math.log1p(within)
        value = abs(self._at(place))
        return self.place(value + within * max(value, self.least)) - self.place(value)

    def text(self, value: float) -> str:
        """The value as a scenario file has it: "0.012%", "64 packets"."""
        number = format(Decimal(f"{value:.12g}"), "f")
        return f"{number}{self.unit}" if self.unit == "%" else f"{number} {self.unit}".strip()

    @property
    def bend(self) -> float:
        """Up to about where a logarithmic scale that includes 0 is linear; 0 if it does not include 0."""
        return self.least if self.scale == "log" else 0.0

    def setting(self, value: float) -> str | int | float:
        """The setting of the field for a value."""
        if self.unit:
            return self.text(value)
        return int(value) if self.is_whole else value

    def settings(self, value: float) -> dict[str, Any]:
        """The field with its setting."""
        return {self.field: self.setting(value)}

    def named(self, value: float) -> str:
        """A value with its field, in words."""
        return f"{self.field} = {self.text(value)}"

    def evenly(self, count: int) -> list[float]:
        """``count`` values at even distances from end to end; fewer if the range has fewer."""
        low, high = self.place(self.low), self.place(self.high)
        return list(dict.fromkeys(self.value(low + (high - low) * at / (count - 1)) for at in range(count)))

    def ends(self, place: float, low: float, high: float, holds_low: bool) -> tuple[float, float, float]:
        """A position and its interval's ends as values. For whole numbers the last that holds: at least the last up to
        the low end, at most the last before the high end, where it does not; or the first, likewise."""
        value, ends = self._at(place), (self._at(low), self._at(high))
        if self.is_whole and not math.isnan(value):
            if holds_low:
                value, least, most = math.floor(value + _NEAR), math.floor(ends[0] + _NEAR), math.ceil(ends[1] - _NEAR)
                ends = float(least), float(max(most - 1, least))
            else:
                value, least, most = math.ceil(value - _NEAR), math.floor(ends[0] + _NEAR), math.ceil(ends[1] - _NEAR)
                ends = float(min(least + 1, most)), float(most)
            value = min(max(float(value), ends[0]), ends[1])
        return value, *ends

    def amount(self, value: float) -> Amount:
        """A value for calculations: a plain number if its unit is packets or bdp."""
        return Amount(value) if not self.unit or self.unit in _COUNTED else Amount.of_unit(value, self.unit)

    @property
    def limits(self) -> list[str]:
        """Both ends as a scenario file has them."""
        return [self.text(self.low), self.text(self.high)]

    @property
    def corners(self) -> list[float]:
        """The values of both ends."""
        return [self.low, self.high]

    def describe(self) -> str:
        """The range in words."""
        ends = f"{self.text(self.low)} … {self.text(self.high)}"
        how = "on a logarithmic scale" if self.scale == "log" else "on a linear scale"
        if self.least and self.scale == "log":
            how = f"on a logarithmic scale above {self.text(self.least)}, which is {self.least_of}"
        elif self.from_zero:
            how = f"{how}; 0 cannot be run, so the range begins at {self.least_of}"
        return f"{self.field}, {ends}, {how}"


def _check_unit(scenario: Scenario, field: str, low: str, high: str) -> None:
    """Raises InputError ``missing-unit`` if the field's values have a unit."""
    try:
        scenario.set({field: int(high) if high.isdigit() else float(high)})
    except SawtoothError as error:
        # The fix quotes the high end with a unit in each way in which it may be meant: 0.05 as "5%" or "0.05%".
        ends = re.findall(r'"([0-9.]+(?:e[+-]?[0-9]+)?) ?([^"]+)"', error.fix or "")
        if error.code != "missing-unit" or not ends:
            return
        scaled = [(float(end) / float(high) if float(high) else 1.0, unit) for end, unit in ends]
        ranges = [
            f"{plain(field, 80)}={float(low) * scale:.12g}{unit}..{float(high) * scale:.12g}{unit}"
            for scale, unit in scaled
        ]
        fix = f"write {' or '.join(ranges)}"
        raise InputError("missing-unit", "the ends of the range have no unit", field=field, fix=fix) from None


def _end(text: str, field: str) -> tuple[float, str]:
    found = _END.fullmatch(text.strip())
    if found is None:
        raise InputError("bad-quantity", f'"{plain(text, 40)}" is not an end of a range', field=field, fix=_EXAMPLE)
    return float(found[1]), (found[2] or "").strip()


def _factor(unit: str, into: str, field: str) -> float:
    if unit in _QUANTA or into in _QUANTA:
        fix = "write both ends in one unit"
        raise InputError("bad-quantity", f"the ends are in {plain(unit)} and {plain(into)}", field=field, fix=fix)
    one, other = _amount(unit, field), _amount(into, field)
    if one.dimension != other.dimension:
        message = f"the ends are {one.dimension} and {other.dimension}"
        raise InputError("bad-quantity", message, field=field, fix="write both ends in one unit")
    return float(one.value) / float(other.value)


def _step(unit: str, field: str) -> float:
    if unit in _QUANTA:
        return _QUANTA[unit]
    amount = _amount(unit, field) if unit else Amount(1.0)
    if amount.dimension == NUMBER:
        return 0.0
    finest = 1e-9 if amount.dimension.seconds == 1 else 8.0 if amount.dimension.seconds == 0 else 1.0
    return finest / float(amount.value)


def _amount(unit: str, field: str) -> Amount:
    try:
        return Amount.of_unit(1.0, unit)
    except InputError as error:
        raise error.at(field=field) from None
