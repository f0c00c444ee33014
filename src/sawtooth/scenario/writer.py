"""Applications that write at times of their own: a flow's ``source``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, PlainSerializer, PlainValidator, ValidationError, model_validator

from sawtooth import compiled
from sawtooth.errors import InputError, suggestion
from sawtooth.plain import plain
from sawtooth.scenario.part import Part
from sawtooth.scenario.problems import first_problem
from sawtooth.scenario.units import Rate, Size, Span

_MOST = 10**9
_WRITES_PER_SECOND = 10**6


def _bytes(value: Size) -> Size:
    if not 1 <= value.bytes <= _MOST:
        raise InputError("out-of-range", f'"{value}" is outside 1 byte … 1 GB', fix='write e.g. "16 KB"')
    return value


def _time(value: Span) -> Span:
    if not 1000 <= value.ns <= 3600 * 10**9:
        raise InputError("out-of-range", f'"{value}" is outside 1 us … 3600 s', fix="choose a longer or a shorter time")
    return value


Write = Annotated[Size, AfterValidator(_bytes)]
Time = Annotated[Span, AfterValidator(_time)]


class Steady(Part):
    """An application that writes at a rate on average, from when its connection is established."""

    kind: Literal["rate"] = Field(description="`rate`")
    rate: Rate = Field(description="of the payload")
    write: Write = Field(Size(16_000), description="bytes at a time, 1 byte … 1 GB")

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if self.rate.bps > self.write.bytes * 8 * _WRITES_PER_SECOND:
            message = f'"{self.rate}" by "{self.write}" is more than a write in a microsecond'
            raise InputError("out-of-range", message, field="write", fix="write more at a time")
        return self

    def compile(self) -> compiled.Writes:
        """As engines take it."""
        return compiled.Writes(self.write.bytes, self.rate.bps)


class OnOff(Steady):
    """An application that writes at a rate for a time, then is silent for a time, again and again."""

    kind: Literal["on-off"] = Field(description="`on-off`")  # type: ignore[assignment]
    rate: Rate = Field(description="of the payload, while on")
    on: Time = Field(description="how long it writes, 1 us … 3600 s; it begins with a write")
    off: Time = Field(description="how long it does not, 1 us … 3600 s")

    def compile(self) -> compiled.Writes:
        """As engines take it."""
        return compiled.Writes(self.write.bytes, self.rate.bps, (self.on.ns, self.off.ns))


KINDS: Mapping[str, type[Steady]] = {"rate": Steady, "on-off": OnOff}


def _source(given: object) -> object:
    if isinstance(given, Steady):
        return given
    if not isinstance(given, Mapping):
        fix = 'write source = { kind = "rate", rate = "5 Mbit/s" }'
        raise InputError("wrong-type", "a table is needed", fix=fix)
    kind = given.get("kind")
    if kind is None:
        fix = f'name one of {", ".join(KINDS)}: kind = "rate"'
        raise InputError("missing-field", "a source needs a kind", field="kind", fix=fix)
    if not isinstance(kind, str) or kind not in KINDS:
        fix = suggestion(str(kind)[:60], tuple(KINDS))
        raise InputError("unknown-name", f'"{plain(str(kind), 60)}" is no kind of source', field="kind", fix=fix)
    try:
        return KINDS[kind].model_validate(dict(given))
    except ValidationError as error:
        raise first_problem(error, KINDS[kind], None) from None


def _written(source: Steady | OnOff) -> dict[str, Any]:
    return source.model_dump(mode="json")


Source = Annotated[
    Steady | OnOff, PlainValidator(_source, json_schema_input_type=Steady | OnOff), PlainSerializer(_written)
]
"""What a scenario file may give as a flow's source."""
