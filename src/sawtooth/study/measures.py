"""Measures in a study's table besides goodput: latency under load, responsiveness, the bottleneck's queue, completion
times, time to converge, and applications. Several seeds are one sample: their probes, packets and transfers together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sawtooth.errors import InputError
from sawtooth.io.table_store import Rows
from sawtooth.programs.measure import check_place
from sawtooth.run import Run
from sawtooth.scenario import Scenario
from sawtooth.stats import (
    COUNTERS,
    STATISTICS,
    Application,
    Latency,
    applications,
    converges_s,
    latencies,
    rpm,
    smoothed_s,
    utilization,
)
from sawtooth.stats.completion import QUANTILES, bins, quantile, transfers
from sawtooth.stats.queueing import SHARES, Queueing, bottleneck, delays_s, mean_delay_s, total
from sawtooth.study import application
from sawtooth.study.measure import Measure

if TYPE_CHECKING:
    from numpy import ndarray

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
UTILIZATION = "utilization_percent"


@dataclass(frozen=True)
class Group:
    """Measures from one source. ``meaning``: what they are of, for the documentation. Their values over runs that
    differ only in their seeds are what ``values`` computes, or ``scale`` times the mean of ``of``, a function of a run
    and its bottleneck's queue."""

    measures: tuple[Measure, ...]
    meaning: str
    values: Callable[[Sequence[Measured]], Mapping[str, float]] | None = None
    of: Callable[[Run, Queueing | None], float] | None = None
    scale: float = 1.0

    def computed(self, seen: Sequence[Measured]) -> Mapping[str, float]:
        """The values by column; a missing one is unknown."""
        if self.values is not None:
            return self.values(seen)
        name = self.measures[0].name
        return {name: self.scale * math.fsum(one.values[name] for one in seen) / len(seen)}


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
    completions: Rows
    applications: tuple[Application, ...]
    values: Mapping[str, float]
    """Measures that are one number of a run."""
    programs: Mapping[str, float]
    """Numbers that programs are asked for."""

    @classmethod
    def of(cls, run: Run) -> Measured:
        """From a run with all its tables."""
        queue = bottleneck(run, _READ)
        return cls(
            tuple(latencies(run)),
            smoothed_s(run),
            None if queue is None else Queueing(queue.name, queue.table.only(_OF_QUEUE)),
            transfers(run),
            tuple(applications(run)),
            {group.measures[0].name: group.of(run, queue) for group in GROUPS if group.of is not None},
            run.measured,
        )


_OF_QUEUE = ("sent_packets", "delay_mean_s", *SHARES, *(name.removeprefix("queue_") for name in DROPS))
"""The columns of a queue's table that measures use. The others would be sent from workers for nothing."""
_READ = (*_OF_QUEUE, "sent_bytes")
"""And what the utilization needs."""


def _first_probe(seen: Sequence[Measured]) -> Mapping[str, float]:
    if not all(one.latencies for one in seen):
        return {}
    return _latency([one.latencies[0] for one in seen])


def _responsiveness(seen: Sequence[Measured]) -> Mapping[str, float]:
    import numpy as np

    if not all(one.latencies for one in seen):
        return {}
    foreign = rpm(np.concatenate([one.latencies[0].rtt_s for one in seen]))
    own = rpm(np.concatenate([one.smoothed_s for one in seen]))
    return {"rpm_foreign": foreign, "rpm_self": own, "rpm": (foreign + own) / 2}


def _delays(seen: Sequence[Measured]) -> Mapping[str, float]:
    queues = [one.queue for one in seen if one.queue is not None]
    found = {"queue_delay_mean_ms": mean_delay_s(queues) * 1e3}
    for name, delay in zip(SHARES, delays_s(queues, list(SHARES.values())), strict=True):
        found[f"queue_{name.removesuffix('_s')}_ms"] = delay * 1e3
    return found


def _drops(seen: Sequence[Measured]) -> Mapping[str, float]:
    queues = [one.queue for one in seen if one.queue is not None]
    return {name: total(queues, name.removeprefix("queue_")) for name in DROPS}


def _transfers(seen: Sequence[Measured]) -> Mapping[str, float]:
    done = Rows.joined([one.completions for one in seen])
    return {"transfers": len(done), **_completion(done)} if len(done) else {}


def _of_kind(kind: str) -> Callable[[Sequence[Measured]], Mapping[str, float]]:
    def values(seen: Sequence[Measured]) -> Mapping[str, float]:
        every = [one.applications for one in seen]
        return application.of_kind(kind, every) if any(every) else {}

    return values


_PLACES = {"p50": "median", "p90": "90th percentile", "p95": "95th percentile", "p99": "99th percentile"}
_PLACES["p999"] = "99.9th percentile"
BASIC = (
    Measure("mean_mbps", "goodput, Mbit/s", aliases=("goodput", "throughput")),
    Measure("segments_out", counts=True),
    Measure("retransmits", "retransmissions per run", counts=True),
    Measure("timeouts", "timeouts per run", counts=True),
    Measure("tail_probes", counts=True),
    Measure("mean_srtt_ms", "mean smoothed RTT, ms"),
)
"""Those statistics of goodput and senders' counters that have a title, or that count."""
GROUPS = (
    Group(
        (
            Measure("latency_idle_ms"),
            *(Measure(f"latency_{at}_ms", f"latency under load, {_PLACES[at]}, ms") for at in ("p50", "p95", "p99")),
            Measure("latency_added_ms", "latency added by load, median, ms"),
            Measure("latency_lost_percent", "probes lost, %"),
        ),
        "round trips of the scenario's first probe after the warm-up: on the empty path, three percentiles, the median "
        "minus the empty path's, the share lost",
        _first_probe,
    ),
    Group(
        (
            Measure("rpm", "responsiveness, round trips a minute"),
            Measure("rpm_foreign", "responsiveness to others, round trips a minute"),
            Measure("rpm_self", "responsiveness to itself, round trips a minute"),
        ),
        "responsiveness in round trips per minute",
        _responsiveness,
    ),
    Group(
        (
            Measure("queue_delay_mean_ms", "queue delay, mean, ms"),
            *(Measure(f"queue_delay_{at}_ms", f"queue delay, {_PLACES[at]}, ms") for at in ("p50", "p95", "p99")),
        ),
        "packets that left the first flow's bottleneck: the transmitter with the lowest rate on its data's path",
        _delays,
    ),
    Group(
        (
            Measure("queue_drops", "drops at the bottleneck per run", counts=True),
            Measure("queue_early_drops", "early drops at the bottleneck per run", counts=True),
            Measure("queue_marks", "marks at the bottleneck per run", counts=True),
        ),
        "the same transmitter",
        _drops,
    ),
    Group(
        (
            Measure("transfers", counts=True),
            *(
                Measure(f"{what}_{name}", f"{title}, {_PLACES[name]}{unit}", last=name == "p95")
                for what, title, unit in (("fct_ms", "completion time", ", ms"), ("slowdown", "slowdown", ""))
                for name in QUANTILES
            ),
        ),
        "transfers of all flows that started after the warm-up and ended; a percentile is empty if fewer than one "
        "transfer is above it on average",
        _transfers,
    ),
    Group(
        (Measure("converges_s", "time to converge, s"),),
        "seconds from the start of the last flow until shares are fair; over seeds the mean, empty if a seed has none",
        of=lambda run, _: converges_s(run),
    ),
    *(Group(kind.measures, kind.meaning, _of_kind(name)) for name, kind in application.KINDS.items()),
    Group(
        (Measure(UTILIZATION, "utilization of the bottleneck, %", aliases=("utilization",), last=True),),
        "the bottleneck's bytes on the wire after the warm-up, as a share of what its rate allows in that time",
        of=utilization,
        scale=100.0,
    ),
)
"""All measures, by what they are of."""
RECORDS = (*BASIC, *(one for group in GROUPS for one in group.measures))
_LAST = {one.name for one in RECORDS if one.last}


def ordered(columns: Iterable[str]) -> list[str]:
    """The columns in order, with those that were added to the tables later at the end."""
    return sorted(columns, key=_LAST.__contains__)


MEASURES = tuple(ordered(one.name for group in GROUPS for one in group.measures))
"""Columns of a study's table; NaN if a run has nothing to measure them by."""
TITLES = {one.name: one.title for one in RECORDS if one.title}
"""Columns that figures draw, with their titles."""
ALIASES = {alias: one.name for one in RECORDS for alias in one.aliases}
"""Other names for columns, in goals and expectations."""


def columns(seen: Sequence[Measured]) -> dict[str, float]:
    """The values of ``MEASURES``, from runs that differ only in their seeds. Latency and responsiveness are of the
    first probe."""
    row = dict.fromkeys(MEASURES, math.nan)
    for group in GROUPS:
        row |= group.computed(seen)
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
    done = Rows.joined([one.completions for one in seen])
    rows = []
    for flow in dict.fromkeys(done["flow"].tolist()):
        own = done[done["flow"] == flow]
        for low, high in bins(own["bytes"].astype(float)):
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


def _completion(done: Rows) -> dict[str, float]:
    times, slowdowns = done["fct_s"] * 1e3, done["slowdown"]
    found = {
        f"{what}_{name}": quantile(samples, share)
        for what, samples in (("fct_ms", times), ("slowdown", slowdowns))
        for name, share in QUANTILES.items()
    }
    return {name: found[name] for name in ordered(found)}
