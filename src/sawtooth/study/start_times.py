"""Start times: if every seed gives the same result, shows how the result depends on the order and starts of flows.

Without randomness, a run is only one of many possible ones: which flow's packet finds the queue full depends on the
phase between the flows. So a point whose seeds agree in every byte is run again, once per seed and at most
``MOST_RUNS`` times. The first of these runs has the flows in the reverse order of the file. Each other run delays
starts by up to ``LATEST`` and lets a different flow start first. This at most doubles the time of a study. The means
are kept in ``starts.csv``; the point's own result does not change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sawtooth.engines import Engine, get
from sawtooth.errors import InputError, SawtoothError
from sawtooth.io.atomic_io import write_bytes
from sawtooth.io.csv import csv_text
from sawtooth.io.parallel import stop_requested
from sawtooth.run import table_digests
from sawtooth.scenario import Scenario, Span
from sawtooth.study.interval_text import MovedStarts
from sawtooth.study.shares import ALL, Shares
from sawtooth.study.store import STOP, point_directory
from sawtooth.study.study import Point
from sawtooth.study.worker import failed

if TYPE_CHECKING:
    from pandas import DataFrame

LATEST = Span(300_000_000)
"""The longest delay of a start, or 2% of the run if that is shorter: a late flow must not lower the mean noticeably."""
MOST_RUNS = 8
"""Runs of one point."""
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
    """The mean of each flow in Mbit/s (empty if the task was stopped), or the error."""

    point: str
    means: dict[str, float]
    error: SawtoothError | None = None


def to_try(directory: Path, points: Sequence[Point], engine: str | Engine) -> list[Task]:
    """What to run: the points with several flows whose seeds agree in every byte."""
    groups: dict[tuple[Any, ...], list[Point]] = {}
    for point in points:
        groups.setdefault(tuple(point.key.values()), []).append(point)
    found = []
    for group in groups.values():
        first = group[0]
        if len(group) < 2 or len(first.scenario.flows) < 2:
            continue
        if len(set(table_digests([point_directory(directory, point.id) for point in group], "intervals"))) > 1:
            continue
        tried = (shifted(first.scenario, number) for number in range(min(len(group), MOST_RUNS)))
        found += [Task(first.id, one.to_dict(), engine, directory / STOP) for one in tried if one is not None]
    return found


def latest(scenario: Scenario) -> Span:
    """The longest delay of a start for this scenario."""
    return min(LATEST, Span(scenario.duration.ns // 50))


def shifted(scenario: Scenario, number: int) -> Scenario | None:
    """For 0, the scenario with its flows in reverse order. For other numbers, one of the flows, in turn, on time and
    the others later; None if there is no room.

    The same number gives the same starts.
    """
    import numpy as np

    if number == 0:
        return reversed_order(scenario)
    flows = scenario.flows
    later = np.random.default_rng(number).integers(1, latest(scenario).ns // 1000 + 1, len(flows)) * 1000
    later[(number - 1) % len(flows)] = 0
    moved = {
        f"flows.{at}.start": str(Span(flow.start.ns + int(ns)))
        for at, (flow, ns) in enumerate(zip(flows, later, strict=True))
        if ns
    }
    try:
        return scenario.set(moved)
    except InputError:
        return None


def reversed_order(scenario: Scenario) -> Scenario | None:
    """The scenario with its flows in reverse order, each with the name that it has now."""
    given = scenario.to_dict()
    names = dict.fromkeys(flow.entry for flow in scenario.compile().flows)
    if len(names) != len(given["flows"]):
        return None
    named = [{"name": name} | flow for name, flow in zip(names, given["flows"], strict=True)]
    return Scenario.from_dict(given | {"flows": named[::-1]}, source=scenario.source)


def run_shifted(task: Task) -> Outcome:
    """Runs one task; never raises."""
    try:
        engine = get(task.engine) if isinstance(task.engine, str) else task.engine
        scenario = Scenario.from_dict(task.scenario, source=task.point)
        run = engine.run(scenario, stop=lambda: task.stop.exists() or stop_requested())
        return Outcome(task.point, means(Shares.of(run)))
    except Exception as error:
        return Outcome(task.point, {}, failed(task.point, error).error)


def means(seen: Shares) -> dict[str, float]:
    """Mbit/s by the flows' names, and of all flows together."""
    each = dict(zip(seen.names, map(float, seen.samples.mean(axis=0)), strict=True))
    return {**each, ALL: float(seen.samples.sum(axis=1).mean())}


def write(directory: Path, points: Sequence[Point], outcomes: Sequence[Outcome]) -> None:
    """Writes the means to ``starts.csv``: the point's id and key, the longest delay, flow, mean."""
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
    """Reads what ``write`` wrote, one row per flow of each run, with the flow "all" for the sum. Empty if nothing was
    tried."""
    import pandas as pd

    path = directory / FILE
    return pd.read_csv(path, dtype={"point": str, "flow": str}) if path.is_file() else pd.DataFrame()


def moved(tried: DataFrame, point: str, name: str, seen: Shares) -> MovedStarts | None:
    """The results with other starts at the point with that id; None if none were tried. ``seen`` is one of its runs."""
    own = tried[tried["point"] == point] if len(tried) else tried
    if not len(own):
        return None
    each = {flow: [mean, *own[own["flow"] == flow]["mean_mbps"].tolist()] for flow, mean in means(seen).items()}
    return MovedStarts(name, float(own["later_ms"].iloc[0]), each)
