"""Shows what loss costs the connections of this host now. The kernel is asked through sock_diag, every second."""

from sawtooth.watch.connection import MEANINGS, Connection
from sawtooth.watch.counters import Changes, Window
from sawtooth.watch.limit import LIMITS, limits
from sawtooth.watch.netlink import Connections
from sawtooth.watch.sample import Sample, parse
from sawtooth.watch.watcher import SORTS, LiveMoment, Watcher

__all__ = [
    "LIMITS",
    "MEANINGS",
    "SORTS",
    "Changes",
    "Connection",
    "Connections",
    "LiveMoment",
    "Sample",
    "Watcher",
    "Window",
    "limits",
    "parse",
]
