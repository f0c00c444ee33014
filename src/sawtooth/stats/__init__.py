"""Statistics of runs: throughput with its interval, counters, change against a baseline, fairness."""

from sawtooth.stats.counters import COUNTERS, counters
from sawtooth.stats.fairness import jain
from sawtooth.stats.interval import Interval, batch_means, independent
from sawtooth.stats.throughput import STATISTICS, change_percent, describe, throughput, throughput_by_flow

__all__ = [
    "COUNTERS",
    "STATISTICS",
    "Interval",
    "batch_means",
    "change_percent",
    "counters",
    "describe",
    "independent",
    "jain",
    "throughput",
    "throughput_by_flow",
]
