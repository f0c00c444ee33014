"""Study: one question about many scenarios, read from a TOML file. One file: its fields, and the checks between them.

A study has a scenario, the fields that vary, the seeds, published figures for comparison, and what the report shows.
``points`` is the cartesian product in the order of the file, seeds innermost.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import re
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, Field, PrivateAttr, ValidationError

from sawtooth.errors import InputError, SawtoothError, suggestion
from sawtooth.io.displayable import Displayable
from sawtooth.sanitize import is_plain, plain
from sawtooth.scenario import Scenario
from sawtooth.scenario.names import one_line
from sawtooth.scenario.problems import first_problem
from sawtooth.scenario.sources import anchored, anchored_axes
from sawtooth.scenario.toml import read_toml
from sawtooth.stats import COUNTERS, STATISTICS
from sawtooth.study.axis import Axis, Column, ColumnName, expand, text
from sawtooth.study.cases import Case, axes_of
from sawtooth.study.expectation import MOST, read
from sawtooth.study.files import Table
from sawtooth.study.find_table import Find
from sawtooth.study.measures import MEASURES, NAMES, PREFIXES, measured, titles
from sawtooth.study.shares import SHARE_COLUMNS

MAX_POINTS = 100_000

RESERVED = {
    *("engine", "seed", "t_s", "mbps", "from_s", "to_s", "ci_of", "ci_n", "change_percent", "ratio", "trusted", "note"),
    *(*STATISTICS, *COUNTERS, *SHARE_COLUMNS, *MEASURES, *NAMES),
}
"""Columns that the tables of every study have, so no axis may use these names. Also excluded are ``*_mbps``,
``published_*``, ``probe_*`` and the prefixes of measures."""

ALONE = "study"
"""The key column of a study in which nothing varies: one scenario with repetitions."""

ProbePlot = Literal["probe-curves", "probe-estimates", "probe-rtts", "assumed-rtt"]
"""Figures for scenarios with probes through a congested link."""
LatencyPlot = Literal["latency", "latency-cdf"]
"""Figures for scenarios with probes beside flows."""
MeasurePlot = Literal["measures", "trade", "completion", "harm"]
ApplicationPlot = Literal["response-cdf", "page-cdf"]
"""Figures for scenarios with sources of kind ``requests`` or ``pages``."""
PlotName = Literal[
    "time",
    "distribution",
    "mean",
    "mean-log",
    "compare",
    "share",
    "window",
    "response",
    ProbePlot,
    LatencyPlot,
    MeasurePlot,
    ApplicationPlot,
]
PLOTS: tuple[PlotName, ...] = ("mean", "mean-log", "compare", "share", "time", "window", "distribution")
"""The figures of a study that names none."""

THROUGHPUT, SHARE = "mean_mbps", "share_percent"
"""Headline columns: the goodput of all flows, and the first flow's share of it."""
_LONGEST_DIRECTORY = 60
"""Characters, of at most four bytes each: file systems allow 255 bytes."""


def _printable(name: str) -> str:
    if not 0 < len(name) <= 100 or not is_plain(name):
        fix = "1 to 100 characters on one line, as a scenario's name"
        raise InputError("bad-name", f'"{plain(name, 60)}" is not a name that can be used here', fix=fix)
    return name


def _paragraph(text: str) -> str:
    for line in text.split("\n"):
        one_line(line)
    return text


Line = Annotated[str, Field(max_length=300), AfterValidator(one_line)]
Paragraph = Annotated[str, Field(max_length=10_000), AfterValidator(_paragraph)]


class Repeat(Table):
    """Repetitions of every point."""

    seeds: Annotated[list[Annotated[int, Field(ge=0, lt=2**63)]], Field(min_length=1, max_length=10_000)] = Field(
        default=[1], description="one run each"
    )


class PublishedFigures(Table):
    """Published figures to show beside the results."""

    file: str = Field(description='a name that is shipped, or a CSV file beside this one (it ends in ".csv")')
    source: Line = Field("", description="their source, for your own file")


class Report(Table):
    """What the report shows. What is absent is chosen from the columns."""

    headline: str | None = Field(
        None, description="the measure that the study is about: a column of its table, or share_percent"
    )
    x: ColumnName | None = Field(None, description="the column along which means are drawn")
    series: ColumnName | None = Field(None, description="the column whose values get a colour each")
    baseline: float | str | None = Field(None, description="the value of x that changes are measured from; the first")
    detail: float | str | None = Field(None, description="the value of x drawn over time beside the baseline; the last")
    plots: list[PlotName] = Field(default=list(PLOTS), description="which figures, in this order")
    flows: list[str] | None = Field(None, description="flows that figures of probes are set against; absent: all")
    measures: list[str] = Field(
        default=["mean_mbps", "mean_srtt_ms", "queue_delay_mean_ms"],
        min_length=1,
        max_length=9,
        description="columns of the study's table that the figure measures draws along x",
    )
    trade: list[str] = Field(
        default=["queue_delay_mean_ms", "mean_mbps"],
        min_length=2,
        max_length=2,
        description="the two columns that the figure trade sets against each other, across and up",
    )


class Study(Displayable, Table):
    """A validated study file. ``load`` and ``from_dict`` raise SawtoothError, which names file, field and fix."""

    name: Annotated[str, AfterValidator(_printable)] = Field(
        description="for people; its letters, digits, - + and _ name the directory of its results",
        json_schema_extra={"minLength": 1, "maxLength": 100},
    )
    title: Line = Field("", description="one line")
    question: Paragraph = Field("", description="what is asked, a paragraph")
    scenario: dict[str, Any] = Field(description="as in a scenario file, or the path of one beside this file")
    vary: dict[str, Any] = Field(default_factory=dict, description="dotted field = list, or {from, to, step}")
    cases: list[Case] | None = Field(
        None,
        description="points one by one, instead of all combinations of vary",
        min_length=1,
        max_length=MAX_POINTS,
    )
    columns: dict[ColumnName, Column] = Field(default_factory=dict, description="how varied fields appear in tables")
    repeat: Repeat = Field(default_factory=Repeat)
    full: dict[str, Any] = Field(default_factory=dict, description="what --full overrides: fields, and seeds")
    published: PublishedFigures | None = None
    expect: dict[Line, str] | None = Field(
        None, description="name = comparison of what points measure", max_length=MOST
    )
    report: Report = Field(default_factory=Report)
    find: Find | None = Field(None, description="what `sawtooth find` asks at each point")

    _origin: str | None = PrivateAttr(None)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Study:
        """Reads a study file. Raises SawtoothError: file-not-found, file-unreadable, not-toml, or as ``from_dict``."""
        return cls.from_dict(read_toml(path), source=str(path))

    @classmethod
    def from_dict(cls, content: Mapping[str, Any], *, source: str | None = None) -> Study:
        """Validates a study given as a dictionary. Relative paths in it start from the directory of ``source``.

        Raises SawtoothError with the field and a fix. Every axis is expanded, so a bad value is found here.
        """
        given = dict(content)
        try:
            if isinstance(given.get("scenario"), str):
                file = Path(source or "").parent / given["scenario"]
                given["scenario"] = anchored(read_toml(file), file.parent)
            elif source is not None and isinstance(given.get("scenario"), Mapping):
                given["scenario"] = anchored(dict(given["scenario"]), Path(source).parent)
            given["vary"] = _flat(given.get("vary", {}), "vary")
            given["full"] = _flat(given.get("full", {}), "full")
            if source is not None:
                for table in ("vary", "full"):
                    if isinstance(given[table], Mapping):
                        given[table] = anchored_axes(given[table], Path(source).parent)
            study = cls(**given)
            study._check()
        except ValidationError as error:
            raise first_problem(error, cls, source) from None
        except SawtoothError as error:
            raise error.at(file=source) from None
        study._origin = source
        return study

    @property
    def directory(self) -> str:
        """The name as a directory: characters other than letters, digits, ``-``, ``+`` and ``_`` become ``-``."""
        kept = "".join(letter if letter.isalnum() or letter in "-+_" else "-" for letter in self.name)
        return kept[:_LONGEST_DIRECTORY].strip("-") or "study"

    @property
    def origin(self) -> str | None:
        """The file from which this was read."""
        return self._origin

    def axes(self, overrides: Mapping[str, Any] | None = None) -> list[Axis]:
        """The varied fields in the file's order. An override of a varied field fixes it to that one value. With
        ``cases``, the key columns stand for them."""
        if self.cases is not None:
            return axes_of(self.cases)
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
        return [point for point, _ in self.each(full=full, seeds=seeds, overrides=overrides)]

    def first(self, *, overrides: Mapping[str, Any] | None = None) -> Point:
        """The first of ``points``, without the others. Raises SawtoothError as ``points`` does for it."""
        return next(self.each(overrides=overrides))[0]

    def each(
        self,
        *,
        full: bool = False,
        seeds: Sequence[int] | None = None,
        overrides: Mapping[str, Any] | None = None,
        only: Container[tuple[Any, ...]] | None = None,
    ) -> Iterator[tuple[Point, Scenario]]:
        """``points`` one by one, each with its scenario; ``only`` those with these values of the key columns."""
        wanted = dict(overrides or {})
        if "seed" in wanted:
            fix = "give --seeds N, or change seeds in the file"
            raise InputError("conflict", "a study sets the seed of each run itself", field="seed", fix=fix)
        fixed = {key: value for key, value in self.full.items() if key != "seeds"} if full else {}
        fixed |= {key: value for key, value in wanted.items() if key not in self.vary}
        axes = self.axes(wanted)
        chosen = list(seeds) if seeds is not None else self._seeds(full)
        if not chosen or len(set(chosen)) != len(chosen):
            message = "seeds must be a list of one or more different numbers"
            raise InputError("bad-override", message, field="seeds", fix="write e.g. seeds = [1, 2, 3]")
        count = len(chosen) * (len(self.cases) if self.cases else math.prod(len(axis.values) for axis in axes))
        if count > MAX_POINTS:
            message = f"{count} points; at most {MAX_POINTS}"
            raise InputError("too-many-points", message, field="vary", fix="vary fewer values, or take fewer seeds")
        base = self._base().set(fixed)
        width = len(str(count - 1))
        number = 0
        settings_by_digest: dict[str, str] = {}
        for key, settings, slugs, shown in self._combinations(axes, wanted):
            if only is not None and tuple(key.values()) not in only:
                number += len(chosen)
                continue
            try:
                here = base.set(settings)
                for seed in chosen:
                    slug, scenario = "-".join([*slugs, f"seed{seed}"]), here.with_seed(seed)
                    point = Point.of(f"{number:0{width}d}-{slug}", key, scenario)
                    if point.digest in settings_by_digest and self.cases is None:
                        same = settings_by_digest[point.digest]
                        fix = "remove one of them: they are one value, written in two ways"
                        raise InputError("duplicate-name", f"is the same point as {same}", field="vary", fix=fix)
                    settings_by_digest[point.digest] = shown
                    yield point, scenario
                    number += 1
            except SawtoothError as error:
                message = f"{error.message} (at the point {shown})" if shown else error.message
                where = error.file or self._origin
                raise type(error)(error.code, message, file=where, field=error.field, fix=error.fix) from error

    def _combinations(
        self, axes: list[Axis], overrides: Mapping[str, Any]
    ) -> Iterator[tuple[dict[str, Any], dict[str, Any], list[str], str]]:
        """The key and the settings of every point, the words of its id, and the settings in words."""
        if self.cases is not None:
            for case in self.cases:
                given = dict(case.set) | dict(overrides)
                shown = ", ".join(f"{field} = {text(value)}" for field, value in given.items())
                yield dict(case.key), given, [_slug(value) for value in case.key.values()], shown
            return
        fields, columns = [axis.field for axis in axes], [axis.column for axis in axes]
        # The words of each value once, not at each of its points.
        named = [
            [(value, axis.name(value), _slug(value), f"{axis.field} = {text(value)}") for value in axis.values]
            for axis in axes
        ]
        for chosen in itertools.product(*named):
            key = {column: name for column, (_, name, _, _) in zip(columns, chosen, strict=True)}
            settings = {field: value for field, (value, _, _, _) in zip(fields, chosen, strict=True)}
            slugs, shown = [slug for _, _, slug, _ in chosen], ", ".join(words for _, _, _, words in chosen)
            yield key or {ALONE: self.name}, settings, slugs, shown

    def title_of(self, column: str) -> str:
        """The title of a key column on a figure's axis or legend."""
        given = self.columns[column].title if column in self.columns else ""
        return given or column.replace("_percent", ", %").replace("_", " ")

    def roles(self) -> Roles:
        """Which columns the report uses for the x axis, for colors and for panels; see ``Report``."""
        columns = {axis.column: axis.names for axis in self.axes()} or {ALONE: [self.name]}
        names = list(columns)
        numeric = [name for name in names if all(isinstance(value, (int, float)) for value in columns[name])]
        x = self.report.x or (numeric or names)[-1]
        others = [name for name in names if name != x]
        series = self.report.series or ("cc" if "cc" in others else others[0] if others else None)
        values = columns[x]
        baseline = values[0] if self.report.baseline is None else self._standing_out("baseline", x)
        rest = [value for value in values if value != baseline]
        detail = self._standing_out("detail", x)
        if self.report.detail is None:
            detail = rest[-1] if rest else None
        return Roles(x, series, tuple(name for name in others if name != series), baseline, detail)

    @property
    def titles(self) -> dict[str, str]:
        """What figures call the columns that they may draw."""
        return titles(self._base())

    @property
    def headline(self) -> str:
        """The study's main measure. If the file does not name one: page times for pages, latency under load for probes,
        the first column of the figure ``measures`` if it is drawn, the first number that programs are asked for,
        otherwise goodput."""
        report = self.report
        if report.headline is not None:
            return report.headline
        if "page-cdf" in report.plots:
            return "page_ms_p50"
        if set(get_args(LatencyPlot)) & {"latency", "latency-cdf"} & set(report.plots):
            return "latency_p50_ms"
        if "measures" in report.plots:
            return report.measures[0]
        return next(iter(measured(self._base())), THROUGHPUT)

    @property
    def is_of_probes(self) -> bool:
        """Whether the question is what probes say about flows. The report then shows only figures of probes."""
        plots = set(self.report.plots)
        return bool(plots) and plots <= set(get_args(ProbePlot))

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

    def _standing_out(self, role: str, x: str) -> Any:
        """The value of ``x`` that ``report`` names, as tables show it or as the axis has it; None if there is none."""
        wanted = getattr(self.report, role)
        for axis in self.axes():
            if axis.column == x:
                pairs = zip(axis.names, axis.values, strict=True)
                return next((name for name, value in pairs if wanted in (name, value)), None)
        return None

    def _check(self) -> None:
        self._base()
        for name, column in self.columns.items():
            if _is_reserved(name):
                fix = f'rename it, like "{name}_2"'
                raise InputError("conflict", "every table has a column of this name", field=f"columns.{name}", fix=fix)
            if column.field not in self.vary and (self.cases is None or column.field != name):
                fix = suggestion(column.field, self.vary)
                message = f"{column.field} does not vary in this study"
                raise InputError("unknown-name", message, field=f"columns.{name}.field", fix=fix)
        for table, place in (("scenario", "repeat"), ("vary", "repeat"), ("full", "full")):
            given = getattr(self, table)
            # A saved scenario that is repeated with exactly its own seed states it twice; that is no conflict.
            if "seed" in given and not (table == "scenario" and self.repeat.seeds == [given["seed"]]):
                message = "a study sets the seed of each run itself"
                fix = f"remove it, and write seeds = [1, 2, 3] below [{place}]"
                raise InputError("conflict", message, field=f"{table}.seed", fix=fix)
        if self.cases is not None and self.vary:
            fix = "remove one of the two: cases lists every point"
            raise InputError("conflict", "a study has cases or fields that vary, not both", field="cases", fix=fix)
        axes = self.axes()
        for axis in axes:
            _check_axis(axis, axes)
        self._check_report([axis.column for axis in axes])
        self._check_plots()
        self._check_expectations(axes)
        seeds = self.full.get("seeds", [1])
        if not isinstance(seeds, list) or not seeds or not all(type(seed) is int and seed >= 0 for seed in seeds):
            raise InputError(
                "wrong-type", "seeds is a list of whole numbers", field="full.seeds", fix="write seeds = [1]"
            )

    def _check_expectations(self, axes: list[Axis]) -> None:
        for one in read(self.expect):
            try:
                one.check(axes, self._base())
            except SawtoothError as error:
                raise error.at(field=f"expect.{one.name}") from None

    def _check_plots(self) -> None:
        """Checks that figures of probes have probes, those of applications have applications, both have the flows they
        name, and the response has numbers on its x axis."""
        scenario, x = self._base(), self.roles().x
        values = next((axis.names for axis in self.axes() if axis.column == x), [])
        if "response" in self.report.plots and not all(isinstance(value, (int, float)) for value in values):
            fix = 'choose another figure, like "distribution", or name a column of numbers as report.x'
            message = f"the figure response needs numbers on its x axis, and {x} is text"
            raise InputError("conflict", message, field="report.plots", fix=fix)
        if {*get_args(ProbePlot), *get_args(LatencyPlot)} & set(self.report.plots) and not scenario.probes:
            fix = "add [[scenario.probes]], or remove the figures of probes from report.plots"
            raise InputError(
                "missing-field", "the report shows probes, and the scenario has none", field="report.plots", fix=fix
            )
        for plot, kind in (("response-cdf", "requests"), ("page-cdf", "pages")):
            has = any(flow.source is not None and flow.source.kind == kind for flow in scenario.flows)
            if plot in self.report.plots and not has and not any(one.startswith("flows") for one in self.vary):
                message = f'the figure {plot} needs a flow with a source of kind "{kind}"'
                fix = f'give a flow source = {{ kind = "{kind}" }}, or remove "{plot}" from report.plots'
                raise InputError("missing-field", message, field="report.plots", fix=fix)
        known = scenario.flow_names
        for name in self.report.flows or []:
            if name not in known and "flows" not in self.vary:
                fix = suggestion(name, known)
                raise InputError("unknown-name", f"no flow is named {name}", field="report.flows", fix=fix)

    def _check_report(self, names: list[str]) -> None:
        for role in ("x", "series"):
            name = getattr(self.report, role)
            if name is not None and name not in names:
                fix = suggestion(name, names)
                raise InputError("unknown-name", f"no column is named {name}", field=f"report.{role}", fix=fix)
        known = titles(self._base())
        for role in ("measures", "trade"):
            for column in getattr(self.report, role):
                if column not in known:
                    fix = suggestion(column, known)
                    message = f"no figure can show the column {column}"
                    raise InputError("unknown-name", message, field=f"report.{role}", fix=fix)
        headline = self.report.headline
        if headline is not None and headline not in (*known, SHARE):
            fix = suggestion(headline, (*known, SHARE))
            message = f"no report can compare the column {headline}"
            raise InputError("unknown-name", message, field="report.headline", fix=fix)
        roles = self.roles()
        if roles.x == roles.series:
            raise InputError(
                "conflict",
                "this column is report.x already",
                field="report.series",
                fix="remove series, or name another column",
            )
        for role in ("baseline", "detail"):
            wanted = getattr(self.report, role)
            if wanted is not None and getattr(roles, role) is None:
                values = [text(name) for axis in self.axes() if axis.column == roles.x for name in axis.names]
                message = f"{roles.x} is never {text(wanted)} in this study"
                raise InputError("unknown-name", message, field=f"report.{role}", fix=suggestion(text(wanted), values))
        if roles.detail is not None and roles.detail == roles.baseline:
            fix = "remove detail, or name another value"
            raise InputError("conflict", "this value is report.baseline already", field="report.detail", fix=fix)


@dataclass(frozen=True)
class Roles:
    """Roles of columns in the report: ``x``, ``series`` (may be absent) and ``panels`` (the rest). Two values of ``x``
    are highlighted."""

    x: str
    series: str | None
    panels: tuple[str, ...]
    baseline: Any
    detail: Any


@dataclass(frozen=True)
class Point:
    """One run to do: ``key`` has the values of the tables' key columns, ``id`` is the name of its directory."""

    id: str
    key: dict[str, Any]
    seed: int
    given: dict[str, Any]
    """What its scenario was given (``Scenario.given``), which takes a tenth of the scenario's memory."""
    digest: str
    """The digest of its scenario."""

    @classmethod
    def of(cls, id: str, key: dict[str, Any], scenario: Scenario) -> Point:
        return cls(id, key, scenario.seed, scenario.given(), scenario.digest())

    @property
    def scenario(self) -> Scenario:
        """Its scenario, read from ``given`` at each use."""
        return Scenario.from_dict(self.given)


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


def _is_reserved(column: str) -> bool:
    return column in RESERVED or column.endswith("_mbps") or column.startswith(("published_", "probe_", *PREFIXES))


def _check_axis(axis: Axis, axes: list[Axis]) -> None:
    """Checks that the axis's column is unique, and that the names of its values are."""
    field, column = f"vary.{axis.field}", axis.column
    fix = f'give the column another name: [columns] NAME = {{ field = "{axis.field}" }}'
    if _is_reserved(column):
        raise InputError("conflict", f"every table has a column {column}", field=field, fix=fix)
    if [one.column for one in axes].count(column) > 1:
        raise InputError("duplicate-name", f"two columns are named {column}", field=field, fix=fix)
    names = set()
    for name in axis.names:
        if name in names:
            fix = f"remove one, or give labels that differ: [columns.{column}.labels]"
            raise InputError("duplicate-name", f'two values are shown as "{name}"', field=field, fix=fix)
        names.add(name)


def _column_name(field: str) -> str:
    """The default column of a field: ``flows.0.cc`` becomes ``cc``, ``chain.loss`` becomes ``chain_loss``."""
    steps = field.split(".")
    for parts in ([step for step in steps if not step.isdigit() and step != "flows"], steps):
        name = re.sub(r"[^a-z0-9_]", "_", "_".join(parts).lower())
        if name and not _is_reserved(name):
            return name
    return name


def _slug(value: Any) -> str:
    shown = text(value).replace("%", "pct").replace("/", "p")
    return re.sub(r"[^A-Za-z0-9._]+", "", shown)[:30] or "x"
