"""Study: a question asked of many scenarios, read from a TOML file.

A study is a scenario, the fields that vary, the seeds, the published figures to be compared with and what the report
shows. ``points`` is its cartesian product in the order of the file, seeds innermost.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, StringConstraints, ValidationError

from sawtooth.errors import InputError, SawtoothError, suggestion
from sawtooth.scenario import Scenario
from sawtooth.scenario.problems import first_problem
from sawtooth.scenario.toml import read_toml
from sawtooth.study.axis import Axis, Column, ColumnName, expand

MAX_POINTS = 100_000
STATISTIC_WORDS = ("engine", "seed", "count")
"""Columns that every table has, so no axis may take their names."""

ALONE = "study"
"""The key column of a study in which nothing varies: a scenario with its repetitions."""

PlotName = Literal["time", "distribution", "mean", "mean-log", "compare"]
PLOTS: tuple[PlotName, ...] = ("time", "distribution", "mean", "mean-log", "compare")


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Repeat(_Table):
    """Repetitions of every point."""

    seeds: Annotated[list[Annotated[int, Field(ge=0, lt=2**63)]], Field(min_length=1, max_length=10_000)] = Field(
        default=[1], description="one run each"
    )


class PublishedFigures(_Table):
    """Figures to be set beside the results."""

    file: str = Field(description='a name that is shipped, or a CSV file beside this one (it ends in ".csv")')
    source: str = Field("", description="whose they are, for a file of your own")


class Report(_Table):
    """What the report shows. Absent: chosen from the columns."""

    x: ColumnName | None = Field(None, description="the column along which means are drawn")
    series: ColumnName | None = Field(None, description="the column whose values get a colour each")
    baseline: float | str | None = Field(None, description="the value of x that changes are measured from; the first")
    detail: float | str | None = Field(None, description="the value of x drawn over time beside the baseline; the last")
    plots: list[PlotName] = Field(default=list(PLOTS), description="which figures, in this order")


class Study(_Table):
    """A validated study file. Raises SawtoothError from ``load`` and ``from_dict``, naming file, field and fix."""

    name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_+-]{1,80}$")] = Field(
        description="names the directory of its results"
    )
    title: str = Field("", description="one line")
    question: str = Field("", description="what is asked, a paragraph")
    scenario: dict[str, Any] = Field(description="as in a scenario file, or the path of one beside this file")
    vary: dict[str, Any] = Field(default_factory=dict, description="dotted field = list, or {from, to, step}")
    columns: dict[ColumnName, Column] = Field(default_factory=dict, description="how varied fields appear in tables")
    repeat: Repeat = Field(default_factory=Repeat)
    full: dict[str, Any] = Field(default_factory=dict, description="what --full overrides: fields, and seeds")
    published: PublishedFigures | None = None
    report: Report = Field(default_factory=Report)

    _origin: str | None = PrivateAttr(None)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Study:
        """Reads a study file. Raises SawtoothError: file-not-found, file-unreadable, not-toml, or as ``from_dict``."""
        where = Path(path)
        return cls.from_dict(read_toml(where), source=str(where))

    @classmethod
    def from_dict(cls, content: Mapping[str, Any], *, source: str | None = None) -> Study:
        """Validates a study as a dictionary; relative paths in it start from the directory of ``source``.

        Raises SawtoothError with the field and a fix; every axis is expanded, so a bad value is found here.
        """
        given = dict(content)
        try:
            if isinstance(given.get("scenario"), str):
                given["scenario"] = read_toml(Path(source or "").parent / given["scenario"])
            given["vary"] = _flat(given.get("vary", {}), "vary")
            given["full"] = _flat(given.get("full", {}), "full")
            study = cls(**given)
            study._check()
        except ValidationError as error:
            raise first_problem(error, cls, source) from None
        except SawtoothError as error:
            raise error.at(file=source) from None
        study._origin = source
        return study

    @property
    def origin(self) -> str | None:
        """The file that this was read from."""
        return self._origin

    def axes(self, overrides: Mapping[str, Any] | None = None) -> list[Axis]:
        """The varied fields in the file's order. An override of a varied field leaves that one value of it."""
        given = overrides or {}
        by_field = {column.field: (name, column) for name, column in self.columns.items()}
        found = []
        for field, values in self.vary.items():
            values = [given[field]] if field in given else expand(values, f"vary.{field}")
            name, naming = by_field.get(field, (_column_name(field), Column(field=field)))
            found.append(Axis(field, tuple(values), name, naming))
        order = list(self.columns)
        return sorted(found, key=lambda axis: order.index(axis.column) if axis.column in order else len(order))

    def points(
        self, *, full: bool = False, seeds: Sequence[int] | None = None, overrides: Mapping[str, Any] | None = None
    ) -> list[Point]:
        """Every point, each with a validated scenario, in a stable order.

        ``full`` applies the table ``[full]``; ``seeds`` replaces the repetitions; ``overrides`` are dotted fields and
        win over everything. Raises SawtoothError: as the scenario does, with the point named; ``too-many-points``.
        """
        wanted = dict(overrides or {})
        fixed = {key: value for key, value in self.full.items() if key != "seeds"} if full else {}
        fixed |= {key: value for key, value in wanted.items() if key not in self.vary}
        axes = self.axes(wanted)
        chosen = list(seeds) if seeds is not None else self._seeds(full)
        if not chosen or len(set(chosen)) != len(chosen):
            message = "needs different seeds, one at least"
            raise InputError("bad-override", message, field="seeds", fix="write e.g. 1,2,3")
        count = len(chosen)
        for axis in axes:
            count *= len(axis.values)
        if count > MAX_POINTS:
            raise InputError("too-many-points", f"{count} points; at most {MAX_POINTS}", field="vary")
        base = self._base().set(fixed)
        width = len(str(count - 1))
        points: list[Point] = []
        for values in itertools.product(*(axis.values for axis in axes)):
            settings = {axis.field: value for axis, value in zip(axes, values, strict=True)}
            key = {axis.column: axis.name(value) for axis, value in zip(axes, values, strict=True)}
            key = key or {ALONE: self.name}
            try:
                here = base.set(settings)
                for seed in chosen:
                    slug = "-".join([*(_slug(value) for value in values), f"seed{seed}"])
                    points.append(Point(f"{len(points):0{width}d}-{slug}", key, seed, here.set({"seed": seed})))
            except SawtoothError as error:
                shown = ", ".join(f"{field} = {value}" for field, value in settings.items())
                message = f"{error.message} (at the point {shown})" if shown else error.message
                raise type(error)(error.code, message, file=error.file, field=error.field, fix=error.fix) from error
        return points

    def title_of(self, column: str) -> str:
        """What a figure's axis or legend calls a key column."""
        given = self.columns[column].title if column in self.columns else ""
        return given or column.replace("_percent", ", %").replace("_", " ")

    def roles(self) -> Roles:
        """Which columns the report draws along, colours, and gives panels; see ``Report``."""
        axes = self.axes()
        columns = {axis.column: [axis.name(value) for value in axis.values] for axis in axes} or {ALONE: [self.name]}
        names = list(columns)
        numeric = [name for name in names if all(isinstance(value, (int, float)) for value in columns[name])]
        x = self.report.x or (numeric or names)[-1]
        others = [name for name in names if name != x]
        series = self.report.series or ("cc" if "cc" in others else others[0] if others else None)
        values = columns[x]
        baseline = self.report.baseline if self.report.baseline is not None else values[0]
        rest = [value for value in values if value != baseline]
        detail = self.report.detail if self.report.detail is not None else rest[-1] if rest else None
        return Roles(x, series, tuple(name for name in others if name != series), baseline, detail)

    def to_dict(self) -> dict[str, Any]:
        """The study as plain JSON values; ``from_dict`` takes it back."""
        return self.model_dump(mode="json", exclude_none=True)

    def digest(self) -> str:
        """SHA-256 of the study's content, in hexadecimal."""
        text = json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Study) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(self.digest())

    def _seeds(self, full: bool) -> list[int]:
        return list(self.full["seeds"]) if full and "seeds" in self.full else list(self.repeat.seeds)

    def _base(self) -> Scenario:
        try:
            return Scenario.from_dict(self.scenario)
        except SawtoothError as error:
            field = f"scenario.{error.field}" if error.field else "scenario"
            raise type(error)(error.code, error.message, file=error.file, field=field, fix=error.fix) from None

    def _check(self) -> None:
        self._base()
        for name, column in self.columns.items():
            if name in STATISTIC_WORDS or name.endswith("_mbps"):
                fix = "choose another name"
                raise InputError("conflict", "every table has such a column", field=f"columns.{name}", fix=fix)
            if column.field not in self.vary:
                fix = suggestion(column.field, self.vary)
                message = f"{column.field} does not vary"
                raise InputError("unknown-name", message, field=f"columns.{name}.field", fix=fix)
        axes = self.axes()
        names = [axis.column for axis in axes]
        for axis in axes:
            if names.count(axis.column) > 1:
                raise InputError("duplicate-name", f"two columns are named {axis.column}", field=f"vary.{axis.field}")
            for value in axis.values:
                axis.name(value)
        for role in ("x", "series"):
            name = getattr(self.report, role)
            if name is not None and name not in names:
                fix = suggestion(name, names)
                raise InputError("unknown-name", f"no column is named {name}", field=f"report.{role}", fix=fix)
        seeds = self.full.get("seeds", [1])
        if not isinstance(seeds, list) or not seeds or not all(type(seed) is int and seed >= 0 for seed in seeds):
            raise InputError("wrong-type", "seeds is a list of whole numbers", field="full.seeds", fix="write [1]")


@dataclass(frozen=True)
class Roles:
    """``x`` and ``series`` are columns (``series`` may be none), ``panels`` the rest; two values of ``x`` stand out."""

    x: str
    series: str | None
    panels: tuple[str, ...]
    baseline: Any
    detail: Any


@dataclass(frozen=True)
class Point:
    """One run to be made: ``key`` holds the values of the tables' key columns, ``id`` names its directory."""

    id: str
    key: dict[str, Any]
    seed: int
    scenario: Scenario


def _flat(given: Any, field: str) -> Any:
    """``chain.loss = …`` and ``"chain.loss" = …`` mean the same; ranges stay whole."""
    if not isinstance(given, Mapping):
        return given
    flat: dict[str, Any] = {}
    for name, value in given.items():
        if isinstance(value, Mapping) and not ({"from", "to", "step"} & set(value)):
            inner = _flat(value, f"{field}.{name}")
            flat |= {f"{name}.{rest}": one for rest, one in inner.items()}
        else:
            flat[str(name)] = value
    return flat


def _column_name(field: str) -> str:
    """A column for a field that none is given for: ``flows.0.cc`` is ``cc``, ``chain.loss`` is ``chain_loss``."""
    parts = [part for part in field.split(".") if not part.isdigit() and part != "flows"]
    return re.sub(r"[^a-z0-9_]", "_", "_".join(parts).lower()) or "value"


def _slug(value: Any) -> str:
    text = str(value).replace("%", "pct").replace("/", "p")
    return re.sub(r"[^A-Za-z0-9._]+", "", text)[:30] or "x"
