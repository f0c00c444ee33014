"""Hosts, transmitters and directed links: what every topology is built into and routes are found in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from sawtooth.compiled import Opportunities
from sawtooth.scenario.jitter import Jitter
from sawtooth.scenario.loss import NO_LOSS, LossPattern
from sawtooth.scenario.policer import Policer
from sawtooth.scenario.queue import Discipline
from sawtooth.scenario.units import Loss, Queue
from sawtooth.scenario.varying import Change, Reorder, Share, Steps


@dataclass(frozen=True)
class Transmitter:
    """Sends one frame after another at a rate, with a queue before it."""

    name: str
    rate_bps: int
    queue: Queue | Discipline
    where: str
    """The field of the scenario file that gives the queue, for messages."""


@dataclass(frozen=True)
class Wire:
    """One direction of a link."""

    name: str
    link: str
    source: str
    target: str
    transmitter: int | None
    delay_ns: int
    loss: Loss | LossPattern = NO_LOSS
    overhead_bytes: int = 0
    aggregation_ns: int = 0
    opportunity_bytes: int = 0
    changes: tuple[Change, ...] = ()
    changing: tuple[str, ...] = ("rate", "delay", "loss")
    """What of ``changes`` and ``trace`` is this wire's."""
    trace: Opportunities | Steps | None = None
    jitter: Jitter | None = None
    reorder: Reorder | None = None
    duplicate: Share | None = None
    corrupt: Share | None = None
    policer: Policer | None = None
    where: str = "links"
    """The field of the scenario file that draws it, for messages."""


@dataclass(frozen=True)
class Network:
    """``ends``: where flows go that do not say; ``routes``: the ways that are not left to the fewest hops."""

    hosts: tuple[str, ...]
    transmitters: tuple[Transmitter, ...]
    wires: tuple[Wire, ...]
    ends: tuple[str, str] | None = None
    routes: Mapping[tuple[str, str], tuple[int, ...]] = field(default_factory=dict)

    @cached_property
    def known(self) -> frozenset[str]:
        """The hosts, to be asked for one."""
        return frozenset(self.hosts)
