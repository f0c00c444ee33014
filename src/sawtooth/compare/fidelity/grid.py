"""Grid: the scenarios on which two engines are compared, read from a TOML file with blocks.

A block is a base scenario, rows that set some of its fields, and fields that vary over lists. Its points are all
combinations of these. A point's name consists of the block's name and the values that differ within the block, so
adding or removing other points does not change it.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike, fspath
from typing import Annotated, Any

from pydantic import Field, StringConstraints, ValidationError

from sawtooth.errors import InputError, SawtoothError, suggestion
from sawtooth.scenario import Scenario, Span
from sawtooth.scenario.problems import first_problem
from sawtooth.scenario.toml import read_toml
from sawtooth.study.axis import expand
from sawtooth.study.files import Table

_UNNAMED = ("duration", "warmup", "interval")
"""Fields that are not part of a point's name."""

Word = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]{0,39}$")]


class Budget(Table):
    """What a point may cost an engine. After that, its noise is accepted."""

    runs: int = Field(12, ge=2, le=1000, description="seeds 1 … at most this")
    least: int = Field(3, ge=2, le=1000, description="and at least this, where the processor time allows")
    cpu: Span | None = Field(None, description="processor time of all runs of a point; absent: not limited")


class Budgets(Table):
    """Budgets by engine. A time limit makes the number of runs depend on the machine, so ``sim`` has none by
    default."""

    kernel: Budget = Field(default_factory=lambda: Budget(cpu=Span.parse("30 s")))
    sim: Budget = Field(default_factory=Budget)

    def of(self, engine: str) -> Budget:
        """The budget of an engine."""
        return {"kernel": self.kernel, "sim": self.sim}[engine]


class Block(Table):
    """Points that differ in ``columns`` (each row has one value for each) and in all combinations of ``vary``."""

    name: Word = Field(description="begins the names of its points, and is one of their tags")
    about: str = Field("", description="what it covers, a sentence")
    scenario: dict[str, Any] = Field(
        default_factory=dict, description="tables that replace the grid's; an empty one leaves it out"
    )
    columns: list[str] = Field(default_factory=list, description="dotted fields that the rows set")
    rows: list[list[Any]] = Field(default_factory=list, description="values of the columns, one row a point")
    vary: dict[str, Any] = Field(default_factory=dict, description="dotted field = list, or {from, to, step}")


@dataclass(frozen=True)
class Point:
    """One question of the grid: a scenario to run on both engines. Its seed is ignored; each run has its own."""

    name: str
    block: str
    tags: frozenset[str]
    scenario: Scenario
    budget: Budgets

    @property
    def question(self) -> str:
        """A digest of the scenario without name and seed, 16 hexadecimal digits. Equal scenarios have the same digest,
        however they are written.

        It covers only the fields that the grid sets. If a new version adds fields with defaults, old measurements stay
        valid.
        """
        fields = self.scenario.given()
        kept = {key: value for key, value in fields.items() if key not in ("name", "seed")}
        text = json.dumps(kept, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]


class Grid(Table):
    """A validated grid file. ``load`` raises SawtoothError with file, field and fix."""

    record: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]+\.csv$")] = Field(
        "kernel.csv", description="the file of the kernel's record, beside this one"
    )
    scenario: dict[str, Any] = Field(default_factory=dict, description="tables of every scenario")
    budget: Budgets = Field(default_factory=Budgets)
    budgets: dict[Word, Budgets] = Field(default_factory=dict, description="tag = what its points get instead")
    blocks: list[Block] = Field(min_length=1)
    tags: dict[Word, list[str]] = Field(default_factory=dict, description="tag = names of points")

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Grid:
        """Read the file and check every point. Raises SawtoothError as scenarios do, and ``duplicate-name``,
        ``unknown-name`` (of a tag's point or a budget's tag), ``wrong-type`` (a row that does not fit the columns)."""
        try:
            grid = cls(**read_toml(path))
            grid.points()
        except ValidationError as error:
            raise first_problem(error, cls, fspath(path)) from None
        except SawtoothError as error:
            raise error.at(file=path) from None
        return grid

    def points(self, tag: str | None = None) -> list[Point]:
        """All points in the file's order, or those with ``tag``. Raises SawtoothError ``unknown-name``."""
        found: dict[str, Point] = {}
        tagged: dict[str, set[str]] = {}
        for word, names in self.tags.items():
            for name in names:
                tagged.setdefault(name, set()).add(word)
        for at, block in enumerate(self.blocks):
            for name, scenario in self._scenarios(block, f"blocks.{at}"):
                if name in found:
                    fix = "give the block another name, or another column"
                    raise InputError("duplicate-name", f'two points are named "{name}"', field=f"blocks.{at}", fix=fix)
                tags = frozenset({block.name, *tagged.pop(name, ())})
                budget = next((more for tag, more in self.budgets.items() if tag in tags), self.budget)
                found[name] = Point(name, block.name, tags, scenario, budget)
        if tagged:
            name, words = min(tagged.items())
            message = f'no point is named "{name}"'
            raise InputError("unknown-name", message, field=f"tags.{min(words)}", fix=suggestion(name, found))
        points = list(found.values())
        known = {word for point in points for word in point.tags}
        for field, word in [*((f"budgets.{word}", word) for word in self.budgets), *([("tag", tag)] if tag else [])]:
            if word not in known:
                fix = suggestion(word, known)
                raise InputError("unknown-name", f'no point has the tag "{word}"', field=field, fix=fix)
        if tag is None:
            return points
        return [point for point in points if tag in point.tags]

    def _scenarios(self, block: Block, at: str) -> Iterator[tuple[str, Scenario]]:
        tables = {**self.scenario, **block.scenario}
        base = Scenario.from_dict({name: table for name, table in tables.items() if table != {}})
        axes = [
            [(field, value) for value in expand(values, f"{at}.vary.{field}")] for field, values in block.vary.items()
        ]
        for number, row in enumerate(block.rows or [[]]):
            if len(row) != len(block.columns):
                message = f"{len(row)} values for {len(block.columns)} columns"
                fix = "give one value a column"
                raise InputError("wrong-type", message, field=f"{at}.rows.{number}", fix=fix)
            fixed = list(zip(block.columns, row, strict=True))
            for varied in itertools.product(*axes):
                settings = dict([*varied, *fixed])
                name = f"{block.name}:{_slug(settings)}"
                try:
                    yield name, base.set({**settings, "name": name})
                except SawtoothError as error:
                    message = f"{error.message} (at the point {name})"
                    raise type(error)(error.code, message, field=f"{at}: {error.field}", fix=error.fix) from error


def _slug(settings: dict[str, Any]) -> str:
    parts = []
    for field, value in settings.items():
        if field in _UNNAMED:
            continue
        if isinstance(value, bool):
            parts.append(f"{field.rpartition('.')[2]}={str(value).lower()}")
        elif isinstance(value, (int, float)):
            parts.append(f"{field.rpartition('.')[2]}{value}")
        else:
            text = "-".join(map(str, value)) if isinstance(value, list) else str(value)
            parts.append(re.sub(r"[^A-Za-z0-9.%-]+", "", text.replace("bit/s", "")))
    return "-".join(parts) or "only"
