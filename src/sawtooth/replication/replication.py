"""Replication: a published result as a folder, with its network as a study, its cells, and what is known to differ.

``replication.toml`` has the scenario, how a cell's columns set its fields, and which columns are compared with which
measures. ``cells.csv`` beside it has one row per cell, with the published figures and their spread.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from sawtooth.errors import InputError, SawtoothError, suggestion
from sawtooth.replication.cells import Cell, check_condition, filled, read, selects
from sawtooth.sanitize import plain
from sawtooth.study import Study, files
from sawtooth.study.files import Table
from sawtooth.study.published import load as load_published
from sawtooth.study.shipped import found as found_study
from sawtooth.study.study import Line, Paragraph

FILE = "replication.toml"
NOT_FOUND = "not found"
"""The cause of a difference that nobody has explained."""

Condition = dict[str, str | int | float | list[str | int | float]]
Name = Annotated[str, Field(min_length=1, max_length=80)]


class Where(Table):
    """Fields that only some cells set."""

    where: Condition = Field(description="column = value, or a list of values")
    set: dict[str, Any] = Field(description="dotted field = value; {column} is the cell's value")


class Cells(Table):
    """The published table, and how a row sets the scenario."""

    file: Name = Field("cells.csv", description="CSV file beside this one")
    keys: list[Name] = Field(min_length=1, description="columns that identify a cell")
    set: dict[str, Any] = Field(default_factory=dict, description="dotted field = value; {column} is the cell's value")
    also: list[Where] = Field(default_factory=list, description="fields that only some cells set, in this order")


class Compare(Table):
    """One published column, and the measure that it is compared with."""

    column: Name = Field(description="column of the published figures")
    spread: Name | None = Field(None, description="column of their standard deviations; absent: none was published")
    ours: Name = Field("mean_mbps", description="column of the study's table")
    flow: Name | None = Field(None, description="the flow it is of; absent: all flows together")
    runs: Name | None = Field(None, description="column with the number of runs of a figure; absent: one run")
    times: float = Field(1.0, description="factor from the published unit to that of ours", gt=0)
    title: Line = Field("", description="what tables and figures call it")


class KnownDifference(Table):
    """Cells that are known to differ, and why."""

    where: Condition
    cause: Paragraph = Field(description='a sentence, or "not found"')


class LeftOut(Table):
    """Cells that are not run."""

    where: Condition
    why: Paragraph


class FigureLayout(Table):
    """The figure: one panel per value of the other keys."""

    x: Name
    series: Name | None = None


class _File(Table):
    title: Line
    source: Paragraph = Field(description="who published it, and where")
    data: Line = Field(description="address and commit of the figures")
    licence: Line = Field(description='licence of the figures, or "none stated"')
    setting: Paragraph = Field("", description="the original's laboratory: kernel, machines, commands")
    study: Name | None = Field(None, description="a shipped study with published figures, instead of cells")
    scenario: dict[str, Any] | None = Field(None, description="with study: what replaces fields of its scenario")
    cells: Cells | None = None
    seeds: list[int] = Field(default=[1, 2, 3], min_length=1, max_length=1000)
    compare: list[Compare] = Field(min_length=1)
    differs: list[KnownDifference] = Field(default_factory=list)
    left_out: list[LeftOut] = Field(default_factory=list)
    figure: FigureLayout


@dataclass(frozen=True)
class Replication:
    """A replication that was read and checked. ``load`` raises SawtoothError, which names file, field and fix."""

    name: str
    about: _File
    origin: Path
    cells: tuple[Cell, ...]
    """The cells that can be run."""
    left_out: tuple[tuple[Cell, str], ...]
    """Those that can't, each with the reason."""
    keys: tuple[str, ...]
    settings: tuple[dict[str, Any], ...]
    scenario: dict[str, Any]

    @classmethod
    def load(cls, directory: str | PathLike[str]) -> Replication:
        """Reads a folder with ``replication.toml``. Raises SawtoothError: as ``Study.load``, and ``bad-published``."""
        path = Path(directory) / FILE
        about = files.read(_File, path)
        try:
            return cls._made(Path(directory).resolve().name, about, path)
        except SawtoothError as error:
            raise error.at(file=str(path)) from None

    @classmethod
    def _made(cls, name: str, about: _File, path: Path) -> Replication:
        if about.study is not None:
            scenario, keys, rows = _of_study(about.study)
            scenario = _laid(scenario, about.scenario or {})
        elif about.scenario is None or about.cells is None:
            fix = "add the tables [scenario] and [cells], or study with the name of a shipped study"
            raise InputError("missing-field", "nothing says what to run", field="scenario", fix=fix)
        else:
            scenario, keys = about.scenario, tuple(about.cells.keys)
            table = read(path.parent / about.cells.file)
            _check_columns(about, about.cells.keys, "cells.keys", table)
            for at, one in enumerate(about.cells.also):
                check_condition(one.where, table, f"cells.also.{at}.where", str(path))
            rows = [(cell, _settings(about.cells, cell)) for cell in table]
        table = [cell for cell, _ in rows]
        for at, compared in enumerate(about.compare):
            wanted = [one for one in (compared.column, compared.spread, compared.runs) if one is not None]
            _check_columns(about, wanted, f"compare.{at}", table)
        _check_columns(about, [about.figure.x, *filter(None, [about.figure.series])], "figure", table, keys)
        conditions = [(f"differs.{at}", one.where) for at, one in enumerate(about.differs)]
        conditions += [(f"left_out.{at}", one.where) for at, one in enumerate(about.left_out)]
        for field, where in conditions:
            check_condition(where, table, f"{field}.where", str(path))
        kept, out = [], []
        for cell, settings in rows:
            why = next((one.why for one in about.left_out if selects(one.where, cell)), None)
            if why is None:
                kept.append((cell, settings))
            else:
                out.append((cell, why))
        cells = tuple(cell for cell, _ in kept)
        return cls(name, about, path, cells, tuple(out), keys, tuple(one for _, one in kept), scenario)

    def cause(self, cell: Cell) -> str:
        """Why a cell is known to differ; "not found" if nobody knows."""
        return next((one.cause for one in self.about.differs if selects(one.where, cell)), NOT_FOUND)

    def study(self, only: Mapping[str, Sequence[str]] | None = None) -> Study:
        """The study that runs the cells, or those whose columns have a value in ``only``.

        Raises SawtoothError: ``unknown-name`` if there is no such cell, or as a study does.
        """
        wanted = dict(only or {})
        for column, values in wanted.items():
            if column not in self.keys:
                fix = suggestion(column, self.keys)
                raise InputError("unknown-name", f"cells have no key {column}", field="--only", fix=fix)
            known = list(dict.fromkeys(str(cell[column]) for cell in self.cells))
            for value in values:
                if value not in known:
                    fix = suggestion(value, known)
                    message = f"no cell has {column} {plain(value, 60)}"
                    raise InputError("unknown-name", message, field="--only", fix=fix)
        cases: list[dict[str, dict[str, Any]]] = [
            {"key": {key: cell[key] for key in self.keys}, "set": settings}
            for cell, settings in zip(self.cells, self.settings, strict=True)
            if all(str(cell[column]) in values for column, values in wanted.items())
        ]
        if not cases:
            raise InputError("unknown-name", "no cell has all of these", field="--only", fix="remove one --only")
        varies = {key for key in self.keys if len({case["key"][key] for case in cases}) > 1}
        x = self.about.figure.x if self.about.figure.x in varies else next(iter(varies), self.keys[0])
        series = self.about.figure.series if self.about.figure.series != x else None
        report = {"x": x, **({"series": series} if series else {}), "plots": ["mean"]}
        content: dict[str, Any] = {
            "name": self.name,
            "title": self.about.title,
            "question": self.about.setting,
            "report": report,
        }
        content |= {"scenario": self.scenario, "cases": cases, "repeat": {"seeds": self.about.seeds}}
        return Study.from_dict(content, source=str(self.origin))


def _settings(cells: Cells, cell: Cell) -> dict[str, Any]:
    found = filled(cells.set, cell, "cells.set")
    for at, one in enumerate(cells.also):
        if selects(one.where, cell):
            found |= filled(one.set, cell, f"cells.also.{at}.set")
    return dict(found)


def _check_columns(
    about: _File, wanted: Sequence[str], field: str, table: list[Cell], known: Sequence[str] | None = None
) -> None:
    names = list(table[0]) if known is None else list(known)
    for column in wanted:
        if column not in names:
            what = "no column" if known is None else "no key of the cells"
            raise InputError("unknown-name", f"{what} is named {column}", field=field, fix=suggestion(column, names))


def _laid(under: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """Tables with the fields of both, where ``over`` wins."""
    both = {key: _laid(under[key], over[key]) for key in over if isinstance(over[key], dict) and key in under}
    return under | over | both


def _of_study(name: str) -> tuple[dict[str, Any], tuple[str, ...], list[tuple[Cell, dict[str, Any]]]]:
    """The scenario, the key columns and the cells of a study with published figures: its points that were published."""
    study = Study.load(found_study(name))
    if study.published is None:
        fix = "name a study with a table [published]"
        raise InputError("bad-published", f"the study {name} has no published figures", field="study", fix=fix)
    figures = load_published(study.published.file)
    axes = study.axes()
    rows = []
    for values in itertools.product(*(axis.values for axis in axes)):
        key = {axis.column: axis.name(value) for axis, value in zip(axes, values, strict=True)}
        row = figures.row(key)
        if row is not None and row["trusted"]:
            settings = {axis.field: value for axis, value in zip(axes, values, strict=True)}
            rows.append(({**row, **key}, settings))
    return study.scenario, tuple(axis.column for axis in axes), rows
