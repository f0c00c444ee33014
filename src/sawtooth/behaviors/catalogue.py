"""Catalogue: the situations of a file, and what is measured in each."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from sawtooth.behaviors.quantities import QUANTITIES
from sawtooth.errors import InputError, SawtoothError, suggestion
from sawtooth.sanitize import plain
from sawtooth.scenario import Scenario
from sawtooth.study.files import Table, read
from sawtooth.study.study import Line

FORMAT = 1
"""Raise it when a quantity or the engine's runs change: what was measured before is then measured again."""

_Name = Annotated[str, Field(min_length=1, max_length=40, pattern=r"^[A-Za-z0-9_.%+-]+$")]


class _Group(Table):
    """Situations of one kind, one for every combination of ``axes`` and ``cases``."""

    title: Line = ""
    axes: dict[_Name, Annotated[list[str | int], Field(min_length=1, max_length=100)]] = Field(default_factory=dict)
    case: str | None = Field(None, description="the dotted field that the cases set")
    cases: dict[_Name, Any] = Field(default_factory=dict)
    set: dict[str, Any] = Field(default_factory=dict, description="dotted field = value")
    flows: list[dict[str, Any]] | None = None
    measures: list[str] = Field(min_length=1)


class _File(Table):
    title: Line = ""
    seeds: list[int] = Field(default=[1, 2, 3, 4, 5], min_length=2, max_length=1000)
    scenario: dict[str, Any] = Field(default_factory=dict)
    situations: dict[_Name, _Group] = Field(min_length=1)


@dataclass(frozen=True)
class Situation:
    """A scenario, and what is measured in it."""

    name: str
    title: str
    scenario: Scenario = field(hash=False)
    measures: tuple[str, ...]


@dataclass(frozen=True)
class Catalogue:
    """A file of situations that was read and checked."""

    title: str
    seeds: tuple[int, ...]
    situations: tuple[Situation, ...]

    @classmethod
    def load(cls, path: str | PathLike[str] | None = None) -> Catalogue:
        """Reads a file; None: the one that is shipped. Raises SawtoothError, which names file, field and fix."""
        file = Path(str(files("sawtooth") / "data" / "behaviors.toml")) if path is None else Path(path)
        about = read(_File, file)
        try:
            base = Scenario.from_dict(about.scenario)
            found = [one for name, group in about.situations.items() for one in _situations(name, group, base)]
        except SawtoothError as error:
            raise error.at(file=str(file)) from None
        for name, count in Counter(one.name for one in found).items():
            if count > 1:
                message, field_ = f"two situations are called {name}", f"situations.{name.split('/')[0]}"
                fix = "remove one of the values that make this name, which leaves out spaces"
                raise InputError("duplicate-name", message, file=str(file), field=field_, fix=fix)
        return cls(about.title, tuple(about.seeds), tuple(found))

    def chosen(self, only: Sequence[str], *, field: str = "--only") -> Catalogue:
        """The situations whose name has one of these parts, like loss or loss/cubic. Raises InputError
        ``unknown-name``."""
        for part in only:
            if not any(_has(one, part) for one in self.situations):
                names = sorted({word for one in self.situations for word in one.name.split("/")})
                message = f"no situation has {plain(part, 60)}"
                raise InputError("unknown-name", message, field=field, fix=suggestion(part, names))
        chosen = [one for one in self.situations if not only or any(_has(one, part) for part in only)]
        return Catalogue(self.title, self.seeds, tuple(chosen))

    def of(self, behaviors: Sequence[str]) -> Catalogue:
        """The behaviors with these names, each PART or PART:MEASURE, like loss/cubic or loss/cubic:timeouts. Raises
        InputError ``unknown-name``."""
        wanted: dict[str, set[str]] = {}
        for name in behaviors:
            part, between, measure = name.partition(":")
            those = self.chosen([part], field="--behavior").situations
            known = {one for situation in those for one in situation.measures}
            if between and measure not in known:
                message = f"{plain(part, 60)} has no measure {plain(measure, 60)}"
                raise InputError("unknown-name", message, field="--behavior", fix=suggestion(measure, sorted(known)))
            for one in those:
                wanted.setdefault(one.name, set()).update({measure} if between else one.measures)
        found = [
            replace(one, measures=tuple(name for name in one.measures if name in wanted[one.name]))
            for one in self.situations
            if one.name in wanted
        ]
        return Catalogue(self.title, self.seeds, tuple(one for one in found if one.measures))

    @property
    def behaviors(self) -> int:
        return sum(len(one.measures) for one in self.situations)

    def digest(self) -> str:
        """Of everything that is run and measured, seeds excepted."""
        parts = [FORMAT, *((one.name, one.scenario.to_dict(), one.measures) for one in self.situations)]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:12]


def _has(situation: Situation, part: str) -> bool:
    return f"/{part}/" in f"/{situation.name}/"


def _situations(name: str, group: _Group, base: Scenario) -> Iterator[Situation]:
    for measure in group.measures:
        if measure not in QUANTITIES:
            message = f"there is no measure {plain(measure, 60)}"
            field_ = f"situations.{name}.measures"
            raise InputError("unknown-name", message, field=field_, fix=suggestion(measure, list(QUANTITIES)))
    if bool(group.cases) != bool(group.case):
        fix = 'write both: case = "links.0.loss", and cases = { some = "1%" }'
        raise InputError("missing-field", "case and cases belong together", field=f"situations.{name}", fix=fix)
    for values in itertools.product(*group.axes.values()):
        chosen = dict(zip(group.axes, values, strict=True))
        for case, value in group.cases.items() or [("", None)]:
            settings = {field: _filled(one, chosen) for field, one in group.set.items()}
            if group.flows is not None:
                settings = {"flows": _filled(group.flows, chosen)} | settings
            if group.case:
                settings[group.case] = value
            title = "/".join([name, *(str(one).replace(" ", "") for one in values), *([case] if case else [])])
            try:
                scenario = base.set(settings)
            except SawtoothError as error:
                where = f"situations.{name}.{error.field}"
                raise InputError(error.code, error.message, field=where, fix=error.fix) from None
            yield Situation(title, group.title, scenario, tuple(group.measures))


def _filled(value: Any, chosen: Mapping[str, str | int]) -> Any:
    """The value with the axes' values in the places of their names."""
    if isinstance(value, dict):
        return {key: _filled(one, chosen) for key, one in value.items()}
    if isinstance(value, list):
        return [_filled(one, chosen) for one in value]
    if not isinstance(value, str):
        return value
    for name, one in chosen.items():
        if value == f"{{{name}}}":
            return {"true": True, "false": False}.get(one, one) if isinstance(one, str) else one
        value = value.replace(f"{{{name}}}", str(one))
    return value
