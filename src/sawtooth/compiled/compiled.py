"""Compiled: a whole scenario as engines take it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sawtooth.compiled.flows import Flow, Probe, flow, probe
from sawtooth.compiled.links import Link, Transmitter, link, transmitter
from sawtooth.compiled.plain import record


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
    gro_ns: int | None = None
    """So long its cards wait for what they merge; 1: no longer than what comes at once takes."""


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
    queue_delays: bool = False
    """Percentiles of all queues' delays, also of those that hold no packets."""

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
        told = record(self)
        del told["kernel"]
        return told

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
            tuple(transmitter(one) for one in told["transmitters"]),
            tuple(link(one) for one in told["links"]),
            tuple(flow(one) for one in told["flows"]),
            tuple(probe(one) for one in told["probes"]),
            queue_delays=told.get("queue_delays", False),
        )
