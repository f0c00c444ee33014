"""Quantities of a scenario file: text with a unit in, an exact integer inside, canonical text out.

``Rate`` in bit/s, ``Span`` in nanoseconds, ``Size`` in bytes, ``Loss`` in parts per billion, ``Queue`` in whatever it
was given in. Parsing is exact: text that does not fit the integer (``0.1 ns``) is refused, never rounded. The spellings
of tc and iperf3 are read too (``50Mbit``, ``1gbit``, ``20ms``, ``1000p``); printing has one spelling.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, Self

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from sawtooth.errors import InputError
from sawtooth.plain import plain

# Digits and exponent are bounded so that a hostile number cannot take long to expand.
_NUMBER = r"[+-]?(?:[0-9]{1,30}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})(?:[eE][+-]?[0-9]{1,2})?"
# No unit begins like the rest of a number: of "1e400 Mbit/s" and "50,5 Mbit/s" the whole is no quantity.
_QUANTITY = re.compile(rf"\s*({_NUMBER})(?![0-9.,_]|[eE][+-]?[0-9])\s*(\S.*?)?\s*", re.DOTALL)


def _shown(given: object) -> str:
    """What is wrong, short enough for a message."""
    return plain(given, 60)


def _written(number: str, usual: tuple[str, ...]) -> str:
    """What a bare number may have meant."""
    if usual == ("%",):
        share = Fraction(number)
        of_all = f'"{_decimal(share * 100)}%" for a share of {number}, or ' if 0 < share < 1 else ""
        return f'write {of_all}"{number}%"'
    return "write " + " or ".join(f'"{number} {unit}"' for unit in usual)


def _split(value: object, what: str, example: str, *usual: str) -> tuple[Fraction, str]:
    """The number and the unit of a quantity; ``usual`` are the units that the fix shows for a bare number."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        shown = repr(value) if isinstance(value, float) or abs(value) < 10**30 else "this number"
        plain = shown != "this number" and math.isfinite(value)
        fix = _written(shown, usual) if plain else f'write it like "{example}"'
        raise InputError("missing-unit", f"{shown} has no unit; {what} needs one", fix=fix)
    if not isinstance(value, str):
        kind = type(value).__name__
        raise InputError("wrong-type", f"{what} is text with a unit, not a {kind}", fix=f'write it like "{example}"')
    found = _QUANTITY.fullmatch(value)
    if found is None:
        raise InputError("bad-quantity", f'"{_shown(value)}" is not {what}', fix=f'write it like "{example}"')
    number, unit = found[1], found[2]
    if not unit:
        message = f'"{_shown(value)}" has no unit; {what} needs one'
        raise InputError("missing-unit", message, fix=_written(number, usual))
    return Fraction(number), unit


def _one_of(units: list[str]) -> str:
    return f"units here: {', '.join(units)}"


def _whole(number: Fraction, scale: Fraction | int, what: str, finest: str, text: object) -> int:
    amount = number * scale
    if amount.denominator != 1:
        raise InputError(
            "bad-quantity", f'"{_shown(text)}" is finer than {finest}, the resolution of {what}', fix="round it"
        )
    return int(amount)


def _decimal(amount: Fraction) -> str:
    """Exact decimal text; denominators here only ever have the factors 2 and 5."""
    sign, amount = ("-" if amount < 0 else ""), abs(amount)
    whole, rest = divmod(amount.numerator, amount.denominator)
    digits = ""
    while rest:
        digit, rest = divmod(rest * 10, amount.denominator)
        digits += str(digit)
    return f"{sign}{whole}.{digits}" if digits else f"{sign}{whole}"


@lru_cache(maxsize=1024)
def _print(amount: int, units: tuple[tuple[str, int], ...]) -> str:
    """In the largest of ``units`` (smallest first) that leaves at least 1."""
    name, scale = units[0]
    for larger, its_scale in units[1:]:
        if abs(amount) >= its_scale:
            name, scale = larger, its_scale
    return f"{_decimal(Fraction(amount, scale))} {name}"


class Quantity:
    """What all quantities share: parsed by ``parse``, printed by ``str``, a string in JSON and TOML."""

    EXAMPLES: ClassVar[tuple[str, ...]]
    MEANING: ClassVar[str]

    @classmethod
    def parse(cls, value: object) -> Self:
        """Raises SawtoothError: missing-unit, unknown-unit, bad-quantity, wrong-type, zero-queue or out-of-range."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}.parse({str(self)!r})"

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            lambda value: value if isinstance(value, cls) else cls.parse(value),
            serialization=core_schema.plain_serializer_function_ser_schema(str),
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        pattern = rf"^\s*{_NUMBER}\s*\S.*$"
        return {"type": "string", "pattern": pattern, "description": cls.MEANING, "examples": list(cls.EXAMPLES)}


@dataclass(frozen=True, order=True, repr=False)
class Rate(Quantity):
    """Bits a second, 1 bit/s to 10 Tbit/s."""

    bps: int

    EXAMPLES = ("50 Mbit/s", "2.5 Gbit/s")
    MEANING = "a rate: bit/s, kbit/s, Mbit/s, Gbit/s or Tbit/s"
    _UNITS = (("bit/s", 1), ("kbit/s", 10**3), ("Mbit/s", 10**6), ("Gbit/s", 10**9), ("Tbit/s", 10**12))
    LOW, HIGH = 1, 10 * 10**12

    @classmethod
    def parse(cls, value: object) -> Rate:
        number, unit = _split(value, "a rate", "50 Mbit/s", "Mbit/s")
        lower = unit.lower()
        scales = {name.lower(): scale for name, scale in cls._UNITS}
        scales |= {name.lower().removesuffix("/s"): scale for name, scale in cls._UNITS}
        if lower not in scales:
            known = [name for name, _ in cls._UNITS]
            fix = _one_of(known)
            if lower in ("bps", "kbps", "mbps", "gbps", "tbps"):
                # Most people mean bits by it, tc means bytes: a factor of eight is not a thing to guess.
                fix = f"tc reads {unit} as bytes a second, others as bits: write {lower.removesuffix('bps')}bit/s"
                fix = fix.replace("mbit", "Mbit").replace("gbit", "Gbit").replace("tbit", "Tbit")
            raise InputError("unknown-unit", f'"{_shown(unit)}" is not a unit of rate', fix=fix)
        bps = _whole(number, scales[lower], "a rate", "1 bit/s", value)
        if not cls.LOW <= bps <= cls.HIGH:
            raise InputError(
                "out-of-range", f'"{_shown(value)}" is outside 1 bit/s … 10 Tbit/s', fix='write e.g. "50 Mbit/s"'
            )
        return cls(bps)

    def __str__(self) -> str:
        return _print(self.bps, self._UNITS)


@dataclass(frozen=True, order=True, repr=False)
class Span(Quantity):
    """A length of time in nanoseconds, 0 to 30 days; a field may narrow that."""

    ns: int

    EXAMPLES = ("20 ms", "60 s", "3 h")
    MEANING = "a length of time: ns, us, ms, s, min, h or d"
    _UNITS = (("ns", 1), ("us", 10**3), ("ms", 10**6), ("s", 10**9))
    _READ: ClassVar[dict[str, int]] = {
        **dict(_UNITS),
        **{"µs": 10**3, "μs": 10**3, "usec": 10**3, "usecs": 10**3, "msec": 10**6, "msecs": 10**6},
        **{"sec": 10**9, "secs": 10**9, "second": 10**9, "seconds": 10**9},
        **{"min": 60 * 10**9, "h": 3600 * 10**9, "d": 86400 * 10**9, "days": 86400 * 10**9},
    }
    HIGH = 30 * 86400 * 10**9

    @classmethod
    def scale(cls, unit: str) -> int | None:
        """Nanoseconds in ``unit``; None when it is not a unit of time."""
        return cls._READ.get(unit.lower())

    @classmethod
    def parse(cls, value: object) -> Span:
        number, unit = _split(value, "a length of time", "20 ms", "s", "ms")
        scale = cls.scale(unit)
        if scale is None:
            known = ["ns", "us", "ms", "s", "min", "h", "d"]
            raise InputError("unknown-unit", f'"{_shown(unit)}" is not a unit of time', fix=_one_of(known))
        ns = _whole(number, scale, "time", "1 ns", value)
        if not 0 <= ns <= cls.HIGH:
            raise InputError("out-of-range", f'"{_shown(value)}" is outside 0 s … 30 d', fix='write e.g. "20 ms"')
        return cls(ns)

    @property
    def seconds(self) -> float:
        return self.ns / 1e9

    def __str__(self) -> str:
        return "0 s" if self.ns == 0 else _print(self.ns, self._UNITS)


@dataclass(frozen=True, order=True, repr=False)
class Size(Quantity):
    """Bytes, 0 to 1 EB; a field may narrow that."""

    bytes: int

    EXAMPLES = ("64 MiB", "10 MB", "1500 bytes")
    MEANING = "a size: bytes, kB, MB, GB, TB (thousands) or KiB, MiB, GiB, TiB (1024s)"
    _DECIMAL = (("bytes", 1), ("kB", 10**3), ("MB", 10**6), ("GB", 10**9), ("TB", 10**12))
    _BINARY = (("KiB", 2**10), ("MiB", 2**20), ("GiB", 2**30), ("TiB", 2**40))
    HIGH = 10**18

    @classmethod
    def scale(cls, unit: str) -> int | None:
        """Bytes in ``unit``; None when it is not a unit of size."""
        scales = {name.lower(): scale for name, scale in (*cls._DECIMAL, *cls._BINARY)}
        return {**scales, "b": 1, "byte": 1}.get(unit.lower())

    @classmethod
    def parse(cls, value: object) -> Size:
        number, unit = _split(value, "a size", "64 MiB", "bytes")
        scale = cls.scale(unit)
        if scale is None:
            known = [name for name, _ in (*cls._DECIMAL, *cls._BINARY)]
            raise InputError("unknown-unit", f'"{_shown(unit)}" is not a unit of size', fix=_one_of(known))
        size = _whole(number, scale, "a size", "1 byte", value)
        if not 0 <= size <= cls.HIGH:
            raise InputError(
                "out-of-range", f'"{_shown(value)}" is outside 0 bytes … 1000000 TB', fix='write e.g. "64 MiB"'
            )
        return cls(size)

    def __str__(self) -> str:
        if self.bytes and self.bytes % 1024 == 0:
            whole = [(name, scale) for name, scale in self._BINARY if self.bytes % scale == 0]
            return f"{self.bytes // whole[-1][1]} {whole[-1][0]}"
        if self.bytes and self.bytes % 1000 == 0:
            return _print(self.bytes, self._DECIMAL)
        return "1 byte" if self.bytes == 1 else f"{self.bytes} bytes"


@dataclass(frozen=True, order=True, repr=False)
class Loss(Quantity):
    """The probability that a packet is lost, in parts per billion, 0 to 100%."""

    ppb: int

    EXAMPLES = ("1%", "0.01%")
    MEANING = "a share of packets: percent, 0% to 100%"

    @classmethod
    def parse(cls, value: object) -> Loss:
        number, unit = _split(value, "a loss", "1%", "%")
        if unit.lower() not in ("%", "percent"):
            raise InputError(
                "unknown-unit", f'"{_shown(unit)}" is not a unit of loss', fix="write it in percent, like 1%"
            )
        ppb = _whole(number, 10**7, "a loss", "1e-7 %", value)
        if not 0 <= ppb <= 10**9:
            raise InputError("out-of-range", f'"{_shown(value)}" is outside 0% … 100%', fix='write e.g. "1%"')
        return cls(ppb)

    @property
    def probability(self) -> float:
        return self.ppb / 1e9

    def __str__(self) -> str:
        return f"{_decimal(Fraction(self.ppb, 10**7))}%"


@dataclass(frozen=True, order=True, repr=False)
class Burst(Quantity):
    """How many packets are lost one after the other, on average: in thousandths of a packet, from one packet on."""

    milli: int

    EXAMPLES = ("5 packets", "2.5 packets")
    MEANING = "a mean number of packets: packets, 1 packet to 1000000 packets"

    @classmethod
    def parse(cls, value: object) -> Burst:
        number, unit = _split(value, "a burst", "5 packets", "packets")
        if unit.lower() not in ("packets", "packet", "p", "pkt", "pkts"):
            raise InputError("unknown-unit", f'"{_shown(unit)}" is not a unit of a burst', fix="units here: packets")
        milli = _whole(number, 1000, "a burst", "0.001 packets", value)
        if not 1000 <= milli <= 10**9:
            limits = "1 packet … 1000000 packets"
            raise InputError("out-of-range", f'"{_shown(value)}" is outside {limits}', fix='write e.g. "5 packets"')
        return cls(milli)

    def __str__(self) -> str:
        return "1 packet" if self.milli == 1000 else f"{_decimal(Fraction(self.milli, 1000))} packets"


@dataclass(frozen=True, repr=False)
class Queue(Quantity):
    """The limit of a tail-drop queue: what may wait, not what is on the wire.

    ``unit`` is packets, bytes, ns (bytes that the transmitter sends in that time) or bdp (of the path's base RTT).
    """

    unit: str
    amount: Fraction

    EXAMPLES = ("1000 packets", "64 KiB", "48 ms", "1 bdp")
    MEANING = "a tail-drop queue's limit: packets, a size, a length of time at the link's rate, or bdp"
    HIGH: ClassVar[dict[str, int]] = {"packets": 10**9, "bytes": 2**40, "ns": 3600 * 10**9, "bdp": 10**6}

    @classmethod
    def parse(cls, value: object) -> Queue:
        number, unit = _split(value, "a queue", "1000 packets", "packets")
        lower = unit.lower()
        if lower in ("p", "packet", "packets", "pkt", "pkts"):
            kind, amount = "packets", Fraction(_whole(number, 1, "a queue", "1 packet", value))
        elif lower == "bdp":
            kind, amount = "bdp", Fraction(_whole(number, 10**9, "a queue", "1e-9 bdp", value), 10**9)
        elif (scale := Size.scale(unit)) is not None:
            kind, amount = "bytes", Fraction(_whole(number, scale, "a queue", "1 byte", value))
        elif (scale := Span.scale(unit)) is not None:
            kind, amount = "ns", Fraction(_whole(number, scale, "a queue", "1 ns", value))
        else:
            known = ["packets", "bytes", "KiB", "MiB", "ms", "us", "bdp"]
            raise InputError("unknown-unit", f'"{_shown(unit)}" is not a unit of a queue', fix=_one_of(known))
        if amount == 0:
            fix = 'the packet in transmission does not wait; the smallest queue is "1 packet"'
            raise InputError("zero-queue", "a queue of zero would drop every packet that meets another", fix=fix)
        if not 0 < amount <= cls.HIGH[kind]:
            limits = '"1 packet" … "1000000000 packets", "1 TiB", "3600 s" or "1000000 bdp"'
            raise InputError(
                "out-of-range",
                f'"{_shown(value)}" is outside the limits of a queue',
                fix=f"choose within {limits}",
            )
        return cls(kind, amount)

    def __str__(self) -> str:
        if self.unit == "bytes":
            return str(Size(int(self.amount)))
        if self.unit == "ns":
            return str(Span(int(self.amount)))
        return "1 packet" if self.unit == "packets" and self.amount == 1 else f"{_decimal(self.amount)} {self.unit}"
