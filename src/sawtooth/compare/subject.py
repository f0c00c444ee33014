"""Subject: one side of a comparison (a saved run or a study's results), divided into cells that can be matched."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sawtooth.errors import SawtoothError
from sawtooth.results import place
from sawtooth.run import Run, is_saved
from sawtooth.scenario import Span
from sawtooth.stats import COUNTERS, counters, observed, span, throughput

if TYPE_CHECKING:
    from numpy import ndarray
    from pandas import Series

ALL_FLOWS = "all flows"

_NO_SPAN = Span(0)
_TABLES = ("intervals", "tcp_info")


@dataclass
class Cell:
    """The unit of comparison: goodput in Mbit/s, one series per run, and counters."""

    series: list[Series[float]] = field(default_factory=list)
    counted: list[dict[str, float]] = field(default_factory=list)
    span_s: tuple[float, float] = (math.nan, math.nan)
    """The seconds of a run that ``series`` covers."""
    interval: Span = _NO_SPAN
    observed: int | None = None
    """As ``of_runs`` takes it."""

    def add(self, run: Run) -> None:
        """Adds a run with another seed."""
        self.observed = self.observed if self.series else observed(run)
        self.series.append(throughput(run))
        self.counted.append(counters(run))
        self.span_s, self.interval = span(run), run.scenario.interval

    def is_same(self, other: Cell) -> bool:
        """Whether every run of both cells is identical."""
        first = self.series[0]
        return all(first.equals(one) for one in (*self.series, *other.series))

    @property
    def samples(self) -> ndarray[Any, Any]:
        """All intervals of all runs, in Mbit/s."""
        import numpy as np

        return np.concatenate([one.to_numpy() for one in self.series])

    def counter(self, name: str) -> float:
        """The mean over all runs of one of ``stats.COUNTERS``."""
        return math.fsum(one[name] for one in self.counted) / len(self.counted)

    @property
    def retransmitted_percent(self) -> float:
        """Retransmissions per hundred segments sent."""
        sent = self.counter(COUNTERS[0])
        return 100 * self.counter("retransmits") / sent if sent > 0 else math.nan


@dataclass(frozen=True)
class Subject:
    """``cells`` by name, in order: a study's points, or the flows of a run. A scenario with repetitions is of kind
    ``run`` too. ``settings`` is the scenario with dotted names."""

    directory: Path
    kind: str
    engine: str
    cells: dict[str, Cell]
    settings: dict[str, Any]

    @property
    def span_s(self) -> tuple[float, float]:
        """The seconds that its means cover, over all cells: from the first to the last."""
        spans = [one.span_s for one in self.cells.values()]
        return min(one[0] for one in spans), max(one[1] for one in spans)

    @classmethod
    def load(cls, directory: Path | str, *, omit: str | None = None) -> Subject:
        """Reads what ``Run.save`` or a study wrote; ``omit`` replaces the warm-up of its scenarios.

        ``directory`` is a path, or a name as ``sawtooth.results.lookup`` accepts. Raises SawtoothError ``not-a-result``
        or ``file-not-found``, or ``out-of-range`` if ``omit`` leaves nothing.
        """
        where = place(directory)
        return _of_run(where, omit) if is_saved(where) else _of_study(where, omit)


def _run(where: Path, omit: str | None) -> Run:
    run = Run.load(where, tables=_TABLES)
    if omit is None:
        return run
    try:
        return dataclasses.replace(run, scenario=run.scenario.set({"warmup": omit}))
    except SawtoothError as error:
        raise type(error)(error.code, error.message, file=where, field="omit", fix=error.fix) from error


def _of_run(where: Path, omit: str | None) -> Subject:
    run = _run(where, omit)
    cells: dict[str, Cell] = {}
    _add(cells, run)
    return Subject(where, "run", run.engine, cells, _flat(run.scenario.to_dict()))


def _add(cells: dict[str, Cell], run: Run) -> None:
    """Adds all flows of a run together, and each flow if there are several."""
    cells.setdefault(ALL_FLOWS, Cell()).add(run)
    if len(run.scenario.flows) > 1:
        for index, name in enumerate(run.scenario.flow_names):
            cells.setdefault(name, Cell()).add(_only(run, index))


def _only(run: Run, flow: int) -> Run:
    tables = {name: table[table["flow"] == flow] for name, table in run.tables.items()}
    return dataclasses.replace(run, tables=tables)


def _of_study(where: Path, omit: str | None) -> Subject:
    from sawtooth.study import store
    from sawtooth.study.result import finished
    from sawtooth.study.study import ALONE
    from sawtooth.study.terminal import plain

    # Not its ``StudyResult``, for which each run would be read and summarized again.
    study, places, found = finished(where)
    cells: dict[str, Cell] = {}
    varies = any(set(point.key) != {ALONE} for point in places)
    for point in places:
        if not varies:
            _add(cells, _run(store.point_directory(where, point.id), omit))
            continue
        name = ", ".join(f"{key} {plain(value)}" for key, value in point.key.items())
        cells.setdefault(name, Cell()).add(_run(store.point_directory(where, point.id), omit))
    overrides = found.get("overrides", {})
    settings = _flat(study.scenario) | {str(name): value for name, value in overrides.items()}
    if omit is not None:
        settings["warmup"] = omit
    return Subject(where, "study" if varies else "run", found["engine"], cells, settings)


def _flat(value: Any, name: str = "") -> dict[str, Any]:
    """A nested dictionary by dotted path."""
    items: list[tuple[str, Any]]
    if isinstance(value, dict):
        items = [(str(key), one) for key, one in value.items()]
    elif isinstance(value, list):
        items = [(str(at), one) for at, one in enumerate(value)]
    else:
        return {name: value}
    found: dict[str, Any] = {}
    for key, one in items:
        found |= _flat(one, f"{name}.{key}" if name else key)
    return found
