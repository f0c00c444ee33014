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

    rate: Rate = Field(Rate.parse("100 Mbit/s"), description="rate of the bottleneck, sender to receiver")
    reverse_rate: Rate | None = Field(
        None,
        description="rate of the bottleneck, receiver to sender, for acknowledgements and reverse flows; "
        "absent: unlimited",
    )
    rtt: Delay = Field(Span.parse("20 ms"), description="base RTT, half in each direction")
    queue: QueueModel = Field(
        Queue.parse("1 bdp"),
        description="queue of the bottleneck, in each direction that has a rate; a time or bdp is relative to that "
        "direction's rate",
    )
    loss: LossModel = Field(Loss.parse("0%"), description="loss of data, after the bottleneck")
    ack_loss: LossModel = Field(Loss.parse("0%"), description="loss of acknowledgements, before the bottleneck")
    changes: tuple[Change, ...] | None = Field(
        None,
        strict=False,
        description="changes of the bottleneck's rate, and of delay and loss in the data direction, at given times",
    )
    trace: str | None = Field(
        None, description="trace of the data direction, as for a link; its rates are the bottleneck's"
    )
    jitter: JitterModel | None = Field(
        None, description="standard deviation of the delay in the data direction, as text or as a table"
    )
    reorder: ReorderModel | None = Field(
        None, description="share of packets that overtake others in the data direction, after the bottleneck"
    )
    duplicate: ShareModel | None = Field(None, description="share of packets duplicated, after the bottleneck")
    corrupt: ShareModel | None = Field(None, description="share of packets with a wrong checksum, after the bottleneck")
    policer: Policer | None = Field(None, description="drops packets that leave the bottleneck above a rate")


class Chain(Part):
    """Five hosts in a row, one network card each; topologies "chain" and "chain-asymmetric"."""

    rate: Rate = Field(Rate.parse("1 Gbit/s"), description="rate of each host's card")
    rtt: Delay = Field(
        Span.parse("0.4 ms"),
        description="round-trip propagation time from h1 to h5; full segments add 50 µs on idle 1 Gbit/s cards",
    )
    queue: QueueModel = Field(Queue.parse("1000 packets"), description="queue of each host's card")
    loss: LossModel = Field(Loss.parse("0%"), description="loss on the link from h3 to h4")
    reverse_rate: Rate | None = Field(
        None, description="rate of a second card per host, for packets toward h1; absent: one card for both directions"
    )
    ack_loss: LossModel | None = Field(
        None, description="loss in the reverse direction, on the link from h4 to h3 or from h5 to h1; absent: none"
    )


def _each(value: object) -> object:
    """One length of time, or several."""
    return tuple(value) if isinstance(value, (list, tuple)) else (value,)


def _as_given(times: tuple[Span, ...]) -> str | list[str]:
    return str(times[0]) if len(times) == 1 else [str(one) for one in times]


class Dumbbell(Part):
    """Pairs of hosts around one bottleneck; topology "dumbbell"."""

    pairs: int = Field(
        1, ge=1, le=10_000, description="number of senders s1 … and receivers r1 …; at least the number of RTTs"
    )
    rate: Rate = Field(Rate.parse("100 Mbit/s"), description="rate of the bottleneck, both directions")
    rtt: Annotated[
        tuple[Delay, ...],
        BeforeValidator(_each, json_schema_input_type=Delay | list[Delay]),
        PlainSerializer(_as_given),
    ] = Field(
        (Span.parse("20 ms"),),
        min_length=1,
        max_length=10_000,
        description="base RTT, all of it on the bottleneck; or a list that the pairs cycle through: the bottleneck has "
        "the shortest, and each receiver's link has the rest",
    )
    queue: QueueModel = Field(Queue.parse("1 bdp"), description="queue of the bottleneck, each direction")
    loss: LossModel = Field(Loss.parse("0%"), description="loss of data on the bottleneck")
    access_rate: Rate | None = Field(None, description="rate of each access link; absent: unlimited")
    reverse_rate: Rate | None = Field(None, description="rate of the bottleneck, receivers to senders; absent: `rate`")
    ack_loss: LossModel | None = Field(None, description="loss of acknowledgements on the bottleneck; absent: none")

    @property
    def number(self) -> int:
        """Of pairs."""
        return max(self.pairs, len(self.rtt))


class ParkingLot(Part):
    """Several bottlenecks in a row. One path crosses all, others cross one each; topology "parking-lot"."""

    hops: int = Field(
        3,
        ge=1,
        le=100,
        description="number of bottlenecks, n0 to n1, n1 to n2 …; the path from cn to dn crosses the n-th",
    )
    rate: Rate = Field(Rate.parse("100 Mbit/s"), description="rate of each bottleneck, both directions")
    reverse_rate: Rate | None = Field(None, description="rate of each bottleneck toward the senders; absent: `rate`")
    rtt: Delay = Field(Span.parse("60 ms"), description="base RTT from a to b, spread evenly over the bottlenecks")
    queue: QueueModel = Field(Queue.parse("1 bdp"), description="queue of each bottleneck, each direction")
    loss: LossModel = Field(Loss.parse("0%"), description="loss of data on the first bottleneck")
    ack_loss: LossModel | None = Field(
        None, description="loss of acknowledgements on the first bottleneck; absent: none"
    )


class Home(Part):
    """A device on Wi-Fi behind an access line with a long queue; topology "home". Data goes to the device."""

    down: Rate = Field(Rate.parse("50 Mbit/s"), description="rate of the access line toward the home")
    up: Rate = Field(Rate.parse("10 Mbit/s"), description="rate of the access line from the home")
    rtt: Delay = Field(Span.parse("20 ms"), description="base RTT of the access line and the network beyond it")
    queue: QueueModel = Field(
        Queue.parse("250 ms"),
        description="queue of the access line, each direction; a time or bdp is relative to that direction's rate",
    )
    wifi: Rate = Field(
        Rate.parse("150 Mbit/s"), description="rate of the Wi-Fi link, each direction, with a queue of 1000 packets"
    )
    aggregation: Aggregation = Field(
        Span.parse("2 ms"), description="interval at which the Wi-Fi link sends waiting packets together"
    )
    loss: LossModel = Field(Loss.parse("0%"), description="loss of data on the Wi-Fi link")
    ack_loss: LossModel | None = Field(None, description="loss on the Wi-Fi link from the device; absent: none")


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
        description="name of the user-mode kernel that the engine `kernel` boots, one for all hosts; absent: Linux "
        "without additions. Other engines ignore it",
    )
    hz: Annotated[int, AfterValidator(_known_hz)] = Field(
        250,
        description="timer ticks of its kernel per second: 100, 250, 300 or 1000",
        json_schema_extra={"enum": list(HZ)},
    )
    mss: int = Field(MSS, ge=48, le=65400, description="payload of a full segment, in bytes")
    initial_window: int = Field(10, ge=1, le=1000, description="initial congestion window, in segments")
    receive_buffer: Buffer = Field(Size.parse("64 MiB"), description="maximum receive buffer, as tcp_rmem[2]")
    send_buffer: Buffer = Field(Size.parse("64 MiB"), description="maximum send buffer, as tcp_wmem[2]")
    delayed_ack: bool = Field(True, description="delay acknowledgements")
    sack: bool = Field(True, description="use selective acknowledgements")
    timestamps: bool = Field(True, description="use TCP timestamps, 12 bytes in each segment")
    ecn: Annotated[int, BeforeValidator(_as_number)] = Field(
        0,
        ge=0,
        le=2,
        description="explicit congestion notification, as tcp_ecn: true or 1 requests and accepts it, 2 accepts it, "
        "false or 0 does neither; `dctcp` and `prague` always request it",
        json_schema_extra={"type": ["integer", "boolean"]},
    )
    ecn_fallback: bool = Field(
        True, description="request ECN only in the first SYN, not when it is retransmitted, as tcp_ecn_fallback"
    )
    gro: Merging = Field(
        None,
        description="merge received segments (generic receive offload): a time, for how long the card "
        "waits for the next "
        "packet; or true, to merge what arrives together; false: no merging",
    )
    offload: bool = Field(
        False,
        description="segmentation offload: loss on a link that leaves the sending host drops whole super-packets",
    )


class Card(Part):
    """A physical transmitter that all links leaving a host share."""

    rate: Rate = Field(description="rate of the card")
    queue: QueueModel = Field(Queue.parse("1000 packets"), description="queue of the card")


# What a link and each of its directions may say in the same words.
Changes = Annotated[
    tuple[Change, ...] | None,
    Field(strict=False, description="list of tables with changes of rate, delay or loss at given times"),
]
Trace = Annotated[
    str | None,
    Field(
        description="file with Mahimahi packet-delivery times, or CSV with time, rate, delay and loss; or the name of "
        "a shipped trace. Instead of `rate` and `changes`"
    ),
]
Jitters = Annotated[JitterModel | None, Field(description="standard deviation of the delay, as text or as a table")]
Reorders = Annotated[
    ReorderModel | None, Field(description="share of packets that overtake others, as text or as a table")
]
Duplicates = Annotated[
    ShareModel | None, Field(description="share of packets that are duplicated, as text or as a table")
]
Corrupts = Annotated[
    ShareModel | None,
    Field(description="share of packets with a wrong checksum, which the receiver discards, as text or as a table"),
]


Policers = Annotated[
    Policer | None, Field(description="drops packets above a rate, after the transmitter and before the delay")
]


class Direction(Part):
    """Settings of one direction of a link, which override the link's."""

    rate: Rate | None = Field(None, description="rate of the transmitter")
    delay: Delay | None = Field(None, description="one-way propagation delay")
    queue: QueueModel | None = Field(None, description="queue before the transmitter")
    loss: LossModel | None = Field(None, description="loss before the queue")
    overhead: Overhead | None = Field(
        None, description="bytes per frame that the wire carries and Linux does not count"
    )
    aggregation: Aggregation | None = Field(None, description="interval at which waiting packets leave together")
    opportunity: Opportunity | None = Field(None, description="bytes that leave at a time at that rate")
    changes: Changes = None
    trace: Trace = None
    jitter: Jitters = None
    reorder: Reorders = None
    duplicate: Duplicates = None
    corrupt: Corrupts = None
    policer: Policers = None


class Link(Part):
    """Two hosts joined, both directions; forward is ``from`` to ``to``."""

    from_: Name = Field(alias="from", description="host at one end")
    to: Name = Field(description="host at the other end")
    name: Name | None = Field(None, description='name; absent: "FROM-TO"')
    rate: Rate | None = Field(None, description="rate; absent: unlimited, or the card's")
    delay: Delay = Field(Span.parse("0 s"), description="one-way propagation delay")
    queue: QueueModel | None = Field(None, description='queue; absent: "1000 packets" if there is a rate')
    loss: LossModel = Field(Loss.parse("0%"), description="loss before the queue")
    overhead: Overhead = Field(Size(0), description="bytes per frame that the wire carries and Linux does not count")
    aggregation: Aggregation = Field(
        Span(0), description="interval at which waiting packets leave together, as on Wi-Fi"
    )
    opportunity: Opportunity = Field(
        Size(0),
        description="bytes that leave at a time at that rate, as on cellular links",
    )
    changes: Changes = None
    trace: Trace = None
    jitter: Jitters = None
    reorder: Reorders = None
    duplicate: Duplicates = None
    corrupt: Corrupts = None
    policer: Policers = None
    forward: Direction = Field(Direction(), description="settings of the direction from `from` to `to`")
    backward: Direction = Field(Direction(), description="settings of the direction from `to` to `from`")


class Route(Part):
    """A route between two hosts, if it should not be the one with the fewest hops."""

    from_: Name = Field(alias="from", description="host at the start")
    to: Name = Field(description="host at the end")
    via: tuple[Annotated[str, StringConstraints(pattern=r"^(link:)?[A-Za-z0-9_+-]{1,40}$")], ...] = Field(
        (),
        strict=False,
        max_length=1000,
        description='hosts in between, in order; "link:NAME" chooses one of two links',
    )


def _pair(value: object) -> object:
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        fix = 'write it like ["1 s", "5 s"]'
        raise InputError("wrong-type", "a lifetime is a list of the shortest and the longest", fix=fix)
    return tuple(value)


class Replace(Part):
    """A new connection starts when one ends."""

    lifetime: Annotated[tuple[Lifetime, Lifetime], BeforeValidator(_pair)] = Field(
        description="shortest and longest life of a connection; each draws its own, uniformly",
    )


class Flow(Part):
    """Bulk transfers from one host to another; ``from`` sends the data."""

    name: Name | None = Field(None, description="name; absent: the congestion control's name, numbered if taken")
    from_: End | None = Field(None, alias="from", description="host that sends the data; optional on a ready topology")
    to: End | None = Field(None, description="host that receives the data; optional on a ready topology")
    cc: Annotated[Any, PlainValidator(told_control, json_schema_input_type=Control | Variant | Module)] = Field(
        "cubic",
        description="congestion control; `sim` has `reno`, `cubic`, `bbr`, `dctcp`, `bbr3`, `prague`; also `{ name = "
        '"bbr3", variant = "draft" }` as the draft describes it, `variant = "ecn"` with low-latency ECN, or '
        'a module in C, `{ source = "tcp_mine.c" }`',
        json_schema_extra={"examples": list(CONGESTION_CONTROLS)},
    )
    count: int = Field(1, ge=1, le=MAX_CONNECTIONS, description="number of connections")
    start: Span = Field(Span(0), description="start time")
    duration: Lifetime | None = Field(
        None, description="length of time it sends, including all replaced connections; absent: to the end of the run"
    )
    bytes: Volume | None = Field(None, description="data that each connection sends, instead of a duration")
    replace: Replace | None = Field(None, description="short connections: a new one starts when one ends")
    source: Source | None = Field(
        None, description="application that decides what is sent and when; absent: there is always data to send"
    )
    reader: Reader | None = Field(
        None, description="rate at which the receiving application reads; absent: it reads everything at once"
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
    """Small packets and their answers, like ping, through the same queues."""

    name: Name | None = Field(None, description='name; absent: "probe", numbered if taken')
    from_: Name | None = Field(
        None, alias="from", description="host that sends the probes; optional on a ready topology"
    )
    to: Name | None = Field(None, description="host that answers; optional on a ready topology")
    interval: Annotated[Span, between("100 us", "3600 s", Span)] = Field(
        Span.parse("1 s"), description="time between two probes"
    )
    count: int | None = Field(None, ge=1, le=MAX_SAMPLES, description="number of probes; absent: to the end of the run")
    start: Span = Field(Span(0), description="time of the first probe")
