"""Export: runs a study into a dataset at any address that fsspec supports, instead of a local directory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor
from pathlib import Path
from typing import Any

from sawtooth.engines import Engine, get
from sawtooth.errors import SawtoothError
from sawtooth.io.parallel import Workers, fan_out
from sawtooth.io.progress_bar import Bar
from sawtooth.study.batches import groups
from sawtooth.study.dataset import Dataset, PointTask, measure_all
from sawtooth.study.result import Place
from sawtooth.study.runner import checked, described, identity
from sawtooth.study.study import Study


def run_into(
    study: Study | Path | str,
    url: str,
    *,
    engine: str | Engine = "sim",
    jobs: int | None = None,
    executor: Executor | Workers | None = None,
    full: bool = False,
    seeds: Sequence[int] | None = None,
    overrides: Mapping[str, Any] | None = None,
    quiet: bool = False,
) -> Dataset:
    """Runs every point of a study that its dataset under ``url`` does not have yet, and adds its row.

    Rows return to this process, which writes them, so workers need neither the store nor its credentials. The runs
    themselves are not kept. The same study, engine and versions continue the same dataset. Use one command at a time.

    Raises SawtoothError as ``run_study`` and ``Dataset`` do; finished rows are kept.
    """
    if not isinstance(study, Study):
        study = Study.load(study)
    chosen = get(engine) if isinstance(engine, str) else engine
    points, long = checked(study, chosen, full=full, seeds=seeds, overrides=overrides)
    description = described(study, chosen.name, points, full, seeds, overrides)
    dataset = Dataset.under(url, study.directory, identity(description))
    dataset.begin(description)
    there = dataset.digests()
    missing = [
        [points[number] for number in batch if description["points"][number]["digest"] not in there]
        for batch in groups(len(points), long, engine)
    ]
    left = [batch for batch in missing if batch]
    tasks = [[PointTask(Place(one.id, one.key, one.seed), one.given, engine) for one in batch] for batch in left]
    done = len(points) - sum(map(len, left))

    def resumable(error: SawtoothError) -> SawtoothError:
        message = f"{error.message}; {done} of {len(points)} points are finished and kept in {dataset.url}"
        return SawtoothError(error.code, message, file=error.file, field=error.field, fix=error.fix)

    again = "run the same command again: it continues where this one stopped"
    with dataset.adding(points) as rows, Bar(study.name, len(points), done=done, quiet=quiet) as bar:

        def add(number: int, answers: list[dict[str, Any] | SawtoothError | None]) -> None:
            nonlocal done
            for point, answer in zip(left[number], answers, strict=False):
                if isinstance(answer, SawtoothError):
                    raise answer.at(field=f"point {point.id}")
                if answer is not None:
                    rows.add(point.id, answer)
                    done += 1

        def poll() -> None:
            rows.poll()
            bar.show(done)

        try:
            fan_out(measure_all, tasks, done=add, poll=poll, jobs=jobs, executor=executor)
        except KeyboardInterrupt:
            raise resumable(SawtoothError("interrupted", "interrupted", fix=again)) from None
        except BrokenExecutor as error:
            raise resumable(SawtoothError("worker-died", "a worker process died", fix=again)) from error
        except SawtoothError as error:
            if error.code not in ("cluster-lost", "no-workers", "worker-died"):
                raise
            raise resumable(error) from error
    return dataset
