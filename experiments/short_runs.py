"""What a study adds to a short run: CPU time of each part, per point, in a table.

    python experiments/short_runs.py [--points 320]
    python experiments/short_runs.py --whole [--points 100000]

Points are runs of 10 ms on ``path``, made one after the other in this process. Each figure is the best of three.

``--whole`` runs the study with two workers, tables and report, as ``sawtooth run`` does, and shows the CPU time of this
process and of the workers. The time of the simulation is that of every hundredth point, run in this process before and
after the study.
"""

from __future__ import annotations

import argparse
import pickle
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sawtooth.engines.sim import Sim
from sawtooth.io.csv import csv_text
from sawtooth.report import write_report
from sawtooth.run import Run, save_together
from sawtooth.run.pack import RUNS
from sawtooth.scenario import Scenario
from sawtooth.study import Study, run_study
from sawtooth.study.batches import is_short
from sawtooth.study.point_summary import PointSummary
from sawtooth.study.result import Place, StudyResult
from sawtooth.study.store import point_directory


def study(points: int, **vary: list[str]) -> dict[str, Any]:
    return {
        "name": "short",
        "scenario": {"duration": "10 ms", "interval": "10 ms", "path": {"rate": "10 Mbit/s", "queue": "1 bdp"}},
        "vary": {"path.rtt": [f"{1 + number / 1000:.3f} ms" for number in range(points)]} | vary,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int)
    parser.add_argument("--whole", action="store_true")
    given = parser.parse_args()
    whole(given.points or 100_000) if given.whole else parts(given.points or 5 * RUNS)


def whole(points: int) -> None:
    """A study with ten values of loss at each round trip."""
    given = Study.from_dict(study(points // 10, **{"path.loss": [f"{number / 10}%" for number in range(10)]}))
    scenarios = [one for number, (_, one) in enumerate(given.each(seeds=[1])) if number % 100 == 0]

    def simulated_s() -> float:
        begun = time.process_time()
        for one in scenarios:
            Sim().run(one)
        return (time.process_time() - begun) / len(scenarios)

    def used(who: int) -> float:
        found = resource.getrusage(who)
        return found.ru_utime + found.ru_stime

    def ending(result: StudyResult) -> None:
        write_report(result)
        result.table()

    simulated_s()
    single = simulated_s()
    before, begun = used(resource.RUSAGE_SELF), time.monotonic()
    with tempfile.TemporaryDirectory() as home:
        run_study(given, out=Path(home), jobs=2, seeds=[1], ending=ending)
    own, workers = used(resource.RUSAGE_SELF) - before, used(resource.RUSAGE_CHILDREN)
    elapsed = time.monotonic() - begun
    single = (single + simulated_s()) / 2
    rest = (own + workers) / points - single
    print(
        f"{points:,} points: {own:.0f} s of CPU time in this process, {workers:.0f} s in two workers, {elapsed:.0f} s"
    )
    print(
        f"a point: {(own + workers) / points * 1e3:.2f} ms, simulated in {single * 1e3:.2f}, the rest {rest * 1e3:.2f}"
    )


def parts(count: int) -> None:
    engine = Sim()
    given = Study.from_dict(study(count))
    print("| part | ms |\n| --- | --- |")

    pauses: list[float] = []

    def paused(work: Callable[[], Any]) -> None:
        begun = time.process_time()
        work()
        pauses.append(time.process_time() - begun)

    def timed(part: str, work: Callable[[], Any]) -> Any:
        best, made = float("inf"), None
        for _ in range(3):
            pauses.clear()
            begun = time.process_time()
            made = work()
            best = min(best, time.process_time() - begun - sum(pauses))
        print(f"| {part} | {best / count * 1e3:.2f} |", flush=True)
        return made

    points = timed("expanding the point", lambda: given.points(seeds=[1]))

    def read() -> list[Scenario]:
        """Scenarios that no engine has seen, as the study and its workers have them."""
        return [one.scenario for one in points]

    def fresh() -> list[Scenario]:
        made: list[Scenario] = []
        paused(lambda: made.extend(read()))
        return made

    timed("checking it", lambda: [(engine.check(one), is_short(one)) for one in fresh()])
    timed("reading it in the worker", read)
    runs: list[Run] = timed("the simulation, with limits and warnings", lambda: [engine.run(one) for one in fresh()])

    def summary() -> list[PointSummary]:
        """In a worker it follows the simulation, whose compiled scenario is still there."""
        found = []
        for run in runs:
            paused(run.scenario.compile)
            found.append(PointSummary.of(run))
        return found

    places = [Place(one.id, one.key, one.seed) for one in points]
    summaries = timed("its summary", summary)
    timed("its summary, sent", lambda: pickle.loads(pickle.dumps(summaries)))
    with tempfile.TemporaryDirectory() as home:
        places_of_trials = iter(Path(home) / str(trial) for trial in range(9))

        def pack() -> Path:
            directory = next(places_of_trials)
            for begin in range(0, count, RUNS):
                part = zip(points[begin : begin + RUNS], runs[begin : begin + RUNS], strict=True)
                save_together({point_directory(directory, point.id): run for point, run in part})
            return directory

        def alone() -> Path:
            directory = next(places_of_trials)
            for point, run in zip(points, runs, strict=True):
                run.save(point_directory(directory, point.id))
            return directory

        def loaded(directory: Path) -> list[Run]:
            return [Run.load(point_directory(directory, point.id)) for point in points]

        directory = timed("saving the run in a pack", pack)
        (directory / "study.json").write_text("{}")
        known = {point.id: summary for point, summary in zip(points, summaries, strict=True)}
        described = {"overrides": {}}
        result = timed("rows of the tables", lambda: _built(given, directory, places, known, described))
        timed("the tables as CSV", lambda: (csv_text(result.summary), csv_text(result.details)))
        timed("reading it from the pack", lambda: loaded(directory))
        directory = timed("saving it in its own directory instead", alone)
        timed("reading it from there", lambda: loaded(directory))


def _built(
    given: Study, directory: Path, places: list[Place], known: dict[str, PointSummary], described: dict[str, Any]
) -> StudyResult:
    from sawtooth.study import store

    description, store.describe = store.describe, lambda _: described
    try:
        return StudyResult.build(given, "sim", directory, places, None, known)
    finally:
        store.describe = description


if __name__ == "__main__":
    main()
