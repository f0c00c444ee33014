"""Record: base of the tables of a scenario and of its compiled form. What the compiled form's classes have beside the
core's fields is here, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import FrozenInstanceError
from typing import Any

AGENTS = (".npz", ".py")
"""How the names of policies and of Python files that decide end."""


class Record:
    """An immutable value, made from its fields; one that is not given has its class's value. Two are equal if the same
    fields are given with equal values.
    """

    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)

    def __setattr__(self, name: str, value: object) -> None:
        raise FrozenInstanceError(f"cannot assign to field {name!r}: it is frozen")

    def __delattr__(self, name: str) -> None:
        raise FrozenInstanceError(f"cannot delete field {name!r}: it is frozen")

    def _fields(self) -> Mapping[str, Any]:
        return self.__dict__

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and isinstance(other, Record) and self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash((type(self), repr(self)))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self._fields().items())})"


class Choice(Record):
    """One of several kinds: the only field that is given."""

    @property
    def kind(self) -> str:
        return next(iter(self.__dict__))

    @property
    def value(self) -> Any:
        return self.__dict__[self.kind]


class Module(Record):
    """A congestion control from its C sources: their paths, module parameters as text, and the name that selects one.
    Or an agent, from a policy or a Python file.
    """

    sources: tuple[str, ...]
    parameters: tuple[tuple[str, str], ...]
    name: str | None

    @property
    def is_agent(self) -> bool:
        return any(source.endswith(AGENTS) for source in self.sources)


class OfFlow(Record):
    """``module`` replaces the flow's congestion control, which is then a label. The core gets it separately."""

    name: str
    module: Module | None = None

    @property
    def entry(self) -> str:
        """The name of its entry in [[flows]], which flows between several pairs of hosts share."""
        return self.name.partition("@")[0]


class OfTransmitter(Record):
    """``discipline``: its kind is tc's name, or "fifo", and its value has the parameters that the core computed."""

    rate_bps: int
    discipline: Choice | None = None

    @property
    def lasting_bps(self) -> int:
        """The long-run rate."""
        queue = vars(self.discipline.value) if self.discipline else {}
        return min(self.rate_bps, queue.get("rate_bps") or queue.get("bandwidth_bps") or self.rate_bps)
