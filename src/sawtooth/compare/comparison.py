"""Comparison: differences of goodput between subjects, with intervals, and whether they are within a tolerance.

The interval is that of a difference of independent means (``stats.interval``). It is read like a test of equivalence
(Schuirmann 1987): the whole interval inside the tolerance, the whole outside, or inconclusive.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sawtooth.compare.subject import ALL_FLOWS, Cell, Subject
from sawtooth.errors import InputError
from sawtooth.io.displayable import Displayable
from sawtooth.stats import change_percent, interval, of_runs
from sawtooth.stats.interval import SEEDS, Interval, Mean
from sawtooth.study.interval_text import Course, beginnings

if TYPE_CHECKING:
    from pandas import DataFrame

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
INSIDE, OUTSIDE, UNKNOWN = "inside", "outside", "inconclusive"

DEFAULT_TOLERANCE = "10%"


@dataclass(frozen=True, repr=False)
class Comparison(Displayable):
    """The first subject is the reference. ``table`` has one row for each cell of each other subject."""

    subjects: tuple[Subject, ...]
    labels: tuple[str, ...]
    within: float
    table: DataFrame
    differing: dict[str, list[Any]]
    alone: dict[str, list[str]]

    @property
    def outside(self) -> int:
        """Number of rows whose whole interval is outside the tolerance."""
        return self._count(OUTSIDE)

    @property
    def unknown(self) -> int:
        """Number of inconclusive rows: the interval crosses the tolerance."""
        return self._count(UNKNOWN)

    @property
    def spans(self) -> tuple[tuple[float, float], ...]:
        """For each subject, the seconds that its means cover: the first and the last over all its cells."""
        return tuple(one.span_s for one in self.subjects)

    @property
    def notes(self) -> list[str]:
        """Sentences for the reader, about runs whose beginning changes their mean."""
        found = []
        for label, subject in zip(self.labels, self.subjects, strict=True):
            courses = [
                Course("" if name == ALL_FLOWS else name, cell.series, cell.span_s[0], cell.interval)
                for name, cell in subject.cells.items()
            ]
            found += [f"{label}: {sentence}" for sentence in beginnings(courses)]
        return found

    def _count(self, verdict: str) -> int:
        return int((self.table["verdict"] == verdict).sum())

    def describe(self) -> dict[str, Any]:
        """The comparison as JSON values; unknown values are null."""
        rows = [
            {name: None if isinstance(value, float) and math.isnan(value) else value for name, value in row.items()}
            for row in self.table.to_dict("records")
        ]
        return {
            "reference": self.labels[0],
            "subjects": [
                {
                    "label": label,
                    "engine": one.engine,
                    "kind": one.kind,
                    "directory": str(one.directory),
                    "from_s": one.span_s[0],
                    "to_s": one.span_s[1],
                }
                for label, one in zip(self.labels, self.subjects, strict=True)
            ],
            "within_percent": self.within * 100,
            "outside": self.outside,
            "cannot_tell": self.unknown,
            "notes": self.notes,
            "differing_fields": self.differing,
            "not_in_all": self.alone,
            "rows": rows,
        }


def tolerance(text: str) -> float:
    """ "10%" as 0.1. Raises SawtoothError ``missing-unit`` or ``bad-quantity``."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(%?)\s*", text)
    if found is None:
        raise InputError("bad-quantity", f'"{text[:40]}" is not a tolerance', field="within", fix='write "10%"')
    if not found[2]:
        raise InputError("missing-unit", f"{found[1]} has no unit", field="within", fix=f'write "{found[1]}%"')
    return float(found[1]) / 100


def compare(
    directories: Sequence[Path | str], *, within: str = DEFAULT_TOLERANCE, omit: str | None = None
) -> Comparison:
    """Compares saved runs or studies' results with the first of them.

    ``within`` is the tolerance for the difference of the means, in percent of the reference's mean. ``omit`` is a time
    to leave out at the beginning of every run, instead of each scenario's warm-up.

    Raises SawtoothError: ``bad-usage`` (fewer than two), ``conflict`` (nothing in common), ``not-a-result``,
    ``file-not-found``, ``out-of-range`` (``omit`` leaves nothing), and as ``tolerance`` does.
    """
    import pandas as pd

    limit = tolerance(within)
    if len(directories) < 2:
        fix = "name the directories of two or more runs or results"
        raise InputError("bad-usage", "a comparison needs at least two runs", fix=fix)
    subjects = tuple(Subject.load(directory, omit=omit) for directory in directories)
    reference = subjects[0]
    for other in subjects[1:]:
        if other.kind != reference.kind:
            message = f"this is a {other.kind}, and the reference is a {reference.kind}"
            fix = "compare runs with runs, and studies with studies"
            raise InputError("conflict", message, file=other.directory, fix=fix)
        if not reference.cells.keys() & other.cells.keys():
            message = f"has no point in common with {reference.directory}"
            raise InputError("conflict", message, file=other.directory, fix="compare results of the same study")
    labels = _labels(subjects)
    rows = [
        {"against": label, "point": name, **_row(reference.cells[name], other.cells[name], limit)}
        for label, other in zip(labels[1:], subjects[1:], strict=True)
        for name in reference.cells
        if name in other.cells
    ]
    every = set[str]().union(*(one.cells for one in subjects))
    alone = {
        label: missing
        for label, one in zip(labels, subjects, strict=True)
        if (missing := sorted(every - one.cells.keys()))
    }
    return Comparison(subjects, labels, limit, pd.DataFrame(rows), _differing(subjects), alone)


def difference(reference: Interval, other: Interval) -> Interval:
    """The difference of two independent means, other minus reference. The bounds are NaN if one of the means has
    none."""
    mean = other.mean - reference.mean
    apart = Mean.total(mean, [(-1.0, reference.known()), (1.0, other.known())])
    if math.isnan(apart.error):
        return Interval(mean, math.nan, math.nan, 0)
    return Interval.around(apart, round(apart.freedom) + 1)


def verdict(apart: Interval, limit: float) -> str:
    """INSIDE if the whole interval of a difference is within ``limit`` of 0, OUTSIDE if none of it is, else UNKNOWN."""
    if -limit <= apart.low and apart.high <= limit:
        return INSIDE
    return OUTSIDE if apart.low > limit or apart.high < -limit else UNKNOWN


def seeds_to_decide(reference: Interval, other: Interval, limit: float) -> int | None:
    """How many seeds per side would decide whether the difference is within ``limit``, if difference and spread stay
    the same.

    The spread of a run's mean is that of the seeds or, with one run, what that run suggests. None: too many, or
    unknown.
    """
    spreads = [one.known().error * (math.sqrt(one.n) if one.of == SEEDS else 1) for one in (reference, other)]
    return interval.seeds_to_decide(spreads, abs(abs(other.mean - reference.mean) - limit))


def _row(reference: Cell, other: Cell, within: float) -> dict[str, Any]:
    import numpy as np

    sides = _interval(reference), _interval(other)
    apart, before = difference(*sides), sides[0].mean
    if reference.is_same(other):
        # No chance is involved, so nothing to decide.
        apart = Interval(0.0, 0.0, 0.0, 0)
    found = verdict(apart, within * before)
    row: dict[str, Any] = {
        "reference_mbps": before,
        "mean_mbps": before + apart.mean,
        "difference_mbps": apart.mean,
        "difference_low_mbps": apart.low,
        "difference_high_mbps": apart.high,
        "difference_percent": change_percent(before + apart.mean, before),
        "verdict": found,
        "seeds_to_decide": (seeds_to_decide(*sides, within * before) if found == UNKNOWN else None) or math.nan,
    }
    for quantile in QUANTILES:
        name = f"q{round(quantile * 100):02}_difference_mbps"
        row[name] = _quantile(np, other, quantile) - _quantile(np, reference, quantile)
    for name, cell in (("reference_", reference), ("", other)):
        row[f"{name}retransmitted_percent"] = cell.retransmitted_percent
        row[f"{name}timeouts"] = cell.counter("timeouts")
        row[f"{name}mean_srtt_ms"] = cell.counter("mean_srtt_ms")
    return row


def _interval(cell: Cell) -> Interval:
    if not cell.samples.size:
        return Interval(math.nan, math.nan, math.nan, 0)
    return of_runs([one.to_numpy() for one in cell.series], observed=cell.observed)


def _quantile(np: Any, cell: Cell, quantile: float) -> float:
    return float(np.quantile(cell.samples, quantile)) if cell.samples.size else math.nan


def _labels(subjects: Sequence[Subject]) -> tuple[str, ...]:
    """Labels of the subjects: the engines' names if they differ, else the scenarios', else the last parts of the
    directories, else their paths."""
    ways = (
        [one.engine for one in subjects],
        [str(one.settings.get("name")) for one in subjects],
        [one.directory.resolve().name for one in subjects],
        [str(one.directory) for one in subjects],
    )
    for names in ways:
        if len(set(names)) == len(subjects):
            return tuple(names)
    return tuple(f"{name} ({at})" for at, name in enumerate(ways[-1], 1))


def _differing(subjects: Sequence[Subject]) -> dict[str, list[Any]]:
    """Fields that differ between the scenarios, with each one's value (None: absent)."""
    names = dict.fromkeys(name for one in subjects for name in one.settings)
    values = {name: [one.settings.get(name) for one in subjects] for name in names}
    return {name: found for name, found in values.items() if any(value != found[0] for value in found)}
