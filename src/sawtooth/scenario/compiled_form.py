"""The compiled form of a scenario: the core's JSON. crates/net/src/scenario describes its fields.
``from_`` is ``from`` there; a value of one of several kinds has a field for each.

Written by tools/scenario_tables.py; a test compares. Do not edit.
"""

from __future__ import annotations

from sawtooth.scenario.record import Choice, OfFlow, OfTransmitter, Record


class Scenario(Record):
    duration_ns: int
    interval_ns: int
    seed: int
    hosts: tuple[Host, ...]
    transmitters: tuple[Transmitter, ...]
    links: tuple[Link, ...]
    flows: tuple[Flow, ...]
    probes: tuple[Probe, ...]
    queue_delays: bool = False


class Host(Record):
    name: str
    hz: int
    mss: int
    initial_window: int
    receive_buffer: int
    send_buffer: int
    delayed_ack: bool
    sack: bool
    timestamps: bool
    offload: bool
    ecn: int = 0
    ecn_insists: bool = False
    gro_ns: int | None = None
    adv_win_scale: int | None = None
    unpaced: bool = False


class Transmitter(OfTransmitter):
    """Serializes packets. It belongs to one link, or is a network card that several links share."""

    name: str
    rate_bps: int
    queue_packets: int | None
    queue_bytes: int | None
    discipline: Choice | None = None
    pace: RateSchedule | None = None


class Probe(Record):
    name: str
    start_ns: int
    interval_ns: int
    count: int
    forward: tuple[int, ...]
    backward: tuple[int, ...]


class Link(Record):
    """One direction of a link."""

    name: str
    from_: int
    to: int
    transmitter: int | None
    delay_ns: int
    loss_ppb: int
    loss_pattern: LossPattern | None
    overhead_bytes: int
    aggregation_ns: int = 0
    losses: tuple[tuple[int, int], ...] = ()
    delays: tuple[tuple[int, int], ...] = ()
    jitter: Jitter | None = None
    reorder: Reorder | None = None
    duplicate: tuple[int, int] | None = None
    corrupt: tuple[int, int] | None = None
    policer: Policer | None = None


class Policer(Record):
    """Drops traffic above a rate and burst size."""

    rate_bps: int
    burst_bytes: int


class Jitter(Record):
    """Random deviation of the delay."""

    ns: int
    table: tuple[int, ...] = ()
    correlation_ppb: int = 0
    ordered: bool


class Reorder(Record):
    """Packets without delay, which overtake others; at most every ``gap``-th packet."""

    ppb: int
    gap: int
    correlation_ppb: int = 0


class GilbertElliott(Record):
    """Two states. Probabilities per packet, in parts per billion: of changing from good to bad (``p``) and from bad to
    good (``r``), and of loss in each state.
    """

    p_ppb: int
    r_ppb: int
    bad_ppb: int
    good_ppb: int


class LossPattern(Choice):
    """Which packets are lost, if losses are not independent."""

    every: int | None = None
    packets: tuple[int, ...] | None = None
    gilbert_elliott: GilbertElliott | None = None


class Slots(Record):
    """Opportunities at a constant interval to transmit a number of bytes."""

    every_ns: int
    bytes: int


class RateSchedule(Choice):
    """How a transmitter's rate changes over time."""

    steps: tuple[tuple[int, int], ...] | None = None
    slots: Slots | None = None
    trace: Trace | None = None


class Trace(Record):
    """Times of opportunities to transmit a number of bytes, in order. The last one is also the period with which they
    repeat.
    """

    times_ms: tuple[int, ...]
    period_ms: int
    bytes: int


class Flow(OfFlow):
    """A flow in JSON."""

    name: str
    cc: str
    count: int
    start_ns: int
    duration_ns: int | None
    bytes: int | None
    lifetime_ns: tuple[int, int] | None
    forward: tuple[int, ...]
    backward: tuple[int, ...]
    variant: str | None = None
    writes: Paced | None = None
    arrivals: Arrivals | None = None
    datagrams: Datagrams | None = None
    reads: Paced | None = None
    asks: Application | None = None


class Paced(Record):
    """An application that writes or reads ``bytes`` at a time, at a mean rate. It alternates between on and off times,
    or is always on if there are none.
    """

    bytes: int
    rate_bps: int
    on_off_ns: tuple[int, int] | None = None
    partial: bool = False


class Arrivals(Record):
    """Transfers, each over its own connection."""

    times: Times
    sizes: Sizes
    open: int


class Times(Choice):
    """When transfers start, since the flow's start."""

    poisson_ns: int | None = None
    at_ns: tuple[int, ...] | None = None


class Lognormal(Record):
    """A lognormal distribution; ``sigma_ppb`` is the standard deviation of the logarithm."""

    mean_bytes: int
    sigma_ppb: int


class Pareto(Record):
    """A Pareto distribution limited at both ends."""

    least_bytes: int
    most_bytes: int
    shape_ppb: int


class Sizes(Choice):
    """Sizes in bytes."""

    fixed: int | None = None
    lognormal: Lognormal | None = None
    pareto: Pareto | None = None
    cdf: tuple[tuple[int, int], ...] | None = None
    each: tuple[int, ...] | None = None


class Datagrams(Record):
    """Datagrams of a fixed payload at a mean rate: at a constant interval, with on and off times, or at random
    intervals.
    """

    bytes: int
    rate_bps: int
    on_off_ns: tuple[int, int] | None = None
    poisson: bool = False


class Requests(Record):
    """Responses one after the other over one connection."""

    sizes: Sizes
    think: Think


class Pages(Record):
    """Pages with several objects over parallel connections, repeated."""

    objects: int
    sizes: Sizes
    think: Think
    connections: int
    keep: bool


class Video(Record):
    """Segments of a video, loaded into a playback buffer."""

    rates_bps: tuple[int, ...]
    segment_ns: int
    buffer_ns: int
    rule: str


class Application(Choice):
    """What a reader requests, and when. The reader opens its connections itself."""

    requests: Requests | None = None
    pages: Pages | None = None
    video: Video | None = None


class Think(Choice):
    """How long a reader waits before its next request."""

    fixed_ns: int | None = None
    exponential_ns: int | None = None


KINDS = {
    "arrivals": Arrivals,
    "asks": Application,
    "datagrams": Datagrams,
    "discipline": Choice,
    "flows": Flow,
    "gilbert_elliott": GilbertElliott,
    "hosts": Host,
    "jitter": Jitter,
    "links": Link,
    "lognormal": Lognormal,
    "loss_pattern": LossPattern,
    "pace": RateSchedule,
    "pages": Pages,
    "pareto": Pareto,
    "policer": Policer,
    "probes": Probe,
    "reads": Paced,
    "reorder": Reorder,
    "requests": Requests,
    "sizes": Sizes,
    "slots": Slots,
    "think": Think,
    "times": Times,
    "trace": Trace,
    "transmitters": Transmitter,
    "video": Video,
    "writes": Paced,
}
