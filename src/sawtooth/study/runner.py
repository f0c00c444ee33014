"""Runs studies on all cores; stops cleanly, and takes up where it stopped."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ProcessPoolExecutor, wait
from pathlib import Path
from typing import Any, cast

from sawtooth.engines import Engine, get
from sawtooth.errors import InputError, SawtoothError
from sawtooth.published import load as load_published
from sawtooth.run import versions
from sawtooth.storage import writing
from sawtooth.study.progress import Bar, fractions
from sawtooth.study.result import Place, StudyResult
from sawtooth.study.store import STOP, finish, is_done, results_directory
from sawtooth.study.study import Point, Study
from sawtooth.study.worker import Outcome, Task, prepare_worker, run_point

POLL_S = 0.25
GRACE_S = 5.0
"""How long running points get to stop by themselves after Ctrl-C."""


def run_study(
    study: Study | Path | str,
    *,
    engine: str | Engine = "sim",
    out: Path | str = Path("results"),
    jobs: int | None = None,
    executor: Executor | None = None,
    full: bool = False,
    seeds: Sequence[int] | None = None,
    overrides: Mapping[str, Any] | None = None,
    capture: bool = False,
    capture_at: Sequence[str] = (),
    quiet: bool = False,
) -> StudyResult:
    """Runs every point of a study and summarises it under ``out``/NAME/DATE; nothing there is ever overwritten.

    All points are validated before the first one starts. ``executor`` is anything with the interface of
    ``concurrent.futures`` whose workers see ``out``; without it, ``jobs`` worker processes (one a core) are started,
    so a script must call this under ``if __name__ == "__main__"``. The results do not depend on the workers.
    An unfinished directory of the same study, engine and versions is taken up again. ``capture`` keeps the packets'
    headers at both ends of each point under ``captures``, one directory a point, where the engine can; ``capture_at``
    names other hosts instead.

    Raises SawtoothError: as ``Study.points`` and the engine's ``check``; ``unwritable-output``, ``disk-full``,
    ``worker-died``, or the first error of a point, with finished points kept; ``interrupted`` after Ctrl-C.
    """
    if not isinstance(study, Study):
        study = Study.load(study)
    if jobs is not None and jobs < 1:
        raise SawtoothError("bad-usage", f"{jobs} worker processes", field="jobs", fix="give 1 or more")
    chosen = get(engine) if isinstance(engine, str) else engine
    if capture and not hasattr(chosen, "capture"):
        fix = "leave it out, or use the engine sim, kernel or netns"
        raise InputError("unsupported", f"the engine {chosen.name} writes no captures", field="capture", fix=fix)
    if capture_at:
        taking: Any = chosen
        chosen = cast(Engine, dataclasses.replace(taking, capture_at=tuple(capture_at)))
    points = study.points(full=full, seeds=seeds, overrides=overrides)
    for point in points:
        try:
            chosen.check(point.scenario)
        except SawtoothError as error:
            message = f"{error.message} (at the point {point.id})"
            raise type(error)(error.code, message, file=error.file, field=error.field, fix=error.fix) from error
    published = None
    if study.published is not None:
        beside = Path(study.origin).parent if study.origin else None
        published = load_published(study.published.file, beside=beside, source=study.published.source)

    def at(point: str, directory: Path) -> str | Engine:
        if not capture:
            return engine
        taking: Any = chosen
        return cast(Engine, dataclasses.replace(taking, capture=directory / "captures" / point))

    described = _described(study, chosen.name, points, full, seeds, overrides)
    with results_directory(Path(out), study.directory, _identity(described), described) as directory:
        tasks = [
            Task(point.id, point.scenario.to_dict(), at(point.id, directory), directory)
            for point in points
            if not is_done(directory, point.id)
        ]
        _run_tasks(tasks, len(points), directory, study.name, jobs, executor, quiet)
        places = [Place(point.id, point.key, point.seed) for point in points]
        result = StudyResult.build(study, chosen.name, directory, places, published)
        result.write_tables()
        finish(directory, {"warnings": list(result.warnings), "published": result.published_described()})
        return result


def _described(
    study: Study,
    engine: str,
    points: list[Point],
    full: bool,
    seeds: Sequence[int] | None,
    overrides: Mapping[str, Any] | None,
) -> dict[str, Any]:
    return {
        "study": study.to_dict(),
        "engine": engine,
        "full": full,
        "overrides": dict(overrides or {}),
        "seeds": list(seeds) if seeds is not None else None,
        "versions": versions(),
        "points": [
            {"id": point.id, "key": point.key, "seed": point.seed, "digest": point.scenario.digest()}
            for point in points
        ],
    }


def _identity(described: dict[str, Any]) -> str:
    """Same identity, same results: the question, the engine and the versions, down to the core's build."""
    text = json.dumps(described, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def _run_tasks(
    tasks: list[Task],
    points: int,
    directory: Path,
    name: str,
    jobs: int | None,
    executor: Executor | None,
    quiet: bool,
) -> None:
    if not tasks:
        return
    own = None
    if executor is None:
        workers = min(jobs or len(os.sched_getaffinity(0)), len(tasks))
        context = multiprocessing.get_context("spawn")
        own = executor = ProcessPoolExecutor(workers, mp_context=context, initializer=prepare_worker)
    done = points - len(tasks)
    futures: set[Future[Outcome]] = set()
    try:
        with Bar(name, points, done=done, quiet=quiet) as bar:
            with _starting_workers():
                order = {executor.submit(run_point, task): number for number, task in enumerate(tasks)}
            futures = set(order)
            waiting = set(futures)
            while waiting:
                finished, waiting = wait(waiting, POLL_S, FIRST_COMPLETED)
                for future in sorted(finished, key=order.__getitem__):
                    outcome = future.result()
                    if outcome.error is not None:
                        raise outcome.error.at(field=f"point {outcome.point}")
                    done += outcome.saved
                bar.show(min(points, done + fractions(directory)))
    except KeyboardInterrupt:
        kept = _stop(futures, own, directory, points, tasks)
        message = f"interrupted; {kept} of {points} points are finished and kept in {directory}"
        fix = "run the same command again: it takes up where this one stopped"
        raise SawtoothError("interrupted", message, fix=fix) from None
    except BrokenExecutor as error:
        kept = _stop(futures, own, directory, points, tasks)
        message = f"a worker process died (killed, or out of memory); {kept} of {points} points are finished and kept"
        fix = "run the same command again to go on, with fewer --jobs if memory is short; in a script of your own, "
        fix += 'call run_study under: if __name__ == "__main__"'
        raise SawtoothError("worker-died", message, file=directory, fix=fix) from error
    except SawtoothError:
        _stop(futures, own, directory, points, tasks)
        raise
    finally:
        if own is not None:
            own.shutdown(wait=True, cancel_futures=True)


@contextlib.contextmanager
def _starting_workers() -> Iterator[None]:
    """Ctrl-C goes to every process of a terminal, SIGTERM to every one of a service: workers inherit that they ignore
    both, from their first instant until ``prepare_worker``.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _stop(
    futures: set[Future[Outcome]], own: ProcessPoolExecutor | None, directory: Path, points: int, tasks: list[Task]
) -> int:
    """Ends what still runs: first by asking, then, for processes of our own, by force. Returns the points kept."""
    # A full or vanished disk cannot pass the word on; force will do.
    with contextlib.suppress(SawtoothError), writing(directory):
        (directory / STOP).touch()
    if own is None:
        for future in futures:
            future.cancel()
    # Our own workers pass over what is left, by the same word. Not cancelled: a process pool that breaks while it has
    # cancelled futures never ends (CPython's ``_ExecutorManagerThread.terminate_broken`` stumbles over them).
    # Asked twice: no more patience.
    with contextlib.suppress(KeyboardInterrupt):
        wait(futures, GRACE_S)
    if own is not None:
        for process in list((own._processes or {}).values()):
            if any(not future.done() for future in futures):
                process.kill()
    return points - sum(not is_done(directory, task.point) for task in tasks)
