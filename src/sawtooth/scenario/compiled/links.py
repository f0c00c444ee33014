"""Links: one direction between two hosts, and the transmitters that they share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from sawtooth.scenario.compiled.plain import tuples
from sawtooth.scenario.compiled.queues import Discipline, discipline


@dataclass(frozen=True, slots=True)
class RateSteps:
    """Start times (ns) and bit/s, in order."""

    steps: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Slots:
    """``bytes`` at a time, plus the rest of a packet, at this interval."""

    kind: ClassVar[str] = "slots"
    every_ns: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Opportunities:
    """Times at which ``bytes`` can leave, in order, repeated after the last one."""

    kind: ClassVar[str] = "trace"
    times_ms: tuple[int, ...]
    period_ms: int
    bytes: int

    @property
    def rate_bps(self) -> int:
        """The mean rate."""
        return max(1, len(self.times_ms) * self.bytes * 8 * 1000 // self.period_ms)


@dataclass(frozen=True, slots=True)
class Transmitter:
    """At most one of the two limits is set; without one the queue is unlimited. ``discipline`` None: tail drop;
    ``pace``: how the rate varies."""

    name: str
    rate_bps: int
    queue_packets: int | None
    queue_bytes: int | None
    discipline: Discipline | None = None
    pace: RateSteps | Slots | Opportunities | None = None

    @property
    def lasting_bps(self) -> int:
        """The long-run rate."""
        queue = self.discipline
        shaped = None if queue is None else queue.get("rate_bps") or queue.get("bandwidth_bps")
        return self.rate_bps if shaped is None else min(self.rate_bps, int(shaped))


@dataclass(frozen=True, slots=True)
class Jitter:
    """``table``: equally likely deviations in 1/8192 of ``ns``; empty: uniform up to ``ns``."""

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
    """Drops what exceeds the rate by more than a burst, after the transmitter."""

    rate_bps: int
    burst_bytes: int


@dataclass(frozen=True, slots=True)
class Every:
    """Loses the last of every this many packets."""

    every: int


@dataclass(frozen=True, slots=True)
class Packets:
    """Loses the packets with these numbers, in ascending order, counted from 1."""

    packets: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class GilbertElliott:
    """Probabilities of a good and a bad state, in parts per billion."""

    kind: ClassVar[str] = "gilbert_elliott"
    p_ppb: int
    r_ppb: int
    bad_ppb: int
    good_ppb: int


@dataclass(frozen=True, slots=True)
class Link:
    """One direction. ``source`` and ``target`` are hosts, ``transmitter`` an index, or None for an unlimited rate.

    ``loss_ppb``: the long-run loss share in parts per billion. ``loss_pattern`` None: independent losses.
    """

    name: str
    source: int
    target: int
    transmitter: int | None
    delay_ns: int
    loss_ppb: int
    loss_pattern: Every | Packets | GilbertElliott | None
    overhead_bytes: int
    aggregation_ns: int = 0
    losses: tuple[tuple[int, int], ...] = ()
    """Start times (ns) and parts per billion."""
    delays: tuple[tuple[int, int], ...] = ()
    jitter: Jitter | None = None
    reorder: Reorder | None = None
    duplicate: tuple[int, int] | None = None
    """The share, and the correlation of its draws, in parts per billion."""
    corrupt: tuple[int, int] | None = None
    policer: Policer | None = None

    @property
    def loses(self) -> bool:
        """Whether the loss model may lose any packet."""
        return bool(self.loss_ppb) or any(ppb for _, ppb in self.losses)

    @property
    def varies(self) -> bool:
        """Whether the link does more to packets than a delay."""
        return bool(self.delays or self.jitter or self.reorder or self.duplicate or self.corrupt)

    @property
    def separates(self) -> bool:
        """Whether the segments of a super-packet may meet different fates. Jitter that keeps packets in order delays
        all of it."""
        reorders = self.reorder or (self.jitter is not None and not self.jitter.ordered)
        return bool(reorders or self.delays or self.duplicate or self.corrupt or self.policer or self.aggregation_ns)

    @property
    def every(self) -> int | None:
        """The period if the last of every n packets is lost; None for another loss."""
        return self.loss_pattern.every if isinstance(self.loss_pattern, Every) else None

    @property
    def packets(self) -> tuple[int, ...]:
        """Numbers of the lost packets; empty for other kinds of loss."""
        return self.loss_pattern.packets if isinstance(self.loss_pattern, Packets) else ()

    @property
    def counted(self) -> bool:
        """Whether a packet's number decides its loss."""
        return isinstance(self.loss_pattern, Every | Packets)

    @property
    def gilbert_elliott(self) -> GilbertElliott | None:
        """The states of its losses; None for another loss."""
        return self.loss_pattern if isinstance(self.loss_pattern, GilbertElliott) else None


def transmitter(told: Mapping[str, Any]) -> Transmitter:
    """From the core's JSON."""
    pace: RateSteps | Slots | Opportunities | None = None
    for kind, given in (told.get("pace") or {}).items():
        if kind == "steps":
            pace = RateSteps(tuples(given))
        elif kind == "slots":
            pace = Slots(**given)
        else:
            pace = Opportunities(**given | {"times_ms": tuple(given["times_ms"])})
    return Transmitter(**{**told, "discipline": discipline(told.get("discipline")), "pace": pace})


def link(told: Mapping[str, Any]) -> Link:
    """From the core's JSON."""
    pattern = told["loss_pattern"]
    loss: Every | Packets | GilbertElliott | None = None
    if pattern is not None:
        if "every" in pattern:
            loss = Every(**pattern)
        elif "packets" in pattern:
            loss = Packets(tuple(pattern["packets"]))
        else:
            loss = GilbertElliott(**pattern["gilbert_elliott"])
    # Names that Python cannot use for an attribute.
    given = {{"from": "source", "to": "target"}.get(key, key): value for key, value in told.items()}
    given |= {name: tuples(given[name]) for name in ("losses", "delays") if name in given}
    given |= {name: tuple(given[name]) for name in ("duplicate", "corrupt") if name in given}
    if "jitter" in given:
        jitter = {"table": (), "correlation_ppb": 0} | given["jitter"]
        given["jitter"] = Jitter(**jitter | {"table": tuple(jitter["table"])})
    if "policer" in given:
        given["policer"] = Policer(**given["policer"])
    if "reorder" in given:
        given["reorder"] = Reorder(**{"correlation_ppb": 0} | given["reorder"])
    return Link(**given | {"loss_pattern": loss})
