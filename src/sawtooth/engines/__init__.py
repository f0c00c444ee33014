"""Engines: a scenario goes in, a run comes out; the caller cannot tell which engine answered but by its name."""

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
"""Called now and then with the fraction of the simulated time that is done, 0 to 1."""
Stop = Callable[[], bool]
"""Asked now and then; true ends the run with the error ``interrupted``."""

NAMES = ("sim", "model", "kernel", "netns")


class Engine(Protocol):
    """What every engine offers; each is a module-level value named ``ENGINE``."""

    @property
    def name(self) -> str: ...

    def check(self, scenario: Scenario) -> None:
        """Raises SawtoothError ``unsupported``, naming the field, for what this engine cannot do."""

    def capturing(self, directory: Path, at: Sequence[str] = ()) -> Engine:
        """This engine, keeping packet headers in ``directory``: of both ends of every flow, or of the hosts ``at``.

        Raises SawtoothError ``unsupported`` where it writes no captures.
        """

    def run(self, scenario: Scenario, *, progress: Progress | None = None, stop: Stop | None = None) -> Run:
        """Answers the scenario. Raises SawtoothError: as ``check``, ``interrupted``, or the engine's own failure."""


def get(name: str) -> Engine:
    """The engine of that name. Raises SawtoothError ``unknown-name`` with the nearest one."""
    if name not in NAMES:
        raise InputError("unknown-name", f'no engine is named "{name}"', field="engine", fix=suggestion(name, NAMES))
    return cast(Engine, import_module(f"sawtooth.engines.{name}").ENGINE)
