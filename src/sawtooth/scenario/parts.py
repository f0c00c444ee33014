"""What a scenario file may contain, one class a table. Defaults and limits live here and nowhere else."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainSerializer,
    PlainValidator,
    SerializerFunctionWrapHandler,
    StringConstraints,
    model_serializer,
    model_validator,
)

from sawtooth.errors import InputError
from sawtooth.frames import MSS
from sawtooth.scenario.control import CONGESTION_CONTROLS, Control, Module, Variant, told_control
from sawtooth.scenario.datagrams import Udp
from sawtooth.scenario.jitter import JitterModel
from sawtooth.scenario.loss import LossModel
from sawtooth.scenario.names import End, Name
from sawtooth.scenario.part import Part
from sawtooth.scenario.policer import Policer
from sawtooth.scenario.queue import QueueModel
from sawtooth.scenario.ranges import between
from sawtooth.scenario.reader import Reader
from sawtooth.scenario.units import Loss, Queue, Rate, Size, Span
from sawtooth.scenario.varying import Change, ReorderModel, ShareModel
from sawtooth.scenario.writer import Source

HZ = (100, 250, 300, 1000)

MAX_CONNECTIONS = 100_000
MAX_SAMPLES = 10_000_000


def _known_hz(value: int) -> int:
    if value not in HZ:
        raise InputError("out-of-range", f"{value} is not a timer tick of Linux", fix="choose 100, 250, 300 or 1000")
    return value


Delay = Annotated[Span, between("0 s", "3600 s", Span)]
Buffer = Annotated[Size, between("4 KiB", "1 GiB", Size)]
Overhead = Annotated[Size, between("0 bytes", "1000 bytes", Size)]
Opportunity = Annotated[Size, between("0 bytes", "1 MB", Size)]
Aggregation = Annotated[Span, between("0 s", "1 s", Span)]
Volume = Annotated[Size, between("1 byte", "1000 TB", Size)]
Lifetime = Annotated[Span, between("1 ms", "30 d", Span)]


class Path(Part):
    """One bottleneck between two hosts; topology "path"."""

    rate: Rate = Field(Rate.parse("100 Mbit/s"), description="of the bottleneck, sender to receiver")
    reverse_rate: Rate | None = Field(
        None,
        description="of the bottleneck, receiver to sender: of acknowledgements and reverse flows; absent: unlimited",
    )
    rtt: Delay = Field(Span.parse("20 ms"), description="base round-trip time, half each way")
    queue: QueueModel = Field(
        Queue.parse("1 bdp"),
        description="of the bottleneck, each direction that has a rate; a time or bdp is of that direction's rate",
    )
    loss: LossModel = Field(Loss.parse("0%"), description="in the direction of the data, after the bottleneck")
    ack_loss: LossModel = Field(
        Loss.parse("0%"), description="in the direction of the acknowledgements, before the bottleneck"
    )
    changes: tuple[Change, ...] | None = Field(
        None,
        strict=False,
        description="other rates of the bottleneck, delays and losses of the way out, from given times on",
    )
    trace: str | None = Field(None, description="of the way out, as of a link: its rates are the bottleneck's")
    jitter: JitterModel | None = Field(None, description="deviation of the way out's delay, as text or as a table")
    reorder: ReorderModel | None = Field(None, description="share that overtakes on the way out, after the bottleneck")
    duplicate: ShareModel | None = Field(None, description="share that comes twice, after the bottleneck")
    corrupt: ShareModel | None = Field(None, description="share with a wrong checksum, after the bottleneck")
    policer: Policer | None = Field(None, description="drops what leaves the bottleneck faster than a rate")


class Chain(Part):
    """Five hosts in a row, one network card each; topologies "chain" and "chain-asymmetric"."""

    rate: Rate = Field(Rate.parse("1 Gbit/s"), description="of each host's card")
    rtt: Delay = Field(
        Span.parse("0.4 ms"),
        description="round-trip propagation time from h1 to h5 and back; frames add 50 µs on idle 1 Gbit/s cards",
    )
    queue: QueueModel = Field(Queue.parse("1000 packets"), description="of each host's card")
    loss: LossModel = Field(Loss.parse("0%"), description="on the link from h3 to h4")
    reverse_rate: Rate | None = Field(
        None, description="of each host's card towards h1, another one then; absent: one card both ways"
    )
    ack_loss: LossModel | None = Field(
        None, description="on the way back: the link from h4 to h3, or from h5 to h1; absent: none"
    )


def _each(value: object) -> object:
    """One length of time, or several."""
    return tuple(value) if isinstance(value, (list, tuple)) else (value,)


def _as_given(times: tuple[Span, ...]) -> str | list[str]:
    return str(times[0]) if len(times) == 1 else [str(one) for one in times]


class Dumbbell(Part):
    """Pairs of hosts around one bottleneck; topology "dumbbell"."""

    pairs: int = Field(1, ge=1, le=10_000, description="senders s1 … and receivers r1 …; at least as many as RTTs")
    rate: Rate = Field(Rate.parse("100 Mbit/s"), description="of the bottleneck, both directions")
    rtt: Annotated[
        tuple[Delay, ...],
        BeforeValidator(_each, json_schema_input_type=Delay | list[Delay]),
        PlainSerializer(_as_given),
    ] = Field(
        (Span.parse("20 ms"),),
        min_length=1,
        max_length=10_000,
        description="base round-trip time, all of it on the bottleneck link; or a list, of which the pairs take one in "
        "turn: the shortest is on the bottleneck link, what a pair has more on its receiver's",
    )
    queue: QueueModel = Field(Queue.parse("1 bdp"), description="of the bottleneck, each direction")
    loss: LossModel = Field(Loss.parse("0%"), description="on the bottleneck, in the direction of the data")
    access_rate: Rate | None = Field(None, description="of each access link; absent: unlimited")
    reverse_rate: Rate | None = Field(None, description="of the bottleneck, receivers to senders; absent: `rate`")
    ack_loss: LossModel | None = Field(
        None, description="on the bottleneck, in the direction of the acknowledgements; absent: none"
    )

    @property
    def number(self) -> int:
        """Of pairs."""
        return max(self.pairs, len(self.rtt))


class ParkingLot(Part):
    """Bottlenecks in a row, which one path crosses and others one each; topology "parking-lot"."""

    hops: int = Field(
        3, ge=1, le=100, description="bottlenecks, from n0 to n1, n1 to n2 …; the n-th is crossed from cn to dn"
    )
    rate: Rate = Field(Rate.parse("100 Mbit/s"), description="of each bottleneck, both directions")
    reverse_rate: Rate | None = Field(None, description="of each bottleneck, towards the senders; absent: `rate`")
    rtt: Delay = Field(Span.parse("60 ms"), description="base round-trip time from a to b, the same share on each")
    queue: QueueModel = Field(Queue.parse("1 bdp"), description="of each bottleneck, each direction")
    loss: LossModel = Field(Loss.parse("0%"), description="on the first bottleneck, in the direction of the data")
    ack_loss: LossModel | None = Field(
        None, description="on the first bottleneck, in the direction of the acknowledgements; absent: none"
    )


class Home(Part):
    """A device on Wi-Fi, an access line with a long queue, a server; topology "home". Data goes to the device."""

    down: Rate = Field(Rate.parse("50 Mbit/s"), description="of the access line, to the home")
    up: Rate = Field(Rate.parse("10 Mbit/s"), description="of the access line, from the home")
    rtt: Delay = Field(Span.parse("20 ms"), description="base round-trip time of the access line and beyond")
    queue: QueueModel = Field(
        Queue.parse("250 ms"),
        description="of the access line, each direction; a time or bdp is of that direction's rate",
    )
    wifi: Rate = Field(Rate.parse("150 Mbit/s"), description="of the Wi-Fi, each direction, with 1000 packets of queue")
    aggregation: Aggregation = Field(
        Span.parse("2 ms"), description="of the Wi-Fi: packets leave together, so far apart"
    )
    loss: LossModel = Field(Loss.parse("0%"), description="on the Wi-Fi, in the direction of the data")
    ack_loss: LossModel | None = Field(None, description="on the Wi-Fi, from the device; absent: none")


def _as_number(value: object) -> object:
    return int(value) if isinstance(value, bool) else value


def _wait(value: object) -> object:
    """``True``: for no time; ``False``: it merges nothing."""
    return (Span(0) if value else None) if isinstance(value, bool) else value


def _as_wait(value: Span | None) -> str | bool:
    return str(value) if value is not None and value.ns else value is not None


Merging = Annotated[
    Annotated[Span, between("0 s", "10 ms", Span)] | None,
    BeforeValidator(_wait, json_schema_input_type=bool | Span),
    PlainSerializer(_as_wait),
]


class Host(Part):
    """Settings of a host's TCP."""

    kernel: Name | None = Field(
        None,
        description="which kernel the engine `kernel` boots, by the name that it was built with, one for all hosts; "
        "absent: Linux without additions. The others have no such choice and ignore it",
    )
    hz: Annotated[int, AfterValidator(_known_hz)] = Field(
        250, description="timer tick of its kernel: 100, 250, 300 or 1000", json_schema_extra={"enum": list(HZ)}
    )
    mss: int = Field(MSS, ge=48, le=65400, description="payload bytes of a full segment")
    initial_window: int = Field(10, ge=1, le=1000, description="segments")
    receive_buffer: Buffer = Field(Size.parse("64 MiB"), description="maximum, as tcp_rmem[2]")
    send_buffer: Buffer = Field(Size.parse("64 MiB"), description="maximum, as tcp_wmem[2]")
    delayed_ack: bool = Field(True, description="whether the receiver delays acknowledgements")
    sack: bool = Field(True, description="selective acknowledgements")
    timestamps: bool = Field(True, description="12 bytes of TCP option in each segment")
    ecn: Annotated[int, BeforeValidator(_as_number)] = Field(
        0,
        ge=0,
        le=2,
        description="explicit congestion notification, as tcp_ecn: true or 1 asks for it and agrees, 2 agrees, false "
        "or 0 neither; `dctcp` and `prague` ask by themselves",
        json_schema_extra={"type": ["integer", "boolean"]},
    )
    ecn_fallback: bool = Field(True, description="asks with the first SYN only, as tcp_ecn_fallback")
    gro: Merging = Field(
        None,
        description="its cards merge segments that they receive (generic receive offload): a time, for which a card "
        "waits for more since the last one, or true: what comes at once; false: none",
    )
    offload: bool = Field(
        False,
        description="segmentation offload: loss on a link that leaves the sending host drops whole super-packets",
    )


class Card(Part):
    """A physical transmitter that all links leaving a host share."""

    rate: Rate = Field(description="of the card")
    queue: QueueModel = Field(Queue.parse("1000 packets"), description="of the card")


# What a link and each of its directions may say in the same words.
Changes = Annotated[
    tuple[Change, ...] | None,
    Field(strict=False, description="other rates, delays, losses from given times on: a list of tables"),
]
Trace = Annotated[
    str | None,
    Field(
        description="a file of Mahimahi's packet-delivery times, or CSV of time, rate, delay, loss: instead of those; "
        "or the name of one that is shipped"
    ),
]
Jitters = Annotated[JitterModel | None, Field(description="deviation of the delay, as text or as a table")]
Reorders = Annotated[ReorderModel | None, Field(description="share of packets that overtake, as text or as a table")]
Duplicates = Annotated[ShareModel | None, Field(description="share of packets that come twice, as text or as a table")]
Corrupts = Annotated[
    ShareModel | None,
    Field(description="share of packets that nobody takes, since their checksum is wrong, as text or as a table"),
]


Policers = Annotated[
    Policer | None, Field(description="drops what comes faster than a rate, after the transmitter, before the delay")
]


class Direction(Part):
    """What one direction of a link does otherwise than the link says."""

    rate: Rate | None = Field(None, description="of the transmitter")
    delay: Delay | None = Field(None, description="propagation")
    queue: QueueModel | None = Field(None, description="before the transmitter")
    loss: LossModel | None = Field(None, description="before the queue")
    overhead: Overhead | None = Field(None, description="bytes a frame that the wire carries and Linux does not count")
    aggregation: Aggregation | None = Field(None, description="packets leave together, so far apart")
    opportunity: Opportunity | None = Field(None, description="the rate is so many bytes at a time")
    changes: Changes = None
    trace: Trace = None
    jitter: Jitters = None
    reorder: Reorders = None
    duplicate: Duplicates = None
    corrupt: Corrupts = None
    policer: Policers = None


class Link(Part):
    """Two hosts joined, both directions; forward is ``from`` to ``to``."""

    from_: Name = Field(alias="from", description="a host")
    to: Name = Field(description="a host")
    name: Name | None = Field(None, description='absent: "FROM-TO"')
    rate: Rate | None = Field(None, description="absent: unlimited, or the card's")
    delay: Delay = Field(Span.parse("0 s"), description="propagation, one way")
    queue: QueueModel | None = Field(None, description='absent: "1000 packets" where there is a rate')
    loss: LossModel = Field(Loss.parse("0%"), description="before the queue")
    overhead: Overhead = Field(Size(0), description="bytes a frame that the wire carries and Linux does not count")
    aggregation: Aggregation = Field(Span(0), description="packets leave together, so far apart, as on Wi-Fi")
    opportunity: Opportunity = Field(
        Size(0),
        description="the rate is so many bytes at a time, as of cellular lines",
    )
    changes: Changes = None
    trace: Trace = None
    jitter: Jitters = None
    reorder: Reorders = None
    duplicate: Duplicates = None
    corrupt: Corrupts = None
    policer: Policers = None
    forward: Direction = Field(Direction(), description="what differs from `from` to `to`")
    backward: Direction = Field(Direction(), description="what differs from `to` to `from`")


class Route(Part):
    """The way that packets from one host to another take, when it is not the one with the fewest hops."""

    from_: Name = Field(alias="from", description="a host")
    to: Name = Field(description="a host")
    via: tuple[Annotated[str, StringConstraints(pattern=r"^(link:)?[A-Za-z0-9_+-]{1,40}$")], ...] = Field(
        (), strict=False, max_length=1000, description='the hosts between, in order; "link:NAME" for one of two links'
    )


def _pair(value: object) -> object:
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        fix = 'write it like ["1 s", "5 s"]'
        raise InputError("wrong-type", "a lifetime is a list of the shortest and the longest", fix=fix)
    return tuple(value)


class Replace(Part):
    """A new connection starts at once when one ends."""

    lifetime: Annotated[tuple[Lifetime, Lifetime], BeforeValidator(_pair)] = Field(
        description="shortest and longest life; each connection draws its own uniformly",
    )


class Flow(Part):
    """Bulk transfers from one host to another; ``from`` sends the data."""

    name: Name | None = Field(None, description="absent: the congestion control's name, numbered when taken")
    from_: End | None = Field(None, alias="from", description="the host that sends the data; optional on a topology")
    to: End | None = Field(None, description="the host that receives it; optional on a topology")
    cc: Annotated[Any, PlainValidator(told_control, json_schema_input_type=Control | Variant | Module)] = Field(
        "cubic",
        description="congestion control; `sim` has `reno`, `cubic`, `bbr`, `dctcp`, `bbr3`, `prague`; `bbr3` as "
        'the draft has it, `{ name = "bbr3", variant = "draft" }`, or with low-latency ECN, `variant = "ecn"`; or a '
        'module from its C source, `{ source = "tcp_mine.c" }`',
        json_schema_extra={"examples": list(CONGESTION_CONTROLS)},
    )
    count: int = Field(1, ge=1, le=MAX_CONNECTIONS, description="connections")
    start: Span = Field(Span(0), description="when it starts")
    duration: Lifetime | None = Field(
        None, description="how long it sends, all replaced connections together; absent: to the end"
    )
    bytes: Volume | None = Field(None, description="what each connection sends, instead of a duration")
    replace: Replace | None = Field(None, description="short connections, each replaced by a new one")
    source: Source | None = Field(None, description="what an application writes, and when; absent: without end")
    reader: Reader | None = Field(
        None, description="how fast the other end's application reads; absent: whatever comes, at once"
    )

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if isinstance(self.source, Udp) and "cc" in self.model_fields_set:
            message = "datagrams have no congestion control"
            raise InputError("conflict", message, field="cc", fix="remove cc")
        return self

    @model_serializer(mode="wrap")
    def _written(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        told: dict[str, Any] = write(self)
        if isinstance(self.source, Udp):
            told.pop("cc", None)
        return told

    @property
    def control(self) -> str:
        """What its congestion control is called here; "udp" where there is none."""
        if isinstance(self.source, Udp):
            return "udp"
        return self.cc.label if isinstance(self.cc, (Module, Variant)) else self.cc


class Probe(Part):
    """Small packets there and back, like ping, through the same queues."""

    name: Name | None = Field(None, description='absent: "probe", numbered when taken')
    from_: Name | None = Field(None, alias="from", description="the host that asks; optional on a topology")
    to: Name | None = Field(None, description="the host that answers; optional on a topology")
    interval: Annotated[Span, between("100 us", "3600 s", Span)] = Field(Span.parse("1 s"), description="between two")
    count: int | None = Field(None, ge=1, le=MAX_SAMPLES, description="absent: until the end")
    start: Span = Field(Span(0), description="when the first is sent")
