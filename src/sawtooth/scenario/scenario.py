"""The scenario: the input of an engine. Read, checked and compiled by the core; immutable."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Mapping
from os import PathLike
from pathlib import Path as FilePath
from typing import Any, Self

from sawtooth import _core
from sawtooth.errors import InputError, SawtoothError
from sawtooth.sanitize import is_plain
from sawtooth.scenario import tables as views
from sawtooth.scenario.compiled import Compiled
from sawtooth.scenario.files import FILES
from sawtooth.scenario.sources import anchored
from sawtooth.scenario.toml import read_toml

_LONGEST_NAME = 100
_KEPT = 16
_read: deque[weakref.ref[Scenario]] = deque()
_compiled: deque[weakref.ref[Scenario]] = deque()
"""Scenarios that keep the core's data from reading, and those that keep their compiled form. A run uses it often; but a
study holds thousands of scenarios, and the form of a thousand pairs of hosts takes a megabyte."""


class Scenario(views.Scenario):
    """One experiment: a network, its flows and how long to watch them.

    Made by ``load``, ``from_dict`` or keywords (text with units, or values of ``sawtooth.scenario``); each raises
    SawtoothError with file, field and fix. Two scenarios are equal if they mean the same, however they are written.
    """

    _read: _core.Scenario
    _source: str | None
    _compiled: Compiled | None

    def __init__(self, /, **tables: Any) -> None:
        self._hold(_core.Scenario.read(tables, FILES), None)

    def _hold(self, core: _core.Scenario, source: str | None) -> None:
        self.__dict__.update(_read=core, _source=source, _compiled=None)
        if (oldest := _oldest(_read, self)) is not None:
            oldest._read.forget()

    @classmethod
    def _of(cls, core: _core.Scenario, source: str | None) -> Self:
        made = cls.__new__(cls)
        made._hold(core, source)
        return made

    def __getattr__(self, name: str) -> Any:
        """A field, made on first use."""
        if name.startswith("_"):
            raise AttributeError(name)
        found = self.__dict__[name] = self._read.field(name)
        return found

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Reads a TOML file. Raises SawtoothError with the file, the field and a fix."""
        return cls.from_file(read_toml(path), path)

    @classmethod
    def from_file(cls, tables: Mapping[str, Any], path: str | PathLike[str]) -> Self:
        """From the tables of the file ``path``: relative paths in it start from its directory, and the default name is
        the file's. Raises SawtoothError."""
        file = FilePath(path)
        named = file.suffix == ".toml" and len(file.stem) <= _LONGEST_NAME and is_plain(file.stem)
        given = {"name": file.stem, **tables} if named else dict(tables)
        return cls.from_dict(anchored(given, file.parent), source=str(path))

    @classmethod
    def from_dict(cls, tables: Mapping[str, Any], *, source: str | None = None) -> Self:
        """From the tables of a file; ``source`` is the name of that file in messages. Raises SawtoothError."""
        if not isinstance(tables, Mapping) or not all(isinstance(key, str) for key in tables):
            fix = "write a table of fields"
            raise InputError("wrong-type", "a scenario is a table", file=source, fix=fix)
        try:
            return cls._of(_core.Scenario.read(tables, FILES), source)
        except SawtoothError as error:
            raise error.at(file=source) from None

    @property
    def source(self) -> str | None:
        """The file from which this was read."""
        return self._source

    @property
    def path_table(self) -> views.Path:
        return self.path if self.path is not None else views.Path()

    @property
    def chain_table(self) -> views.Chain:
        return self.chain if self.chain is not None else views.Chain()

    @property
    def flow_names(self) -> list[str]:
        """The name of each [[flows]] table: its own, or the default."""
        return self._read.flow_names()

    def set(self, changes: Mapping[str, Any]) -> Self:
        """A scenario with fields changed by dotted path: ``{"path.rtt": "140 ms", "flows.cc": "bbr"}``.

        ``host.hz`` is a field of all hosts, ``hosts.h1.hz`` of one; ``flows.cc`` of every flow that has one,
        ``flows.0.cc`` of the first, ``flows.NAME.cc`` of one. Raises SawtoothError as loading the changed file would.
        """
        if not changes:
            return self
        try:
            return self._of(self._read.set(dict(changes), FILES), self._source)
        except SawtoothError as error:
            raise error.at(file=self._source) from None

    def with_seed(self, seed: int) -> Self:
        """The same scenario with another seed; faster than ``set({"seed": seed})``."""
        try:
            return self._of(self._read.with_seed(seed), self._source)
        except SawtoothError as error:
            raise error.at(file=self._source) from None

    def without_processing(self) -> Self:
        """The same scenario with hosts that take no time (``host.processing``): for real hosts, which take their own,
        and for closed forms."""
        own = {f"hosts.{name}.processing": "0 s" for name, host in self.hosts.items() if host.processing.seconds}
        return self.set(own | ({"host.processing": "0 s"} if self.host.processing.seconds else {}))

    def as_custom(self) -> Self:
        """The same network and flows as a ``custom`` scenario; unchanged if it is ``custom`` already.

        Random draws differ, because links are in another order. A flow that is spread over pairs becomes one flow per
        pair. Raises SawtoothError ``unsupported`` for a path with a trace.
        """
        return self if self.topology == "custom" else self._of(self._read.as_custom(FILES), None)

    def compile(self) -> Compiled:
        """The form that engines take: integers in ns, bit/s, bytes and parts per billion; see docs/design.md. Computed
        once."""
        made = self._compiled
        if made is None:
            made = self.__dict__["_compiled"] = Compiled.of(*self._read.compile(FILES))
            if (oldest := _oldest(_compiled, self)) is not None:
                oldest.__dict__["_compiled"] = None
                oldest._read.forget()
        return made

    def check_simulated(self) -> None:
        """Raises SawtoothError ``unsupported`` for programs, a congestion control that the simulator lacks, and a round
        trip that is too short for TCP's clock.
        """
        self._read.check_simulated(FILES)

    def to_dict(self) -> dict[str, Any]:
        """Every field that has a value, including defaults, with quantities as canonical text: suitable for JSON and
        TOML."""
        return self._read.to_dict()

    def given(self) -> dict[str, Any]:
        """The fields that were given, quantities as canonical text."""
        return self._read.given()

    def digest(self) -> str:
        """SHA-256 of the canonical JSON of ``to_dict``: 64 hexadecimal digits, equal for equal scenarios.

        A module counts by the current content of its sources, not by their location.
        """
        return self._read.digest(FILES)

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """JSON Schema (2020-12) of a scenario file."""
        return _core.Scenario.schema()

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (type(self), self.given(), self._source)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scenario) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(self.digest())

    def _fields(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in views.Scenario.__annotations__}


def _oldest(kept: deque[weakref.ref[Scenario]], one: Scenario) -> Scenario | None:
    """The scenario that must drop its data when another one is added."""
    kept.append(weakref.ref(one))
    return kept.popleft()() if len(kept) > _KEPT else None


def _again(cls: type[Scenario], tables: dict[str, Any], source: str | None) -> Scenario:
    """Restores a pickled scenario."""
    return cls._of(_core.Scenario.read(tables, FILES), source)
