"""Datagrams without congestion control: a flow's ``source`` of kind ``udp``."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from sawtooth import compiled
from sawtooth.errors import InputError
from sawtooth.scenario.part import Part
from sawtooth.scenario.ranges import between
from sawtooth.scenario.units import Rate, Size, Span

_A_SECOND = 10**6
"""Datagrams at most."""

Payload = Annotated[Size, between("16 bytes", "1472 bytes", Size)]
Time = Annotated[Span, between("1 us", "3600 s", Span)]


class Udp(Part):
    """Datagrams on a schedule, without congestion control. The defaults are one side of a G.711 call."""

    kind: Literal["udp"] = Field(description="`udp`")
    rate: Rate = Field(
        Rate(68_800), description="payload rate while it sends; the default is that of a call, 50 datagrams per second"
    )
    size: Payload = Field(
        Size(172), description="payload of a datagram; the default is 20 ms of speech and the RTP header"
    )
    pattern: Literal["constant", "poisson", "on-off"] = Field(
        "constant",
        description="`constant`: at equal distances; `poisson`: independently at random; `on-off`: at equal distances, "
        "with pauses",
    )
    on: Time | None = Field(None, description="with `on-off`: time that it sends; it starts with a datagram")
    off: Time | None = Field(None, description="with `on-off`: time that it is silent")

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if self.rate.bps > self.size.bytes * 8 * _A_SECOND:
            message = f'"{self.rate}" by "{self.size}" is more than one datagram per microsecond'
            raise InputError("out-of-range", message, field="rate", fix="lower the rate")
        for name in ("on", "off"):
            if self.pattern == "on-off" and getattr(self, name) is None:
                message = 'pattern = "on-off" needs both on and off'
                raise InputError("missing-field", message, field=name, fix=f'add {name} = "1 s"')
            if self.pattern != "on-off" and getattr(self, name) is not None:
                message = f'a source that is "{self.pattern}" does not use this time'
                raise InputError("conflict", message, field=name, fix='set pattern = "on-off", or remove this field')
        return self

    def compile(self) -> compiled.Datagrams:
        """As engines take it."""
        times = None if self.on is None or self.off is None else (self.on.ns, self.off.ns)
        return compiled.Datagrams(self.size.bytes, self.rate.bps, times, self.pattern == "poisson")
