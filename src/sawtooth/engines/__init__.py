"""Engines: a scenario goes in, a run comes out, in the same form from every engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from sawtooth.errors import InputError, suggestion

if TYPE_CHECKING:
    from sawtooth.run import Run
    from sawtooth.scenario import Scenario

Progress = Callable[[float], None]
"""Called from time to time with the finished fraction of the simulated time, 0 to 1."""
Stop = Callable[[], bool]
"""Called from time to time; true ends the run with the error ``interrupted``."""

NAMES = ("sim", "model", "kernel", "netns")


class Engine(Protocol):
    """The interface of every engine; each is a module-level value named ``ENGINE``."""

    @property
    def name(self) -> str: ...

    def check(self, scenario: Scenario) -> None:
        """Raises SawtoothError ``unsupported``, naming the field, for a scenario that this engine cannot run."""

    def capturing(self, directory: Path, at: Sequence[str] = ()) -> Engine:
        """This engine with captures: it keeps packet headers in ``directory``, from both ends of every flow or from the
        hosts ``at``.

        Raises SawtoothError ``unsupported`` if it writes no captures.
        """

    def run(self, scenario: Scenario, *, progress: Progress | None = None, stop: Stop | None = None) -> Run:
        """Runs the scenario. Raises SawtoothError: as ``check`` does, ``interrupted``, or the engine's own failure."""


def get(name: str) -> Engine:
    """The engine of that name. Raises SawtoothError ``unknown-name`` and suggests the nearest one."""
    if name not in NAMES:
        raise InputError("unknown-name", f'no engine is named "{name}"', field="engine", fix=suggestion(name, NAMES))
    return cast(Engine, import_module(f"sawtooth.engines.{name}").ENGINE)
