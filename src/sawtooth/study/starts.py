"""Starts: where every seed gives the same, how much the result depends on when the flows start.

Without randomness a run is one of many that could have been: which flow's packet finds the queue full hangs on the
phase in which the flows meet. A point whose seeds agree to the byte is run again, once for each seed and at most
``MOST_RUNS`` times, with starts that are later by up to ``LATEST`` and another flow first each time. That at most
doubles the time of a study. The means are kept in ``starts.csv``; the result of the point itself does not change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sawtooth.engines import Engine, get
from sawtooth.errors import InputError, SawtoothError
from sawtooth.run import saved_checksum
from sawtooth.scenario import Scenario, Span
from sawtooth.storage import write_bytes
from sawtooth.study.means import Moved
from sawtooth.study.shares import ALL, Shares
from sawtooth.study.store import STOP, point_directory
from sawtooth.study.study import Point
from sawtooth.study.worker import failed
from sawtooth.tables import csv_text
from sawtooth.work import told_to_stop

if TYPE_CHECKING:
    from pandas import DataFrame

LATEST = Span(300_000_000)
"""Later than the file says, or 2% of the run where that is less: a mean must not fall by what a late flow misses."""
MOST_RUNS = 8
"""Of a point."""
FILE = "starts.csv"


@dataclass(frozen=True)
class Task:
    """A point with other starts. ``engine`` is a name, or an engine that can be pickled."""

    point: str
    scenario: dict[str, Any]
    engine: str | Engine
    stop: Path


@dataclass(frozen=True)
class Outcome:
    """The mean of each flow in Mbit/s, of none where the task was told to stop, or the error."""

    point: str
    means: dict[str, float]
    error: SawtoothError | None = None


def to_try(directory: Path, points: Sequence[Point], engine: str | Engine) -> list[Task]:
    """What is to be run: for the points whose seeds agree to the byte, where these have several flows."""
    groups: dict[tuple[Any, ...], list[Point]] = {}
    for point in points:
        groups.setdefault(tuple(point.key.values()), []).append(point)
    found = []
    for group in groups.values():
        first = group[0]
        if len(group) < 2 or len(first.scenario.flows) < 2:
            continue
        if len({saved_checksum(point_directory(directory, point.id), "intervals") for point in group}) > 1:
            continue
        tried = (shifted(first.scenario, number) for number in range(min(len(group), MOST_RUNS)))
        found += [Task(first.id, one.to_dict(), engine, directory / STOP) for one in tried if one is not None]
    return found


def latest(scenario: Scenario) -> Span:
    """By how much starts are moved at most."""
    return min(LATEST, Span(scenario.duration.ns // 50))


def shifted(scenario: Scenario, number: int) -> Scenario | None:
    """The scenario with its flows ``number`` modulo their count on time and the others later; None: there is no room.

    The same number gives the same starts.
    """
    import numpy as np

    flows = scenario.flows
    later = np.random.default_rng(number).integers(1, latest(scenario).ns // 1000 + 1, len(flows)) * 1000
    later[number % len(flows)] = 0
    moved = {
        f"flows.{at}.start": str(Span(flow.start.ns + int(ns)))
        for at, (flow, ns) in enumerate(zip(flows, later, strict=True))
        if ns
    }
    try:
        return scenario.set(moved)
    except InputError:
        return None


def run_shifted(task: Task) -> Outcome:
    """Runs one; never raises."""
    try:
        engine = get(task.engine) if isinstance(task.engine, str) else task.engine
        scenario = Scenario.from_dict(task.scenario, source=task.point)
        run = engine.run(scenario, stop=lambda: task.stop.exists() or told_to_stop())
        return Outcome(task.point, means(Shares.of(run)))
    except Exception as error:
        return Outcome(task.point, {}, failed(task.point, error).error)


def means(seen: Shares) -> dict[str, float]:
    """Mbit/s by the flows' names, and of all of them together."""
    each = dict(zip(seen.names, map(float, seen.samples.mean(axis=0)), strict=True))
    return {**each, ALL: float(seen.samples.sum(axis=1).mean())}


def write(directory: Path, points: Sequence[Point], outcomes: Sequence[Outcome]) -> None:
    """Keeps the means in ``starts.csv``: the point's id and key, how much later flows start at most, flow, mean."""
    import pandas as pd

    by_id = {point.id: point for point in points}
    rows = [
        {
            "point": one.point,
            **by_id[one.point].key,
            "later_ms": latest(by_id[one.point].scenario).ns / 1e6,
            "flow": flow,
            "mean_mbps": mbps,
        }
        for one in outcomes
        for flow, mbps in one.means.items()
    ]
    if rows:
        write_bytes(directory / FILE, csv_text(pd.DataFrame(rows)).encode())


def read(directory: Path) -> DataFrame:
    """What ``write`` kept, a row a flow of each run, with the flow "all" for the sum. Empty where nothing was tried."""
    import pandas as pd

    path = directory / FILE
    return pd.read_csv(path, dtype={"point": str, "flow": str}) if path.is_file() else pd.DataFrame()


def moved(tried: DataFrame, point: str, name: str, seen: Shares) -> Moved | None:
    """What other starts changed at the point with that id; ``seen`` is one of its runs. None: they were not tried."""
    own = tried[tried["point"] == point] if len(tried) else tried
    if not len(own):
        return None
    each = {flow: [mean, *own[own["flow"] == flow]["mean_mbps"].tolist()] for flow, mean in means(seen).items()}
    return Moved(name, float(own["later_ms"].iloc[0]), each)
