"""Compiled: a scenario in the form that engines take: integers and indices; names for messages only.

The core makes it and its JSON (docs/design.md, "The core's contract"). A guest imports this, and every imported module
costs a guest time.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

from sawtooth import _core
from sawtooth.scenario import compiled_form
from sawtooth.scenario.compiled_form import Flow, Link, Probe, Transmitter
from sawtooth.scenario.record import Module, Record

_PARTS = (dict, list)


class Compiled(compiled_form.Scenario):
    """The core's form of a whole scenario, and what the core does not read: the name of the ``kernel`` that the engine
    ``kernel`` boots; names of the ``programs`` with their hosts, and what they call hosts (``server`` and ``client``),
    by the hosts' names.
    """

    kernel: str | None = None
    programs: tuple[str, ...] = ()
    program_hosts: tuple[str, ...] = ()
    called: Mapping[str, str]
    _text: str
    _form: Mapping[str, Any]
    """The parts as JSON has them. Each is made on its first use: a run of a few milliseconds uses half of them."""

    def __getattr__(self, name: str) -> Any:
        form = self.__dict__.get("_form", {})
        if name not in form:
            raise AttributeError(name)
        found = self.__dict__[name] = _value(name, form[name])
        return found

    def _fields(self) -> dict[str, Any]:
        made = {name: getattr(self, name) for name in self._form}
        return made | {name: value for name, value in self.__dict__.items() if name != "_form"}

    @property
    def senders(self) -> list[Flow | Probe]:
        """Everything that sends from one host to another."""
        return [*self.flows, *self.probes]

    def source(self, one: Flow | Probe) -> int:
        """The host that sends."""
        return self.links[one.forward[0]].from_

    def target(self, one: Flow | Probe) -> int:
        """The host that answers."""
        return self.links[one.forward[-1]].to

    def way(self, links: Iterable[int]) -> list[Link]:
        return [self.links[index] for index in links]

    def transmitters_of(self, links: Iterable[int]) -> list[Transmitter]:
        """The transmitters along these links."""
        return [self.transmitters[link.transmitter] for link in self.way(links) if link.transmitter is not None]

    def whole_ways(self) -> list[list[int]]:
        """For each flow the links that super-packets cross whole, up to the queue that holds them as one packet; none
        if they are cut earlier."""
        return _core.whole_ways(self._text)

    def to_dict(self) -> dict[str, Any]:
        """The form that the core reads, in lists and dictionaries. Without modules: engines prepare those
        themselves."""
        form: dict[str, Any] = json.loads(self._text)
        return form

    def to_json(self) -> str:
        """The argument of ``sawtooth._core.Simulation``."""
        return self._text

    @classmethod
    def of(
        cls,
        text: str,
        kernel: str | None = None,
        modules: Sequence[tuple[Sequence[str], Sequence[tuple[str, str]], str | None] | None] = (),
        programs: tuple[Sequence[tuple[str, str]], Sequence[str], Sequence[str]] = ((), (), ()),
    ) -> Self:
        """What the core made of a scenario: its JSON, the kernel, of each flow the module, and where programs run."""
        form: dict[str, Any] = json.loads(text)
        for flow, module in zip(form["flows"], modules, strict=bool(modules)):
            if module is not None:
                sources, parameters, name = module
                flow["module"] = Module(sources=tuple(sources), parameters=tuple(parameters), name=name)
        called, names, hosts = programs
        if names:
            # A path between programs is a probe that sends nothing: the testbed routes it, and nobody measures it.
            form["probes"] = [one for one in form["probes"] if one["count"]]
        about = {"kernel": kernel, "programs": tuple(names), "program_hosts": tuple(hosts), "called": dict(called)}
        parts = {name: form.pop(name) for name in list(form) if isinstance(form[name], _PARTS)}
        return cls(**form, **about, _text=text, _form=parts)

    @classmethod
    def from_dict(cls, form: Mapping[str, Any]) -> Self:
        """Inverse of ``to_dict``. Only for data from another Sawtooth process: nothing is checked."""
        return cls.of(json.dumps(form))


def _read(kind: type[Record], form: Mapping[str, Any]) -> Record:
    """A record from its JSON object. ``from`` is a keyword of Python."""
    made = kind.__new__(kind)
    fields = made.__dict__
    if "from" in form:
        form = {"from_" if name == "from" else name: value for name, value in form.items()}
    fields.update(form)
    for name, value in form.items():
        if value.__class__ in _PARTS:
            fields[name] = _value(name, value)
    return made


def _value(name: str, value: Any) -> Any:
    if isinstance(value, dict):
        return _read(compiled_form.KINDS.get(name, Record), value)
    if not isinstance(value, list):
        return value
    # Most lists are numbers only.
    inner = value and isinstance(value[0], _PARTS)
    return tuple(_value(name, one) for one in value) if inner else tuple(value)
