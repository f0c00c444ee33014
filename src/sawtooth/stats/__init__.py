"""Statistics of runs: throughput with its interval, settling, counters, change against a baseline, fairness, latency
under load, responsiveness, the bottleneck's queue, completion times, time to converge, applications."""

from sawtooth.stats.application import Application, applications
from sawtooth.stats.completion import completions
from sawtooth.stats.convergence import converges_s
from sawtooth.stats.counters import COUNTERS, counters
from sawtooth.stats.fairness import harm, jain
from sawtooth.stats.interval import Interval, batch_means, independent
from sawtooth.stats.latency import Latency, latencies
from sawtooth.stats.mean import of_runs
from sawtooth.stats.responsiveness import rpm, smoothed_s, trimmed_mean
from sawtooth.stats.settling import Settling, settling
from sawtooth.stats.throughput import (
    STATISTICS,
    change_percent,
    describe,
    observed,
    span,
    throughput,
    throughput_by_flow,
)
from sawtooth.stats.utilization import Ceiling, ceiling, utilization

__all__ = [
    "COUNTERS",
    "STATISTICS",
    "Application",
    "Ceiling",
    "Interval",
    "Latency",
    "Settling",
    "applications",
    "batch_means",
    "ceiling",
    "change_percent",
    "completions",
    "converges_s",
    "counters",
    "describe",
    "harm",
    "independent",
    "jain",
    "latencies",
    "observed",
    "of_runs",
    "rpm",
    "settling",
    "smoothed_s",
    "span",
    "throughput",
    "throughput_by_flow",
    "trimmed_mean",
    "utilization",
]
