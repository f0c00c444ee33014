"""Sawtooth tells you what TCP gets out of a network path with a given rate, delay, queue and packet loss.

    >>> import sawtooth
    >>> scenario = sawtooth.Scenario(path={"rate": "50 Mbit/s", "rtt": "20 ms", "loss": "1%"})
    >>> run = sawtooth.run(scenario)                # a Run: the results as pandas tables
    >>> sawtooth.run(scenario, seeds=[1, 2, 3]).mean()   # Runs: means over the seeds, with an interval; .plot()
    >>> result = sawtooth.run("one-percent-loss")   # a study that comes with it: a StudyResult
    >>> sawtooth.report(result)                     # the path of report.html
    >>> sawtooth.read_capture("slow.pcap").connections   # a table of its TCP connections
    >>> sawtooth.find(scenario, vary="path.loss=0.0001%..5%", want="goodput >= 90% of path.rate").interval
    >>> sawtooth.predict(rate="2.5 Gbit/s", rtt="140 ms", loss="1.5%")  # closed forms, a table
    >>> sawtooth.query("SELECT study, cc, mean_mbps FROM summary WHERE seed = 'all'")   # SQL over all results, a table
    >>> next(sawtooth.watch("not cc bbr"))["connections"]   # what limits the connections of this host
    >>> [check.name for check in sawtooth.doctor() if not check.works]   # what does not work on this machine

Every name is imported on first use, so ``import sawtooth`` is fast.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sawtooth.api import doctor, find, load, predict, query, report, run, schema, watch, worst
    from sawtooth.capture import Capture, read_capture
    from sawtooth.errors import SawtoothError
    from sawtooth.run import Run
    from sawtooth.scenario import Scenario
    from sawtooth.study import Study

__all__ = [
    "Capture",
    "Run",
    "SawtoothError",
    "Scenario",
    "Study",
    "doctor",
    "find",
    "load",
    "predict",
    "query",
    "read_capture",
    "report",
    "run",
    "schema",
    "watch",
    "worst",
]

_HOME = {
    "Capture": "sawtooth.capture",
    "Run": "sawtooth.run",
    "SawtoothError": "sawtooth.errors",
    "Scenario": "sawtooth.scenario",
    "Study": "sawtooth.study",
    "doctor": "sawtooth.api",
    "find": "sawtooth.api",
    "load": "sawtooth.api",
    "predict": "sawtooth.api",
    "query": "sawtooth.api",
    "read_capture": "sawtooth.capture",
    "report": "sawtooth.api",
    "run": "sawtooth.api",
    "schema": "sawtooth.api",
    "watch": "sawtooth.api",
    "worst": "sawtooth.api",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("sawtooth")
    if name not in _HOME:
        raise AttributeError(f"module 'sawtooth' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])


class _Package(ModuleType):
    """The verbs ``run`` and ``report`` stay callable after the modules ``sawtooth.run`` and ``sawtooth.report`` are
    imported."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _HOME and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
