"""Quantities of a scenario file: text with a unit in, an exact integer inside, canonical text out.

``Rate`` is in bit/s, ``Span`` in nanoseconds, ``Size`` in bytes, ``Loss`` in parts per billion, ``Queue`` in its given
unit. Parsing is exact: text that does not fit the integer (``0.1 ns``) is refused, never rounded. The spellings of tc
and iperf3 are accepted too (``50Mbit``, ``1gbit``, ``20ms``, ``1000p``); printing uses one spelling.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Self

from sawtooth import _core

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler
    from pydantic_core import CoreSchema

_PARTS = 10**9
"""Parts of a bandwidth-delay product: the core's unit."""


@lru_cache(maxsize=1024)
def _written(kind: str, amount: int, unit: str | None = None) -> str:
    return _core.write_quantity(kind, amount, unit)


class Quantity:
    """Base of all quantities: parsed by ``parse``, printed by ``str``, a string in JSON and TOML."""

    @classmethod
    def parse(cls, value: object) -> Self:
        """Raises SawtoothError: missing-unit, unknown-unit, bad-quantity, wrong-type, zero-queue or out-of-range."""
        amount, unit = _core.read_quantity(cls.__name__, value)
        return cls._counted(amount, unit)

    @classmethod
    def _counted(cls, amount: int, unit: str | None) -> Self:
        return cls(amount)  # type: ignore[call-arg]

    def _given(self) -> str:
        return str(self)

    def __str__(self) -> str:
        (amount,) = vars(self).values()
        return _written(type(self).__name__, amount)

    def __repr__(self) -> str:
        return f"{type(self).__name__}.parse({str(self)!r})"

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """For grid files, which pydantic reads."""
        from pydantic_core import core_schema

        return core_schema.no_info_plain_validator_function(
            lambda value: value if isinstance(value, cls) else cls.parse(value),
            serialization=core_schema.plain_serializer_function_ser_schema(str),
        )


@dataclass(frozen=True, order=True, repr=False)
class Rate(Quantity):
    """Bits per second, 1 bit/s to 10 Tbit/s."""

    bps: int

    LOW: ClassVar[int] = 1
    HIGH: ClassVar[int] = 10 * 10**12


@dataclass(frozen=True, order=True, repr=False)
class Span(Quantity):
    """A length of time in nanoseconds, 0 to 30 days; a field may narrow that."""

    ns: int

    HIGH: ClassVar[int] = 30 * 86400 * 10**9

    @property
    def seconds(self) -> float:
        return self.ns / 1e9


@dataclass(frozen=True, order=True, repr=False)
class Size(Quantity):
    """Bytes, 0 to 1 EB; a field may narrow that."""

    bytes: int

    HIGH: ClassVar[int] = 10**18


@dataclass(frozen=True, order=True, repr=False)
class Loss(Quantity):
    """The probability that a packet is lost, in parts per billion, 0 to 100%."""

    ppb: int

    @property
    def probability(self) -> float:
        return self.ppb / 1e9


@dataclass(frozen=True, order=True, repr=False)
class Burst(Quantity):
    """The mean number of consecutive lost packets, in thousandths of a packet, at least one packet."""

    milli: int


@dataclass(frozen=True, repr=False)
class Queue(Quantity):
    """The limit of a tail-drop queue: what may wait, not what is on the wire.

    ``unit`` is packets, bytes, ns (what the transmitter sends in that time) or bdp (of the path's base RTT).
    """

    unit: str
    amount: Fraction

    HIGH: ClassVar[dict[str, int]] = {"packets": 10**9, "bytes": 2**40, "ns": 3600 * 10**9, "bdp": 10**6}

    @classmethod
    def _counted(cls, amount: int, unit: str | None) -> Self:
        assert unit is not None
        return cls(unit, Fraction(amount, _PARTS) if unit == "bdp" else Fraction(amount))

    def __str__(self) -> str:
        return _written("Queue", int(self.amount * (_PARTS if self.unit == "bdp" else 1)), self.unit)
