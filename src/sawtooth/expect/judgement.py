"""Judgement: each expectation of a study beside what it found."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sawtooth.errors import InputError, SawtoothError
from sawtooth.expect.estimate import Estimate, Sample, estimate
from sawtooth.scenario.compiler import flow_names
from sawtooth.stats import Interval
from sawtooth.study import StudyResult
from sawtooth.study.axis import Axis, text
from sawtooth.study.expectation import Expectation, column_of, field_of, is_field, parts_of, point_of, read
from sawtooth.study.shares import ALL
from sawtooth.study.study import ALONE
from sawtooth.wanted import NUMBER, Amount, Comparison, Dimension, Measure

if TYPE_CHECKING:
    from pandas import DataFrame

HOLDS, FAILS, UNKNOWN, ABSENT = "holds", "fails", "can't tell", "not asked"
"""The last: ``--set`` left its points out of the study, so nothing was run that it is of."""
_TABLES = ("shares", "latency", "completions", "applications")


@dataclass(frozen=True)
class Verdict:
    """Of one case of an expectation. ``left`` and ``right`` are in the unit of ``dimension``, with their intervals."""

    name: str
    text: str
    case: dict[str, Any]
    """The values of the axes that the expectation does not set."""
    verdict: str
    left: Interval
    right: Interval
    margin: Interval
    """By how much it holds: above 0 where it does."""
    dimension: Dimension
    seeds: int
    seeds_to_decide: int | None
    """Of what can't be told: about how many seeds would tell. None: more than a thousand, or not known."""
    reason: str
    """Why it can't be told, where it is not the interval; why it was not asked."""

    @property
    def title(self) -> str:
        """Its name, with its case."""
        told = ", ".join(f"{name} {text(value)}" for name, value in self.case.items())
        return f"{self.name} ({told})" if told else self.name

    def describe(self) -> dict[str, Any]:
        """As JSON values; what is not known is null. Bit/s, seconds, bits; of a share 1 is all."""
        return {
            "name": self.name,
            "expectation": self.text,
            "case": self.case,
            "verdict": self.verdict,
            **{side: _plain(getattr(self, side)) for side in ("left", "right", "margin")},
            "seeds": self.seeds,
            "seeds_to_decide": self.seeds_to_decide,
            "reason": self.reason or None,
        }


@dataclass(frozen=True)
class Judgement:
    """All verdicts, in the order of the study file."""

    study: str
    source: str | None
    """The file that the expectations are in."""
    verdicts: tuple[Verdict, ...]

    def count(self, verdict: str) -> int:
        """How many are so."""
        return sum(one.verdict == verdict for one in self.verdicts)

    def describe(self) -> dict[str, Any]:
        """As JSON values."""
        names = {"holds": HOLDS, "fails": FAILS, "cannot_tell": UNKNOWN, "not_asked": ABSENT}
        counts = {name: self.count(verdict) for name, verdict in names.items()}
        return {"study": self.study, **counts, "expectations": [one.describe() for one in self.verdicts]}


def judge(
    result: StudyResult, wanted: Mapping[str, str] | None = None, *, source: Path | str | None = None
) -> Judgement:
    """Whether a result has what its study expects, or what ``wanted`` does: names and comparisons.

    A comparison holds where all of the 95% interval of its margin is on the right side, and fails where none of it is.
    Raises SawtoothError: as reading a study with this table ``[expect]`` does; ``missing-field`` where there is none.
    """
    given = result.study.expect if wanted is None else wanted
    if not given:
        fix = 'add a table [expect] to the study, or give e.g. "mean_mbps > 50 Mbit/s"'
        raise InputError("missing-field", "the study expects nothing", field="expect", fix=fix)
    seen = _Seen(result)
    verdicts = [one for expected in read(given) for one in _verdicts(expected, seen)]
    origin = source if source is not None or wanted is not None else result.study.origin
    return Judgement(result.study.name, None if origin is None else str(origin), tuple(verdicts))


class _Seen:
    """What a result has: its points, as they were run."""

    def __init__(self, result: StudyResult) -> None:
        self.result = result
        described = result.description
        self.axes = result.study.axes(described["overrides"])
        self.seeds = sorted({place.seed for place in result.places})

    def sample(self, measure: Measure, case: Mapping[str, Any]) -> tuple[Sample, Dimension]:
        """Raises SawtoothError where there is no such point, or no such column."""
        import numpy as np

        key = point_of(measure, self.axes, case)
        if is_field(measure):
            return self._field(measure, key)
        parts = parts_of(measure)
        names = {one: list(getattr(self.result, one).columns) for one in _TABLES} if parts else {}
        having = [one for one, columns in names.items() if {column_of(measure), *parts} <= set(columns)]
        if not having and self._is_only_flow(parts, key):
            # What all flows have is its own.
            parts = {}
        if parts and not having:
            fix = "sawtooth query lists the tables, or docs/reference/tables.md"
            raise InputError("unknown-name", f"no table of this study has {measure}", fix=fix)
        table = getattr(self.result, having[0]) if having else self.result.details
        column = column_of(measure)
        if column not in table.columns:
            raise InputError("unknown-name", f"this study's table has no column {column}", fix="see table.csv")
        rows = _rows(table, key | parts, str(measure))
        rows = rows[rows["seed"] != ALL]
        amount = Amount.of_column(column, rows[column].to_numpy(dtype=float))
        return Sample(np.asarray(amount.value), self._within(measure, parts, rows)), amount.dimension

    def _is_only_flow(self, parts: Mapping[str, Any], key: Mapping[str, Any]) -> bool:
        place = next((one for one in self.result.places if _has(one.key, key)), None)
        return (
            set(parts) == {"flow"}
            and place is not None
            and flow_names(self.result.run(place).scenario) == [str(parts["flow"])]
        )

    def _within(self, measure: Measure, parts: Mapping[str, Any], rows: DataFrame) -> Interval | None:
        """The interval within the one run that there is, which throughput has."""
        if len(rows) != 1 or parts or column_of(measure) != "mean_mbps":
            return None
        row = rows.iloc[0]
        bounds = (Amount.of_column("mean_mbps", float(row[name])).value for name in ("ci_low_mbps", "ci_high_mbps"))
        low, high = map(float, bounds)
        return Interval((low + high) / 2, low, high, int(row["ci_n"]))

    def _field(self, measure: Measure, key: Mapping[str, Any]) -> tuple[Sample, Dimension]:
        import numpy as np

        place = next((one for one in self.result.places if _has(one.key, key)), None)
        if place is None:
            raise InputError("unknown-name", f"no point has {_told(key)}", fix="run the study without --set")
        amount = field_of(self.result.run(place).scenario, measure.name)
        return Sample(np.full(len(self.seeds), float(amount.value))), amount.dimension


def _rows(table: DataFrame, wanted: Mapping[str, Any], measure: str) -> DataFrame:
    """Of one point or part, one a seed."""
    chosen = table
    for name, value in wanted.items():
        if name not in chosen.columns:
            continue
        chosen = chosen[chosen[name] == value]
        if chosen.empty:
            known = sorted({text(one) for one in table[name].dropna()})
            fix = f"it is one of: {', '.join(known[:20])}"
            raise InputError("unknown-name", f"{name} never is {text(value)} in these results", fix=fix)
    if chosen["seed"].duplicated().any():
        fix = "set more: flow, probe, bytes_from, or another axis"
        raise InputError("conflict", f"{measure} is of several rows of the table", fix=fix)
    return chosen


def _verdicts(expected: Expectation, seen: _Seen) -> Iterable[Verdict]:
    try:
        expected.check(seen.axes, seen.result.run(seen.result.places[0]).scenario)
        cases = expected.cases(seen.axes)
    except SawtoothError as error:
        if not seen.result.description["overrides"]:
            raise error.at(field=f"expect.{expected.name}") from None
        nothing = Interval(math.nan, math.nan, math.nan, 0)
        sides = nothing, nothing, nothing
        told = expected.name, expected.wanted.text
        yield Verdict(*told, {}, ABSENT, *sides, NUMBER, len(seen.seeds), None, error.message)
        return
    for case in cases:
        try:
            yield _verdict(expected, case, seen)
        except SawtoothError as error:
            raise error.at(field=f"expect.{expected.name}") from None


def _verdict(expected: Expectation, case: dict[str, Any], seen: _Seen) -> Verdict:
    import numpy as np

    wanted = expected.wanted
    found = {_key(one): (one, *seen.sample(one, _case_of(case, seen.axes))) for one in wanted.measures}
    known = np.all([np.isfinite(sample.values) for _, sample, _ in found.values()], axis=0)
    samples = {name: Sample(sample.values[known], sample.within) for name, (_, sample, _) in found.items()}
    dimensions = {name: dimension for name, (_, _, dimension) in found.items()}
    unit = _side(wanted, dimensions, 0)(dict.fromkeys(found, 1.0)).dimension
    count = int(known.sum())
    left, right = (_estimated(_side(wanted, dimensions, at), samples, count) for at in (0, 1))
    margin = _estimated(_margin(wanted, dimensions), samples, count)
    verdict = _decided(margin.interval, wanted.sign)
    reason, needed = "", None
    if verdict == UNKNOWN:
        needed = margin.seeds_to_decide()
        empty = [str(one) for one, sample, _ in found.values() if not np.isfinite(sample.values).any()]
        if empty:
            reason = f"{empty[0]} has no value here"
        elif count < len(seen.seeds):
            reason = f"only {count} of {len(seen.seeds)} seeds have all values"
        elif math.isnan(margin.interval.low):
            reason = "one seed has no interval: take several, --seeds 5" if count == 1 else "a value is not finite"
    sides = left.interval, right.interval, margin.interval
    return Verdict(expected.name, wanted.text, case, verdict, *sides, unit, count, needed, reason)


def _decided(margin: Interval, sign: str) -> str:
    equal = sign.endswith("=")
    if margin.low > 0 or (equal and margin.low == 0):
        return HOLDS
    if margin.high < 0 or (not equal and margin.high == 0):
        return FAILS
    return UNKNOWN


def _side(wanted: Comparison, dimensions: Mapping[Any, Dimension], at: int) -> Callable[[Mapping[Any, float]], Amount]:
    """One of the two, of means by measure."""
    return lambda means: wanted.sides(lambda one: Amount(means[_key(one)], dimensions[_key(one)]))[at]


def _margin(wanted: Comparison, dimensions: Mapping[Any, Dimension]) -> Callable[[Mapping[Any, float]], Amount]:
    def margin(means: Mapping[Any, float]) -> Amount:
        return Amount(wanted.margin(lambda one: Amount(means[_key(one)], dimensions[_key(one)])))

    return margin


def _estimated(value: Callable[[Mapping[Any, float]], Amount], samples: Mapping[Any, Sample], count: int) -> Estimate:
    if count == 0:
        return Estimate(Interval(math.nan, math.nan, math.nan, 0), math.nan)
    try:
        return estimate(lambda means: float(value(means).value), samples)
    except InputError as error:
        if error.code != "bad-expression":
            raise
        # It divides by a mean that is 0.
        return Estimate(Interval(math.nan, math.nan, math.nan, count), math.nan)


def _key(measure: Measure) -> tuple[Any, ...]:
    """The same name and settings are the same measure, wherever they stand."""
    return (measure.name, *((name, type(value).__name__, value) for name, value in measure.settings))


def _case_of(case: Mapping[str, Any], axes: list[Axis]) -> dict[str, Any]:
    """A study in which nothing varies has one point, whatever it is called."""
    return dict(case) if axes else {}


def _has(key: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    return all(key.get(name) == value for name, value in wanted.items() if name != ALONE)


def _told(key: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {text(value)}" for name, value in key.items())


def _plain(one: Interval) -> dict[str, float | None]:
    bounds = {"mean": one.mean, "low": one.low, "high": one.high}
    return {name: value if math.isfinite(value) else None for name, value in bounds.items()}
