"""Amount: a number, or one per seed, with its dimension."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from sawtooth.errors import InputError
from sawtooth.sanitize import plain
from sawtooth.scenario.units import Rate, Size, Span

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Dimension(NamedTuple):
    """Powers of bits and of seconds."""

    bits: int
    seconds: int

    def __str__(self) -> str:
        return _CALLED.get(self, "another quantity")

    def show(self, value: float) -> str:
        """A value as people write it: 45.2 Mbit/s."""
        for scale, name in _SHOWN.get(self, ()):
            if abs(value) >= scale or (scale, name) == _SHOWN[self][-1]:
                return f"{value / scale:.4g} {name}"
        return f"{value:.4g}"


NUMBER = SHARE = Dimension(0, 0)
RATE, TIME, SIZE = Dimension(1, -1), Dimension(0, 1), Dimension(1, 0)
_CALLED = {NUMBER: "a number", RATE: "a rate", TIME: "a time", SIZE: "a size"}
_SHOWN = {
    RATE: ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")),
    TIME: ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")),
    SIZE: ((8e6, "MB"), (8e3, "kB"), (8.0, "bytes")),
}
EXAMPLE = {RATE: "Mbit/s", TIME: "ms", SIZE: "kB"}
"""The unit that a fix suggests for a number without one."""


@dataclass(frozen=True)
class Amount:
    """``value`` in bit/s, seconds, bits, or plain (90% is 0.9): a float, or an array with one per seed."""

    value: float | NDArray[Any]
    dimension: Dimension = NUMBER

    @classmethod
    def of_unit(cls, number: float, unit: str) -> Amount:
        """Raises SawtoothError ``unknown-unit``."""
        if unit == "%":
            return cls(number / 100, SHARE)
        kinds: tuple[tuple[Dimension, Callable[[], float]], ...] = (
            (RATE, lambda: Rate.parse(f"1 {unit}").bps),
            (TIME, lambda: Span.parse(f"1 {unit}").seconds),
            (SIZE, lambda: Size.parse(f"1 {unit}").bytes * 8),
        )
        for dimension, scale in kinds:
            try:
                return cls(number * scale(), dimension)
            except InputError as error:
                if unit.lower().endswith("bps"):
                    raise InputError(error.code, error.message, fix=error.fix) from None
        fix = "units here: %, bit/s, kbit/s, Mbit/s, Gbit/s, us, ms, s, min, bytes, kB, KiB, MB, MiB"
        raise InputError("unknown-unit", f'"{plain(unit, 40)}" is not a unit known here', fix=fix)

    @classmethod
    def of_column(cls, name: str, value: float | NDArray[Any]) -> Amount:
        """A column of a study's table; its name gives the unit (``_mbps``, ``_ms``, ``_s``, ``_percent``)."""
        for ending, scale, dimension in _COLUMNS:
            if name.endswith(ending) or f"{ending}_" in name:
                return cls(value * scale, dimension)
        return cls(value)


_COLUMNS = (
    ("_mbps", 1e6, RATE),
    ("_bps", 1.0, RATE),
    ("_ms", 1e-3, TIME),
    ("_s", 1.0, TIME),
    ("_percent", 0.01, SHARE),
    ("_bytes", 8.0, SIZE),
)
