"""What of a link direction changes by itself: rate, delay, loss at given times; packets that overtake or come twice."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import (
    BeforeValidator,
    Field,
    PlainSerializer,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from sawtooth import compiled
from sawtooth.errors import InputError
from sawtooth.scenario.part import Part
from sawtooth.scenario.units import Loss, Quantity, Rate, Span

MOST_STEPS = 1_000_000
"""Of one direction in one run."""
_STOPPED = Rate(0)


def _drawn_or_fixed(kind: Any) -> Any:
    """Annotates a field of one quantity, or of the lowest and the highest."""

    def parse(value: object) -> Any:
        if isinstance(value, kind):
            return value
        if kind is Rate and isinstance(value, str) and value.split()[:1] == ["0"] and value.endswith("bit/s"):
            return _STOPPED
        return kind.parse(value)

    def read(value: object) -> tuple[Quantity, ...]:
        values = tuple(parse(one) for one in value) if isinstance(value, (list, tuple)) else (parse(value),)
        if not values or len(values) > 2:
            raise InputError(
                "wrong-type",
                "one value, or a list of the lowest and the highest, is needed",
                fix="write one value, or [LOWEST, HIGHEST]",
            )
        if len(values) == 2 and values[0] > values[1]:
            raise InputError("out-of-range", f'"{values[0]}" is above "{values[1]}"', fix="swap them")
        return values

    def write(values: tuple[Quantity, ...]) -> str | list[str]:
        return str(values[0]) if len(values) == 1 else [str(one) for one in values]

    return BeforeValidator(read, json_schema_input_type=kind | list[kind]), PlainSerializer(write)


_RATE, _SPAN, _LOSS = (_drawn_or_fixed(kind) for kind in (Rate, Span, Loss))
Rates = Annotated[tuple[Rate, ...], *_RATE]
Delays = Annotated[tuple[Span, ...], *_SPAN]
Losses = Annotated[tuple[Loss, ...], *_LOSS]


class Change(Part):
    """A change of rate, delay or loss at a time. Two values are the bounds of a random one, drawn each time."""

    at: Span = Field(Span(0), description="time of the change")
    every: Span | None = Field(None, description="repeat the change at this interval until the end")
    rate: Rates | None = Field(None, description='rate of the transmitter; "0 bit/s" stops it')
    delay: Delays | None = Field(None, description="one-way propagation delay; packets keep their order")
    loss: Losses | None = Field(None, description="loss before the queue")

    @model_validator(mode="after")
    def _says_something(self) -> Change:
        if self.rate is None and self.delay is None and self.loss is None:
            fix = 'write e.g. { at = "10 s", rate = "5 Mbit/s" }'
            raise InputError("missing-field", "this change sets no field", fix=fix)
        if self.every is not None and self.every.ns == 0:
            raise InputError("out-of-range", "a change cannot come every 0 s", field="every", fix='write e.g. "15 s"')
        return self


@dataclass(frozen=True)
class Steps:
    """From when (ns), and the new value: bit/s, ns, parts per billion; each in order, no time twice."""

    rates: tuple[tuple[int, int], ...] = ()
    delays: tuple[tuple[int, int], ...] = ()
    losses: tuple[tuple[int, int], ...] = ()


def steps_of(changes: Sequence[Change], duration_ns: int, seed: int, salt: str, where: str) -> Steps:
    """Every change of a run. ``salt`` parts the draws of one direction from those of others; ``where``:
    the field that the changes are in.

    Raises SawtoothError ``out-of-range`` for more than MOST_STEPS.
    """
    found: dict[str, dict[int, int]] = {"rate": {}, "delay": {}, "loss": {}}
    for number, change in enumerate(changes):
        times = range(change.at.ns, duration_ns, change.every.ns if change.every is not None else duration_ns)
        if len(times) > MOST_STEPS:
            message = f"{len(times)} changes are more than {MOST_STEPS}"
            raise InputError(
                "out-of-range",
                message,
                field=f"{where}.changes.{number}.every",
                fix="choose a longer every, or fewer changes",
            )
        for what, steps in found.items():
            if (values := getattr(change, what)) is None:
                continue
            low, high = (next(iter(vars(value).values())) for value in (values[0], values[-1]))
            drawn = random.Random(f"{seed} {salt} {number} {what}")
            steps.update((time, low + int(drawn.random() * (high - low + 1))) for time in times)
    return Steps(*(tuple(sorted(found[what].items())) for what in ("rate", "delay", "loss")))


def of_text(field: str) -> BeforeValidator:
    """Text stands for a table with this field."""
    return BeforeValidator(lambda value: value if isinstance(value, (Mapping, Part)) else {field: value})


class Short(Part):
    """Is written as its first field's text where nothing else is set."""

    @model_serializer(mode="wrap")
    def _shortly(self, handler: SerializerFunctionWrapHandler) -> Any:
        first = next(iter(type(self).model_fields))
        told = handler(self)
        defaults = all(
            getattr(self, name) == field.default for name, field in type(self).model_fields.items() if name != first
        )
        return told[first] if defaults else told


NONE = Loss(0)


class Reorder(Short):
    """Packets without delay, which overtake all those on the way (tc-netem's `reorder`)."""

    share: Loss = Field(description="share of the packets")
    gap: int = Field(1, ge=1, le=10**9, description="only every n-th packet may overtake others")
    correlation: Loss = Field(NONE, description="correlation of each draw with the previous one")

    def compile(self) -> compiled.Reorder:
        return compiled.Reorder(self.share.ppb, self.gap, self.correlation.ppb)


class Share(Short):
    """A share of the packets, chosen at random."""

    share: Loss = Field(description="share of the packets")
    correlation: Loss = Field(NONE, description="correlation of each draw with the previous one")

    def compile(self) -> tuple[int, int]:
        return self.share.ppb, self.correlation.ppb


ReorderModel = Annotated[Reorder, of_text("share")]
ShareModel = Annotated[Share, of_text("share")]
