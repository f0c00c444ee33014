"""Part: base class of all tables of a scenario. Their fields are in ``sawtooth.scenario.tables``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Self

from sawtooth import _core
from sawtooth.scenario.files import FILES
from sawtooth.scenario.record import Record


class Part(Record):
    """A table of a scenario, made from keyword fields: text with units, or values of ``sawtooth.scenario``.

    Raises InputError with the field and a fix. Two tables are equal if their fields are.
    """

    _said: Any
    """The given fields, as in a file."""

    def __init__(self, **given: Any) -> None:
        fields, said = _core.read_part(type(self).__name__, given, FILES)
        self.__dict__.update(fields, _said=said)

    @classmethod
    def _made(cls, fields: dict[str, Any], said: Any) -> Self:
        """From what the core has read."""
        made = object.__new__(cls)
        made.__dict__.update(fields, _said=said)
        return made

    def _given(self) -> Any:
        return self._said

    def _fields(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_said", "label")}

    def __repr__(self) -> str:
        """Fields that differ from their defaults; the reference has the rest."""
        usual = _usual(type(self).__name__)
        nothing = object()
        shown = (f"{name}={value!r}" for name, value in self._fields().items() if value != usual.get(name, nothing))
        return f"{type(self).__name__}({', '.join(shown)})"


@cache
def _usual(table: str) -> Mapping[str, Any]:
    """The defaults of a table's fields."""
    return _core.usual_fields(table)


class Flowing(Part):
    """Values derived from a flow's fields."""

    cc: Any
    source: Any

    @property
    def control(self) -> str:
        """The label of its congestion control; "udp" without one."""
        return "udp" if getattr(self.source, "kind", None) == "udp" else str(self.cc)


class Labelled(Part):
    """A congestion control that is more than a name."""

    label: str
    """Its label."""

    def __str__(self) -> str:
        return self.label
