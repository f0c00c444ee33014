"""Networks: the lines, conditions and traffic of a scoreboard, read from TOML, and the study that runs them.

A network is one of each. A flow without ``cc`` has the congestion control under test; flows with one are its rivals.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from sawtooth.errors import InputError, SawtoothError, suggestion
from sawtooth.sanitize import plain
from sawtooth.scenario import CONTROLS, Rate, Scenario
from sawtooth.scenario.record import AGENTS
from sawtooth.scenario.sources import anchored
from sawtooth.stats import ceiling
from sawtooth.study import Study
from sawtooth.study.files import Table, read
from sawtooth.study.study import Line

RIVALS_ONLY = "nobody"
"""In the column ``cc``: the network with its rivals only, from which harm is measured."""
KEYS = ("line", "condition", "traffic", "cc")
"""The key columns of the study."""

FILES = (".c", *AGENTS)
"""How the names of files with a congestion control end."""

Name = Annotated[str, Field(min_length=1, max_length=40, pattern=r"^[A-Za-z0-9_.%+-]+$")]
Names = Annotated[list[Name], Field(min_length=1, max_length=100)]


class Part(Table):
    """A line or a condition."""

    title: Line = ""
    set: dict[str, Any] = Field(default_factory=dict, description="dotted field = value")
    possible: str | None = Field(None, description="the highest rate, where it is not that of the bottleneck")


class Traffic(Table):
    """The flows of a network."""

    title: Line = ""
    flows: list[dict[str, Any]] = Field(min_length=1, description="as [[flows]] of a scenario, each with a name")


class Group(Table):
    """All combinations of some parts."""

    lines: Names
    conditions: Names
    traffic: Names


class _File(Table):
    title: Line = ""
    seeds: list[int] = Field(default=[1, 2, 3], min_length=1, max_length=1000)
    controls: Names
    scenario: dict[str, Any] = Field(default_factory=dict)
    lines: dict[Name, Part]
    conditions: dict[Name, Part]
    traffic: dict[Name, Traffic]
    networks: list[Group] = Field(min_length=1, max_length=1000)


@dataclass(frozen=True)
class Control:
    """A congestion control under test: its name in tables, and what the flows' field ``cc`` is."""

    name: str
    cc: str | dict[str, Any] = field(hash=False)

    @classmethod
    def of(cls, text: str) -> Control:
        """A name, or the path of a C file, a policy or a Python file, which gets the file's name. Raises InputError
        ``unknown-name``, ``file-not-found``."""
        path = Path(text)
        if path.suffix in FILES:
            if not path.is_file():
                fix = "give the path of a file, or a name: sawtooth cc list"
                raise InputError("file-not-found", "there is no such file", file=text, field="--cc", fix=fix)
            return cls(path.stem, {"source": str(path.absolute())})
        if text not in CONTROLS or None not in CONTROLS[text].simulated:
            known = [name for name, one in CONTROLS.items() if None in one.simulated]
            message = f"the simulator has no congestion control {plain(text, 60)}"
            raise InputError("unknown-name", message, field="--cc", fix=suggestion(text, known))
        return cls(text, text)

    @property
    def is_file(self) -> bool:
        return not isinstance(self.cc, str)

    @property
    def needs_marks(self) -> bool:
        """Without ECN it is another control."""
        return isinstance(self.cc, str) and None in CONTROLS[self.cc].by_marks


@dataclass(frozen=True)
class Network:
    """``settings``: dotted fields of its scenario, flows excepted. ``possible_bps``: what flows can get,
    if the file says so. ``marks``: senders ask for ECN, so that controls that depend on marks can run."""

    line: str
    condition: str
    traffic: str
    title: str
    settings: dict[str, Any]
    flows: tuple[dict[str, Any], ...]
    base: Scenario
    possible_bps: float | None
    marks: bool

    @property
    def name(self) -> str:
        return f"{self.line}/{self.condition}/{self.traffic}"

    @property
    def own(self) -> tuple[str, ...]:
        """The names of the flows under test."""
        return tuple(flow["name"] for flow in self.flows if "cc" not in flow)

    @property
    def rivals(self) -> tuple[str, ...]:
        return tuple(flow["name"] for flow in self.flows if "cc" in flow)

    @property
    def is_bulk(self) -> bool:
        """Whether the flows under test always have data to send."""
        ends = ("source", "bytes", "duration")
        return not any(name in flow for flow in self.flows if "cc" not in flow for name in ends)

    def set(self, control: Control | None) -> dict[str, Any]:
        """The scenario's settings with this control; with None, without the flows under test."""
        own = [] if control is None else [{**flow, "cc": control.cc} for flow in self.flows if "cc" not in flow]
        rivals = [flow for flow in self.flows if "cc" in flow]
        return {**self.settings, "flows": own + rivals}

    def scenario(self, control: Control) -> Scenario:
        return self.base.set(self.set(control))

    @cached_property
    def possible_mbps(self) -> float | None:
        """The goodput that the flows under test can get together: their part, by connections, of what
        headers leave of the rate."""
        compiled = self.base.set(self.set(Control("cubic", "cubic"))).compile()
        most = ceiling(compiled)
        if most is None:
            return None
        rate = most.goodput_bps if self.possible_bps is None else self.possible_bps * most.share
        mine = sum(flow.count for flow in compiled.flows if flow.entry in self.own)
        return rate / 1e6 * mine / sum(flow.count for flow in compiled.flows)


@dataclass(frozen=True)
class Networks:
    """A file of networks that was read and checked."""

    name: str
    about: _File
    origin: Path
    networks: tuple[Network, ...]

    @classmethod
    def load(cls, path: str | PathLike[str] | None = None) -> Networks:
        """Reads a file; None: the one that is shipped. Raises SawtoothError, which names file, field and fix."""
        file = Path(str(files("sawtooth") / "data" / "scoreboard.toml")) if path is None else Path(path)
        about = read(_File, file)
        try:
            return cls(file.stem, about, file, tuple(_networks(about, file.parent)))
        except SawtoothError as error:
            raise error.at(file=str(file)) from None

    def chosen(self, only: Sequence[str]) -> tuple[Network, ...]:
        """The networks that have all parts of one of these texts: ``lte``, ``cable/shallow``. All, without texts.

        Raises InputError ``unknown-name``.
        """
        known = {one for network in self.networks for one in (network.line, network.condition, network.traffic)}
        wanted = [set(text.split("/")) for text in only]
        for text, parts in zip(only, wanted, strict=True):
            for part in sorted(parts - known):
                fix = suggestion(part, known)
                message = f"no line, condition or traffic is named {plain(part, 60)}"
                raise InputError("unknown-name", message, field="--only", fix=fix)
            if not any(parts <= {*network.name.split("/")} for network in self.networks):
                fix = "name fewer parts, like " + text.partition("/")[0]
                raise InputError("unknown-name", f"no network is {plain(text, 80)}", field="--only", fix=fix)
        return tuple(
            one for one in self.networks if not wanted or any(parts <= {*one.name.split("/")} for parts in wanted)
        )

    def controls(self, given: Sequence[str]) -> tuple[Control, ...]:
        """The controls to compare: those named, and files besides; without a name, the file's.

        Raises InputError as ``Control.of``, ``duplicate-name``.
        """
        chosen = [Control.of(text) for text in dict.fromkeys(given)]
        named = [one for one in chosen if not one.is_file] or self._own()
        found = [*named, *(one for one in chosen if one.is_file)]
        for at, one in enumerate(found):
            suffix = ".c" if isinstance(one.cc, str) else Path(one.cc["source"]).suffix
            fix = f"copy the file under another name, like {one.name}_2{suffix}"
            if one.name == RIVALS_ONLY:
                raise InputError("duplicate-name", f"the name {RIVALS_ONLY} is taken", field="--cc", fix=fix)
            if one.name in [other.name for other in found[:at]]:
                raise InputError("duplicate-name", f"two controls are named {one.name}", field="--cc", fix=fix)
        return tuple(found)

    def _own(self) -> list[Control]:
        """The controls that the file names."""
        found = []
        for at, name in enumerate(self.about.controls):
            field = f"controls.{at}"
            if name in self.about.controls[:at]:
                message, fix = f"{name} is there twice", "remove one"
                raise InputError("duplicate-name", message, file=str(self.origin), field=field, fix=fix)
            try:
                found.append(Control.of(str(self.origin.parent / name) if Path(name).suffix in FILES else name))
            except InputError as error:
                raise InputError(error.code, error.message, file=str(self.origin), field=field, fix=error.fix) from None
        return found

    def study(self, networks: Sequence[Network], controls: Sequence[Control]) -> Study:
        """Every control on every network, and every network with rivals without a control. Controls that depend on
        marks run only where there are some. Raises SawtoothError as a study does."""
        cases = [
            {
                "key": dict(
                    zip(KEYS, (*network.name.split("/"), RIVALS_ONLY if one is None else one.name), strict=True)
                ),
                "set": network.set(one),
            }
            for network in networks
            for one in [*controls, *([None] if network.rivals else [])]
            if one is None or runs(one, network)
        ]
        if all(case["key"]["cc"] == RIVALS_ONLY for case in cases):
            message = "none of these controls runs on any of these networks: they need networks that mark packets"
            raise InputError("unsupported", message, field="--cc", fix="add --cc cubic")
        report = {"x": "cc", "series": "condition", "plots": ["mean"]}
        content: dict[str, Any] = {"name": self.name, "title": self.about.title, "report": report}
        content |= {"scenario": self.about.scenario, "cases": cases, "repeat": {"seeds": self.about.seeds}}
        return Study.from_dict(content, source=str(self.origin))


def runs(control: Control, network: Network) -> bool:
    return network.marks or not control.needs_marks


def _networks(about: _File, directory: Path) -> Iterator[Network]:
    """``directory``: where relative paths start."""
    base = Scenario.from_dict(anchored(dict(about.scenario), directory))
    for name, one in about.traffic.items():
        for at, flow in enumerate(one.flows):
            if not isinstance(flow.get("name"), str):
                fix = 'write name = "own"'
                raise InputError("missing-field", "is missing", field=f"traffic.{name}.flows.{at}.name", fix=fix)
        if all("cc" in flow for flow in one.flows):
            fix = "remove cc of the flow whose congestion control is compared"
            raise InputError("conflict", "no flow is without cc", field=f"traffic.{name}.flows", fix=fix)
    seen: set[str] = set()
    for at, group in enumerate(about.networks):
        for table in ("lines", "conditions", "traffic"):
            for name in getattr(group, table):
                if name not in getattr(about, table):
                    fix = suggestion(name, getattr(about, table))
                    message = f"there is no [{table}.{plain(name)}]"
                    raise InputError("unknown-name", message, field=f"networks.{at}.{table}", fix=fix)
        for line, condition, traffic in itertools.product(group.lines, group.conditions, group.traffic):
            network = _network(about, base, directory, line, condition, traffic)
            if network.name in seen:
                fix = "remove it from one of the tables [[networks]]"
                raise InputError("duplicate-name", f"{network.name} is there twice", field=f"networks.{at}", fix=fix)
            seen.add(network.name)
            yield network


def _network(about: _File, base: Scenario, directory: Path, line: str, condition: str, traffic: str) -> Network:
    parts, flows = (about.lines[line], about.conditions[condition]), about.traffic[traffic]
    settings = {field: _anchored(field, value, directory) for part in parts for field, value in part.set.items()}
    title = "; ".join(one.title for one in (*parts, flows) if one.title)
    possible = next((part.possible for part in reversed(parts) if part.possible is not None), None)
    try:
        bps = None if possible is None else float(Rate.parse(possible).bps)
    except InputError as error:
        raise error.at(field=f"conditions.{condition}.possible") from None
    placed = anchored({"flows": flows.flows}, directory)["flows"]
    marks = bool(base.set(settings).host.ecn == 1)
    return Network(line, condition, traffic, title, settings, tuple(placed), base, bps, marks)


def _anchored(field: str, value: Any, directory: Path) -> Any:
    """The value of a dotted field; a file that it names gets its whole path."""
    table, _, name = field.partition(".")
    return anchored({table: {name: value}}, directory)[table][name] if name else value
