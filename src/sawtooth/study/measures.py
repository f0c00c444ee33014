"""Measures in a study's table besides goodput: latency under load, responsiveness, the bottleneck's queue, completion
times, time to converge, and applications. Several seeds are one sample: their probes, packets and transfers together.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sawtooth.errors import InputError
from sawtooth.programs.measure import check_place
from sawtooth.run import Run
from sawtooth.scenario import Scenario
from sawtooth.stats import (
    COUNTERS,
    STATISTICS,
    Application,
    Latency,
    applications,
    completions,
    converges_s,
    latencies,
    rpm,
    smoothed_s,
    utilization,
)
from sawtooth.stats.completion import QUANTILES, bins, quantile
from sawtooth.stats.queueing import SHARES, Queueing, bottleneck, delays_s, mean_delay_s, total
from sawtooth.study import application

if TYPE_CHECKING:
    from numpy import ndarray
    from pandas import DataFrame

LATENCY = (
    "latency_idle_ms",
    "latency_p50_ms",
    "latency_p95_ms",
    "latency_p99_ms",
    "latency_added_ms",
    "latency_lost_percent",
)
RPM = ("rpm", "rpm_foreign", "rpm_self")
DROPS = ("queue_drops", "queue_early_drops", "queue_marks")
QUEUE = ("queue_delay_mean_ms", *(f"queue_{name.removesuffix('_s')}_ms" for name in SHARES), *DROPS)
COMPLETION = tuple(f"{what}_{name}" for what in ("fct_ms", "slowdown") for name in QUANTILES)
UTILIZATION = "utilization_percent"
_ADDED = ("fct_ms_p95", "slowdown_p95", "response_ms_p95", "page_ms_p95", UTILIZATION)


def ordered(columns: Iterable[str]) -> list[str]:
    """The columns in order, with those that were added to the tables later at the end."""
    return sorted(columns, key=_ADDED.__contains__)


MEASURES = tuple(
    ordered([*LATENCY, *RPM, *QUEUE, "transfers", *COMPLETION, "converges_s", *application.COLUMNS, UTILIZATION])
)
"""Columns of a study's table; NaN if a run has nothing to measure them by."""
TITLES = {
    "mean_mbps": "goodput, Mbit/s",
    "retransmits": "retransmissions per run",
    "timeouts": "timeouts per run",
    "mean_srtt_ms": "mean smoothed RTT, ms",
    "latency_p50_ms": "latency under load, median, ms",
    "latency_p95_ms": "latency under load, 95th percentile, ms",
    "latency_p99_ms": "latency under load, 99th percentile, ms",
    "latency_added_ms": "latency added by load, median, ms",
    "latency_lost_percent": "probes lost, %",
    "rpm": "responsiveness, round trips a minute",
    "rpm_foreign": "responsiveness to others, round trips a minute",
    "rpm_self": "responsiveness to itself, round trips a minute",
    "queue_delay_mean_ms": "queue delay, mean, ms",
    "queue_delay_p50_ms": "queue delay, median, ms",
    "queue_delay_p95_ms": "queue delay, 95th percentile, ms",
    "queue_delay_p99_ms": "queue delay, 99th percentile, ms",
    "queue_drops": "drops at the bottleneck per run",
    "queue_early_drops": "early drops at the bottleneck per run",
    "queue_marks": "marks at the bottleneck per run",
    "fct_ms_p50": "completion time, median, ms",
    "fct_ms_p90": "completion time, 90th percentile, ms",
    "fct_ms_p95": "completion time, 95th percentile, ms",
    "fct_ms_p99": "completion time, 99th percentile, ms",
    "fct_ms_p999": "completion time, 99.9th percentile, ms",
    "slowdown_p50": "slowdown, median",
    "slowdown_p90": "slowdown, 90th percentile",
    "slowdown_p95": "slowdown, 95th percentile",
    "slowdown_p99": "slowdown, 99th percentile",
    "slowdown_p999": "slowdown, 99.9th percentile",
    "converges_s": "time to converge, s",
    UTILIZATION: "utilization of the bottleneck, %",
    **application.TITLES,
}
"""Columns that figures draw, with their titles."""
_UNITS = {"_mbps": ", Mbit/s", "_bps": ", bit/s", "_ms": ", ms", "_s": ", s", "_percent": ", %", "_bytes": ", bytes"}
NAMES = ("probe", "flow", "bytes_from", "bytes_to", *application.NAMES)
"""Columns of the tables ``latency``, ``completions`` and ``applications`` besides ``MEASURES``."""
PREFIXES = ("latency_", "queue_", "rpm", "fct_", "slowdown_")


@dataclass(frozen=True)
class Measured:
    """The samples of one run."""

    latencies: tuple[Latency, ...]
    smoothed_s: ndarray[Any, Any]
    queue: Queueing | None
    completions: DataFrame
    converges_s: float
    applications: tuple[Application, ...]
    utilization: float
    programs: Mapping[str, float]
    """Numbers that programs are asked for."""

    @classmethod
    def of(cls, run: Run) -> Measured:
        """From a run with all its tables."""
        queue = bottleneck(run)
        return cls(
            tuple(latencies(run)),
            smoothed_s(run),
            queue,
            completions(run),
            converges_s(run),
            tuple(applications(run)),
            utilization(run, queue),
            run.measured,
        )


def columns(seen: Sequence[Measured]) -> dict[str, float]:
    """The values of ``MEASURES``, from runs that differ only in their seeds. Latency and responsiveness are of the
    first probe."""
    import numpy as np
    import pandas as pd

    row = dict.fromkeys(MEASURES, math.nan)
    if all(one.latencies for one in seen):
        row |= _latency([one.latencies[0] for one in seen])
        foreign = rpm(np.concatenate([one.latencies[0].rtt_s for one in seen]))
        own = rpm(np.concatenate([one.smoothed_s for one in seen]))
        row |= {"rpm_foreign": foreign, "rpm_self": own, "rpm": (foreign + own) / 2}
    queues = [one.queue for one in seen if one.queue is not None]
    row["queue_delay_mean_ms"] = mean_delay_s(queues) * 1e3
    for name, delay in zip(SHARES, delays_s(queues, list(SHARES.values())), strict=True):
        row[f"queue_{name.removesuffix('_s')}_ms"] = delay * 1e3
    row |= {name: total(queues, name.removeprefix("queue_")) for name in DROPS}
    done = pd.concat([one.completions for one in seen])
    if len(done):
        row |= {"transfers": len(done), **_completion(done)}
    row["converges_s"] = math.fsum(one.converges_s for one in seen) / len(seen)
    row |= application.columns([one.applications for one in seen])
    row[UTILIZATION] = 100 * math.fsum(one.utilization for one in seen) / len(seen)
    for name in seen[0].programs:
        row[name] = math.fsum(one.programs[name] for one in seen) / len(seen)
    return row


def measured(scenario: Scenario) -> list[str]:
    """Columns of numbers that the scenario's programs are asked for.

    Raises InputError ``conflict`` for a name that another column has, ``bad-measure`` for one that names no place.
    """
    found: list[str] = []
    for number, program in enumerate(scenario.programs):
        for name, place in program.measure.items():
            field = f"programs.{number}.measure.{name}"
            if name in (*STATISTICS, *COUNTERS, *MEASURES, *found):
                fix = f"give it another name, like my_{name}"
                raise InputError("conflict", f"there is a column {name} already", field=field, fix=fix)
            check_place(place, field=field)
            found.append(name)
    return found


def titles(scenario: Scenario) -> dict[str, str]:
    """``TITLES``, and those of the numbers that programs are asked for. Raises InputError as ``measured``."""
    return TITLES | {name: _title(name) for name in measured(scenario)}


def _title(column: str) -> str:
    """ "page load, s" for page_load_s."""
    ending = next((ending for ending in _UNITS if column.endswith(ending)), "")
    return column.removesuffix(ending).replace("_", " ") + _UNITS.get(ending, "")


def application_rows(key: Mapping[str, Any], seed: int | str, seen: Sequence[Measured]) -> list[dict[str, Any]]:
    """One row per flow whose source is an application."""
    return application.rows(key, seed, [one.applications for one in seen])


def latency_rows(key: Mapping[str, Any], seed: int | str, seen: Sequence[Measured]) -> list[dict[str, Any]]:
    """One row per probe, from one run or from several that differ only in their seeds."""
    return [
        {**key, "seed": seed, "probe": each[0].name, **_latency(each)}
        for each in zip(*(one.latencies for one in seen), strict=True)
    ]


def completion_rows(key: Mapping[str, Any], seed: int | str, seen: Sequence[Measured]) -> list[dict[str, Any]]:
    """One row per flow and size, or range of sizes."""
    import pandas as pd

    done = pd.concat([one.completions for one in seen])
    rows = []
    for flow, own in done.groupby("flow", sort=False):
        for low, high in bins(own["bytes"].to_numpy(dtype=float)):
            part = own[(own["bytes"] >= low) & (own["bytes"] <= high)]
            about = {"flow": flow, "bytes_from": low, "bytes_to": high, "transfers": len(part)}
            rows.append({**key, "seed": seed, **about, **_completion(part)})
    return rows


def _latency(each: Sequence[Latency]) -> dict[str, float]:
    """The latency columns of one probe, over seeds."""
    import numpy as np

    rtts = np.concatenate([one.rtt_s for one in each]) * 1e3
    answered = rtts[np.isfinite(rtts)]
    found = dict.fromkeys(LATENCY, math.nan) | {"latency_idle_ms": each[0].idle_s * 1e3}
    if rtts.size:
        found["latency_lost_percent"] = 100 * (1 - answered.size / rtts.size)
    if answered.size:
        shares = {"latency_p50_ms": 0.5, "latency_p95_ms": 0.95, "latency_p99_ms": 0.99}
        found |= {name: float(np.quantile(answered, share)) for name, share in shares.items()}
        found["latency_added_ms"] = found["latency_p50_ms"] - found["latency_idle_ms"]
    return found


def _completion(done: DataFrame) -> dict[str, float]:
    times, slowdowns = done["fct_s"].to_numpy(float) * 1e3, done["slowdown"].to_numpy(float)
    found = {
        f"{what}_{name}": quantile(samples, share)
        for what, samples in (("fct_ms", times), ("slowdown", slowdowns))
        for name, share in QUANTILES.items()
    }
    return {name: found[name] for name in ordered(found)}
