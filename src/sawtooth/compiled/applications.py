"""Applications: who writes, sends, asks or reads how much, and when."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from sawtooth.compiled.plain import Tagged, pair, tagged


@dataclass(frozen=True, slots=True)
class Paced:
    """An application that writes or reads so many ``bytes`` at a time, at a rate on average; ``on_off_ns``: only for
    the first of the two times, then not for the second, and so on.
    """

    bytes: int
    rate_bps: int
    on_off_ns: tuple[int, int] | None = None


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
        (when, times), (how, sizes) = self.times, self.sizes
        return json.dumps({"times": {when: times}, "sizes": {how: sizes}, "open": self.open})


@dataclass(frozen=True, slots=True)
class Datagrams:
    """So many ``bytes`` of payload at a rate: evenly, by ``on_off_ns`` as of Paced, or by chance (``poisson``)."""

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

    kind: ClassVar[str] = "requests"
    sizes: Tagged
    think: Tagged


@dataclass(frozen=True, slots=True)
class Pages:
    """So many objects over as many of a flow's connections, which the next page uses again or not."""

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
