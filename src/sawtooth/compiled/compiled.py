"""Compiled: a whole scenario as engines take it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sawtooth.compiled.flows import Flow, Module, Probe, flow, probe
from sawtooth.compiled.links import Link, Transmitter, link, transmitter


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
    _text: str = field(default="", compare=False, repr=False)

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
        """As the core reads it, in lists and dictionaries. Without modules: engines make of one what they can run."""
        told: dict[str, Any] = json.loads(self._text)
        return told

    def to_json(self) -> str:
        """What ``sawtooth._core.Simulation`` takes."""
        return self._text

    @classmethod
    def of(
        cls,
        text: str,
        kernel: str | None,
        modules: Sequence[tuple[Sequence[str], Sequence[tuple[str, str]], str | None] | None],
    ) -> Compiled:
        """What the core made of a scenario: its JSON, the kernel, and of each flow the module."""
        made = cls._read(json.loads(text), text)
        if kernel is None and not any(modules):
            return made
        flows = (
            one if given is None else replace(one, module=Module(tuple(given[0]), tuple(given[1]), given[2]))
            for one, given in zip(made.flows, modules, strict=True)
        )
        return replace(made, kernel=kernel, flows=tuple(flows))

    @classmethod
    def from_dict(cls, told: Mapping[str, Any]) -> Compiled:
        """What ``to_dict`` made. Only for what another process of ours wrote: nothing is checked."""
        return cls._read(told, json.dumps(told))

    @classmethod
    def _read(cls, told: Mapping[str, Any], text: str) -> Compiled:
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
            _text=text,
        )
