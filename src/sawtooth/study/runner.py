"""Runs studies on all cores; stops cleanly, and continues where it stopped."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor
from pathlib import Path
from typing import Any

from sawtooth.engines import Engine, get
from sawtooth.errors import InputError, SawtoothError
from sawtooth.io.atomic_io import writing
from sawtooth.io.collector import paused
from sawtooth.io.parallel import Misfit, Workers, fan_out
from sawtooth.io.progress_bar import Bar
from sawtooth.run import unsaved, versions
from sawtooth.study import start_times
from sawtooth.study.batches import groups, is_short
from sawtooth.study.goodput_ceiling import refuse_unattainable
from sawtooth.study.point_summary import PointSummary
from sawtooth.study.published import load as load_published
from sawtooth.study.result import Place, StudyResult
from sawtooth.study.store import STOP, computed, finish, has_points, is_done, keep, results_directory, sealed
from sawtooth.study.study import Point, Study
from sawtooth.study.worker import Outcome, Task, run_points

_log = logging.getLogger(__name__)


def run_study(
    study: Study | Path | str,
    *,
    engine: str | Engine = "sim",
    out: Path | str = Path("results"),
    jobs: int | None = None,
    executor: Executor | Workers | None = None,
    full: bool = False,
    seeds: Sequence[int] | None = None,
    overrides: Mapping[str, Any] | None = None,
    capture: bool = False,
    capture_at: Sequence[str] = (),
    quiet: bool = False,
    ending: Callable[[StudyResult], None] | None = None,
) -> StudyResult:
    """Runs every point of a study and summarizes it under ``out``/NAME/DATE. Nothing there is ever overwritten.

    All points are checked before the first one starts. An unfinished directory of the same study, engine and versions
    is continued.

    - ``executor``: a ``sawtooth.dask.Cluster``, or an object with the interface of ``concurrent.futures`` whose
      workers see ``out``. Without it, ``jobs`` worker processes (one per core) are started. They do not import the
      calling script, and the results do not depend on them.
    - ``capture``: keep the packets' headers at both ends of each point under ``captures``, one directory per point, if
      the engine can; ``capture_at`` names other hosts instead.
    - ``ending``: called at the end, for example to write a report. The study counts as finished when it returns. If it
      was stopped or failed, the same call repeats it and computes no point again.

    Raises SawtoothError: as ``Study.points`` and the engine's ``check`` do; ``unwritable-output``, ``disk-full``,
    ``worker-died``, or the first error of a point, with finished points kept; ``interrupted`` after Ctrl-C.
    """
    if not isinstance(study, Study):
        study = Study.load(study)
    if jobs is not None and jobs < 1:
        raise SawtoothError(
            "bad-usage", f"a study needs at least 1 worker process, not {jobs}", field="jobs", fix="give 1 or more"
        )
    chosen = get(engine) if isinstance(engine, str) else engine
    if not isinstance(executor, Executor) and type(chosen).__module__ == "__main__":
        message = f"worker processes can't find the engine {chosen.name}: the script itself defines it"
        fix = "put it into a separate module, or give an executor of threads"
        raise InputError("unsupported", message, field="engine", fix=fix)
    if capture:
        # The directory is not known yet; what captures need is checked before anything starts.
        chosen = chosen.capturing(Path(out), capture_at)
    points, long = checked(study, chosen, full=full, seeds=seeds, overrides=overrides)
    published = None
    if study.published is not None:
        beside = Path(study.origin).parent if study.origin else None
        published = load_published(study.published.file, beside=beside, source=study.published.source)

    def at(point: str, directory: Path) -> str | Engine:
        return chosen.capturing(directory / "captures" / point, capture_at) if capture else engine

    description = described(study, chosen.name, points, full, seeds, overrides)
    elsewhere = executor is not None and not isinstance(executor, Executor)
    alone = elsewhere or capture
    batches = [[number] for number in range(len(points))] if alone else groups(len(points), long, engine)
    packed = any(len(batch) > 1 for batch in batches)
    name, known = study.directory, identity(description)
    # Many short runs take minutes. Other studies may take days, some of them beside other work of this process.
    collecting = paused() if packed and not long and executor is None else contextlib.nullcontext()
    with collecting, results_directory(Path(out), name, known, description, packed=packed) as directory:
        seal = sealed(directory) if elsewhere else None
        where = directory.resolve() if elsewhere else directory
        begun = has_points(directory)
        missing = unsaved(directory, [point.id for point in points]) if begun else set()
        left = ([points[number] for number in batch] for batch in batches)
        tasks = [
            [
                Task(point.id, point.given, at(point.id, where), where, seal, capture)
                for point in batch
                if not begun or point.id in missing
            ]
            for batch in left
        ]
        summaries: dict[str, PointSummary] = {}
        _run_tasks(
            [batch for batch in tasks if batch], summaries, len(points), directory, study.name, jobs, executor, quiet
        )
        places = [Place(point.id, point.key, point.seed) for point in points]
        try:
            if not (directory / start_times.FILE).exists():
                _try_starts(
                    start_times.to_try(directory, points, engine), points, directory, study.name, jobs, executor, quiet
                )
            result = StudyResult.build(study, chosen.name, directory, places, published, summaries)
            summaries.clear()
            result.write_tables()
            computed(directory, {"warnings": list(result.warnings), "published": result.published_described()})
            if ending is not None:
                ending(result)
            finish(directory)
        except KeyboardInterrupt:
            message = f"interrupted; all {len(points)} points are finished and kept in {directory}"
            fix = "run the same command again: it computes none of them again"
            raise SawtoothError("interrupted", message, fix=fix) from None
        return result


@paused()
def checked(
    study: Study,
    engine: Engine,
    *,
    full: bool,
    seeds: Sequence[int] | None,
    overrides: Mapping[str, Any] | None,
) -> tuple[list[Point], set[int]]:
    """All points, each checked by the engine, and the numbers of those that are not short.

    Raises SawtoothError as the engine and ``Study.points`` do.
    """
    points, long = [], set()
    # One scenario at a time: 100,000 of them fill a GB, and each further one then takes three times as long.
    for number, (point, scenario) in enumerate(study.each(full=full, seeds=seeds, overrides=overrides)):
        points.append(point)
        try:
            engine.check(scenario)
            if not is_short(scenario):
                long.add(number)
        except SawtoothError as error:
            message = f"{error.message} (at the point {point.id})"
            raise type(error)(error.code, message, file=error.file, field=error.field, fix=error.fix) from error
    refuse_unattainable(study, points, overrides)
    return points, long


def described(
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
        "points": [{"id": point.id, "key": point.key, "seed": point.seed, "digest": point.digest} for point in points],
    }


def identity(described: dict[str, Any]) -> str:
    """Identifies results: the question, the engine and the versions, including the core's build. Equal identity, equal
    results."""
    text = json.dumps(described, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def _run_tasks(
    tasks: list[list[Task]],
    summaries: dict[str, PointSummary],
    points: int,
    directory: Path,
    name: str,
    jobs: int | None,
    executor: Executor | Workers | None,
    quiet: bool,
) -> None:
    left = [task for batch in tasks for task in batch]
    done = points - len(left)

    def count(number: int, outcomes: list[Outcome]) -> None:
        nonlocal done
        given = {task.point: task for task in tasks[number]}
        if not isinstance(outcomes, list) or sorted(one.point for one in outcomes) != sorted(given):
            raise Misfit(f"the result of other points than {', '.join(given)}")
        for outcome in outcomes:
            if outcome.error is not None:
                raise outcome.error.at(field=f"point {outcome.point}")
            if outcome.files is not None and not is_done(directory, outcome.point):
                keep(directory, outcome.point, outcome.files, given[outcome.point].scenario)
        if lost := unsaved(directory, [one.point for one in outcomes if one.saved]):
            raise Misfit(f"the point {min(lost)} was not saved")
        for outcome in outcomes:
            if outcome.summary is not None:
                summaries[outcome.point] = outcome.summary
            done += outcome.saved
            _log.info("point %s: %s", outcome.point, "done" if outcome.saved else "stopped")

    _log.info("%d of %d points to run, results in %s", len(left), points, directory)

    def kept() -> int:
        return points - len(unsaved(directory, [task.point for task in left]))

    try:
        with Bar(name, points, done=done, quiet=quiet) as bar:
            fan_out(
                run_points,
                tasks,
                done=count,
                poll=lambda: bar.show(min(points, done + _fractions(directory))),
                stop=lambda: _request_stop(directory),
                jobs=jobs,
                executor=executor,
            )
    except KeyboardInterrupt:
        message = f"interrupted; {kept()} of {points} points are finished and kept in {directory}"
        fix = "run the same command again: it continues where this one stopped"
        raise SawtoothError("interrupted", message, fix=fix) from None
    except BrokenExecutor as error:
        message = f"a worker process died (killed, or out of memory); {kept()} of {points} points are finished and kept"
        fix = "run the same command again to continue, with fewer --jobs if memory is short"
        raise SawtoothError("worker-died", message, file=directory, fix=fix) from error
    except SawtoothError as error:
        if error.code not in ("cluster-lost", "no-workers", "worker-died"):
            raise
        message = f"{error.message}; {kept()} of {points} points are finished and kept"
        raise SawtoothError(error.code, message, file=directory, fix=error.fix) from error


def _try_starts(
    tasks: list[start_times.Task],
    points: list[Point],
    directory: Path,
    name: str,
    jobs: int | None,
    executor: Executor | Workers | None,
    quiet: bool,
) -> None:
    """Runs points again with other starts of their flows. A failure is ignored: the point itself has its run."""
    if not tasks:
        return
    outcomes: dict[int, start_times.Outcome] = {}
    _log.info("%d runs with other starts of the flows, since all seeds gave the same", len(tasks))
    with Bar(f"{name}, other starts", len(tasks), quiet=quiet) as bar:

        def count(number: int, outcome: start_times.Outcome) -> None:
            outcomes[number] = outcome
            bar.show(float(len(outcomes)))

        fan_out(
            start_times.run_shifted,
            tasks,
            done=count,
            poll=lambda: bar.show(float(len(outcomes))),
            stop=lambda: _request_stop(directory),
            jobs=jobs,
            executor=executor,
        )
    for one in outcomes.values():
        if one.error is not None:
            _log.info("point %s with other starts: %s", one.point, one.error)
    start_times.write(directory, points, [outcomes[number] for number in sorted(outcomes)])


def _request_stop(directory: Path) -> None:
    # A full or missing disk cannot carry the request to stop; the workers are then killed.
    with contextlib.suppress(SawtoothError), writing(directory):
        (directory / STOP).touch()


def _fractions(directory: Path) -> float:
    """The sum of the fractions of all running points in ``directory``/progress."""
    total = 0.0
    for path in (directory / "progress").glob("*"):
        try:
            total += min(1.0, max(0.0, float(path.read_text())))
        except (OSError, ValueError):
            # The worker is removing or rewriting the file at this moment; the next poll sees it.
            continue
    return total
