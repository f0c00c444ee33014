"""Queues of transmitters: text is the limit of a tail-drop queue; a table names one of Linux, with tc's parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, GetCoreSchemaHandler, GetJsonSchemaHandler, TypeAdapter, ValidationError
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from sawtooth import compiled
from sawtooth.errors import InputError, suggestion
from sawtooth.plain import plain
from sawtooth.scenario.part import Part
from sawtooth.scenario.problems import first_problem
from sawtooth.scenario.units import Queue, Span

DEFAULT_FRAMES = 1000
"""A device's queue length, which tc takes where no limit is given."""


def _limit_in(units: tuple[str, ...], like: str) -> AfterValidator:
    def check(value: Queue) -> Queue:
        if value.unit not in units:
            message = f'"{value}" is no limit of this kind of queue'
            raise InputError("unknown-unit", message, fix=f"write it like {like}")
        return value

    return AfterValidator(check)


def _above_zero(value: Span) -> Span:
    if not 0 < value.ns <= 3600 * 10**9:
        raise InputError("out-of-range", f'"{value}" is outside 1 ns … 3600 s', fix="choose a longer or a shorter time")
    return value


def _no_ecn(value: bool) -> bool:
    if value:
        message = "no sender here agrees on ECN yet, so nothing could be marked"
        raise InputError("unsupported", message, fix="leave it out: packets are dropped")
    return value


Packets = Annotated[Queue, _limit_in(("packets", "bdp"), '"1000 packets" or "2 bdp"')]
Bytes = Annotated[Queue, _limit_in(("bytes", "ns"), '"64 KiB" or "50 ms"')]
Time = Annotated[Span, AfterValidator(_above_zero)]
Marks = Annotated[bool, AfterValidator(_no_ecn)]

_ECN = "marks instead of drops; not yet: no sender agrees on ECN"


class Pfifo(Part):
    """First in, first out; what comes to a full queue is dropped."""

    kind: Literal["pfifo"] = Field(description="`pfifo`")
    limit: Packets = Field(Queue.parse("1000 packets"), description="waiting packets")

    def compile(self) -> compiled.Discipline:
        """As engines take it, but for the limit."""
        return compiled.Fifo()


class Bfifo(Part):
    """First in, first out, with a limit in bytes."""

    kind: Literal["bfifo"] = Field(description="`bfifo`")
    limit: Bytes | None = Field(None, description="waiting bytes; absent: 1000 full frames")

    def compile(self) -> compiled.Discipline:
        """As engines take it, but for the limit."""
        return compiled.Fifo()


class Codel(Part):
    """CoDel, RFC 8289: drops when packets have waited longer than the target for an interval, then ever more often."""

    kind: Literal["codel"] = Field(description="`codel`")
    limit: Packets = Field(Queue.parse("1000 packets"), description="waiting packets")
    target: Time = Field(Span.parse("5 ms"), description="the delay that is accepted")
    interval: Time = Field(Span.parse("100 ms"), description="about the longest round trip through the queue")
    ecn: Marks = Field(False, description=_ECN)

    def compile(self) -> compiled.Discipline:
        """As engines take it, but for the limit."""
        return compiled.Codel(self.target.ns, self.interval.ns)


Discipline = Pfifo | Bfifo | Codel
KINDS: Mapping[str, type[Discipline]] = {"pfifo": Pfifo, "bfifo": Bfifo, "codel": Codel}
"""The tables by tc's names."""


def _discipline(given: Mapping[str, Any]) -> Discipline:
    kind = given.get("kind")
    if kind is None:
        fix = f'name one of {", ".join(KINDS)}: queue = {{ kind = "codel" }}'
        raise InputError("missing-field", "a table needs the kind of the queue", field="kind", fix=fix)
    if not isinstance(kind, str) or kind not in KINDS:
        fix = suggestion(str(kind)[:60], tuple(KINDS))
        raise InputError("unknown-name", f'"{plain(kind, 60)}" is no kind of queue', field="kind", fix=fix)
    model = KINDS[kind]
    try:
        return model.model_validate(dict(given))
    except ValidationError as error:
        raise first_problem(error, model, None) from None


class _TextOrTable:
    """Text is a ``Queue``, a table a discipline, told by its kind."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        def read(value: Any) -> Queue | Discipline:
            if isinstance(value, (Queue, Discipline)):
                return value
            return _discipline(value) if isinstance(value, Mapping) else Queue.parse(value)

        return core_schema.no_info_plain_validator_function(
            read, serialization=core_schema.plain_serializer_function_ser_schema(_write)
        )

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        text = Queue.__get_pydantic_json_schema__(schema, handler)
        return {"anyOf": [text, *(handler(TypeAdapter(model).core_schema) for model in KINDS.values())]}


def _write(queue: Queue | Discipline) -> Any:
    return str(queue) if isinstance(queue, Queue) else queue.model_dump(mode="json", exclude_none=True)


QueueModel = Annotated[Queue | Discipline, _TextOrTable()]
"""What a scenario file may give as a queue."""
