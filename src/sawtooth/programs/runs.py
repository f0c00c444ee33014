"""One run of many as a row: the work of a worker process for ``sawtooth exec`` with several controls or seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sawtooth.errors import SawtoothError
from sawtooth.programs.execution import execute

if TYPE_CHECKING:
    from sawtooth.programs.program import Program
    from sawtooth.scenario import Scenario


@dataclass(frozen=True)
class Task:
    """The last of ``programs`` is measured; ``measures`` names places in its output."""

    scenario: Scenario
    programs: Sequence[Program]
    cc: str | None
    measures: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)


def row(task: Task) -> dict[str, Any]:
    """``cc``, ``seed``, ``status`` (124: time ran out), ``seconds`` from start to end, and the measures; None for
    missing ones. Raises SawtoothError as ``execute`` does."""
    last = execute(task.scenario, task.programs, cc=task.cc, **task.options).programs[-1]
    found: dict[str, Any] = {
        "cc": task.cc,
        "seed": task.scenario.seed,
        "status": last.exit_status,
        "seconds": last.seconds,
    }
    for name, place in task.measures.items():
        try:
            found[name] = last.value(place)
        except SawtoothError:
            # A program that failed has not printed it.
            if last.status == 0:
                raise
            found[name] = None
    return found
