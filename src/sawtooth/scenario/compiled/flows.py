"""Flows: connections and probes, with their hosts and links."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sawtooth.scenario.compiled.applications import Arrivals, Asks, Datagrams, Paced, arrivals, asks, datagrams, paced
from sawtooth.scenario.compiled.plain import pair

AGENTS = (".npz", ".py")
"""How the names of policies and of Python files that decide end."""


@dataclass(frozen=True, slots=True)
class Module:
    """A congestion control from its C sources: their paths, module parameters as text, and the name that selects
    one. Or an agent, from a policy or a Python file."""

    sources: tuple[str, ...]
    parameters: tuple[tuple[str, str], ...]
    name: str | None

    @property
    def is_agent(self) -> bool:
        return any(source.endswith(AGENTS) for source in self.sources)


@dataclass(frozen=True, slots=True)
class Flow:
    """``cc`` is a congestion control's name, or a ``module``'s label; ``variant``: a version other than Linux's.
    ``forward`` and ``backward`` are links, from the sender's host to the receiver's and back.

    ``lifetime_ns``: shortest and longest, if connections are replaced. ``writes`` None: whenever there is room;
    ``reads`` None: everything at once. ``arrivals``: there are no initial connections, and ``count`` is 1.
    ``datagrams``: there are no connections, and ``cc`` is "udp". ``asks``: the receiving host opens the connections and
    requests the data.
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

    @property
    def entry(self) -> str:
        """The name of its entry in [[flows]], which flows between several pairs of hosts share."""
        return self.name.partition("@")[0]


@dataclass(frozen=True, slots=True)
class Probe:
    name: str
    start_ns: int
    interval_ns: int
    count: int
    forward: tuple[int, ...]
    backward: tuple[int, ...]


def flow(told: Mapping[str, Any]) -> Flow:
    """From the core's JSON."""
    given = {
        "lifetime_ns": pair(told["lifetime_ns"]),
        "writes": paced(told.get("writes")),
        "reads": paced(told.get("reads")),
        "arrivals": arrivals(told.get("arrivals")),
        "datagrams": datagrams(told.get("datagrams")),
        "asks": asks(told.get("asks")),
    }
    return Flow(**{**told, **given, **_ways(told)})


def probe(told: Mapping[str, Any]) -> Probe:
    """From the core's JSON."""
    return Probe(**{**told, **_ways(told)})


def _ways(told: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    return {way: tuple(told[way]) for way in ("forward", "backward")}
