"""Loss of a link direction: text is a share of packets, each lost by itself; a table says which ones are lost."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Annotated, Any, Self

from pydantic import Field, GetCoreSchemaHandler, GetJsonSchemaHandler, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from sawtooth import compiled
from sawtooth.errors import InputError
from sawtooth.scenario.part import Part
from sawtooth.scenario.units import Burst, Loss

PPB = 10**9
RAREST_PPB = 100
"""A chance below this many in a billion is too coarse: rounding it would change the mean by more than 0.5%."""


class GilbertElliott(Part):
    """Loss in bursts: a good and a bad state, with a probability per packet of changing state (tc-netem's `gemodel`).

    As in Linux (``loss_gilb_ell``), a packet may change the state, but is lost with the chance of the state that it
    finds; the first one finds the good state.
    """

    p: Loss = Field(description="probability that a packet moves the link from the good state to the bad one")
    r: Loss = Field(description="probability that it moves the link from the bad state to the good one")
    bad: Loss = Field(Loss.parse("100%"), description="loss in the bad state; tc calls it 1-h")
    good: Loss = Field(Loss.parse("0%"), description="loss in the good state; tc calls it 1-k")

    @property
    def mean(self) -> Fraction:
        """The share of packets that is lost in the long run, when p / (p + r) of them find the bad state."""
        if self.p.ppb == 0:
            return Fraction(self.good.ppb, PPB)
        in_bad = Fraction(self.p.ppb, self.p.ppb + self.r.ppb)
        return (in_bad * self.bad.ppb + (1 - in_bad) * self.good.ppb) / PPB


class LossPattern(Part):
    """Losses in a pattern, instead of a share like `"1%"`.

    Give one of `every`, `gilbert_elliott`, and the pair `mean` and `burst`.
    Packets of every kind count: data, retransmissions, acknowledgements, probes.
    """

    every: int | None = Field(None, ge=1, le=PPB, description="drop every n-th packet")
    gilbert_elliott: GilbertElliott | None = Field(None, description="losses in bursts, from a chain of two states")
    mean: Loss | None = Field(None, description="losses in bursts: the share of packets lost; requires `burst`")
    burst: Burst | None = Field(None, description="mean number of packets lost in a row; requires `mean`")

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        other = "every" if self.every is not None else "gilbert_elliott"
        by_mean = self.mean is not None or self.burst is not None
        given = sum((self.every is not None, self.gilbert_elliott is not None, by_mean))
        if not given:
            fix = 'write { mean = "1%", burst = "5 packets" }, { every = 1000 } or { gilbert_elliott = '
            fix += '{ p = "1%", r = "30%" } }'
            raise InputError("missing-field", "this table does not say which packets are lost", fix=fix)
        if given > 1 and by_mean:
            message = f'"{other}" and "mean" with "burst" are two ways to say which packets are lost'
            raise InputError("conflict", message, fix=f"remove {other}, or mean and burst")
        if given > 1:
            message = "packets are lost at even distances or in bursts, not both"
            raise InputError("conflict", message, fix="remove every or gilbert_elliott")
        if self.mean is not None and self.burst is not None:
            _are_possible(self.mean, self.burst)
        elif self.mean is not None:
            raise InputError("missing-field", '"mean" needs "burst"', fix='add burst = "5 packets"')
        elif self.burst is not None:
            raise InputError("missing-field", '"burst" needs "mean"', fix='add mean = "1%"')
        return self

    @property
    def ppb(self) -> int:
        """The share of packets that is lost in the long run, in parts per billion; above 0 where any is lost."""
        if self.mean is not None:
            return self.mean.ppb
        model = self.gilbert_elliott
        mean = model.mean if model is not None else Fraction(1, self.every or 1)
        return max(round(mean * PPB), int(mean > 0))

    def compile(self) -> compiled.Every | compiled.GilbertElliott:
        """As engines take it: a mean and a burst are the chain that has them (Gilbert's, which loses all in bursts)."""
        if self.mean is not None and self.burst is not None:
            return compiled.GilbertElliott(*_chances(self.mean, self.burst), PPB, 0)
        model = self.gilbert_elliott
        if model is None:
            return compiled.Every(self.every or 1)
        return compiled.GilbertElliott(model.p.ppb, model.r.ppb, model.bad.ppb, model.good.ppb)


def _are_possible(mean: Loss, burst: Burst) -> None:
    """Refuses what no chain of two states loses: this share in bursts of this length."""
    p, r = _chances(mean, burst)
    if p > PPB:
        # At least one packet gets through between two bursts.
        most = Loss(PPB * PPB // (r + PPB))
        message = f"a mean of {mean} with bursts of {burst} is impossible: one packet at least gets through after each"
        raise InputError("out-of-range", message, fix=f'write mean = "{most}" or less')
    if mean.ppb and p < RAREST_PPB:
        least = Loss(RAREST_PPB * PPB // (r + RAREST_PPB) + 1)
        message = f"bursts of {burst} at a mean of {mean} are rarer than one in ten million packets"
        raise InputError("out-of-range", message, fix=f'write mean = "{least}" or more, or "0%"')


def _chances(mean: Loss, burst: Burst) -> tuple[int, int]:
    """Of beginning a burst and of ending one, in parts per billion, so that ``p / (p + r)`` is the mean."""
    r = round(Fraction(PPB * 1000, burst.milli))
    return (round(Fraction(mean.ppb * r, PPB - mean.ppb)) if mean.ppb < PPB else 2**64 - 1), r


class _TextOrTable:
    """Text is a ``Loss``, a table a ``LossPattern``. A union of pydantic's adds its own words to a field's name."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        def read(value: Any, table: core_schema.ValidatorFunctionWrapHandler) -> Loss | LossPattern:
            if isinstance(value, Loss):
                return value
            return table(value) if isinstance(value, (Mapping, LossPattern)) else Loss.parse(value)

        return core_schema.no_info_wrap_validator_function(
            read,
            handler.generate_schema(LossPattern),
            serialization=core_schema.plain_serializer_function_ser_schema(_write),
        )

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"anyOf": [Loss.__get_pydantic_json_schema__(schema, handler), handler(schema)]}


def _write(loss: Loss | LossPattern) -> Any:
    return loss.model_dump(mode="json", exclude_none=True) if isinstance(loss, LossPattern) else str(loss)


NO_LOSS = Loss(0)
LossModel = Annotated[Loss | LossPattern, _TextOrTable()]
"""What a scenario file may give as a loss."""
