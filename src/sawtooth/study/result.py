"""StudyResult: the runs of a study, summarized, with the figures that others published."""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sawtooth.errors import SawtoothError
from sawtooth.io.atomic_io import checksum, not_a_result, reason, write_bytes
from sawtooth.io.collector import paused
from sawtooth.io.csv import csv_text
from sawtooth.io.displayable import Drawn
from sawtooth.run import Run
from sawtooth.stats import (
    COUNTERS,
    STATISTICS,
    change_percent,
    describe,
    of_runs,
)
from sawtooth.stats.interval import SAME
from sawtooth.study import directions, measures, shares, start_times, store
from sawtooth.study import published as published_figures
from sawtooth.study.axis import text
from sawtooth.study.interval_text import Course, MovedStarts, beginnings, outlying, unchanging
from sawtooth.study.mean_counts import per_run
from sawtooth.study.measures import Measured
from sawtooth.study.point_summary import TABLES, PointSummary
from sawtooth.study.published import Published
from sawtooth.study.shares import ALL
from sawtooth.study.study import ALONE, Study
from sawtooth.study.terminal import table

if TYPE_CHECKING:
    from pandas import DataFrame

_FIGURE = re.compile(r"[0-9]+(?:\.[0-9]+)?")


@dataclass(frozen=True)
class Place:
    """Where a point's run is stored, and the values of its key columns."""

    id: str
    key: dict[str, Any]
    seed: int


_Group = list[tuple[Place, PointSummary]]
"""The runs of one point: the same key, different seeds."""


def finished(directory: Path) -> tuple[Study, list[Place], dict[str, Any]]:
    """A finished study, the places of its runs, and study.json. Reads no run. Raises SawtoothError ``not-a-result``."""
    found = store.describe(directory)
    if found["finished"] is None:
        fix = "run the same command again: it continues where it stopped"
        raise SawtoothError("not-a-result", "the study is not finished", file=directory, fix=fix)
    path = directory / store.DESCRIPTION
    try:
        study = Study.from_dict(found["study"])
        names = [axis.column for axis in study.axes()] or [ALONE]
    except SawtoothError as error:
        raise not_a_result(f"{error.field}: {error.message}", path) from error
    if any(list(point["key"]) != names for point in found["points"]):
        raise not_a_result(f"has points without the columns {', '.join(names)}", path)
    return study, [Place(point["id"], point["key"], point["seed"]) for point in found["points"]], found


@dataclass(frozen=True, repr=False)
class StudyResult(Drawn):
    """What a study found, as tables.

    - ``summary``: fixed columns (engine, the study's key columns, seed, the statistics, published_mean_mbps), one row
      per run and one with seed "all".
    - ``details``: adds intervals, changes, counters and all published figures.
    - ``samples``: goodput in Mbit/s, one row per interval.
    - ``shares``: one row per flow if scenarios have several: mean, deviation, share of the sum, and Jain's index over
      its connections and over all.
    - ``latency``: one row per probe. ``completions``: one row per flow and size of transfers that end.
    - ``applications``: one row per flow that is an application.
    - ``limits``: what limits each flow of each run, as in ``Run.limits``, with the run's key columns and ``seed``.
    - ``description``: study.json.

    docs/reference/tables.md lists the columns.
    """

    study: Study
    engine: str
    directory: Path
    places: tuple[Place, ...]
    published: Published | None
    summary: DataFrame
    details: DataFrame
    samples: DataFrame
    shares: DataFrame
    latency: DataFrame
    completions: DataFrame
    applications: DataFrame
    moved: tuple[MovedStarts | None, ...]
    """For each row of ``pooled``: the result with other starts of the flows; None if they were not tried."""
    warnings: tuple[str, ...]
    limits: tuple[dict[str, Any], ...]
    overrides: Mapping[str, Any]
    """The fields that were set, as in ``description``."""

    @classmethod
    @paused()
    def build(
        cls,
        study: Study,
        engine: str,
        directory: Path,
        places: Iterable[Place],
        published: Published | None,
        summaries: Mapping[str, PointSummary] | None = None,
    ) -> StudyResult:
        """Summarizes the saved runs under ``directory``, except those whose ``summaries`` are there by the point's id.
        Raises SawtoothError ``not-a-result`` if one is missing."""
        import numpy as np
        import pandas as pd

        kept = tuple(places)
        groups: dict[tuple[Any, ...], _Group] = {}
        warnings: dict[str, tuple[str, list[str]]] = {}
        series: list[PointSummary] = []
        limits: list[dict[str, Any]] = []
        single: dict[tuple[Any, ...], str] = {}
        mixed: defaultdict[tuple[Any, ...], list[tuple[Place, shares.Shares]]] = defaultdict(list)
        for place in kept:
            key = tuple(place.key.values())
            seen = (summaries or {}).get(place.id)
            if seen is None:
                seen = PointSummary.of(Run.load(store.point_directory(directory, place.id), tables=TABLES))
            if seen.shares is not None:
                mixed[key].append((place, seen.shares))
            elif seen.flows:
                single[key] = seen.flows[0]
            series.append(seen)
            groups.setdefault(key, []).append((place, seen))
            limits += [{**place.key, "seed": place.seed, **one} for one in seen.limits]
            for warning in seen.warnings:
                # Sentences that differ only in their figures become one warning.
                warnings.setdefault(_FIGURE.sub("#", warning), (warning, []))[1].append(place.id)
        rows = [row for group in groups.values() for row in _rows(engine, group)]
        _compare(rows, list(kept[0].key), study, published)
        details = pd.DataFrame(rows)
        details = details[measures.ordered(list(details.columns))]
        tried = start_times.read(directory)
        moved = tuple(
            start_times.moved(tried, group[0][0].id, _name(group[0][0]), mixed[key][0][1]) if key in mixed else None
            for key, group in groups.items()
        )
        columns = ["engine", *kept[0].key, "seed", *STATISTICS, "published_mean_mbps"]
        samples = pd.DataFrame([{**place.key, "seed": place.seed} for place in kept])
        samples = samples.loc[np.repeat(np.arange(len(kept)), [len(one.samples) for one in series])].reset_index(
            drop=True
        )
        samples["t_s"] = np.concatenate([one.ends_s for one in series])
        samples["mbps"] = np.concatenate([one.samples for one in series])
        sentences = [_sentence(text, ids, len(kept)) for text, ids in warnings.values()]
        if not study.is_of_probes:
            courses = [_course(group) for group in groups.values()]
            pooled = [row for row in rows if row["seed"] == ALL]
            several = any(row["ci_of"] == SAME and key in mixed for row, key in zip(pooled, groups, strict=True))
            sentences += beginnings(courses) + outlying(courses)
            sentences += unchanging(pooled, several, [one for one in moved if one is not None])
        changed = store.describe(directory)["overrides"]
        if changed and published is not None:
            fields = ", ".join(f"{field} = {text(value)}" for field, value in changed.items())
            sentences.append(f"the published figures were not made with what was set here: {fields}")
        alone = _Alone.of(study, rows, single)
        shared = pd.DataFrame([row for group in mixed.values() for row in _share_rows(engine, group, alone)])
        of_probes, of_transfers, of_applications = (
            pd.DataFrame([row for group in groups.values() for row in _measured_rows(engine, group, rows_of)])
            for rows_of in (measures.latency_rows, measures.completion_rows, measures.application_rows)
        )
        tables = details[columns], details, samples, shared, of_probes, of_transfers, of_applications
        return cls(study, engine, directory, kept, published, *tables, moved, tuple(sentences), tuple(limits), changed)

    @classmethod
    def load(cls, directory: Path | str) -> StudyResult:
        """Reads a finished study's directory. Raises SawtoothError ``not-a-result`` for anything else."""
        where = Path(directory)
        study, places, found = finished(where)
        return cls.build(study, found["engine"], where, places, _published(where, found.get("published")))

    @property
    def description(self) -> dict[str, Any]:
        """study.json: the question, the versions, and when it started and finished."""
        return store.describe(self.directory)

    @property
    def pooled(self) -> DataFrame:
        """The rows of ``details`` for all seeds together."""
        return self.details[self.details["seed"] == ALL].reset_index(drop=True)

    def mean(self) -> DataFrame:
        """One row per point: means over its seeds, counts per run. The same as ``pooled``."""
        return self.pooled

    @cached_property
    def probed(self) -> DataFrame:
        """Estimates from probes compared with what flows got, one row per window; see docs/reference/study.md."""
        from sawtooth.study.probe_windows import measured

        return measured(self.study, self.directory, self.places)

    @cached_property
    def opposite(self) -> list[list[str]]:
        """The names of the flows in each direction; empty if all go the same way."""
        return directions.opposite(self)

    @cached_property
    def flows(self) -> dict[tuple[Any, ...], list[dict[str, Any]]]:
        """The rows of ``shares`` for all seeds together, by point."""
        found: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
        if not self.shares.empty:
            for found_row in self.shares[self.shares["seed"] == ALL].to_dict("records"):
                row = {str(name): value for name, value in found_row.items()}
                found.setdefault(tuple(row[key] for key in self.places[0].key), []).append(row)
        return found

    def only(self, points: Set[tuple[Any, ...]]) -> StudyResult:
        """The result of these points, given by the values of their key columns."""
        keys = list(self.places[0].key)

        def of(table: DataFrame) -> DataFrame:
            here = [one in points for one in table[keys].itertuples(index=False, name=None)] if len(table) else []
            return table[here].reset_index(drop=True) if len(table) else table

        every = self.pooled[keys].itertuples(index=False, name=None)
        return replace(
            self,
            places=tuple(place for place in self.places if tuple(place.key.values()) in points),
            moved=tuple(moved for moved, one in zip(self.moved, every, strict=True) if one in points),
            summary=of(self.summary),
            details=of(self.details),
            samples=of(self.samples),
            shares=of(self.shares),
            latency=of(self.latency),
            completions=of(self.completions),
            applications=of(self.applications),
        )

    @cached_property
    def by_seed(self) -> list[list[float]]:
        """The means of each point's seeds in Mbit/s, in the order of ``pooled``."""
        single = self.details[self.details["seed"] != ALL]
        found: dict[tuple[Any, ...], list[float]] = {}
        keys = single[list(self.places[0].key)].itertuples(index=False, name=None)
        for key, mean in zip(keys, single["mean_mbps"].tolist(), strict=True):
            found.setdefault(key, []).append(mean)
        return list(found.values())

    @cached_property
    def records(self) -> list[dict[str, Any]]:
        """``pooled`` as a list of dictionaries, one per row."""
        return [{str(name): value for name, value in row.items()} for row in self.pooled.to_dict("records")]

    def run(self, place: Place) -> Run:
        """The saved run of a point, with all tables."""
        return Run.load(store.point_directory(self.directory, place.id))

    def write_tables(self) -> None:
        """Writes summary.csv and table.csv and, if there are rows for them, shares.csv, latency.csv, completions.csv,
        applications.csv and published.csv."""
        write_bytes(self.directory / "summary.csv", csv_text(self.summary).encode())
        write_bytes(self.directory / "table.csv", csv_text(self.details).encode())
        for name in ("shares", "latency", "completions", "applications"):
            found = getattr(self, name)
            if not found.empty:
                write_bytes(self.directory / f"{name}.csv", csv_text(found).encode())
        if self.published is not None:
            figures = self.published.figures.assign(
                trusted=self.published.figures["trusted"].map({True: "yes", False: "no"})
            )
            write_bytes(self.directory / "published.csv", csv_text(figures).encode())

    def published_described(self) -> dict[str, Any] | None:
        """What study.json says about the published figures, with the SHA-256 of published.csv."""
        if self.published is None:
            return None
        about = {name: value for name, value in vars(self.published).items() if name != "figures"}
        return about | {"sha256": checksum(self.directory / "published.csv")}

    def describe(self) -> dict[str, Any]:
        """The result as JSON values; unknown values are null. ``rows`` are those of table.csv."""
        tables = {"rows": self.details, "shares": self.shares, "latency": self.latency}
        tables |= {"completions": self.completions, "applications": self.applications}
        tables |= {"starts": start_times.read(self.directory)}
        return {
            "study": self.study.name,
            "title": self.study.title,
            "engine": self.engine,
            "results": str(self.directory),
            "warnings": list(self.warnings),
            "limits": list(self.limits),
            **{name: json.loads(table.to_json(orient="records")) for name, table in tables.items()},
        }

    def table(self, width: int | None = None) -> str:
        """The terminal's table: one line per point over all seeds, with published means if there are some. Of more than
        100 points, it shows those with the lowest and the highest goodput; without goodput, the first and the last.

        ``width`` is in characters: columns that do not fit follow in a second table below.
        """
        return table(self, width)


def _published(where: Path, about: dict[str, Any] | None) -> Published | None:
    """The published figures with which the results were compared at that time."""
    if about is None:
        return None
    path = where / "published.csv"
    try:
        digest = checksum(path)
        table = published_figures.load("published.csv", beside=where).figures
    except (OSError, SawtoothError) as error:
        raise not_a_result(f"is not the table that was saved: {reason(error)}", path) from error
    # Results may lack a checksum.
    if about.get("sha256") not in (None, digest):
        raise not_a_result("is damaged: it is not what was saved (its SHA-256 differs)", path)
    return Published(about["name"], table, about["source"], about["setting"], tuple(about["caveats"]))


def rows_of(engine: str, runs: Sequence[tuple[int, Run]]) -> list[dict[str, Any]]:
    """Rows of ``StudyResult.details`` for one scenario's runs: one per seed, and one for all seeds."""
    return _rows(engine, [(Place("", {}, seed), PointSummary.of(run)) for seed, run in runs])


def row_of(engine: str, place: Place, run: Run) -> dict[str, Any]:
    """One run's row of ``StudyResult.details``, without comparisons."""
    return _row(engine, place.seed, [(place, PointSummary.of(run))])


def _sentence(text: str, ids: list[str], points: int) -> str:
    if len(ids) == points:
        return f"{text} (all {points} points; this one: {ids[0]})" if points > 1 else text
    return f"{text} ({len(ids)} of {points} points; this one: {ids[0]})"


def _name(place: Place) -> str:
    """A point in words: "cc cubic, loss 1%"."""
    return ", ".join(f"{name} {text(value)}" for name, value in place.key.items() if name != ALONE)


def _course(group: _Group) -> Course:
    place, first = group[0]
    seeds = [place.seed for place, _ in group]
    return Course(_name(place), [seen.samples for _, seen in group], first.span_s[0], first.interval, seeds)


def _rows(engine: str, group: _Group) -> list[dict[str, Any]]:
    """The rows of one point: one per seed and one for all."""
    rows = [_row(engine, one[0].seed, [one]) for one in group]
    return [*rows, rows[0] | {"seed": ALL} if len(rows) == 1 else _row(engine, ALL, group)]


@dataclass(frozen=True)
class _Alone:
    """The goodput that flows get alone: from points of the study that differ only in their flows and have only that
    one."""

    column: str | None
    """The column of the flows, if they vary."""
    mbps: dict[tuple[Any, ...], dict[str, float]]

    @classmethod
    def of(cls, study: Study, rows: list[dict[str, Any]], single: dict[tuple[Any, ...], str]) -> _Alone:
        """``single`` maps the key of each point with a single flow to its name; ``rows`` are the study's, for each seed
        and for all."""
        axes = study.axes()
        column = next((axis.column for axis in axes if axis.field == "flows"), None)
        found = cls(column, defaultdict(dict))
        for row in rows if column is not None else []:
            key = {axis.column: row[axis.column] for axis in axes}
            if tuple(key.values()) in single:
                found.mbps[found._place(key, row["seed"])][single[tuple(key.values())]] = row["mean_mbps"]
        return found

    def beside(self, key: dict[str, Any], seed: int | str) -> dict[str, float]:
        """Goodput alone in Mbit/s, by the flows' names, for a point with several flows."""
        return self.mbps.get(self._place(key, seed), {})

    def _place(self, key: dict[str, Any], seed: int | str) -> tuple[Any, ...]:
        return (seed, *(value for name, value in key.items() if name != self.column))


def _share_rows(engine: str, group: list[tuple[Place, shares.Shares]], alone: _Alone) -> list[dict[str, Any]]:
    """One row per flow for each seed of a point, and for all seeds."""
    key = group[0][0].key
    seeds: list[tuple[int | str, list[shares.Shares]]] = [(place.seed, [seen]) for place, seen in group]
    found = []
    for seed, seen in [*seeds, (ALL, [seen for _, seen in group])]:
        found += [per_run(row, len(seen)) for row in shares.rows(key, seed, seen, alone.beside(key, seed))]
    return [{"engine": engine, **row} for row in found]


def _measured_rows(
    engine: str,
    group: _Group,
    rows_of: Callable[[dict[str, Any], int | str, list[Measured]], list[dict[str, Any]]],
) -> list[dict[str, Any]]:
    """Rows for each seed of a point, and for all seeds."""
    key = group[0][0].key
    found = [row for place, seen in group for row in rows_of(key, place.seed, [seen.measured])]
    together = rows_of(key, ALL, [seen.measured for _, seen in group])
    return [{"engine": engine, **row} for row in [*found, *(per_run(row, len(group)) for row in together)]]


def _row(engine: str, seed: int | str, group: _Group) -> dict[str, Any]:
    """The row of one run, or of several that differ only in their seeds."""
    import numpy as np

    (place, first), every = group[0], [seen for _, seen in group]
    whole = np.concatenate([seen.samples for seen in every])
    row: dict[str, Any] = {"engine": engine, **place.key, "seed": seed, **describe(whole)}
    series = [seen.samples for seen in every]
    interval = of_runs(series, observed=first.observed, most=first.most_mbps) if whole.size else None
    # If nothing varies, as on the engine model, an interval of zero width would claim knowledge that nobody measured.
    varies = interval is not None and interval.high > interval.low
    row |= {
        "from_s": first.span_s[0],
        "to_s": first.span_s[1],
        "ci_low_mbps": interval.low if interval and varies else math.nan,
        "ci_high_mbps": interval.high if interval and varies else math.nan,
        "ci_of": interval.of if interval else "",
        "ci_n": interval.n if interval else 0,
    }
    for name in COUNTERS:
        row[name] = math.fsum(seen.counted[name] for seen in every) / len(every)
    return row | per_run(measures.columns([seen.measured for seen in every]), len(every))


def _compare(rows: list[dict[str, Any]], names: list[str], study: Study, published: Published | None) -> None:
    """Adds to each row its change against the baseline, and the published figures of its point."""
    roles = study.roles()
    found = {(row["seed"], *(row[name] for name in names)): row["mean_mbps"] for row in rows}
    for row in rows:
        at_baseline = {name: row[name] for name in names} | {roles.x: roles.baseline}
        baseline = found.get((row["seed"], *at_baseline.values()), math.nan)
        row["change_percent"] = change_percent(row["mean_mbps"], baseline)
        key = {name: row[name] for name in names}
        for statistic in STATISTICS[1:]:
            row[f"published_{statistic}"] = published.figure(key, statistic) if published else math.nan
        mean = row["published_mean_mbps"]
        before = published.figure(at_baseline) if published else math.nan
        row["published_change_percent"] = change_percent(mean, before)
        row["ratio"] = row["mean_mbps"] / mean if mean > 0 else math.nan
