"""Queues of transmitters: text is the limit of a tail-drop queue; a table names one of Linux, with tc's parameters."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    TypeAdapter,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from sawtooth import compiled
from sawtooth.errors import InputError
from sawtooth.scenario.part import Part
from sawtooth.scenario.policer import Burst, check_burst
from sawtooth.scenario.problems import of_kind
from sawtooth.scenario.ranges import between
from sawtooth.scenario.units import Loss, Queue, Rate, Size, Span

DEFAULT_FRAMES = 1000
"""A device's queue length, which tc takes where no limit is given."""
DEFAULT_PACKETS, LEAST_MEMORY = 10240, 4 << 20
"""Full frames that CAKE takes memory for at most, and bytes of memory at least."""


def _limit_in(units: tuple[str, ...], like: str) -> AfterValidator:
    def check(value: Queue) -> Queue:
        if value.unit not in units:
            message = f'"{value}" is no limit of this kind of queue'
            raise InputError("unknown-unit", message, fix=f"write it like {like}")
        return value

    return AfterValidator(check)


PRESETS = {
    "datacentre": Span.parse("100 us"),
    "lan": Span.parse("1 ms"),
    "metro": Span.parse("10 ms"),
    "regional": Span.parse("30 ms"),
    "internet": Span.parse("100 ms"),
    "oceanic": Span.parse("300 ms"),
    "satellite": Span.parse("1 s"),
    "interplanetary": Span.parse("1000 s"),
}
"""tc-cake's names of round-trip times."""


def _preset(value: object) -> object:
    return PRESETS.get(value, value) if isinstance(value, str) else value


Packets = Annotated[Queue, _limit_in(("packets", "bdp"), '"1000 packets" or "2 bdp"')]
Bytes = Annotated[Queue, _limit_in(("bytes", "ns"), '"64 KiB" or "50 ms"')]
Step = Annotated[Queue, _limit_in(("packets", "ns"), '"1 ms" or "5 packets"')]
Time = Annotated[Span, between("1 ns", "3600 s", Span)]
Update = Annotated[Span, between("100 us", "3600 s", Span)]
Quantum = Annotated[Size, between("256 bytes", "1 MiB", Size)]
Packet = Annotated[Size, between("1 byte", "64 KiB", Size)]
RoundTrip = Annotated[Span, BeforeValidator(_preset), between("1 us", "3600 s", Span)]
Bandwidth = Annotated[Rate, between("1 kbit/s", "10 Tbit/s", Rate)]
Memory = Annotated[Size, between("4 KiB", "1 GiB", Size)]

Isolation = Literal[
    "flowblind", "srchost", "dsthost", "hosts", "flows", "dual-srchost", "dual-dsthost", "triple-isolate"
]

_FLOWS = "queues that flows are hashed to"
_QUANTUM = "bytes of a flow's turn; absent: one full frame"
_TUPDATE = "between two changes of the probability, in whole ticks of the host's kernel"
_ECN = "marks packets of connections that agreed on ECN, instead of dropping them"
_CE_THRESHOLD = "those that waited longer are marked, whatever else; absent: none for that"


class Pfifo(Part):
    """First in, first out; drops what arrives at a full queue."""

    kind: Literal["pfifo"] = Field(description="`pfifo`")
    limit: Packets = Field(Queue.parse("1000 packets"), description="most packets that wait")

    def compile(self) -> compiled.Discipline:
        """As engines take it, but for the limit."""
        return compiled.Fifo()


class Bfifo(Part):
    """First in, first out, with a limit in bytes."""

    kind: Literal["bfifo"] = Field(description="`bfifo`")
    limit: Bytes | None = Field(None, description="most bytes that wait; absent: 1000 full frames")

    def compile(self) -> compiled.Discipline:
        """As engines take it, but for the limit."""
        return compiled.Fifo()


class Codel(Part):
    """CoDel, RFC 8289: drops once packets have waited longer than the target for an interval, then ever more often."""

    kind: Literal["codel"] = Field(description="`codel`")
    limit: Packets = Field(Queue.parse("1000 packets"), description="most packets that wait")
    target: Time = Field(Span.parse("5 ms"), description="acceptable queue delay")
    interval: Time = Field(Span.parse("100 ms"), description="about the longest RTT through the queue")
    ecn: bool = Field(False, description="mark packets of connections that negotiated ECN, instead of dropping them")
    ce_threshold: Time | None = Field(
        None, description="mark every ECN packet that waited longer than this; absent: no such threshold"
    )

    def compile(self) -> compiled.Discipline:
        """As engines take it, but for the limit."""
        return compiled.Codel(self.target.ns, self.interval.ns, self.ecn, _ns(self.ce_threshold))


class FqCodel(Part):
    """FQ-CoDel, RFC 8290: flows take turns, each with CoDel."""

    kind: Literal["fq_codel"] = Field(description="`fq_codel`")
    limit: Packets = Field(Queue.parse("10240 packets"), description="most packets that wait, all flows together")
    target: Time = Field(Span.parse("5 ms"), description="acceptable queue delay")
    interval: Time = Field(Span.parse("100 ms"), description="about the longest RTT through the queue")
    flows: int = Field(1024, ge=1, le=65536, description="number of queues that flows are hashed to")
    quantum: Quantum | None = Field(None, description="bytes of a flow per round; absent: one full frame")
    ecn: bool = Field(True, description="mark packets of connections that negotiated ECN, instead of dropping them")
    ce_threshold: Time | None = Field(
        None, description="mark every ECN packet that waited longer than this; absent: no such threshold"
    )

    def compile(self) -> compiled.Discipline:
        """As engines take it, but for the limit."""
        law = (self.target.ns, self.interval.ns, self.flows, _bytes(self.quantum))
        return compiled.FqCodel(*law, self.ecn, _ns(self.ce_threshold))


class Red(Part):
    """Random early detection: drops arriving packets with a probability that grows with the average queue, in bytes."""

    kind: Literal["red"] = Field(description="`red`")
    limit: Bytes = Field(description="most bytes that wait")
    min: Bytes | None = Field(None, description="average queue below which nothing is dropped; absent: `max` / 3")
    max: Bytes | None = Field(
        None, description="average queue from which on everything is dropped; absent: `limit` / 4"
    )
    avpkt: Packet = Field(
        Size(1000), description="size of an average packet, from which the weight of the average is computed"
    )
    burst: int | None = Field(
        None,
        ge=1,
        le=10**6,
        description="number of average packets that may arrive at once; absent: (2 `min` + `max`) / (3 `avpkt`)",
    )
    probability: Loss = Field(Loss.parse("2%"), description="drop probability at an average near `max`")
    adaptive: bool = Field(False, description="adjust the probability between 1 and 50% to keep the average halfway")
    ecn: bool = Field(False, description="mark packets of connections that negotiated ECN, instead of dropping them")
    harddrop: bool = Field(
        False, description="with `ecn`, drop instead of marking above `max`; without `ecn` this is always so"
    )

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if self.probability.ppb == 0:
            raise InputError("out-of-range", "a probability of 0% drops nothing", field="probability", fix='write "2%"')
        for name in ("min", "max"):
            given = getattr(self, name)
            if given is not None and given.unit != self.limit.unit:
                fix = f'write it like the limit, "{self.limit}"'
                raise InputError(
                    "conflict", f"{name} and limit must both be sizes or both be times", field=name, fix=fix
                )
        return self

    def sizes(self, limit: int) -> tuple[int, int]:
        """``min`` and ``max`` in bytes, of a limit in bytes. Raises InputError ``conflict`` and ``out-of-range``."""
        scale = Fraction(limit) / self.limit.amount
        most = limit // 4 if self.max is None else int(self.max.amount * scale)
        least = most // 3 if self.min is None else int(self.min.amount * scale)
        if not 0 < least < most <= limit:
            message = f"min < max < limit does not hold: {least}, {most}, {limit} bytes"
            raise InputError("conflict", message, fix="remove min and max, or choose min < max < limit")
        return least, most

    def compile(self, limit: int) -> compiled.Discipline:
        """As engines take it, with a limit in bytes. Raises InputError as ``sizes`` does."""
        least, most = self.sizes(limit)
        burst = self.burst or max(1, (2 * least + most) // (3 * self.avpkt.bytes))
        weight = _weight(least / self.avpkt.bytes, burst)
        if weight is None:
            message = f"the average does not pass min, {least} bytes, with a burst of {burst} packets"
            fix = f"choose a burst of at least {least // self.avpkt.bytes + 1}, or a smaller min"
            raise InputError("conflict", message, field="burst", fix=fix)
        law = (least, most, weight, self.probability.ppb, self.adaptive)
        return compiled.Red(*law, self.ecn, self.ecn and self.harddrop)


def _weight(min_packets: float, burst: int) -> int | None:
    """Of the average, as a power of a half: the largest that lets a burst into an empty queue pass below ``min``.

    Floyd and Jacobson 1993, section 6, equation 3, with the burst's last packet as tc takes it. None: there is none.
    """
    if burst < min_packets:
        return None
    for power in range(1, 32):
        weight = 0.5**power
        # After a burst of L packets the average is L + 1 + ((1 - w)^L - 1) / w packets.
        if burst + 1 - (1 - (1 - weight) ** burst) / weight <= min_packets:
            return power
    return None


class Pie(Part):
    """PIE, RFC 8033: drops arriving packets with a probability that follows the queue delay and its change."""

    kind: Literal["pie"] = Field(description="`pie`")
    limit: Packets = Field(Queue.parse("1000 packets"), description="most packets that wait")
    target: Time = Field(Span.parse("15 ms"), description="target queue delay")
    tupdate: Time = Field(
        Span.parse("15 ms"),
        description="interval between updates of the drop probability, in whole ticks of the host's kernel",
    )
    alpha: int = Field(2, ge=0, le=32, description="weight of the difference between delay and target, in sixteenths")
    beta: int = Field(20, ge=0, le=32, description="weight of the change of the delay, in sixteenths")
    bytemode: bool = Field(False, description="drop small packets less often")
    ecn: bool = Field(False, description="mark packets of connections that negotiated ECN, instead of dropping them")

    def compile(self) -> compiled.Discipline:
        """As engines take it, but for the limit."""
        return compiled.Pie(self.target.ns, self.tupdate.ns, self.alpha, self.beta, self.bytemode, self.ecn)


class FqPie(Part):
    """FQ-PIE: flows take turns, each with PIE."""

    kind: Literal["fq_pie"] = Field(description="`fq_pie`")
    limit: Packets = Field(Queue.parse("10240 packets"), description="most packets that wait, all flows together")
    flows: int = Field(1024, ge=1, le=65536, description="number of queues that flows are hashed to")
    target: Time = Field(Span.parse("15 ms"), description="target queue delay")
    tupdate: Time = Field(
        Span.parse("15 ms"),
        description="interval between updates of the drop probability, in whole ticks of the host's kernel",
    )
    alpha: int = Field(2, ge=0, le=32, description="weight of the difference between delay and target, in sixteenths")
    beta: int = Field(20, ge=0, le=32, description="weight of the change of the delay, in sixteenths")
    quantum: Quantum | None = Field(None, description="bytes of a flow per round; absent: one full frame")
    bytemode: bool = Field(False, description="drop small packets less often")
    ecn: bool = Field(False, description="mark packets of connections that negotiated ECN, instead of dropping them")

    def compile(self) -> compiled.Discipline:
        """As engines take it, but for the limit."""
        law = (self.target.ns, self.tupdate.ns, self.alpha, self.beta, self.bytemode)
        return compiled.FqPie(*law, self.flows, _bytes(self.quantum), self.ecn)


def _ns(span: Span | None) -> int | None:
    return None if span is None else span.ns


class Fq(Part):
    """Flow queueing: flows take turns, each with a limit. The part of tc-fq that a router uses, without pacing."""

    kind: Literal["fq"] = Field(description="`fq`")
    limit: Packets = Field(Queue.parse("10000 packets"), description="most packets that wait, all flows together")
    flow_limit: int = Field(100, ge=1, le=10**9, description="most packets of one flow that wait")
    quantum: Quantum | None = Field(None, description="bytes of a flow per round; absent: two full frames")
    initial_quantum: Quantum | None = Field(
        None, description="bytes of a flow in its first round; absent: ten full frames"
    )
    refill_delay: Time = Field(Span.parse("40 ms"), description="silence after which a flow gets a new quantum")
    orphan_mask: int = Field(
        1023, ge=0, le=65535, description="mask of the hash bits that distinguish flows that the host only forwards"
    )

    def compile(self) -> compiled.Discipline:
        """As engines take it, but for the limit."""
        quanta = _bytes(self.quantum), _bytes(self.initial_quantum)
        return compiled.Fq(self.flow_limit, *quanta, self.orphan_mask, self.refill_delay.ns)


class Sfq(Part):
    """Stochastic fairness queueing: hashed flows take turns; a full queue drops the last packet of the longest flow."""

    kind: Literal["sfq"] = Field(description="`sfq`")
    limit: Packets = Field(Queue.parse("127 packets"), description="most packets that wait, all flows together")
    quantum: Quantum | None = Field(None, description="bytes of a flow per round; absent: one full frame")
    perturb: Span = Field(
        Span(0), description='interval at which flows are hashed anew, in whole seconds; "0 s": never'
    )
    flows: int = Field(128, ge=1, le=65408, description="number of queues")
    divisor: int = Field(1024, ge=1, le=65536, description="number of hash values, a power of two")
    depth: int = Field(127, ge=1, le=127, description="most packets of one queue that wait")
    headdrop: bool = Field(False, description="drop the first packet of the longest queue instead of the last")

    @model_validator(mode="after")
    def _is_tcs(self) -> Self:
        if self.perturb.ns % 10**9:
            raise InputError("out-of-range", "tc takes whole seconds only", field="perturb", fix='write e.g. "10 s"')
        if self.divisor & (self.divisor - 1):
            message = f"{self.divisor} is not a power of two"
            raise InputError("out-of-range", message, field="divisor", fix="choose e.g. 1024")
        if self.limit.unit == "packets" and self.limit.amount < 2:
            raise InputError(
                "out-of-range", "sfq needs a limit of at least 2 packets", field="limit", fix='write "2 packets"'
            )
        return self

    def compile(self) -> compiled.Discipline:
        """As engines take it, but for the limit."""
        return compiled.Sfq(_bytes(self.quantum), self.perturb.ns, self.flows, self.divisor, self.depth, self.headdrop)


class Tbf(Part):
    """A token bucket before the transmitter: shapes to a rate below the transmitter's, with a queue in bytes."""

    kind: Literal["tbf"] = Field(description="`tbf`")
    rate: Rate = Field(description="long-term rate")
    burst: Burst = Field(
        description="bytes that leave at the transmitter's rate after silence; at least one full frame"
    )
    latency: Time | None = Field(None, description="longest time that a packet waits for tokens; instead of `limit`")
    limit: Burst | None = Field(None, description="most bytes that wait; instead of `latency`")
    peakrate: Rate | None = Field(None, description="rate of a burst; absent: the transmitter's")
    minburst: Burst | None = Field(None, description="bytes that leave at once at `peakrate`; absent: one full frame")

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if (self.latency is None) == (self.limit is None):
            message = "a token bucket needs exactly one of latency and limit"
            if self.limit is not None:
                raise InputError("conflict", message, field="latency", fix="remove latency or limit")
            fix = 'add latency = "50 ms" or limit = "100 kB"'
            raise InputError("missing-field", message, field="latency", fix=fix)
        if self.peakrate is not None and self.peakrate <= self.rate:
            message = f'a peak rate of "{self.peakrate}" is not above the rate'
            raise InputError("out-of-range", message, field="peakrate", fix="remove peakrate, or choose a higher one")
        if self.minburst is not None and self.peakrate is None:
            message = "minburst needs peakrate, which is missing"
            raise InputError("conflict", message, field="minburst", fix="remove minburst, or add peakrate")
        return self

    def waiting_bytes(self, frame: int) -> int:
        """The limit: as given, or as tc reckons it from the latency. Frames are of so many bytes."""
        if self.latency is None:
            return max(frame, _bytes(self.limit) or 0)
        limits = [self.rate.bps * self.latency.ns // (8 * 10**9) + self.burst.bytes]
        if self.peakrate is not None:
            limits.append(self.peakrate.bps * self.latency.ns // (8 * 10**9) + (_bytes(self.minburst) or frame))
        return max(frame, min(limits))

    def compile(self, frame: int, line_bps: int) -> compiled.Discipline:
        """As engines take it, but for the limit. Raises InputError ``out-of-range``."""
        if self.rate.bps >= line_bps:
            message = (
                f'a rate of "{self.rate}" is not below the transmitter\'s, "{Rate(line_bps)}", so it limits nothing'
            )
            raise InputError("out-of-range", message, field="rate", fix="choose a lower rate, or remove the queue")
        check_burst(self.burst, frame, "burst")
        least = self.minburst or Size(frame)
        check_burst(least, frame, "minburst")
        if self.peakrate is None:
            return compiled.Tbf(self.rate.bps, self.burst.bytes)
        return compiled.Tbf(self.rate.bps, self.burst.bytes, self.peakrate.bps, least.bytes)


class Cake(Part):
    """CAKE: a shaper, fair sharing among hosts and flows, and COBALT (CoDel and BLUE) on each flow."""

    kind: Literal["cake"] = Field(description="`cake`")
    bandwidth: Bandwidth | None = Field(
        None, description="rate of its shaper; absent: no shaper, only the transmitter's rate"
    )
    rtt: RoundTrip = Field(
        Span.parse("100 ms"),
        description="about the longest RTT through the queue, or tc's name for one: "
        + ", ".join(f"`{name}`" for name in PRESETS),
    )
    isolation: Isolation = Field("triple-isolate", description="what gets equal shares, in tc's words")
    memlimit: Memory | None = Field(
        None,
        description="kernel memory for waiting packets; absent: 4 `bandwidth` × `rtt`, at least 4 MiB, at most 10240 "
        "full frames",
    )

    def compile(self, frame: int) -> compiled.Discipline:
        """As engines take it; ``frame``: bytes of a full one."""
        most, memory = DEFAULT_PACKETS * frame, None if self.memlimit is None else self.memlimit.bytes
        if memory is None:
            share = most if self.bandwidth is None else 4 * self.bandwidth.bps * self.rtt.ns // (8 * 10**9)
            memory = min(max(share, LEAST_MEMORY), most)
        target = max(1000, self.rtt.ns // 20)
        bandwidth = None if self.bandwidth is None else self.bandwidth.bps
        return compiled.Cake(bandwidth, self.rtt.ns, target, self.isolation, memory)


class DualPi2(Part):
    """DualPI2, RFC 9332: a low-latency queue for ECT(1), a classic queue, and one controller for both."""

    kind: Literal["dualpi2"] = Field(description="`dualpi2`")
    limit: Packets = Field(Queue.parse("10000 packets"), description="most packets that wait, both queues together")
    target: Time = Field(Span.parse("15 ms"), description="target delay of the classic queue")
    tupdate: Update = Field(Span.parse("16 ms"), description="interval between updates of the drop probability")
    alpha: float = Field(0.16, ge=0.004, le=8e6, description="weight of the difference between delay and target, in Hz")
    beta: float = Field(3.2, ge=0.004, le=8e6, description="weight of the change of the delay, in Hz")
    coupling_factor: int = Field(
        2,
        ge=1,
        le=255,
        description="ratio of the low-latency marking probability to the square root of the classic one",
    )
    step_thresh: Step = Field(
        Queue.parse("1 ms"),
        description="delay, or number of packets, above which every low-latency packet is marked",
    )
    min_qlen_step: int = Field(
        0, ge=0, le=10**9, description="packets that must wait in the low-latency queue before the step marks"
    )
    classic_protection: Loss = Field(
        Loss.parse("10%"), description="share of the classic queue if both queues have packets, in whole percent"
    )
    drop_on_overload: bool = Field(
        True,
        description="drop from both queues once every low-latency packet is marked; false: drop only when "
        "the queue is full",
    )
    drop_enqueue: bool = Field(
        False, description="mark and drop arriving packets; false: departing packets (tc's `drop_dequeue`)"
    )
    any_ect: bool = Field(
        False, description="ECT(0) packets use the low-latency queue too; false: only ECT(1) (tc's `l4s_ect`)"
    )

    @model_validator(mode="after")
    def _is_tcs(self) -> Self:
        if self.classic_protection.ppb % 10**7:
            message = f'"{self.classic_protection}" is not a whole percentage'
            raise InputError("out-of-range", message, field="classic_protection", fix='write e.g. "10%"')
        return self

    def compile(self) -> compiled.Discipline:
        """As engines take it, but for the limit."""
        step, in_ns = int(self.step_thresh.amount), self.step_thresh.unit == "ns"
        return compiled.DualPi2(
            self.target.ns,
            self.tupdate.ns,
            round(self.alpha * 256),
            round(self.beta * 256),
            self.coupling_factor,
            step if in_ns else None,
            None if in_ns else step,
            self.min_qlen_step,
            self.classic_protection.ppb // 10**7,
            self.drop_on_overload,
            self.drop_enqueue,
            self.any_ect,
        )


def _bytes(size: Size | None) -> int | None:
    return None if size is None else size.bytes


Discipline = Pfifo | Bfifo | Codel | FqCodel | Red | Pie | FqPie | Fq | Sfq | Tbf | Cake | DualPi2
KINDS: Mapping[str, type[Discipline]] = {
    "pfifo": Pfifo,
    "bfifo": Bfifo,
    "codel": Codel,
    "fq_codel": FqCodel,
    "red": Red,
    "pie": Pie,
    "fq_pie": FqPie,
    "fq": Fq,
    "sfq": Sfq,
    "tbf": Tbf,
    "cake": Cake,
    "dualpi2": DualPi2,
}
"""The tables by tc's names."""


class _TextOrTable:
    """Text is a ``Queue``, a table a discipline, told by its kind."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        def read(value: Any) -> Queue | Discipline:
            if isinstance(value, (Queue, Discipline)):
                return value
            if not isinstance(value, Mapping):
                return Queue.parse(value)
            return of_kind(value, KINDS, "queue", 'queue = { kind = "codel" }')

        return core_schema.no_info_plain_validator_function(
            read, serialization=core_schema.plain_serializer_function_ser_schema(written)
        )

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        text = Queue.__get_pydantic_json_schema__(schema, handler)
        return {"anyOf": [text, *(handler(TypeAdapter(model).core_schema) for model in KINDS.values())]}


def written(queue: Queue | Discipline) -> Any:
    """As a scenario file has it: text or a table."""
    return str(queue) if isinstance(queue, Queue) else queue.model_dump(mode="json", exclude_none=True)


QueueModel = Annotated[Queue | Discipline, _TextOrTable()]
"""What a scenario file may give as a queue."""
