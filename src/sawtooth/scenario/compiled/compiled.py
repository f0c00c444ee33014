"""Compiled: a whole scenario in the form that engines take."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sawtooth.scenario.compiled.flows import Flow, Module, Probe, flow, probe
from sawtooth.scenario.compiled.links import Link, Transmitter, link, transmitter

_CUTTING = ("cake", "dualpi2", "tbf")
"""Queueing disciplines that cut super-packets before they queue them."""


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
    """Requests ECN with every SYN, not only with the first one."""
    gro_ns: int | None = None
    """How long its cards wait for packets to merge; 1: only for what arrives at the same instant."""
    adv_win_scale: int | None = None
    """As tcp_adv_win_scale."""
    unpaced: bool = False
    """Nothing paces what a congestion control asks to be paced."""


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
    """The name of the kernel that the engine ``kernel`` boots. The core and guests do not read it."""
    queue_delays: bool = False
    """Percentiles of all queues' delays, also of those that hold no packets."""
    programs: tuple[str, ...] = ()
    """Names of the programs, and their hosts. They, too, are no part of what the core reads."""
    program_hosts: tuple[str, ...] = ()
    called: Mapping[str, str] = field(default_factory=dict, hash=False)
    """What programs call hosts, by the hosts' names: ``server`` and ``client``."""
    _text: str = field(default="", compare=False, repr=False)

    @property
    def senders(self) -> list[Flow | Probe]:
        """Everything that sends from one host to another."""
        return [*self.flows, *self.probes]

    def source(self, one: Flow | Probe) -> int:
        """The host that sends."""
        return self.links[one.forward[0]].source

    def target(self, one: Flow | Probe) -> int:
        """The host that answers."""
        return self.links[one.forward[-1]].target

    def way(self, links: Iterable[int]) -> list[Link]:
        """The links with these indices."""
        return [self.links[index] for index in links]

    def transmitters_of(self, links: Iterable[int]) -> list[Transmitter]:
        """The transmitters along these links, in order; links without one are skipped."""
        return [self.transmitters[link.transmitter] for link in self.way(links) if link.transmitter is not None]

    def whole(self, way: Sequence[int]) -> Sequence[int]:
        """The links of a way that super-packets cross whole, up to the queue that holds them as one packet; none if
        they are cut earlier. The core has the same rule (``Scenario::cuts``)."""
        at = next((at for at, index in enumerate(way) if self.links[index].transmitter is not None), 0)
        links = self.way(way[: at + 1])
        queues = self.transmitters_of(way[at : at + 1])
        cut_before = any(one.pace or (one.discipline and one.discipline.kind in _CUTTING) for one in queues)
        offload = all(self.hosts[link.source].offload for link in links)
        separated = any(link.separates for link in links)
        return way[: at + 1] if at and offload and not separated and not cut_before else ()

    def to_dict(self) -> dict[str, Any]:
        """The form that the core reads, in lists and dictionaries. Without modules: engines prepare those
        themselves."""
        told: dict[str, Any] = json.loads(self._text)
        return told

    def to_json(self) -> str:
        """The argument of ``sawtooth._core.Simulation``."""
        return self._text

    @classmethod
    def of(
        cls,
        text: str,
        kernel: str | None,
        modules: Sequence[tuple[Sequence[str], Sequence[tuple[str, str]], str | None] | None],
        programs: tuple[Sequence[tuple[str, str]], Sequence[str], Sequence[str]] = ((), (), ()),
    ) -> Compiled:
        """What the core made of a scenario: its JSON, the kernel, of each flow the module, and where programs run."""
        made = cls._read(json.loads(text), text)
        if programs[1]:
            called, names, hosts = programs
            made = replace(made, programs=tuple(names), program_hosts=tuple(hosts), called=dict(called))
            # A path between programs is a probe that sends nothing: the testbed routes it, and nobody measures it.
            made = replace(made, probes=tuple(one for one in made.probes if one.count))
        if kernel is None and not any(modules):
            return made
        flows = (
            one if given is None else replace(one, module=Module(tuple(given[0]), tuple(given[1]), given[2]))
            for one, given in zip(made.flows, modules, strict=True)
        )
        return replace(made, kernel=kernel, flows=tuple(flows))

    @classmethod
    def from_dict(cls, told: Mapping[str, Any]) -> Compiled:
        """Inverse of ``to_dict``. Only for data from another Sawtooth process: nothing is checked."""
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
