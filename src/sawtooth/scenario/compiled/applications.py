"""Applications: who writes, sends, requests or reads how much, and when."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from sawtooth.scenario.compiled.plain import Tagged, pair, tagged


@dataclass(frozen=True, slots=True)
class Paced:
    """An application that writes or reads ``bytes`` at a time, at an average rate; with ``on_off_ns`` only during the
    first of the two times, then not during the second, alternating."""

    bytes: int
    rate_bps: int
    on_off_ns: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Transfers that arrive over time, each on a new connection, with at most ``open`` at once.

    ``times``: ``poisson_ns``, the mean interval, or ``at_ns``, all times since the flow's start. ``sizes``: ``fixed``;
    ``lognormal``: ``mean_bytes`` and ``sigma_ppb`` of the logarithm; ``pareto``: ``least_bytes``, ``most_bytes``,
    ``shape_ppb``; ``cdf``: pairs of bytes and parts per billion; ``each``: one per ``at_ns``.
    """

    times: Tagged
    sizes: Tagged
    open: int

    def to_json(self) -> str:
        """The argument of ``sawtooth._core.transfers``."""
        (when, times), (how, sizes) = self.times, self.sizes
        return json.dumps({"times": {when: times}, "sizes": {how: sizes}, "open": self.open})


@dataclass(frozen=True, slots=True)
class Datagrams:
    """``bytes`` of payload per datagram at a rate: evenly, with ``on_off_ns`` as in Paced, or at random
    (``poisson``)."""

    bytes: int
    rate_bps: int
    on_off_ns: tuple[int, int] | None = None
    poisson: bool = False

    def arrivals(self) -> Arrivals:
        """The times if they are random, as for other arrivals."""
        every_ns = (self.bytes * 8 * 10**9 + self.rate_bps // 2) // self.rate_bps
        return Arrivals(("poisson_ns", every_ns), ("fixed", self.bytes), 1)


@dataclass(frozen=True, slots=True)
class Requests:
    """Answers that the receiving host requests one after the other. ``sizes`` as in Arrivals; ``think``: ``fixed_ns``,
    or ``exponential_ns`` with the mean."""

    kind: ClassVar[str] = "requests"
    sizes: Tagged
    think: Tagged


@dataclass(frozen=True, slots=True)
class Pages:
    """Web pages of several objects, each loaded over several connections. ``keep``: the next page uses them again."""

    kind: ClassVar[str] = "pages"
    objects: int
    sizes: Tagged
    think: Tagged
    connections: int
    keep: bool


@dataclass(frozen=True, slots=True)
class Video:
    """Segments into a playback buffer; ``rule``: ``buffer`` or ``throughput``."""

    kind: ClassVar[str] = "video"
    rates_bps: tuple[int, ...]
    segment_ns: int
    buffer_ns: int
    rule: str


Asks = Requests | Pages | Video
_ASKS = {one.kind: one for one in (Requests, Pages, Video)}


def paced(told: Mapping[str, Any] | None) -> Paced | None:
    """From the core's JSON."""
    return None if told is None else Paced(**{**told, "on_off_ns": pair(told.get("on_off_ns"))})


def arrivals(told: Mapping[str, Any] | None) -> Arrivals | None:
    """From the core's JSON."""
    return None if told is None else Arrivals(tagged(told["times"]), tagged(told["sizes"]), told["open"])


def datagrams(told: Mapping[str, Any] | None) -> Datagrams | None:
    """From the core's JSON."""
    return None if told is None else Datagrams(**{**told, "on_off_ns": pair(told.get("on_off_ns"))})


def asks(told: Mapping[str, Mapping[str, Any]] | None) -> Asks | None:
    """From the core's JSON."""
    for kind, given in (told or {}).items():
        drawn = {name: tagged(given[name]) for name in ("sizes", "think") if name in given}
        rates = {"rates_bps": tuple(given["rates_bps"])} if kind == Video.kind else {}
        return _ASKS[kind](**{**given, **drawn, **rates})
    return None
