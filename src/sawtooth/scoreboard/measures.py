"""Measures: the columns of a scoreboard, each of one run, from the tables of the study that ran it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from sawtooth.scoreboard.networks import Network
from sawtooth.stats import Interval, harm, independent

STALL_S = 3.0
"""A bulk flow that delivers nothing for so long has stalled."""


@dataclass(frozen=True)
class ControlRun:
    """One run of a control on a network. ``row``: of the study's table. ``mbps``: goodput by flow.
    ``alone_mbps``: what the rivals get without the control. ``jain``: over all connections. ``idle_s``: the
    longest time in which nothing was delivered."""

    network: Network
    row: Mapping[str, float]
    mbps: Mapping[str, float]
    alone_mbps: float
    jain: float
    idle_s: float

    @property
    def own_mbps(self) -> float:
        return math.fsum(self.mbps[name] for name in self.network.own)

    @property
    def stalled(self) -> bool:
        return self.network.is_bulk and not self.network.rivals and self.idle_s >= STALL_S


@dataclass(frozen=True)
class Measure:
    """``applies``: to which networks. ``pooled``: how values of several networks become one. ``more``: more is
    better. ``least`` and ``most``: the possible values."""

    name: str
    title: str
    heading: str
    digits: int
    more: bool
    applies: Callable[[Network], bool]
    value: Callable[[ControlRun], float]
    pooled: Callable[[Sequence[float]], float] = fmean
    least: float = 0.0
    most: float = math.inf

    def interval(self, values: Sequence[float]) -> Interval:
        """Over seeds, cut to possible values. Raises ValueError without values."""
        return independent(values).within(self.least, self.most)


def _column(name: str) -> Callable[[ControlRun], float]:
    return lambda ran: float(ran.row[name])


def _has(kind: str) -> Callable[[Network], bool]:
    return lambda network: any(flow.get("source", {}).get("kind") == kind for flow in network.flows if "cc" not in flow)


def _several(network: Network) -> bool:
    """Whether flows of the control share the path with nobody else."""
    return network.is_bulk and not network.rivals and len(network.flows) > 1


def _late(network: Network) -> bool:
    return _several(network) and any("start" in flow for flow in network.flows)


def _possible(ran: ControlRun) -> float:
    possible = ran.network.possible_mbps
    return math.nan if possible is None else 100 * ran.own_mbps / possible


def _rivals(ran: ControlRun) -> float:
    return 100 * harm(ran.alone_mbps, math.fsum(ran.mbps[name] for name in ran.network.rivals))


MEASURES = (
    Measure(
        "goodput_percent",
        "goodput, % of what is possible",
        "goodput, %",
        1,
        True,
        lambda network: network.is_bulk and not network.rivals,
        _possible,
        most=100.0,
    ),
    Measure(
        "share_percent",
        "goodput beside rivals, % of an equal share",
        "share, %",
        1,
        True,
        lambda network: network.is_bulk and bool(network.rivals),
        _possible,
    ),
    Measure(
        "harm_percent",
        "harm to rivals, %",
        "harm, %",
        1,
        False,
        lambda network: bool(network.rivals),
        _rivals,
        fmean,
        -math.inf,
        100.0,
    ),
    Measure(
        "jain",
        "fairness among its own flows (Jain's index)",
        "fairness",
        3,
        True,
        _several,
        lambda ran: ran.jain,
        fmean,
        0.0,
        1.0,
    ),
    Measure(
        "converged_percent",
        "runs in which a late flow got its share, %",
        "converged, %",
        0,
        True,
        _late,
        lambda ran: 100.0 * (not math.isnan(ran.row["converges_s"])),
        most=100.0,
    ),
    Measure(
        "converges_s",
        "time to converge, s",
        "converges, s",
        1,
        False,
        _late,
        _column("converges_s"),
        median,
    ),
    Measure(
        "queue_delay_mean_ms",
        "queue delay, mean, ms",
        "queue delay, ms",
        1,
        False,
        lambda network: network.is_bulk,
        _column("queue_delay_mean_ms"),
        median,
    ),
    Measure(
        "slowdown_p50",
        "slowdown of short transfers, median",
        "slowdown",
        2,
        False,
        _has("arrivals"),
        _column("slowdown_p50"),
        median,
    ),
    Measure(
        "page_ms_p50", "page time, median, ms", "page, ms", 0, False, _has("pages"), _column("page_ms_p50"), median
    ),
    Measure("video_mbps", "rate of the video, Mbit/s", "video, Mbit/s", 2, True, _has("video"), _column("video_mbps")),
    Measure(
        "video_stalled_percent",
        "time that the video is stalled, %",
        "stalled, %",
        1,
        False,
        _has("video"),
        _column("video_stalled_percent"),
        most=100.0,
    ),
)
"""In the order of tables."""
