"""Liars: a worker's invalid answer counts as not done, and after three of them the worker gets no more work."""

import dataclasses
import json
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from expected_error import expected_error
from fake_engine import Fake, quick, study
from sawtooth.dask import Cluster
from sawtooth.dask.scheduler import Flight
from sawtooth.dask.task import Answer, NoAnswer, checked
from sawtooth.dask.workers import Crew
from sawtooth.errors import SawtoothError
from sawtooth.io.parallel import Misfit, results
from sawtooth.run import versions
from sawtooth.study import run_study, store
from sawtooth.study.worker import Outcome
from tests.dask.test_cluster import blind, runs
from waiting import is_running, until

pytestmark = pytest.mark.usefixtures("patience")


__all__ = ["blind"]

GOOD, BAD = "tcp://good:1", "tcp://bad:1"


def doubled(number: int) -> int:
    return 2 * number


@dataclasses.dataclass(eq=False)
class Future:
    key: str
    worker: str
    said: Any
    status: str = "finished"

    def result(self, timeout: float) -> Any:
        if isinstance(self.said, BaseException):
            raise self.said
        return self.said

    def add_done_callback(self, landed: Callable[[Any], None]) -> None:
        landed(self)

    def cancel(self) -> None:
        pass

    release = cancel


class Scheduler:
    """A stand-in for a client of distributed: its workers answer at once, in turn, and liars' answers pass through
    ``lie``.
    """

    status = "running"

    def __init__(self, lie: Callable[[bytes], Any], workers: Sequence[str] = (GOOD, BAD)) -> None:
        self.lie, self.workers = lie, workers
        self.asked: list[str] = []

    def nthreads(self) -> dict[str, int]:
        return dict.fromkeys(self.workers, 1)

    def run(self, _: Any, *, workers: Sequence[str], **options: Any) -> dict[str, Any]:
        return dict.fromkeys(workers, versions())

    def submit(self, function: Any, packed: bytes, *, key: str, workers: list[str] | None, pure: bool) -> Future:
        may = workers or self.workers
        worker = may[len(self.asked) % len(may)]
        self.asked.append(worker)
        said = function(packed)
        return Future(key, worker, self.lie(said) if worker == BAD else said)

    def who_has(self, futures: Sequence[Future]) -> Mapping[str, tuple[str, ...]]:
        return {one.key: () if isinstance(one.said, BaseException) else (one.worker,) for one in futures}

    def cancel(self, _: Any) -> None:
        pass

    def fan_out(self, function: Any, tasks: Any, *, done: Any, poll: Any, stop: Any) -> None:
        crew = Crew(self)
        Flight(self, crew, function, tasks).run(done=done, poll=poll, stop=stop, renew=lambda: None)


def changed(**fields: Any) -> Callable[[bytes], bytes]:
    def lie(said: bytes) -> bytes:
        answer = pickle.loads(said)
        for name, value in fields.items():
            setattr(answer, name, value(answer) if callable(value) else value)
        return pickle.dumps(answer)

    return lie


LIES: dict[str, Callable[[bytes], Any]] = {
    "no bytes": lambda said: None,
    "text": lambda said: "yes",
    "nothing": lambda said: b"",
    "garbage": lambda said: os.urandom(100),
    "cut off": lambda said: said[: len(said) // 2],
    "another class": lambda said: pickle.dumps({"results": [1]}),
    "a class that is not here": lambda said: said.replace(b"Answer", b"Absent"),
    "attributes gone": lambda said: pickle.dumps(object.__new__(Answer)),
    "another group": changed(key="sawtooth-1-1"),
    "no results": changed(results=[]),
    "too many results": changed(results=lambda answer: [*answer.results, 1]),
    "results that are no list": changed(results=7),
    "results of another kind": changed(results=lambda answer: ["1"] * len(answer.results)),
    "an error that is none": changed(error=7),
    "an error that ends programs": changed(error=SystemExit(0), results=[]),
    "an error after the last task": changed(error=ValueError("late")),
    "other versions": changed(refused=True, results=[]),
    "a time below nothing": changed(took_s=-1.0),
    "a time that is none": changed(took_s=float("nan")),
    "a time of text": changed(took_s="1"),
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_what_is_no_answer_is_done_again_by_another_and_its_sender_named(
    lie: Callable[[bytes], Any], caplog: pytest.LogCaptureFixture
) -> None:
    there = Scheduler(lie)
    assert results(doubled, range(40), executor=there) == [2 * number for number in range(40)]
    assert there.asked.count(BAD) in (3, 4)
    assert f"worker {BAD} is not used: 3 of its answers were none; the last: " in caplog.text


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_where_all_workers_lie_it_ends(lie: Callable[[bytes], Any]) -> None:
    with expected_error(code="no-workers") as caught:
        results(doubled, range(40), executor=Scheduler(lie, [BAD]))
    assert f"none of 1 workers can be used: {BAD}: 3 of its answers were none" in caught.value.message
    assert "look at the logs" in caught.value.fix


def test_calls_that_fail_without_a_sender_end_too() -> None:
    with expected_error(code="worker-died", match="came back undone than done; the last: ValueError: broken"):
        results(doubled, range(40), executor=Scheduler(lambda _: ValueError("broken"), [BAD]))


def test_some_calls_that_fail_are_done_by_others() -> None:
    there = Scheduler(lambda _: ValueError("broken"))
    assert results(doubled, range(40), executor=there) == [2 * number for number in range(40)]


def maybe(number: int) -> dict[str, int] | None:
    return {"a": number} if number else None


def vague(number):
    return number


@pytest.mark.parametrize(
    ("function", "result", "fits"),
    [
        (maybe, None, True),
        (maybe, {}, True),
        (maybe, [], False),
        (partial(maybe), 1, False),
        (vague, 1, True),
        (abs, "1", True),
    ],
)
def test_a_result_is_what_its_function_says_where_it_says_so(function: Any, result: Any, fits: bool) -> None:
    said = pickle.dumps(Answer("k", [result]))
    if fits:
        assert checked(said, "k", function, 1).results == [result]
    else:
        with pytest.raises(NoAnswer, match="one of its results is"):
            checked(said, "k", function, 1)


def damaged(files: dict[str, bytes]) -> dict[str, bytes]:
    return files | {"intervals.parquet": files["intervals.parquet"][:-1] + b"?"}


def of_another_seed(files: dict[str, bytes]) -> dict[str, bytes]:
    run = json.loads(files["run.json"])
    run["scenario"]["seed"] += 1
    del run["sha256"]
    return files | {"run.json": json.dumps(run).encode()}


OUTCOMES: dict[str, Callable[[Outcome], Outcome]] = {
    "another point": lambda one: dataclasses.replace(one, point="0-other"),
    "an error of another point": lambda one: Outcome("0-other", False, SawtoothError("core-failed", "no", fix="no")),
    "not saved": lambda one: dataclasses.replace(one, files=None),
    "no files": lambda one: dataclasses.replace(one, files={}),
    "files that are none": lambda one: dataclasses.replace(one, files=7),
    "a file outside": lambda one: dataclasses.replace(one, files={**one.files, "../../../outside": b""}),
    "a file of another place": lambda one: dataclasses.replace(one, files={**one.files, "/tmp/sawtooth-outside": b""}),
    "a table that is missing": lambda one: dataclasses.replace(one, files={"run.json": one.files["run.json"]}),
    "a damaged table": lambda one: dataclasses.replace(one, files=damaged(one.files)),
    "another seed": lambda one: dataclasses.replace(one, files=of_another_seed(one.files)),
}


@pytest.mark.usefixtures("blind")
@pytest.mark.parametrize("lie", OUTCOMES.values(), ids=OUTCOMES)
def test_a_point_is_kept_when_it_is_what_was_asked(lie: Callable[[Outcome], Outcome], tmp_path: Path) -> None:
    def told(said: bytes) -> bytes:
        answer = pickle.loads(said)
        answer.results = [[lie(one) for one in batch] for batch in answer.results]
        return pickle.dumps(answer)

    there = run_study(study(), engine=Fake(), out=tmp_path / "there", executor=Scheduler(told), quiet=True)
    assert runs(there) == runs(quick(out=tmp_path / "here"))
    assert [path.name for path in tmp_path.rglob("*outside")] == []
    assert not Path("/tmp/sawtooth-outside").exists()


LIAR = """
import os, random, sys
import sawtooth.dask.task as call

honest, rng = call._called, random.Random(int(sys.argv[2]))

def lying(*asked):
    said = honest(*asked)
    match rng.randrange(4):
        case 0: return rng.randbytes(rng.randrange(2000))
        case 1: return said[: rng.randrange(len(said))]
        case 2: raise rng.choice((ValueError("broken"), MemoryError(), KeyError(1)))
        case _: return call.pickle.dumps(call.Answer(asked[0]))

call._called = lying
from distributed.cli.dask_worker import main
main([sys.argv[1], "--nthreads", "1", "--no-nanny", "--no-dashboard"])
"""


def test_a_study_with_a_lying_worker_has_the_tables_of_one_without(tmp_path: Path) -> None:
    about = tmp_path / "scheduler.json"
    options = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(about)]
    quietly: dict[str, Any] = {"cwd": tmp_path, "stderr": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
    quietly["env"] = {**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path, str(Path(__file__).parents[1])])}
    programs = [subprocess.Popen([sys.executable, "-m", "distributed.cli.dask_scheduler", *options], **quietly)]
    try:
        until(lambda: about.exists() and about.read_text().endswith("}"))
        address = json.loads(about.read_text())["address"]
        worker = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--nthreads", "1", "--no-nanny"]
        programs.append(subprocess.Popen([*worker, "--no-dashboard"], **quietly))
        programs.append(subprocess.Popen([sys.executable, "-c", LIAR, address, "5"], **quietly))
        with Cluster(str(about)) as cluster:
            until(lambda: len(cluster.client.nthreads()) == 2)
            there = run_study(study(), engine=Fake(), out=tmp_path / "there", executor=cluster, quiet=True)
        assert runs(there) == runs(quick(out=tmp_path / "here"))
    finally:
        for program in reversed(programs):
            program.kill()
            program.wait()


def test_a_worker_of_ours_that_is_stopped_is_replaced(tmp_path: Path) -> None:
    with Cluster("local:1") as cluster:
        assert cluster._local is not None
        assert results(abs, [-1], executor=cluster) == [1]
        (stopped,) = cluster._local.processes
        os.kill(stopped, signal.SIGSTOP)
        there = run_study(study(), engine=Fake(), out=tmp_path / "there", executor=cluster, quiet=True)
        assert not is_running(stopped)
        assert stopped not in cluster._local.processes
    assert runs(there) == runs(quick(out=tmp_path / "here"))


def test_names_of_files_are_not_paths_before_they_are_known(tmp_path: Path) -> None:
    with pytest.raises(Misfit):
        store.keep(tmp_path, "0-a", {"/etc/passwd": b""}, {})
    assert list(tmp_path.iterdir()) == []
