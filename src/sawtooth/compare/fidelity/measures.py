"""Measures: the values taken from a run to compare engines, and how well they must agree."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sawtooth.stats import latencies, throughput, throughput_by_flow
from sawtooth.stats.completion import ended
from sawtooth.stats.queueing import bottleneck, mean_delay_s, total
from sawtooth.stats.throughput import after_warmup

if TYPE_CHECKING:
    from sawtooth.run import Run

EDITION = 2
"""Version of the definitions below. Values measured with another version are measured again."""
ENOUGH_EVENTS = 50
"""A ratio needs more events than this, over all runs of the kernel."""
LEAST_DELAY_MS = 1.0
"""For shorter queue delays, a ratio would depend on single packets."""


@dataclass(frozen=True)
class Goal:
    """Allowed difference for the median point, for nine in ten points, and for the worst; 0.03 is 3%. None: not set."""

    median: float | None = None
    p90: float | None = None
    worst: float | None = None


@dataclass(frozen=True)
class Measure:
    """A measured value. A ratio is not meaningful if the kernel's value is less than ``least``, if there are at most
    ``events`` in all its runs, or if it is less than the fraction ``of_mean`` of the mean throughput."""

    name: str
    title: str
    goal: Goal = Goal()
    least: float = 0.0
    events: int | None = None
    of_mean: float = 0.0

    def says_something(self, value: float, runs: int, throughput: float) -> bool:
        """Whether a ratio is meaningful. ``value``: the kernel's mean over ``runs``; ``throughput``: its mean
        throughput in Mbit/s."""
        if self.events is not None:
            return value * runs > self.events
        return value >= max(self.least, self.of_mean * throughput) and value > 0


MEASURES = (
    Measure("mean_mbps", "throughput", Goal(median=0.02, p90=0.08, worst=0.25)),
    Measure("std_mbps", "standard deviation of a second", of_mean=0.01),
    Measure("segments_out", "segments sent"),
    Measure("retransmits", "retransmissions", Goal(median=0.05), events=ENOUGH_EVENTS),
    Measure("timeouts", "timeouts", Goal(worst=0.20), events=ENOUGH_EVENTS),
    Measure("tail_probes", "tail loss probes", events=ENOUGH_EVENTS),
    Measure("mean_rtt_ms", "mean RTT", Goal(median=0.05)),
    Measure("p95_rtt_ms", "95th percentile of RTT"),
    Measure("queue_packets", "mean queue", least=1.0),
    Measure("delay_ms", "mean delay of the queue", Goal(median=0.05), least=LEAST_DELAY_MS),
    Measure("probe_ms", "mean delay of probes", Goal(median=0.05), least=LEAST_DELAY_MS),
    Measure("p95_probe_ms", "95th percentile of probes' delay", Goal(median=0.05), least=LEAST_DELAY_MS),
    Measure("drops", "drops of the queue", Goal(median=0.10), events=ENOUGH_EVENTS),
    Measure("marks", "marks of the queue", Goal(median=0.10), events=ENOUGH_EVENTS),
    Measure("fct_ms", "median completion time", Goal(median=0.05)),
    Measure("p90_fct_ms", "90th percentile of completion times"),
    Measure("response_ms", "median response time", Goal(median=0.05)),
    Measure("page_ms", "median page time", Goal(median=0.05)),
    Measure("stalled_s", "stalls of videos", least=1.0),
)
SHARE = Measure("share", "share of a congestion control", least=0.01)
"""With several congestion controls: each one's share of the throughput."""
FLOW = Measure("flow_mbps", "throughput of the flow that differs most", Goal(p90=0.05), of_mean=0.01)
"""The flow with the largest ratio, among a point's flows for which one is meaningful."""
NAMES = tuple(measure.name for measure in MEASURES)


def measure(run: Run) -> dict[str, float | str]:
    """``MEASURES`` of one run after its warm-up, and ``shares`` of each flow in the scenario's order.

    Throughput: of the receiving application, summed over flows, in whole intervals. RTT: from tcp_info's smoothed
    samples. Queue, its delay, drops and marks: at the first flow's bottleneck. Probe delay: RTT of the first probe
    flow, minus the empty path's RTT. Completion times: all connections that ended by themselves, including those of
    pages. Medians: over all rows of ``responses`` and ``pages``. Stalls: the sum over all videos, without their
    startup. NaN if there is no data.
    """
    import numpy as np

    series = throughput(run)
    intervals = after_warmup(run, run.tables["intervals"])
    srtt = after_warmup(run, run.tables["tcp_info"])["srtt_s"]
    srtt_ms = srtt[srtt > 0].to_numpy() * 1e3
    queue = [] if (found := bottleneck(run)) is None else [found]
    by_flow = throughput_by_flow(run).mean()
    return {
        "mean_mbps": float(series.mean()),
        "std_mbps": float(series.std()),
        **{name: float(intervals[name].sum()) for name in ("segments_out", "retransmits", "timeouts")},
        "tail_probes": _tail_probes(run, intervals),
        "mean_rtt_ms": float(srtt_ms.mean()) if srtt_ms.size else math.nan,
        "p95_rtt_ms": float(np.quantile(srtt_ms, 0.95)) if srtt_ms.size else math.nan,
        "queue_packets": float(queue[0].table["mean_packets"].mean()) if queue and len(queue[0].table) else math.nan,
        "delay_ms": mean_delay_s(queue) * 1e3,
        **_probed_ms(run),
        "drops": total(queue, "drops"),
        "marks": total(queue, "marks"),
        **_completed_ms(run),
        "response_ms": _median(run, "responses", "response_s") * 1e3,
        "page_ms": _median(run, "pages", "load_s") * 1e3,
        "stalled_s": _stalled_s(run),
        "shares": " ".join(f"{part:.6g}" for part in by_flow / by_flow.sum()),
    }


def _median(run: Run, name: str, column: str) -> float:
    return float(after_warmup(run, run.tables[name])[column].median()) if name in run.tables else math.nan


def _probed_ms(run: Run) -> dict[str, float]:
    import numpy as np

    added = [one.rtt_s - one.idle_s for one in latencies(run)[:1]]
    answered = added[0][np.isfinite(added[0])] * 1e3 if added else np.array([])
    if not answered.size:
        return {"probe_ms": math.nan, "p95_probe_ms": math.nan}
    return {"probe_ms": float(answered.mean()), "p95_probe_ms": float(np.quantile(answered, 0.95))}


def _completed_ms(run: Run) -> dict[str, float]:
    import numpy as np

    rows = ended(run)
    took_ms = (rows["end_s"] - rows["start_s"]) * 1e3
    if not took_ms.size:
        return {"fct_ms": math.nan, "p90_fct_ms": math.nan}
    return {"fct_ms": float(np.median(took_ms)), "p90_fct_ms": float(np.quantile(took_ms, 0.9))}


def _stalled_s(run: Run) -> float:
    if "segments" not in run.tables:
        return math.nan
    segments = after_warmup(run, run.tables["segments"])
    return float(segments.loc[segments["number"] > 0, "stalled_s"].sum())


def _tail_probes(run: Run, intervals: Any) -> float:
    """Tail loss probes. The kernel counts them per host, so if several flows share a host, only the run's total is
    known."""
    if intervals["tail_probes"].notna().all() or run.scenario.warmup.ns:
        return float(intervals["tail_probes"].sum(min_count=len(intervals)))
    return float(sum(host["tail_probes"] for host in run.meta["hosts"].values()))
