"""Statistics of runs: throughput with its interval, how it settles, counters, change against a baseline, fairness."""

from sawtooth.stats.counters import COUNTERS, counters
from sawtooth.stats.fairness import jain
from sawtooth.stats.interval import Interval, batch_means, independent
from sawtooth.stats.mean import of_runs
from sawtooth.stats.settling import Settling, settling
from sawtooth.stats.throughput import STATISTICS, change_percent, describe, span, throughput, throughput_by_flow

__all__ = [
    "COUNTERS",
    "STATISTICS",
    "Interval",
    "Settling",
    "batch_means",
    "change_percent",
    "counters",
    "describe",
    "independent",
    "jain",
    "of_runs",
    "settling",
    "span",
    "throughput",
    "throughput_by_flow",
]
