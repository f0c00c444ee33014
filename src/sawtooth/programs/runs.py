"""One run of many, as a row: what a worker process does for ``sawtooth exec`` with several controls or seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sawtooth.errors import SawtoothError
from sawtooth.programs.execution import execute
from sawtooth.programs.value import value_of

if TYPE_CHECKING:
    from sawtooth.programs.program import Program
    from sawtooth.scenario import Scenario


@dataclass(frozen=True)
class Task:
    """The last of ``programs`` is measured: ``measures`` are places in its output, by name."""

    scenario: Scenario
    programs: Sequence[Program]
    cc: str | None
    measures: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)


def row(task: Task) -> dict[str, Any]:
    """``cc``, ``seed``, ``status`` (124: time was up), ``seconds`` from start to end, and the measures; None for what
    there is none of. Raises SawtoothError as ``execute`` does.
    """
    done = execute(task.scenario, task.programs, cc=task.cc, **task.options)
    last = done.programs[-1]
    ended = last.end_s is not None and last.start_s is not None
    status = 124 if last.status is None else last.status if last.status >= 0 else 128 - last.status
    found: dict[str, Any] = {
        "cc": task.cc,
        "seed": task.scenario.seed,
        "status": status,
        "seconds": last.end_s - last.start_s if ended else None,  # type: ignore[operator]
    }
    for name, place in task.measures.items():
        try:
            found[name] = value_of(place, last.stdout.decode(errors="replace"), last.stderr.decode(errors="replace"))
        except SawtoothError:
            # A program that failed has not printed it.
            if status == 0:
                raise
            found[name] = None
    return found
