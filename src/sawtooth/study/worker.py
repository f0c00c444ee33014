"""The code of a worker: runs points, from their scenarios to saved runs. Its input and output can be pickled."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sawtooth.engines import Engine, get
from sawtooth.errors import SawtoothError, unforeseen
from sawtooth.io.atomic_io import writing
from sawtooth.io.collector import paused
from sawtooth.io.parallel import stop_requested
from sawtooth.io.tempdirs import directory as temporary
from sawtooth.run import Run, save_together
from sawtooth.scenario import Scenario
from sawtooth.study.point_summary import PointSummary
from sawtooth.study.store import STOP, is_done, is_seen, point_directory

REPORT_EVERY_S = 0.3


@dataclass(frozen=True)
class Task:
    """A point to run. ``engine`` is a name, or an engine that can be pickled; ``scenario`` is a dictionary."""

    point: str
    scenario: dict[str, Any]
    engine: str | Engine
    directory: Path
    seal: str | None = None
    """The seal by which a worker elsewhere recognizes this directory; None if it certainly sees it."""
    captures: bool = False
    """Whether the engine also writes into the directory."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a task: saved, stopped on request, or an error that ends the study."""

    point: str
    saved: bool
    error: SawtoothError | None = None
    summary: PointSummary | None = None
    """For a batch: what the tables need of the run, which then need not be read from disk."""
    files: dict[str, bytes] | None = None
    """The saved run by file names, if the worker does not see the directory."""


def run_point(task: Task) -> Outcome:
    """Runs one point and saves its run completely or not at all. Never raises: errors are in the outcome."""
    if task.seal is not None and not is_seen(task.directory, task.seal):
        return _run_apart(task)
    stop = task.directory / STOP
    if stop.exists():
        return Outcome(task.point, saved=False)
    if is_done(task.directory, task.point):
        # A worker saved it and died before it could report.
        return Outcome(task.point, saved=True)
    progress = _Progress(task.directory / "progress" / task.point)
    try:
        run = _run(task, progress.report, lambda: stop.exists() or stop_requested())
        run.save(point_directory(task.directory, task.point))
        return Outcome(task.point, saved=True)
    except Exception as error:
        if is_done(task.directory, task.point):
            # A worker that was believed dead saved it; it is the same run.
            return Outcome(task.point, saved=True)
        return failed(task.point, error)
    finally:
        progress.remove()


@paused()
def run_points(tasks: Sequence[Task]) -> list[Outcome]:
    """Runs points of one batch, one after the other, and saves several of them in one pack. If one fails or is stopped,
    those before it are saved like single points. Never raises: errors are in the outcomes."""
    if len(tasks) == 1:
        return [run_point(tasks[0])]
    directory, runs = tasks[0].directory, {}
    stop = directory / STOP
    at, summaries = "", []
    try:
        for task in tasks:
            at = task.point
            if stop.exists():
                raise SawtoothError("interrupted", "stopped before this point", fix="run the study again: it continues")
            run = _run(task, None, lambda: stop.exists() or stop_requested())
            summaries.append(PointSummary.of(run))
            runs[point_directory(directory, at)] = run
        save_together(runs)
        return [Outcome(task.point, saved=True, summary=one) for task, one in zip(tasks, summaries, strict=True)]
    except Exception as error:
        ended = failed(at, error)
    saved = set()
    try:
        for where, run in runs.items():
            # A worker that was believed dead may have saved the pack; its runs are the same.
            if not is_done(directory, where.name):
                run.save(where)
            saved.add(where.name)
    except Exception as error:
        # The first error is the cause.
        ended = failed(at, error) if ended.error is None else ended
    outcomes = [Outcome(task.point, saved=task.point in saved) for task in tasks]
    return [ended if one.point == at and not one.saved else one for one in outcomes]


def _run_apart(task: Task) -> Outcome:
    """On a machine that does not see the directory: the run is sent back."""
    try:
        if task.captures:
            fix = "give the workers a disk that they share with this machine, or remove --capture"
            message = "captures are written to the results, which a worker does not see"
            raise SawtoothError("unsupported", message, field="capture", fix=fix)
        with temporary() as place:
            _run(task, None, stop_requested).save(place / "run")
            return Outcome(
                task.point,
                saved=True,
                files={file.name: file.read_bytes() for file in sorted((place / "run").iterdir())},
            )
    except Exception as error:
        return failed(task.point, error)


def _run(task: Task, progress: Callable[[float], None] | None, stop: Callable[[], bool]) -> Run:
    engine = get(task.engine) if isinstance(task.engine, str) else task.engine
    scenario = Scenario.from_dict(task.scenario, source=task.point)
    return engine.run(scenario, progress=progress, stop=stop)


def failed(point: str, error: Exception) -> Outcome:
    """The outcome of a point that raised: an error, or nothing if it was stopped."""
    if isinstance(error, SawtoothError):
        return Outcome(point, saved=False, error=None if error.code == "interrupted" else error)
    return Outcome(point, saved=False, error=unforeseen(error))


class _Progress:
    """Writes the fraction of a running point to a small file, which the parent polls."""

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
