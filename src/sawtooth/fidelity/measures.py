"""Measures: what is read from a run for the comparison of engines, and what of it must agree how well."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sawtooth.stats import throughput, throughput_by_flow
from sawtooth.stats.throughput import after_warmup

if TYPE_CHECKING:
    from sawtooth.compiled import Compiled
    from sawtooth.run import Run

EDITION = 1
"""Of the definitions below; what was measured by another edition is measured again."""
ENOUGH_EVENTS = 50
"""Counts up to this, over all runs of the kernel, are too few for a ratio."""


@dataclass(frozen=True)
class Goal:
    """Largest difference of the median point, of nine in ten, and of the worst; 0.03 is 3%. None: not set."""

    median: float | None = None
    p90: float | None = None
    worst: float | None = None


@dataclass(frozen=True)
class Measure:
    """A column. Where the kernel has less than ``least`` of it, or not more than ``events`` in all its runs, or less
    than the share ``of_mean`` of the mean throughput, a ratio says nothing.
    """

    name: str
    title: str
    goal: Goal = Goal()
    least: float = 0.0
    events: int | None = None
    of_mean: float = 0.0

    def says_something(self, value: float, runs: int, throughput: float) -> bool:
        """Of the kernel's mean over ``runs``; ``throughput`` is its mean throughput in Mbit/s."""
        if self.events is not None:
            return value * runs > self.events
        return value >= max(self.least, self.of_mean * throughput) and value > 0


MEASURES = (
    Measure("mean_mbps", "throughput", Goal(median=0.03, p90=0.10, worst=0.25)),
    Measure("std_mbps", "standard deviation of a second", of_mean=0.01),
    Measure("segments_out", "segments sent"),
    Measure("retransmits", "retransmissions", Goal(median=0.05), events=ENOUGH_EVENTS),
    Measure("timeouts", "timeouts", Goal(worst=0.20), events=ENOUGH_EVENTS),
    Measure("tail_probes", "tail loss probes", events=ENOUGH_EVENTS),
    Measure("mean_rtt_ms", "mean RTT", Goal(median=0.05)),
    Measure("p95_rtt_ms", "95th percentile of RTT"),
    Measure("queue_packets", "mean queue", least=1.0),
    Measure("response_ms", "median response time", Goal(median=0.05)),
    Measure("page_ms", "median page time", Goal(median=0.05)),
    Measure("stalled_s", "stalls of videos", least=1.0),
)
SHARE = Measure("share", "share of a congestion control", least=0.01)
"""Where several meet: each one's part of the throughput."""
NAMES = tuple(measure.name for measure in MEASURES)


def measure(run: Run) -> dict[str, float | str]:
    """``MEASURES`` of one run after its warm-up, and ``shares``: of each flow of the scenario, in its order.

    Throughput is the receiving application's, summed over flows, in whole intervals; RTT is of tcp_info's smoothed
    samples; the queue is that of the first flow's bottleneck; medians are over all rows of ``responses`` and
    ``pages``, stalls the sum over all videos without their startup. NaN: nothing to read it from.
    """
    import numpy as np

    series = throughput(run)
    intervals = after_warmup(run, run.tables["intervals"])
    srtt = after_warmup(run, run.tables["tcp_info"])["srtt_s"]
    srtt_ms = srtt[srtt > 0].to_numpy() * 1e3
    queues = after_warmup(run, run.tables["queues"])
    waiting = queues[queues["transmitter"] == _bottleneck(run.scenario.compile())]["mean_packets"]
    by_flow = throughput_by_flow(run).mean()
    return {
        "mean_mbps": float(series.mean()),
        "std_mbps": float(series.std()),
        **{name: float(intervals[name].sum()) for name in ("segments_out", "retransmits", "timeouts")},
        "tail_probes": _tail_probes(run, intervals),
        "mean_rtt_ms": float(srtt_ms.mean()) if srtt_ms.size else math.nan,
        "p95_rtt_ms": float(np.quantile(srtt_ms, 0.95)) if srtt_ms.size else math.nan,
        "queue_packets": float(waiting.mean()),
        "response_ms": _median(run, "responses", "response_s") * 1e3,
        "page_ms": _median(run, "pages", "load_s") * 1e3,
        "stalled_s": _stalled_s(run),
        "shares": " ".join(f"{part:.6g}" for part in by_flow / by_flow.sum()),
    }


def _median(run: Run, name: str, column: str) -> float:
    return float(after_warmup(run, run.tables[name])[column].median()) if name in run.tables else math.nan


def _stalled_s(run: Run) -> float:
    if "segments" not in run.tables:
        return math.nan
    segments = after_warmup(run, run.tables["segments"])
    return float(segments.loc[segments["number"] > 0, "stalled_s"].sum())


def _tail_probes(run: Run, intervals: Any) -> float:
    """A kernel counts them by host; where several flows share one, only the whole run's number is known."""
    if intervals["tail_probes"].notna().all() or run.scenario.warmup.ns:
        return float(intervals["tail_probes"].sum(min_count=len(intervals)))
    return float(sum(host["tail_probes"] for host in run.meta["hosts"].values()))


def _bottleneck(compiled: Compiled) -> int | None:
    """The slowest transmitter on the first flow's way out, the first of them."""
    used = [compiled.links[index].transmitter for index in compiled.flows[0].forward]
    rated = [index for index in used if index is not None]
    return min(rated, key=lambda index: compiled.transmitters[index].rate_bps, default=None)
