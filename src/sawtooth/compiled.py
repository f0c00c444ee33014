"""Compiled: a scenario as engines take it: integers, indices, and names for messages only. The contract with the core.

``Compiled.to_dict`` is the one place that knows the JSON's keys (docs/design.md, "The core's contract"). Standard
library only: a guest reads it, and every module that it imports costs a guest time.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, ClassVar

_KEYS = {"source": "from", "target": "to"}
"""Names that Python does not have for an attribute."""
_WHERE_SET = (
    *(
        "aggregation_ns",
        "variant",
        "writes",
        "arrivals",
        "datagrams",
        "poisson",
        "reads",
        "asks",
        "on_off_ns",
        "discipline",
        "pace",
        "losses",
        "delays",
        "jitter",
        "reorder",
        "duplicate",
        "corrupt",
        "policer",
        "peakrate_bps",
        "minburst_bytes",
    ),
    *("table", "correlation_ppb"),
    *("ecn", "ecn_insists", "ce_threshold_ns", "harddrop"),
)
"""Written only where they are set."""


@dataclass(frozen=True, slots=True)
class Host:
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
    """As tcp_ecn."""
    ecn_insists: bool = False
    """Asks with every SYN, not with the first one only."""


@dataclass(frozen=True, slots=True)
class Fifo:
    """What comes to a full queue is dropped, and what is not waits to be asked for."""

    name: ClassVar[str] = "fifo"


@dataclass(frozen=True, slots=True)
class Codel:
    name: ClassVar[str] = "codel"
    target_ns: int
    interval_ns: int
    ecn: bool = False
    ce_threshold_ns: int | None = None


@dataclass(frozen=True, slots=True)
class FqCodel:
    """``quantum_bytes`` None: one full frame."""

    name: ClassVar[str] = "fq_codel"
    target_ns: int
    interval_ns: int
    flows: int
    quantum_bytes: int | None
    ecn: bool = False
    ce_threshold_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Red:
    """``weight_log``: of the average, as a power of a half. ``probability_ppb``: of a drop at ``max_bytes``."""

    name: ClassVar[str] = "red"
    min_bytes: int
    max_bytes: int
    weight_log: int
    probability_ppb: int
    adaptive: bool
    ecn: bool = False
    harddrop: bool = False


@dataclass(frozen=True, slots=True)
class Pie:
    """``alpha`` and ``beta`` in sixteenths."""

    name: ClassVar[str] = "pie"
    target_ns: int
    tupdate_ns: int
    alpha: int
    beta: int
    bytemode: bool
    ecn: bool = False


@dataclass(frozen=True, slots=True)
class FqPie:
    """``quantum_bytes`` None: one full frame."""

    name: ClassVar[str] = "fq_pie"
    target_ns: int
    tupdate_ns: int
    alpha: int
    beta: int
    bytemode: bool
    flows: int
    quantum_bytes: int | None
    ecn: bool = False


@dataclass(frozen=True, slots=True)
class Fq:
    """``quantum_bytes`` None: two full frames; ``initial_quantum_bytes``: ten."""

    name: ClassVar[str] = "fq"
    flow_limit: int
    quantum_bytes: int | None
    initial_quantum_bytes: int | None
    orphan_mask: int
    refill_delay_ns: int


@dataclass(frozen=True, slots=True)
class Sfq:
    """``quantum_bytes`` None: one full frame; ``perturb_ns`` 0: never."""

    name: ClassVar[str] = "sfq"
    quantum_bytes: int | None
    perturb_ns: int
    flows: int
    divisor: int
    depth: int
    headdrop: bool


@dataclass(frozen=True, slots=True)
class Tbf:
    """``peakrate_bps`` None: a burst leaves at the transmitter's rate."""

    name: ClassVar[str] = "tbf"
    rate_bps: int
    burst_bytes: int
    peakrate_bps: int | None = None
    minburst_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Cake:
    """``bandwidth_bps`` None: it has no shaper. ``memory_bytes``: of the kernel's, that packets may take."""

    name: ClassVar[str] = "cake"
    bandwidth_bps: int | None
    interval_ns: int
    target_ns: int
    isolation: str
    memory_bytes: int


Discipline = Fifo | Codel | FqCodel | Red | Pie | FqPie | Fq | Sfq | Tbf | Cake
_DISCIPLINES = {kind.name: kind for kind in (Fifo, Codel, FqCodel, Red, Pie, FqPie, Fq, Sfq, Tbf, Cake)}


@dataclass(frozen=True, slots=True)
class RateSteps:
    """From when (ns), and bit/s; in order."""

    steps: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Slots:
    """So many bytes at a time, and what is left of a packet, so far apart."""

    every_ns: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Opportunities:
    """Times at which so many bytes can leave, in order, again after the last one."""

    times_ms: tuple[int, ...]
    period_ms: int
    bytes: int

    @property
    def rate_bps(self) -> int:
        """The mean."""
        return max(1, len(self.times_ms) * self.bytes * 8 * 1000 // self.period_ms)


_PACES: dict[type, str] = {RateSteps: "steps", Slots: "slots", Opportunities: "trace"}


@dataclass(frozen=True, slots=True)
class Transmitter:
    """At most one of the two limits is set; without one the queue is endless. ``discipline`` None: tail drop;
    ``pace``: how the rate varies.
    """

    name: str
    rate_bps: int
    queue_packets: int | None
    queue_bytes: int | None
    discipline: Discipline | None = None
    pace: RateSteps | Slots | Opportunities | None = None

    @property
    def lasting_bps(self) -> int:
        """What leaves in the long run."""
        return self.discipline.rate_bps if isinstance(self.discipline, Tbf) else self.rate_bps


@dataclass(frozen=True, slots=True)
class Jitter:
    """``table``: deviations of equal chances in 1/8192 of ``ns``; none: evenly up to ``ns``."""

    ns: int
    table: tuple[int, ...]
    correlation_ppb: int
    ordered: bool


@dataclass(frozen=True, slots=True)
class Reorder:
    ppb: int
    gap: int
    correlation_ppb: int


@dataclass(frozen=True, slots=True)
class Policer:
    """Drops what comes faster than the rate, beyond a burst, after the transmitter."""

    rate_bps: int
    burst_bytes: int


@dataclass(frozen=True, slots=True)
class Every:
    """Of so many packets the last one is lost."""

    every: int


@dataclass(frozen=True, slots=True)
class GilbertElliott:
    """Chances of a good and a bad state, in parts per billion."""

    p_ppb: int
    r_ppb: int
    bad_ppb: int
    good_ppb: int


@dataclass(frozen=True, slots=True)
class Link:
    """One direction. ``source`` and ``target`` are hosts, ``transmitter`` an index, None where the rate is unlimited.

    ``loss_ppb``: the share that is lost in the long run, in parts per billion. ``loss_pattern`` None: each by itself.
    """

    name: str
    source: int
    target: int
    transmitter: int | None
    delay_ns: int
    loss_ppb: int
    loss_pattern: Every | GilbertElliott | None
    overhead_bytes: int
    aggregation_ns: int = 0
    losses: tuple[tuple[int, int], ...] = ()
    """From when (ns), and parts per billion."""
    delays: tuple[tuple[int, int], ...] = ()
    jitter: Jitter | None = None
    reorder: Reorder | None = None
    duplicate: tuple[int, int] | None = None
    """The share and the correlation of its draws, in parts per billion."""
    corrupt: tuple[int, int] | None = None
    policer: Policer | None = None

    @property
    def loses(self) -> bool:
        """Whether any packet may be lost by the loss model."""
        return bool(self.loss_ppb) or any(ppb for _, ppb in self.losses)

    @property
    def varies(self) -> bool:
        """Whether there is more to its packets' way than a delay."""
        return bool(self.delays or self.jitter or self.reorder or self.duplicate or self.corrupt)

    @property
    def every(self) -> int | None:
        """Of how many packets the last is lost; None for another loss."""
        return self.loss_pattern.every if isinstance(self.loss_pattern, Every) else None

    @property
    def gilbert_elliott(self) -> GilbertElliott | None:
        """The states of its losses; None for another loss."""
        return self.loss_pattern if isinstance(self.loss_pattern, GilbertElliott) else None


@dataclass(frozen=True, slots=True)
class Module:
    """A congestion control from its C sources: their paths, module parameters as text, the name that chooses."""

    sources: tuple[str, ...]
    parameters: tuple[tuple[str, str], ...]
    name: str | None


@dataclass(frozen=True, slots=True)
class Paced:
    """An application that writes or reads so many ``bytes`` at a time, at a rate on average; ``on_off_ns``: only for
    the first of the two times, then not for the second, and so on.
    """

    bytes: int
    rate_bps: int
    on_off_ns: tuple[int, int] | None = None


Tagged = tuple[str, Any]
"""A kind, and what there is to say of it."""


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Transfers that come by themselves, each a connection of its own, at most so many ``open`` at once.

    ``times``: ``poisson_ns``, the mean from one to the next, or ``at_ns``, all of them since the flow's start.
    ``sizes``: ``fixed``; ``lognormal``: ``mean_bytes`` and ``sigma_ppb`` of the logarithm; ``pareto``: ``least_bytes``,
    ``most_bytes``, ``shape_ppb``; ``cdf``: pairs of bytes and parts per billion; ``each``, as many as ``at_ns``.
    """

    times: Tagged
    sizes: Tagged
    open: int

    def to_json(self) -> str:
        """What ``sawtooth._core.transfers`` takes."""
        return json.dumps(_plain(self))


@dataclass(frozen=True, slots=True)
class Datagrams:
    """So many ``bytes`` of payload at a rate: evenly, by ``on_off_ns`` as ``Writes``, or by chance (``poisson``)."""

    bytes: int
    rate_bps: int
    on_off_ns: tuple[int, int] | None = None
    poisson: bool = False

    def arrivals(self) -> Arrivals:
        """When they are sent by chance, as what else comes by itself."""
        every_ns = (self.bytes * 8 * 10**9 + self.rate_bps // 2) // self.rate_bps
        return Arrivals(("poisson_ns", every_ns), ("fixed", self.bytes), 1)


@dataclass(frozen=True, slots=True)
class Requests:
    """Answers that the receiving host asks for, one after the other. ``sizes`` as of Arrivals; ``think``: ``fixed_ns``
    or, the mean, ``exponential_ns``.
    """

    name: ClassVar[str] = "requests"
    sizes: Tagged
    think: Tagged


@dataclass(frozen=True, slots=True)
class Pages:
    """So many objects over as many of a flow's connections, which the next page uses again or not."""

    name: ClassVar[str] = "pages"
    objects: int
    sizes: Tagged
    think: Tagged
    connections: int
    keep: bool


@dataclass(frozen=True, slots=True)
class Video:
    """Segments into a playback buffer; ``rule``: ``buffer`` or ``throughput``."""

    name: ClassVar[str] = "video"
    rates_bps: tuple[int, ...]
    segment_ns: int
    buffer_ns: int
    rule: str


Asks = Requests | Pages | Video
_ASKS = {kind.name: kind for kind in (Requests, Pages, Video)}


@dataclass(frozen=True, slots=True)
class Flow:
    """``cc`` is a congestion control's name, of a ``module`` what it is called here; ``variant``: as what else than
    Linux's it is meant. ``forward`` and ``backward`` are
    links, from the sender's host to the receiver's and back.

    ``lifetime_ns``: the shortest and the longest, where connections are replaced. ``writes`` None: whenever there is
    room; ``reads`` None: whatever comes, at once. ``arrivals``: there are no connections from the start; then ``count``
    is 1. ``datagrams``: there are none at all, and ``cc`` is "udp". ``asks``: the receiving host opens the connections,
    and asks for what is sent.
    """

    name: str
    cc: str
    count: int
    start_ns: int
    duration_ns: int | None
    bytes: int | None
    lifetime_ns: tuple[int, int] | None
    forward: tuple[int, ...]
    backward: tuple[int, ...]
    module: Module | None = None
    variant: str | None = None
    writes: Paced | None = None
    arrivals: Arrivals | None = None
    datagrams: Datagrams | None = None
    reads: Paced | None = None
    asks: Asks | None = None


@dataclass(frozen=True, slots=True)
class Probe:
    name: str
    start_ns: int
    interval_ns: int
    count: int
    forward: tuple[int, ...]
    backward: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Compiled:
    duration_ns: int
    interval_ns: int
    seed: int
    hosts: tuple[Host, ...]
    transmitters: tuple[Transmitter, ...]
    links: tuple[Link, ...]
    flows: tuple[Flow, ...]
    probes: tuple[Probe, ...]
    kernel: str | None = None
    """Which one the engine ``kernel`` boots, by name. No part of what the core or a guest reads."""

    @property
    def senders(self) -> list[Flow | Probe]:
        """All that send from one host to another."""
        return [*self.flows, *self.probes]

    def source(self, one: Flow | Probe) -> int:
        """The host that sends."""
        return self.links[one.forward[0]].source

    def target(self, one: Flow | Probe) -> int:
        """The host that answers."""
        return self.links[one.forward[-1]].target

    def way(self, links: Iterable[int]) -> list[Link]:
        """The links behind their indices."""
        return [self.links[index] for index in links]

    def transmitters_of(self, links: Iterable[int]) -> list[Transmitter]:
        """Those on a way, in order; links without one are left out."""
        return [self.transmitters[link.transmitter] for link in self.way(links) if link.transmitter is not None]

    def to_dict(self) -> dict[str, Any]:
        """As the core reads it, in lists and dictionaries."""
        return {field.name: _plain(getattr(self, field.name)) for field in fields(self) if field.name != "kernel"}

    def to_json(self) -> str:
        """What ``sawtooth._core.Simulation`` takes."""
        return json.dumps(self.to_dict())

    @classmethod
    def from_dict(cls, told: Mapping[str, Any]) -> Compiled:
        """What ``to_dict`` made. Only for what another process of ours wrote: nothing is checked."""
        return cls(
            told["duration_ns"],
            told["interval_ns"],
            told["seed"],
            tuple(Host(**one) for one in told["hosts"]),
            tuple(_transmitter(one) for one in told["transmitters"]),
            tuple(_link(one) for one in told["links"]),
            tuple(_flow(one) for one in told["flows"]),
            tuple(Probe(**one | _ways(one)) for one in told["probes"]),
        )


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    if isinstance(value, GilbertElliott):
        return {"gilbert_elliott": _record(value)}
    if isinstance(value, Discipline):
        return {value.name: _record(value)}
    if isinstance(value, RateSteps):
        return {"steps": _plain(value.steps)}
    if isinstance(value, Arrivals):
        return {**{part: dict([getattr(value, part)]) for part in ("times", "sizes")}, "open": value.open}
    if isinstance(value, Asks):
        told = {field.name: getattr(value, field.name) for field in fields(value)}
        drawn = {name: {told[name][0]: _plain(told[name][1])} for name in ("sizes", "think") if name in told}
        return {value.name: {key: _plain(one) for key, one in told.items()} | drawn}
    if type(value) in _PACES:
        return {_PACES[type(value)]: _record(value)}
    return _record(value) if is_dataclass(value) else value


def _record(one: Any) -> dict[str, Any]:
    told = {_KEYS.get(field.name, field.name): _plain(getattr(one, field.name)) for field in fields(one)}
    # Engines make of a module what they can run.
    told.pop("module", None)
    return {key: value for key, value in told.items() if value or key not in _WHERE_SET}


def _transmitter(told: Mapping[str, Any]) -> Transmitter:
    pace: RateSteps | Slots | Opportunities | None = None
    for kind, given in (told.get("pace") or {}).items():
        if kind == "steps":
            pace = RateSteps(_pairs(given))
        elif kind == "slots":
            pace = Slots(**given)
        else:
            pace = Opportunities(**given | {"times_ms": tuple(given["times_ms"])})
    found = [_DISCIPLINES[name](**given) for name, given in told.get("discipline", {}).items()]
    return Transmitter(**{**told, "discipline": found[0] if found else None, "pace": pace})


def _pairs(told: Iterable[Iterable[int]]) -> tuple[Any, ...]:
    return tuple(tuple(one) for one in told)


def _link(told: Mapping[str, Any]) -> Link:
    pattern = told["loss_pattern"]
    loss: Every | GilbertElliott | None = None
    if pattern is not None:
        loss = Every(**pattern) if "every" in pattern else GilbertElliott(**pattern["gilbert_elliott"])
    names = {key: name for name, key in _KEYS.items()}
    given = {names.get(key, key): value for key, value in told.items()}
    given |= {name: _pairs(given[name]) for name in ("losses", "delays") if name in given}
    given |= {name: tuple(given[name]) for name in ("duplicate", "corrupt") if name in given}
    if "jitter" in given:
        jitter = {"table": (), "correlation_ppb": 0} | given["jitter"]
        given["jitter"] = Jitter(**jitter | {"table": tuple(jitter["table"])})
    if "policer" in given:
        given["policer"] = Policer(**given["policer"])
    if "reorder" in given:
        given["reorder"] = Reorder(**{"correlation_ppb": 0} | given["reorder"])
    return Link(**given | {"loss_pattern": loss})


def _flow(told: Mapping[str, Any]) -> Flow:
    paced = {
        name: Paced(**told[name] | {"on_off_ns": _pair(told[name].get("on_off_ns"))})
        for name in ("writes", "reads")
        if told.get(name) is not None
    }
    arrivals = told.get("arrivals")
    if arrivals is not None:
        times, sizes = (next(iter(arrivals[part].items())) for part in ("times", "sizes"))
        arrivals = Arrivals(times, sizes, arrivals["open"])
        told = {**told, "arrivals": arrivals}
    datagrams = told.get("datagrams")
    if datagrams is not None:
        datagrams = Datagrams(**datagrams | {"on_off_ns": _pair(datagrams.get("on_off_ns"))})
        told = {**told, "datagrams": datagrams}
    for kind, given in (told.get("asks") or {}).items():
        of = {key: _tagged(one) for key, one in given.items() if key in ("sizes", "think")}
        rates = {"rates_bps": tuple(given["rates_bps"])} if kind == "video" else {}
        told = {**told, "asks": _ASKS[kind](**given | of | rates)}
    return Flow(**{**told, "lifetime_ns": _pair(told["lifetime_ns"]), **paced, **_ways(told)})


def _tagged(told: Mapping[str, Any]) -> Tagged:
    ((kind, value),) = told.items()
    return kind, _pairs(value) if isinstance(value, list) else value


def _pair(told: list[int] | None) -> tuple[int, int] | None:
    return None if told is None else (told[0], told[1])


def _ways(told: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    return {way: tuple(told[way]) for way in ("forward", "backward")}
