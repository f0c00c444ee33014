"""A policer: what comes faster than a rate, beyond a burst, is dropped, as tc-police with `action drop`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from sawtooth import compiled
from sawtooth.errors import InputError
from sawtooth.scenario.part import Part
from sawtooth.scenario.ranges import between
from sawtooth.scenario.units import Rate, Size

Burst = Annotated[Size, between("1 byte", "1 GiB", Size)]
"""Of a bucket of tokens."""


def check_burst(burst: Size, frame: int, field: str) -> None:
    """Raises InputError ``out-of-range``: what would never pass."""
    if burst.bytes < frame:
        message = f'a burst of "{burst}" lets no full frame of {frame} bytes pass'
        raise InputError("out-of-range", message, field=field, fix=f'choose at least "{frame} bytes"')


class Policer(Part):
    """Drops packets above a rate and a burst, without a queue (tc-police)."""

    rate: Rate = Field(description="long-term rate")
    burst: Burst = Field(description="bytes that pass at once after silence; at least one full frame")

    def compile(self) -> compiled.Policer:
        """As engines take it."""
        return compiled.Policer(self.rate.bps, self.burst.bytes)
