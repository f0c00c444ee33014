"""Latency under load: what probes wait while flows send, beside the same path when it is empty."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sawtooth.rows import groups
from sawtooth.run import Run
from sawtooth.stats.path import round_trip_s

if TYPE_CHECKING:
    from numpy import ndarray

    Floats = ndarray[Any, Any]


@dataclass(frozen=True)
class Latency:
    """One probe's round trips of one run after its warm-up: ``sent_s`` since the start, ``rtt_s`` (NaN: lost).

    ``idle_s`` is the round trip of a probe on the empty path, by the scenario (``stats.path``): what was seen cannot
    tell it where the queue never empties.
    """

    name: str
    idle_s: float
    sent_s: Floats
    rtt_s: Floats


def latencies(run: Run) -> list[Latency]:
    """Of each probe of the scenario, in its order; none of an engine without a table ``probes``.

    What was sent so late that its answer may have come after the run's end, and has none, is left out: it is not lost.
    """
    import numpy as np
    import pandas as pd

    if "probes" not in run.tables:
        return []
    compiled = run.scenario.compile()
    table = pd.concat(groups(run.tables, "probes", ("t_s", "probe", "rtt_s")))
    table = table[table["t_s"] >= run.scenario.warmup.seconds]
    found = []
    for index, probe in enumerate(compiled.probes):
        own = table[table["probe"] == index].sort_values("t_s")
        sent, rtt = own["t_s"].to_numpy(float), own["rtt_s"].to_numpy(float)
        longest = float(np.nanmax(rtt)) if np.isfinite(rtt).any() else 0.0
        known = np.isfinite(rtt) | (sent + longest < run.scenario.duration.seconds)
        found.append(Latency(probe.name, round_trip_s(compiled, probe), sent[known], rtt[known]))
    return found
