"""Statistics of runs: throughput with its interval, counters, change against a baseline."""

from sawtooth.stats.counters import COUNTERS, counters
from sawtooth.stats.interval import Interval, batch_means, independent
from sawtooth.stats.throughput import STATISTICS, change_percent, describe, throughput

__all__ = [
    "COUNTERS",
    "STATISTICS",
    "Interval",
    "batch_means",
    "change_percent",
    "counters",
    "describe",
    "independent",
    "throughput",
]
