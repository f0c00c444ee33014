"""Applications that read at times of their own: a flow's ``reader``."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from sawtooth import compiled
from sawtooth.errors import InputError
from sawtooth.scenario.part import Part
from sawtooth.scenario.ranges import between
from sawtooth.scenario.units import Rate, Size, Span

_READS_PER_SECOND = 10**6

Amount = Annotated[Size, between("1 byte", "1 GB", Size)]
Time = Annotated[Span, between("1 us", "3600 s", Span)]


class Reader(Part):
    """An application that reads at a mean rate once it has accepted the connection, with or without pauses.

    What it has not read fills the receive buffer, and closes the window.
    """

    rate: Rate = Field(description="mean payload rate; for a reader with pauses, the rate while it reads")
    read: Amount = Field(Size(64_000), description="size of one read; the reader sleeps until that much has arrived")
    on: Time | None = Field(None, description="time that it reads; it starts with a read; absent: always")
    off: Time | None = Field(None, description="time that it pauses; required with `on`")

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if (self.on is None) != (self.off is None):
            given, lacking = ("on", "off") if self.off is None else ("off", "on")
            message = f"a reader that pauses needs both on and off: {lacking} is missing"
            raise InputError("missing-field", message, field=given, fix=f'add {lacking} = "1 s", or remove {given}')
        if self.rate.bps > self.read.bytes * 8 * _READS_PER_SECOND:
            message = f'"{self.rate}" by "{self.read}" is more than one read per microsecond'
            raise InputError("out-of-range", message, field="read", fix="choose a larger read")
        return self

    def compile(self) -> compiled.Paced:
        """As engines take it."""
        pauses = None if self.on is None or self.off is None else (self.on.ns, self.off.ns)
        return compiled.Paced(self.read.bytes, self.rate.bps, pauses)
