"""The results of a study's points by which it is judged: the tables of a result, or the rows of a dataset."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sawtooth.assertions.combined_estimate import Sample
from sawtooth.errors import InputError
from sawtooth.scenario import Scenario
from sawtooth.scenario.expressions import Amount, Dimension, Measure
from sawtooth.stats import Interval
from sawtooth.study import Dataset, Study, StudyResult
from sawtooth.study.axis import Axis, text
from sawtooth.study.expectation import COLUMNS, column_of, field_of, is_field, parts_of, point_of, read
from sawtooth.study.result import Place
from sawtooth.study.shares import ALL
from sawtooth.study.study import ALONE, Point

if TYPE_CHECKING:
    from pandas import DataFrame

_TABLES = ("shares", "latency", "completions", "applications")
_WHOLE = "give --out a directory, or expect a measure of whole points"


@dataclass(frozen=True)
class Observations:
    """``details`` has one row per run, ``parts`` the tables of flows and probes by name; ``changed``: by ``--set``."""

    study: Study
    axes: list[Axis]
    places: Sequence[Place]
    changed: bool
    details: DataFrame
    parts: Mapping[str, DataFrame]
    scenario: Callable[[Place], Scenario]

    @classmethod
    def of(cls, found: StudyResult | Dataset) -> Observations:
        """Reads a result or a dataset. Raises SawtoothError ``not-a-result`` for a dataset that lacks rows of its
        study."""
        return cls._of_dataset(found) if isinstance(found, Dataset) else cls._of_result(found)

    @classmethod
    def _of_result(cls, result: StudyResult) -> Observations:
        changes = result.overrides
        return cls(
            result.study,
            result.study.axes(changes),
            result.places,
            bool(changes),
            result.details,
            {name: getattr(result, name) for name in _TABLES},
            lambda place: result.run(place).scenario,
        )

    @classmethod
    def _of_dataset(cls, dataset: Dataset) -> Observations:
        described, rows = dataset.contents()
        study, changes = Study.from_dict(described["study"]), described["overrides"]
        points = study.points(full=described["full"], seeds=described["seeds"], overrides=changes)
        by_id = {point.id: point for point in points}
        places = [Place(point.id, point.key, point.seed) for point in points]
        return cls(study, study.axes(changes), places, bool(changes), rows, {}, lambda place: by_id[place.id].scenario)

    @property
    def seeds(self) -> list[int]:
        """The seeds of the points."""
        return sorted({place.seed for place in self.places})

    def sample(self, measure: Measure, case: Mapping[str, Any]) -> tuple[Sample, Dimension]:
        """The values of a measure. Raises SawtoothError if there is no such point or column."""
        import numpy as np

        key = point_of(measure, self.axes, case)
        if is_field(measure):
            return self._field(measure, key)
        parts = parts_of(measure)
        names = {name: list(table.columns) for name, table in self.parts.items()} if parts else {}
        having = [one for one, columns in names.items() if {column_of(measure), *parts} <= set(columns)]
        if not having and self._is_only_flow(parts, key):
            # Columns of all flows together.
            parts = {}
        if parts and not self.parts:
            raise _without_parts(measure)
        if parts and not having:
            fix = "sawtooth query lists the tables, or docs/reference/tables.md"
            raise InputError("unknown-name", f"no table of this study has {measure}", fix=fix)
        table = self.parts[having[0]] if having else self.details
        column = column_of(measure)
        if column not in table.columns:
            raise InputError(
                "unknown-name",
                f"this study's table has no column {column}",
                fix="choose a column in the first line of table.csv",
            )
        rows = _rows(table, key | parts, str(measure))
        rows = rows[rows["seed"] != ALL]
        amount = Amount.of_column(column, rows[column].to_numpy(dtype=float))
        return Sample(np.asarray(amount.value), self._within(measure, parts, rows)), amount.dimension

    def _is_only_flow(self, parts: Mapping[str, Any], key: Mapping[str, Any]) -> bool:
        place = self._place(key)
        return place is not None and _is_only_flow(parts, self.scenario(place))

    def _place(self, key: Mapping[str, Any]) -> Place | None:
        return next((one for one in self.places if _has(one.key, key)), None)

    def _within(self, measure: Measure, parts: Mapping[str, Any], rows: DataFrame) -> Interval | None:
        """The interval within the single run, which goodput has."""
        if len(rows) != 1 or parts or column_of(measure) != "mean_mbps":
            return None
        row = rows.iloc[0]
        if int(row["ci_n"]) > 1 and math.isnan(row["ci_low_mbps"]):
            # Nothing varies within the run.
            mean = float(Amount.of_column("mean_mbps", float(row["mean_mbps"])).value)
            return Interval(mean, mean, mean, int(row["ci_n"]))
        columns = ("mean_mbps", "ci_low_mbps", "ci_high_mbps")
        mean, low, high = (float(Amount.of_column("mean_mbps", float(row[name])).value) for name in columns)
        return Interval(mean, low, high, int(row["ci_n"]))

    def _field(self, measure: Measure, key: Mapping[str, Any]) -> tuple[Sample, Dimension]:
        import numpy as np

        place = self._place(key)
        if place is None:
            raise InputError("unknown-name", f"no point has {_key_text(key)}", fix="run the study without --set")
        amount = field_of(self.scenario(place), measure.name)
        return Sample(np.full(len(self.seeds), float(amount.value))), amount.dimension


def refuse_parts(expect: Mapping[str, str] | None, points: Sequence[Point]) -> None:
    """Raises SawtoothError ``unsupported`` if a study expects something of a flow or probe, for which a dataset has no
    rows. This is checked before its points are run."""
    for expected in read(expect):
        for one in expected.wanted.measures:
            parts = parts_of(one)
            if not parts:
                continue
            # A point reads its scenario at each use.
            if column_of(one) not in COLUMNS or not any(_is_only_flow(parts, point.scenario) for point in points):
                raise _without_parts(one).at(field=f"expect.{expected.name}")


def _without_parts(measure: Measure) -> InputError:
    return InputError("unsupported", f"a dataset keeps whole points only, not {measure}", fix=_WHOLE)


def _is_only_flow(parts: Mapping[str, Any], scenario: Scenario) -> bool:
    return set(parts) == {"flow"} and scenario.flow_names == [str(parts["flow"])]


def _rows(table: DataFrame, wanted: Mapping[str, Any], measure: str) -> DataFrame:
    """The rows of one point or part, one per seed."""
    chosen = table
    for name, value in wanted.items():
        if name not in chosen.columns:
            continue
        chosen = chosen[chosen[name] == value]
        if chosen.empty:
            known = sorted({text(one) for one in table[name].dropna()})
            fix = f"choose one of: {', '.join(known[:20])}"
            raise InputError("unknown-name", f"{name} is never {text(value)} in these results", fix=fix)
    if chosen["seed"].duplicated().any():
        fix = "name more in its brackets: flow, probe, bytes_from, or another axis"
        raise InputError("conflict", f"{measure} matches several rows of the table", fix=fix)
    return chosen


def _has(key: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    return all(key.get(name) == value for name, value in wanted.items() if name != ALONE)


def _key_text(key: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {text(value)}" for name, value in key.items())
