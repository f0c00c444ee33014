"""Latency under load: the delay of probes while flows send, compared with the empty path."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sawtooth.io.table_store import whole
from sawtooth.run import Run
from sawtooth.stats.path import round_trip_s

if TYPE_CHECKING:
    from numpy import ndarray

    Floats = ndarray[Any, Any]


@dataclass(frozen=True)
class Latency:
    """The round trips of one probe in one run after its warm-up: ``sent_s`` since the start, ``rtt_s`` (NaN: lost).

    ``idle_s`` is a probe's round trip on the empty path, computed from the scenario (``stats.path``), because the run
    does not show it if the queue never empties.
    """

    name: str
    idle_s: float
    sent_s: Floats
    rtt_s: Floats


def latencies(run: Run) -> list[Latency]:
    """The latency of each probe of the scenario, in order. Empty for an engine without a table ``probes``.

    Probes sent so late that their answer may come after the run's end, and that have none, are left out: they are not
    lost.
    """
    import numpy as np

    if "probes" not in run.tables:
        return []
    compiled = run.scenario.compile()
    if not compiled.probes:
        return []
    table = whole(run.tables, "probes", ("t_s", "probe", "rtt_s"))
    table = table[table["t_s"] >= run.scenario.warmup.seconds]
    found = []
    for index, probe in enumerate(compiled.probes):
        own = table[table["probe"] == index]
        order = np.argsort(own["t_s"], kind="stable")
        sent, rtt = own["t_s"][order], own["rtt_s"][order].astype(float)
        longest = float(np.nanmax(rtt)) if np.isfinite(rtt).any() else 0.0
        known = np.isfinite(rtt) | (sent + longest < run.end_s)
        found.append(Latency(probe.name, round_trip_s(compiled, probe), sent[known], rtt[known]))
    return found
