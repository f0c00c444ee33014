"""Ranges of quantities: what narrows a field says so in errors and in the reference."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import AfterValidator

from sawtooth.errors import InputError
from sawtooth.scenario.units import Rate, Size, Span


@dataclass(frozen=True)
class _Range:
    least: Rate | Span | Size
    most: Rate | Span | Size
    limits: str
    """As a user writes them, for errors and the reference."""

    def __call__(self, value: Rate | Span | Size) -> Rate | Span | Size:
        if not self.least <= value <= self.most:  # type: ignore[operator]
            fix = f"choose {self.limits}"
            raise InputError("out-of-range", f'"{value}" is outside {self.limits}', fix=fix)
        return value


def between(low: str, high: str, kind: type[Rate] | type[Span] | type[Size]) -> AfterValidator:
    """Narrows a quantity's range; the message names both ends."""
    return AfterValidator(_Range(kind.parse(low), kind.parse(high), f"{low} … {high}"))
