"""Applications at the receiving host that ask for what they get: ``requests``, ``pages`` and ``video`` of a ``source``.

``from`` is the host that has the data, ``to`` the one that reads: it opens the connections, and its requests take the
way back.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, PlainSerializer, PlainValidator, model_validator

from sawtooth import compiled
from sawtooth.errors import InputError
from sawtooth.scenario.part import Part
from sawtooth.scenario.problems import of_kind
from sawtooth.scenario.ranges import between
from sawtooth.scenario.sizes import Sizes
from sawtooth.scenario.units import Rate, Size, Span

_EXAMPLE = 'think = "1 s", or think = { kind = "exponential", mean = "1 s" }'
_MOST_RATES = 100
"""That a video is offered in."""
_LADDER = tuple(Rate(kbps * 1000) for kbps in (235, 375, 560, 750, 1050, 1750, 2350, 3000, 4300, 5800))
"""Netflix's, before each title had its own ("Per-Title Encode Optimization", Netflix Technology Blog, 2015)."""

Wait = Annotated[Span, between("0 s", "1 h", Span)]
Length = Annotated[Span, between("100 ms", "60 s", Span)]
Buffer = Annotated[Span, between("100 ms", "1 h", Span)]


class Exponential(Part):
    """Exponentially distributed times, independent of each other."""

    kind: Literal["exponential"] = Field(description="`exponential`")
    mean: Annotated[Span, between("1 us", "1 h", Span)] = Field(description="mean time")


THINK_KINDS: Mapping[str, type[Exponential]] = {"exponential": Exponential}


def _think(given: object) -> Span | Exponential:
    if isinstance(given, (Span, Exponential)):
        return given
    if isinstance(given, Mapping):
        return of_kind(given, THINK_KINDS, "think time", _EXAMPLE)
    time = Span.parse(given)
    if time > Span.parse("1 h"):
        raise InputError("out-of-range", f'"{time}" is outside 0 s … 1 h', fix='write it like "1 s"')
    return time


def _written(think: Span | Exponential) -> Any:
    return str(think) if isinstance(think, Span) else think.model_dump(mode="json")


Think = Annotated[
    Span | Exponential,
    PlainValidator(_think, json_schema_input_type=Span | Exponential),
    PlainSerializer(_written),
]


def _compiled_think(think: Span | Exponential) -> compiled.Tagged:
    return ("fixed_ns", think.ns) if isinstance(think, Span) else ("exponential_ns", think.mean.ns)


def _compiled_sizes(sizes: Any) -> compiled.Tagged:
    return ("fixed", sizes.bytes) if isinstance(sizes, Size) else sizes.compile()


class Requests(Part):
    """Responses over one connection. The client requests the next one a think time after the last byte."""

    kind: Literal["requests"] = Field(description="`requests`")
    sizes: Sizes = Field(description="size of a response: `100 kB`, or a table")
    think: Think = Field(
        Span(0), description="time from the last byte of a response to the next request: a time, or a table"
    )

    @property
    def connections(self) -> int:
        """Of one reader."""
        return 1

    def compile(self) -> compiled.Requests:
        """As engines take it."""
        return compiled.Requests(_compiled_sizes(self.sizes), _compiled_think(self.think))


class Pages(Part):
    """Web pages of several objects. The reader requests each object when a connection is free."""

    kind: Literal["pages"] = Field(description="`pages`")
    objects: int = Field(ge=1, le=100_000, description="number of objects on a page")
    sizes: Sizes = Field(description="size of an object: `20 kB`, or a table")
    think: Think = Field(
        Span.parse("1 s"), description="time from the last byte of a page to the next page: a time, or a table"
    )
    connections: int = Field(
        6, ge=1, le=256, description="parallel connections of one reader; browsers open 6 to a host"
    )
    keep: bool = Field(False, description="use the same connections for the next page; false: each page opens new ones")

    def compile(self) -> compiled.Pages:
        """As engines take it."""
        sizes, think = _compiled_sizes(self.sizes), _compiled_think(self.think)
        return compiled.Pages(self.objects, sizes, think, self.connections, self.keep)


class Video(Part):
    """Segments of a video. The player requests the next one when its playback buffer has room."""

    kind: Literal["video"] = Field(description="`video`")
    rates: tuple[Rate, ...] = Field(
        _LADDER,
        strict=False,
        min_length=1,
        max_length=_MOST_RATES,
        description="list of the video's rates, lowest first; absent: Netflix's ten rates of 2015, 235 "
        "kbit/s to 5.8 Mbit/s",
    )
    segment: Length = Field(Span.parse("4 s"), description="playing time of a segment")
    buffer: Buffer = Field(Span.parse("30 s"), description="most video held in the playback buffer, as playing time")
    rule: Literal["buffer", "throughput"] = Field(
        "buffer",
        description="choice of the next rate: `buffer` is BBA-0 (Huang and others 2014); `throughput` "
        "takes the highest "
        "rate within 90% of the mean of the last four segments",
    )

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if any(low >= high for low, high in zip(self.rates, self.rates[1:], strict=False)):
            raise InputError(
                "out-of-range",
                "each rate must be higher than the one before it",
                field="rates",
                fix="write the rates in rising order, each once",
            )
        if self.segment > self.buffer:
            message = f'a segment of "{self.segment}" does not fit into a buffer of "{self.buffer}"'
            raise InputError("out-of-range", message, field="buffer", fix="choose a buffer of at least one segment")
        return self

    @property
    def connections(self) -> int:
        """Of one reader."""
        return 1

    def compile(self) -> compiled.Video:
        """As engines take it."""
        return compiled.Video(tuple(rate.bps for rate in self.rates), self.segment.ns, self.buffer.ns, self.rule)


Asking = Requests | Pages | Video
