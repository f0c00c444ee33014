"""Draws random links over everything that a prober does not choose; the bundled model is trained on them.

Rate, queue depth, base RTTs and their mix, congestion controls and theirs, numbers of flows and their lifetimes, and a
share of traffic that does not react to losses. A draw depends only on its purpose and number, so each can be repeated.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from sawtooth.scenario.header_sizes import FULL_FRAME, MSS

PROBES = 1000
PACE_S = 0.1
SETTLE_S = 8
"""A full segment: 1,448 bytes of payload, and headers."""
_DEAR_BPS = 2e9
_LEAST_BPS = 1e6
"""Lowest rate per flow on faster links: more flows are too expensive to simulate."""
_MIXES = {
    ("cubic",): 0.22,
    ("reno",): 0.15,
    ("bbr",): 0.08,
    ("cubic", "reno"): 0.27,
    ("cubic", "bbr"): 0.14,
    ("reno", "bbr"): 0.06,
    ("cubic", "reno", "bbr"): 0.08,
}
_LEAST_WINDOW_BYTES = 5000
_GOODPUT = MSS / FULL_FRAME

Kind = Literal["congested", "held", "bursts"]
"""Greedy flows; flows whose receive windows hold them below the rate; a transfer now and then."""


@dataclass(frozen=True)
class LinkRanges:
    """The distribution of links: ranges that are uniform on a logarithmic scale, and shares."""

    rates_bps: tuple[float, float] = (50e6, 10e9)
    queues_s: tuple[float, float] = (0.010, 0.200)
    rtts_s: tuple[float, float] = (0.005, 0.100)
    quiet: float = 0.14
    """Share of links that no flow congests."""
    unlike: float = 0.5
    """Share of links with flows of several RTTs."""
    held: float = 0.2
    """Share of congested links on which other traffic does not react to losses."""
    other_lives: float = 0.6
    """Share of links whose flows do not last 1 to 5 s."""
    bbr: bool = True
    flow_bps: tuple[float, float] = (0.3e6, 150e6)
    """Rate per flow; at most half of the link's."""


ALL = LinkRanges()
USUAL = LinkRanges((100e6, 1e9), (0.030, 0.080), (0.010, 0.040), 0.0, 0.25, 0.0, 0.0, False)
"""Links like those measured most often: a substantial part of the training."""


@dataclass(frozen=True)
class Group:
    """``count`` flows with one congestion control and base RTT (whole 0.1 ms); ``window_bytes``: the window that limits
    each, or 0."""

    cc: str
    count: int
    rtt_s: float
    window_bytes: int = 0


@dataclass(frozen=True)
class Link:
    """One link and its flows; each one that is not held is replaced after ``lifetime_s`` (shortest, longest).

    ``bursts`` are transfers on a link of kind ``bursts``: (start in s, bytes) each. ``probes`` are sent in each of
    ``streams`` series that share the pace: many short ones say about as much as one long one.
    """

    name: str
    kind: Kind
    rate_bps: int
    queue_packets: int
    groups: tuple[Group, ...]
    lifetime_s: tuple[float, float]
    seed: int
    bursts: tuple[tuple[float, int], ...] = ()
    engine: str = "sim"
    probes: int = PROBES
    streams: int = 1

    @property
    def flows(self) -> int:
        """Greedy flows."""
        return sum(group.count for group in self.groups if not group.window_bytes)

    @property
    def queue_s(self) -> float:
        return self.queue_packets * FULL_FRAME * 8 / self.rate_bps

    def scenario(self) -> dict[str, Any]:
        """The scenario as in a file. Flow groups are ``g0`` and so on; the link's forward direction is ``near>far``."""
        hosts: dict[str, Any] = {"near": {}, "far": {}, "prober": {}}
        rate = {"from": "near", "to": "far", "rate": f"{self.rate_bps} bit/s", "queue": f"{self.queue_packets} packets"}
        links: list[dict[str, Any]] = [{"from": "prober", "to": "near"}, rate]
        flows: list[dict[str, Any]] = []
        for at, group in enumerate(self.groups):
            hosts[f"h{at}"] = {}
            links.append({"from": f"h{at}", "to": "near", "delay": f"{round(group.rtt_s * 5e5)} us"})
            flow: dict[str, Any] = {"name": f"g{at}", "from": f"h{at}", "to": "far", "cc": group.cc}
            if group.window_bytes:
                # Linux offers half of the buffer as a window.
                hosts[f"calm{at}"] = {"receive_buffer": f"{2 * group.window_bytes} bytes"}
                links.append({"from": "far", "to": f"calm{at}"})
                flow["to"] = f"calm{at}"
            if self.kind == "bursts":
                flows += [
                    {**flow, "name": f"g{at}-{number}", "start": f"{start_s:.3f} s", "bytes": f"{size} bytes"}
                    for number, (start_s, size) in enumerate(self.bursts)
                ]
                continue
            flow["count"] = group.count
            if not group.window_bytes:
                flow["replace"] = {"lifetime": [f"{round(end_s * 1e3)} ms" for end_s in self.lifetime_s]}
            flows.append(flow)
        pace_ms = round(PACE_S * 1e3)
        probes = [
            {"name": f"probe{at}", "start": f"{SETTLE_S * 1000 + at * pace_ms // self.streams} ms"}
            for at in range(self.streams)
        ]
        each = {"from": "prober", "to": "far", "interval": f"{pace_ms} ms", "count": self.probes}
        made: dict[str, Any] = {
            "name": self.name,
            "topology": "custom",
            "duration": f"{SETTLE_S + round(self.probes * PACE_S)} s",
            "interval": "1 s",
            "seed": self.seed,
            "hosts": hosts,
            "links": links,
            "flows": flows,
            "probes": [{**one, **each} for one in probes],
        }
        if self.engine == "kernel":
            made["traffic"] = "native"
        return made


def draw(purpose: str, number: int, within: LinkRanges = ALL, *, engine: str = "sim") -> Link:
    """The link of that number. ``purpose`` names a set, like "train"; two sets never share a link.

    The frequency of a rate is inversely proportional to its square root, because simulating a link costs as much as the
    packets that pass.
    """
    random = np.random.default_rng([*purpose.encode(), number])
    low, high = (end**-0.5 for end in within.rates_bps)
    rate_bps = float(random.uniform(high, low)) ** -2
    kind: Kind = "congested"
    if (chance := random.random()) < within.quiet:
        kind = "held" if chance < within.quiet * 5 / 7 else "bursts"
    queue_s = _log_uniform(random, *within.queues_s)
    packets = max(2, round(queue_s * rate_bps / 8 / FULL_FRAME))
    rtts_s = _rtts(random, within)
    lifetime_s = (1.0, 5.0)
    if random.random() < within.other_lives:
        least_s = _log_uniform(random, 0.3, 10)
        lifetime_s = (round(least_s, 3), round(least_s * random.uniform(3, 6), 3))
    name, seed = f"{purpose}-{number:05}", int(random.integers(1 << 40))
    bursts: tuple[tuple[float, int], ...] = ()
    groups: list[Group] = []
    if kind == "congested":
        least_bps, most_bps = within.flow_bps
        least_bps = least_bps if rate_bps < _DEAR_BPS else max(least_bps, _LEAST_BPS)
        flow_bps = _log_uniform(random, least_bps, min(most_bps, rate_bps / 2))
        count = max(2, round(rate_bps * _GOODPUT / flow_bps))
        groups = _shared(random, count, _mix(random, within), rtts_s)
        if random.random() < within.held:
            groups += _held(random, rate_bps, random.uniform(0.05, 0.35), rtts_s, queue_s)
    elif kind == "held":
        groups = _held(random, rate_bps, random.uniform(0.05, 0.95), rtts_s, 0)
    else:
        groups = [Group(_pick(random, ("cubic", "reno", "bbr")), 1, rtts_s[0])]
        share, number_of = random.uniform(0.02, 0.3), int(random.integers(3, 40))
        size = share * rate_bps / 8 * 100 / number_of
        starts_s = np.sort(random.uniform(SETTLE_S, SETTLE_S + 98, number_of))
        bursts = tuple((round(float(at), 3), int(size * random.uniform(0.3, 1.7)) + 10_000) for at in starts_s)
    return Link(name, kind, round(rate_bps), packets, tuple(groups), lifetime_s, seed, bursts, engine)


def _rtts(random: np.random.Generator, within: LinkRanges) -> list[float]:
    """One RTT, or two to six up to a factor of ten apart."""
    middle_s = _log_uniform(random, *within.rtts_s)
    count = 1 if random.random() < 1 - within.unlike else int(random.integers(2, 7))
    spread = random.uniform(0.2, 1.15) if count > 1 else 0.0
    found = middle_s * np.exp(random.uniform(-spread, spread, count))
    return [float(np.clip(round(one_s, 4), *ALL.rtts_s)) for one_s in found]


def _mix(random: np.random.Generator, within: LinkRanges) -> dict[str, float]:
    """The share of each congestion control among the flows."""
    mixes = [mix for mix in _MIXES if within.bbr or "bbr" not in mix]
    chances = np.array([_MIXES[mix] for mix in mixes])
    chosen = mixes[int(random.choice(len(mixes), p=chances / chances.sum()))]
    shares = random.dirichlet([1.5] * len(chosen))
    return dict(zip(chosen, (float(share) for share in shares), strict=True))


def _shared(random: np.random.Generator, count: int, mix: dict[str, float], rtts_s: Sequence[float]) -> list[Group]:
    """Divides ``count`` flows by their shares, and over the RTTs by separate shares."""
    weights = random.dirichlet([2.0] * len(rtts_s))
    cells = [
        (cc, rtt_s, share * weight) for cc, share in mix.items() for rtt_s, weight in zip(rtts_s, weights, strict=True)
    ]
    chances = np.array([chance for _, _, chance in cells])
    counts = random.multinomial(count, chances / chances.sum())
    return [Group(cc, int(one), rtt_s) for (cc, rtt_s, _), one in zip(cells, counts, strict=True) if one]


def _held(
    random: np.random.Generator, rate_bps: float, share: float, rtts_s: Sequence[float], queue_s: float
) -> list[Group]:
    """Flows that never leave, with windows that keep them to about that share of the rate, at a delay of
    ``queue_s``."""
    groups = []
    for rtt_s in rtts_s[:2]:
        bytes_ = share / len(rtts_s[:2]) * rate_bps / 8 * (rtt_s + queue_s)
        most = max(1, int(bytes_ / _LEAST_WINDOW_BYTES))
        count = max(1, round(math.exp(random.uniform(0, math.log(most)))))
        count = min(count, 2000)
        window_bytes = max(_LEAST_WINDOW_BYTES, round(bytes_ / count))
        groups.append(Group(_pick(random, ("cubic", "reno")), count, rtt_s, window_bytes))
    return groups


def _pick(random: np.random.Generator, names: Sequence[str]) -> str:
    return str(names[int(random.integers(len(names)))])


def _log_uniform(random: np.random.Generator, low: float, high: float) -> float:
    return float(math.exp(random.uniform(math.log(low), math.log(high))))
