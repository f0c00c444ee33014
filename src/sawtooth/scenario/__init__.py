"""Scenario files, their units, topologies and routes: the input of an engine."""

from sawtooth.scenario.control import CONGESTION_CONTROLS, CONTROLS, LINUX_CONTROLS, CongestionControl
from sawtooth.scenario.scenario import Scenario
from sawtooth.scenario.tables import (
    Card,
    Chain,
    Direction,
    Dumbbell,
    Flow,
    GilbertElliott,
    Host,
    Link,
    LossPattern,
    Path,
    Probe,
    Replace,
    Route,
)
from sawtooth.scenario.toml import read_toml
from sawtooth.scenario.units import Burst, Loss, Queue, Rate, Size, Span

__all__ = [
    "CONGESTION_CONTROLS",
    "CONTROLS",
    "LINUX_CONTROLS",
    "Burst",
    "Card",
    "Chain",
    "CongestionControl",
    "Direction",
    "Dumbbell",
    "Flow",
    "GilbertElliott",
    "Host",
    "Link",
    "Loss",
    "LossPattern",
    "Path",
    "Probe",
    "Queue",
    "Rate",
    "Replace",
    "Route",
    "Scenario",
    "Size",
    "Span",
    "read_toml",
]
