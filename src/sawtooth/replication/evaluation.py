"""Evaluation: every published figure beside what was measured here, and whether the two agree within the authors' own
spread."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sawtooth.errors import InputError, suggestion
from sawtooth.replication.cells import Cell, number
from sawtooth.replication.replication import NOT_FOUND, Compare, Replication
from sawtooth.study import StudyResult
from sawtooth.study.shares import ALL

if TYPE_CHECKING:
    from pandas import DataFrame

SPREADS = 2
"""Standard deviations of the authors' runs within which a figure is theirs."""
LEAST = 0.05
"""Share of the published figure that is allowed where their spread is smaller or unknown."""
CHANCE = "chance: seeds here differ as much"
"""The cause of a difference that runs of one scenario have among each other."""


@dataclass(frozen=True)
class Row:
    """One published figure of one cell: the mean of ``runs`` runs, and ours of each seed."""

    cell: Cell
    compared: Compare
    published: float
    spread: float
    each: tuple[float, ...]
    known: str
    """What is known of the cell; "not found" if nothing is."""
    runs: int = 1

    @property
    def ours(self) -> float:
        """The mean over the seeds; NaN if nothing was measured."""
        return statistics.fmean(self.each) if self.each else math.nan

    @property
    def ours_sd(self) -> float:
        """The standard deviation over the seeds; NaN with one."""
        return statistics.stdev(self.each) if len(self.each) > 1 else math.nan

    @property
    def cause(self) -> str:
        """Why it differs; empty inside."""
        if self.inside:
            return ""
        return CHANCE if self.known == NOT_FOUND and self.is_chance else self.known

    @property
    def is_chance(self) -> bool:
        """Whether means of so many runs with the spread of ours differ as much: by up to 2 standard errors. Says
        nothing where all seeds gave the same."""
        if len(self.each) < 2:
            return False
        error = self.ours_sd * math.sqrt(1 / self.runs + 1 / len(self.each))
        return abs(self.ours - self.published) <= SPREADS * error

    @property
    def attainable(self) -> float:
        """The probability that a perfect simulator is inside: if all runs, the authors' and ours, are draws from one
        normal distribution. Its spread is the authors', or ours where they published none; 1 where neither is known,
        so that a sum is the most that is possible."""
        spread = self.ours_sd if math.isnan(self.spread) else self.spread
        error = spread * math.sqrt(1 / self.runs + 1 / max(1, len(self.each)))
        return math.erf(self.allowed / error / math.sqrt(2)) if error > 0 else 1.0

    @property
    def allowed(self) -> float:
        """The largest difference that counts as the same: 2 standard deviations of theirs, or 5% if that is more."""
        spread = 0.0 if math.isnan(self.spread) else SPREADS * self.spread
        return max(spread, LEAST * abs(self.published))

    @property
    def difference(self) -> float:
        """Relative to the published figure; NaN where that is 0."""
        return self.ours / self.published - 1 if self.published else math.nan

    @property
    def inside(self) -> bool:
        return abs(self.ours - self.published) <= self.allowed

    @property
    def far(self) -> float:
        """The distance in units of what is allowed; infinite if nothing was measured or nothing is allowed."""
        if math.isnan(self.ours):
            return math.inf
        distance = abs(self.ours - self.published)
        return distance / self.allowed if self.allowed else (math.inf if distance else 0.0)


@dataclass(frozen=True)
class Evaluation:
    """The comparison of a finished run with what was published."""

    replication: Replication
    result: StudyResult
    rows: tuple[Row, ...]

    @property
    def inside(self) -> int:
        return sum(row.inside for row in self.rows)

    @cached_property
    def worst(self) -> list[Row]:
        """The rows outside, the farthest first."""
        return sorted((row for row in self.rows if not row.inside), key=lambda row: -row.far)

    @property
    def chance(self) -> int:
        """Figures outside that differ no more than seeds do here."""
        return sum(row.cause == CHANCE for row in self.worst)

    @property
    def attainable(self) -> float:
        """Figures that a perfect simulator would have inside, on average."""
        return math.fsum(row.attainable for row in self.rows)

    @property
    def unexplained(self) -> int:
        return sum(row.cause == NOT_FOUND for row in self.worst)

    def title(self, compared: Compare) -> str:
        return compared.title or compared.column.replace("_", " ")

    def summary(self) -> list[dict[str, Any]]:
        """One row per compared column: cells, inside, chance, how many a perfect simulator would have inside, and the
        median and 90th percentile of the relative difference."""
        found = []
        for compared in self.replication.about.compare:
            own = [row for row in self.rows if row.compared is compared]
            apart = sorted(abs(row.difference) for row in own if not math.isnan(row.difference))
            found.append(
                {
                    "compared": self.title(compared),
                    "cells": len(own),
                    "inside": sum(row.inside for row in own),
                    "chance": sum(row.cause == CHANCE for row in own),
                    "attainable": math.fsum(row.attainable for row in own),
                    "median_percent": 100 * _quantile(apart, 0.5),
                    "p90_percent": 100 * _quantile(apart, 0.9),
                }
            )
        return found

    def table(self) -> DataFrame:
        """All rows, as in ``cells.csv`` of the results."""
        import pandas as pd

        return pd.DataFrame(
            [
                {
                    **{key: row.cell[key] for key in self.replication.keys},
                    "compared": self.title(row.compared),
                    "published": row.published,
                    "published_sd": row.spread,
                    "ours": row.ours,
                    "ours_sd": row.ours_sd,
                    "difference_percent": 100 * row.difference,
                    "inside": row.inside,
                    "cause": row.cause,
                }
                for row in self.rows
            ]
        )

    def describe(self) -> dict[str, Any]:
        """The comparison as JSON values; unknown values are null."""
        about = self.replication.about
        out = [{"cell": cell, "why": why} for cell, why in self.replication.left_out]
        return {
            "name": self.replication.name,
            "title": about.title,
            "source": about.source,
            "data": about.data,
            "licence": about.licence,
            "engine": self.result.engine,
            "results": str(self.result.directory),
            "figures": len(self.rows),
            "inside": self.inside,
            "chance": self.chance,
            "attainable": self.attainable,
            "unexplained": self.unexplained,
            "summary": json.loads(json.dumps(_without_nan(self.summary()))),
            "rows": json.loads(self.table().to_json(orient="records")),
            "left_out": out,
        }


def evaluate(replication: Replication, result: StudyResult) -> Evaluation:
    """Compares a result of ``replication.study()`` with the published figures.

    Raises SawtoothError ``unknown-name`` if the study's table has no such column or flow.
    """
    names = [str(name) for name in result.places[0].key]
    ran = {tuple(place.key.values()) for place in result.places}
    cells = [cell for cell in replication.cells if tuple(cell[name] for name in names) in ran]
    rows = []
    for at, compared in enumerate(replication.about.compare):
        try:
            measured = _measured(result, compared, names)
        except InputError as error:
            raise error.at(file=str(replication.origin), field=f"compare.{at}") from None
        for cell in cells:
            published = number(cell, compared.column) * compared.times
            if math.isnan(published):
                continue
            spread = math.nan if compared.spread is None else number(cell, compared.spread) * compared.times
            ours = measured.get(tuple(cell[name] for name in names), [])
            each = tuple(value for value in ours if not math.isnan(value))
            runs = 1 if compared.runs is None else max(1, int(number(cell, compared.runs)))
            known_cause = replication.cause(cell)
            rows.append(Row(cell, compared, published, spread, each, known_cause, runs))
    return Evaluation(replication, result, tuple(rows))


def _measured(result: StudyResult, compared: Compare, names: list[str]) -> dict[tuple[Any, ...], list[float]]:
    """For each point the values of its seeds."""
    table = result.details if compared.flow is None else result.shares
    if compared.flow is not None:
        flows = [] if table.empty else [str(name) for name in table["flow"].unique()]
        if compared.flow not in flows:
            fix = suggestion(compared.flow, flows)
            raise InputError("unknown-name", f"no flow is named {compared.flow}", fix=fix)
        table = table[table["flow"] == compared.flow]
    if compared.ours not in table.columns:
        fix = suggestion(compared.ours, map(str, table.columns))
        raise InputError("unknown-name", f"the results have no column {compared.ours}", fix=fix)
    found: dict[tuple[Any, ...], list[float]] = {}
    for row in table[table["seed"] != ALL].to_dict("records"):
        found.setdefault(tuple(row[name] for name in names), []).append(float(row[compared.ours]))
    return found


def _quantile(ordered: Sequence[float], share: float) -> float:
    """The value below which this share lies, by linear interpolation; NaN without values."""
    if not ordered:
        return math.nan
    at = share * (len(ordered) - 1)
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (at - low) * (ordered[high] - ordered[low])


def _without_nan(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {name: None if isinstance(value, float) and math.isnan(value) else value for name, value in row.items()}
        for row in rows
    ]
