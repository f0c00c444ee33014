"""Compiled: a scenario as engines take it: integers, indices, and names for messages only. The contract with the core.

``Compiled.to_dict`` is the one place that knows the JSON's keys (docs/design.md, "The core's contract"). Standard
library only: a guest reads it, and every module that it imports costs a guest time.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

_KEYS = {"source": "from", "target": "to"}
"""Names that Python does not have for an attribute."""
_OURS_ALONE = ("aggregation_ns", "opportunity_bytes", "variant", "discipline")
"""Written only where they are set: the core's links have none of the first two."""


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


@dataclass(frozen=True, slots=True)
class Fifo:
    """What comes to a full queue is dropped, and what is not waits to be asked for."""

    name: ClassVar[str] = "fifo"


@dataclass(frozen=True, slots=True)
class Codel:
    name: ClassVar[str] = "codel"
    target_ns: int
    interval_ns: int


Discipline = Fifo | Codel
_DISCIPLINES = {kind.name: kind for kind in (Fifo, Codel)}


@dataclass(frozen=True, slots=True)
class Transmitter:
    """At most one of the two limits is set; without one the queue is endless. ``discipline`` None: tail drop."""

    name: str
    rate_bps: int
    queue_packets: int | None
    queue_bytes: int | None
    discipline: Discipline | None = None


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
    opportunity_bytes: int = 0

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
class Flow:
    """``cc`` is a congestion control's name, of a ``module`` what it is called here; ``variant``: as what else than
    Linux's it is meant. ``forward`` and ``backward`` are
    links, from the sender's host to the receiver's and back.

    ``lifetime_ns``: the shortest and the longest, where connections are replaced.
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
            tuple(Flow(**one | {"lifetime_ns": _pair(one["lifetime_ns"])} | _ways(one)) for one in told["flows"]),
            tuple(Probe(**one | _ways(one)) for one in told["probes"]),
        )


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    if isinstance(value, GilbertElliott):
        return {"gilbert_elliott": _record(value)}
    if isinstance(value, Discipline):
        return {value.name: _record(value)}
    return _record(value) if isinstance(value, (Host, Transmitter, Link, Every, Flow, Probe)) else value


def _record(one: Host | Discipline | Transmitter | Link | Every | GilbertElliott | Flow | Probe) -> dict[str, Any]:
    told = {_KEYS.get(field.name, field.name): _plain(getattr(one, field.name)) for field in fields(one)}
    # Engines make of a module what they can run.
    told.pop("module", None)
    return {key: value for key, value in told.items() if value or key not in _OURS_ALONE}


def _transmitter(told: Mapping[str, Any]) -> Transmitter:
    found = [_DISCIPLINES[name](**given) for name, given in told.get("discipline", {}).items()]
    return Transmitter(**{**told, "discipline": found[0] if found else None})


def _link(told: Mapping[str, Any]) -> Link:
    pattern = told["loss_pattern"]
    loss: Every | GilbertElliott | None = None
    if pattern is not None:
        loss = Every(**pattern) if "every" in pattern else GilbertElliott(**pattern["gilbert_elliott"])
    names = {key: name for name, key in _KEYS.items()}
    given = {names.get(key, key): value for key, value in told.items()}
    return Link(**given | {"loss_pattern": loss})


def _pair(told: list[int] | None) -> tuple[int, int] | None:
    return None if told is None else (told[0], told[1])


def _ways(told: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    return {way: tuple(told[way]) for way in ("forward", "backward")}
