"""What runs in a worker: one point, from its scenario to its saved run. Picklable, and answers with plain values."""

from __future__ import annotations

import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sawtooth.engines import Engine, get
from sawtooth.errors import SawtoothError
from sawtooth.scenario import Scenario
from sawtooth.storage import writing
from sawtooth.study.store import STOP, point_directory

REPORT_EVERY_S = 0.3


@dataclass(frozen=True)
class Task:
    """A point to be run. ``engine`` is a name, or an engine that can be pickled; ``scenario`` is its dictionary."""

    point: str
    scenario: dict[str, Any]
    engine: str | Engine
    directory: Path


@dataclass(frozen=True)
class Outcome:
    """What came of a task: saved, stopped on request, or an error that ends the study."""

    point: str
    saved: bool
    error: SawtoothError | None = None


def run_point(task: Task) -> Outcome:
    """Runs one point and saves its run whole or not at all. Never raises: errors are in the outcome."""
    stop = task.directory / STOP
    if stop.exists():
        return Outcome(task.point, saved=False)
    progress = _Progress(task.directory / "progress" / task.point)
    try:
        engine = get(task.engine) if isinstance(task.engine, str) else task.engine
        scenario = Scenario.from_dict(task.scenario, source=task.point)
        run = engine.run(scenario, progress=progress.report, stop=stop.exists)
        run.save(point_directory(task.directory, task.point))
        return Outcome(task.point, saved=True)
    except SawtoothError as error:
        if error.code == "interrupted":
            return Outcome(task.point, saved=False)
        return Outcome(task.point, saved=False, error=error)
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        message = f"{type(error).__name__}: {error} ({Path(last.filename).name}, line {last.lineno})"
        fix = "this is a defect of sawtooth: please report it"
        return Outcome(task.point, saved=False, error=SawtoothError("internal", message, fix=fix))
    finally:
        progress.remove()


class _Progress:
    """Keeps the fraction of a running point in a small file, which the parent polls."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.next = 0.0

    def report(self, fraction: float) -> None:
        now = time.monotonic()
        if now >= self.next:
            self.next = now + REPORT_EVERY_S
            with writing(self.path):
                self.path.write_text(f"{fraction:.4f}")

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)
