"""Compiled: a scenario in the form that engines take: integers and indices; names for messages only.

The core makes it and its JSON (docs/design.md, "The core's contract"); these are its records in Python. Only the
standard library is used: a guest reads it, and every imported module costs a guest time.
"""

from sawtooth.scenario.compiled.applications import Arrivals, Asks, Datagrams, Paced, Pages, Requests, Video
from sawtooth.scenario.compiled.compiled import Compiled, Host
from sawtooth.scenario.compiled.flows import Flow, Module, Probe
from sawtooth.scenario.compiled.links import (
    Every,
    GilbertElliott,
    Jitter,
    Link,
    Opportunities,
    Policer,
    RateSteps,
    Reorder,
    Slots,
    Transmitter,
)
from sawtooth.scenario.compiled.plain import Tagged
from sawtooth.scenario.compiled.queues import Discipline

__all__ = [
    "Arrivals",
    "Asks",
    "Compiled",
    "Datagrams",
    "Discipline",
    "Every",
    "Flow",
    "GilbertElliott",
    "Host",
    "Jitter",
    "Link",
    "Module",
    "Opportunities",
    "Paced",
    "Pages",
    "Policer",
    "Probe",
    "RateSteps",
    "Reorder",
    "Requests",
    "Slots",
    "Tagged",
    "Transmitter",
    "Video",
]
