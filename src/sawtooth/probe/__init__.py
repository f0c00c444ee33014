"""The prober: RTT series to the routers at both ends of a link, with probes whose time to live ends there."""

from __future__ import annotations

from sawtooth.probe.opening import open_transport
from sawtooth.probe.prober import SILENT, Measured, Prober
from sawtooth.probe.recording import Recording
from sawtooth.probe.schedule import Schedule
from sawtooth.probe.transport import Answer, Target, Transport, resolve

__all__ = [
    "SILENT",
    "Answer",
    "Measured",
    "Prober",
    "Recording",
    "Schedule",
    "Target",
    "Transport",
    "open_transport",
    "resolve",
]
