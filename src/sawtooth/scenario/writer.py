"""Applications that write at times of their own: a flow's ``source``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, PlainSerializer, PlainValidator, model_validator

from sawtooth import compiled
from sawtooth.errors import InputError
from sawtooth.scenario.arrivals import Arrivals
from sawtooth.scenario.asks import Asking, Pages, Requests, Video
from sawtooth.scenario.datagrams import Udp
from sawtooth.scenario.part import Part
from sawtooth.scenario.problems import of_kind
from sawtooth.scenario.ranges import between
from sawtooth.scenario.units import Rate, Size, Span

_WRITES_PER_SECOND = 10**6

Write = Annotated[Size, between("1 byte", "1 GB", Size)]
Time = Annotated[Span, between("1 us", "3600 s", Span)]


class _Paced(Part):
    kind: str
    rate: Rate
    write: Write = Field(Size(16_000), description="size of one write")

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if self.rate.bps > self.write.bytes * 8 * _WRITES_PER_SECOND:
            message = f'"{self.rate}" by "{self.write}" is more than one write per microsecond'
            raise InputError("out-of-range", message, field="write", fix="choose a larger write")
        return self


class Steady(_Paced):
    """An application that writes at a mean rate once its connection is established."""

    kind: Literal["rate"] = Field(description="`rate`")
    rate: Rate = Field(description="mean payload rate")

    def compile(self) -> compiled.Paced:
        """As engines take it."""
        return compiled.Paced(self.write.bytes, self.rate.bps)


class OnOff(_Paced):
    """An application that alternately writes at a rate and is silent."""

    kind: Literal["on-off"] = Field(description="`on-off`")
    rate: Rate = Field(description="payload rate while it writes")
    on: Time = Field(description="time that it writes; it starts with a write")
    off: Time = Field(description="time that it is silent")

    def compile(self) -> compiled.Paced:
        """As engines take it."""
        return compiled.Paced(self.write.bytes, self.rate.bps, (self.on.ns, self.off.ns))


Kind = Steady | OnOff | Arrivals | Udp | Asking
KINDS: Mapping[str, type[Kind]] = {
    "rate": Steady,
    "on-off": OnOff,
    "arrivals": Arrivals,
    "udp": Udp,
    "requests": Requests,
    "pages": Pages,
    "video": Video,
}
_EXAMPLE = 'source = { kind = "rate", rate = "5 Mbit/s" }'


def _source(given: object) -> Kind:
    if isinstance(given, Kind):
        return given
    if not isinstance(given, Mapping):
        raise InputError("wrong-type", "a table is needed", fix=f"write {_EXAMPLE}")
    return of_kind(given, KINDS, "source", _EXAMPLE)


def _written(source: Kind) -> dict[str, Any]:
    return source.model_dump(mode="json", exclude_none=True)


Source = Annotated[Kind, PlainValidator(_source, json_schema_input_type=Kind), PlainSerializer(_written)]
"""What a scenario file may give as a flow's source."""
