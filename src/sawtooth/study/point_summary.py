"""PointSummary: what a study's tables need of one run. A worker sends that of each short run, and nobody reads the
run from disk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sawtooth.run import Run
from sawtooth.scenario import Span
from sawtooth.stats import counters, observed, span
from sawtooth.stats.application import TABLES as APPLICATIONS
from sawtooth.stats.throughput import rates
from sawtooth.study.goodput_ceiling import most_mbps
from sawtooth.study.measures import Measured
from sawtooth.study.shares import Shares

if TYPE_CHECKING:
    from numpy import ndarray

TABLES = ("intervals", "tcp_info", "flows", "probes", "queues", *APPLICATIONS.values())
"""The tables of a run that this uses."""


@dataclass(frozen=True)
class PointSummary:
    """``samples`` are the goodput in Mbit/s of the intervals that end at ``ends_s``."""

    ends_s: ndarray[Any, Any]
    samples: ndarray[Any, Any]
    span_s: tuple[float, float]
    interval: Span
    counted: dict[str, float]
    measured: Measured
    most_mbps: float
    """The highest possible mean: what the line carries."""
    observed: int | None
    flows: tuple[str, ...]
    """The names of the scenario's flows."""
    shares: Shares | None
    """If there are several flows."""
    limits: list[dict[str, Any]]
    warnings: list[str]

    @classmethod
    def of(cls, run: Run) -> PointSummary:
        """From a run with ``TABLES``."""
        ends_s, samples = rates(run)
        return cls(
            ends_s=ends_s,
            samples=samples,
            span_s=span(run),
            interval=run.scenario.interval,
            counted=counters(run),
            measured=Measured.of(run),
            most_mbps=most_mbps(run.scenario),
            observed=observed(run),
            flows=tuple(run.scenario.flow_names),
            shares=Shares.of(run) if len(run.scenario.flows) > 1 else None,
            limits=run.limits,
            warnings=run.warnings,
        )
