"""Clusters give the same results as a local pool, whatever happens to workers, the scheduler, or the client."""

import _thread
import json
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from distributed import KilledWorker

import sawtooth
from expected_error import expected_error
from fake_engine import Failing, Fake, Killed, Slow, quick, study
from sawtooth.cli.program import status_of
from sawtooth.compare.fidelity import Grid, campaign
from sawtooth.compare.fidelity.campaign import Campaign
from sawtooth.dask import Cluster, cluster
from sawtooth.dask import scheduler as flight
from sawtooth.dask import workers as crew
from sawtooth.dask.task import Answer, Call, request_stop
from sawtooth.dask.workers import Crew
from sawtooth.errors import SawtoothError
from sawtooth.io.parallel import fan_out, results
from sawtooth.link_estimate.calibrate import Measurement, make
from sawtooth.run import versions
from sawtooth.scenario import Scenario
from sawtooth.study import StudyResult, run_study, runner
from waiting import is_running, until

pytestmark = pytest.mark.usefixtures("patience")


@pytest.fixture(scope="module")
def two() -> Iterator[Cluster]:
    with Cluster("local:2") as made:
        yield made
        assert made._local is not None
        processes = made._local.processes
    assert not any(map(is_running, processes))


@pytest.fixture
def blind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers that do not share the directory of results: its seal differs from the one they are given."""
    monkeypatch.setattr(runner, "sealed", lambda directory: "another")


def runs(result: StudyResult) -> dict[str, bytes]:
    """Every file of every run, except run.json with its duration, and the tables."""
    files = [*result.directory.glob("points/*/*.parquet"), *result.directory.glob("*.csv")]
    return {str(file.relative_to(result.directory)): file.read_bytes() for file in sorted(files)}


def test_a_study_on_a_cluster_gives_the_bytes_of_a_pool(two: Cluster, tmp_path: Path) -> None:
    here = quick(out=tmp_path / "here")
    there = run_study(study(), engine=Fake(), out=tmp_path / "there", executor=two, quiet=True)
    assert len(runs(there)) > 16
    assert runs(there) == runs(here)
    assert not (there.directory / ".seal").exists()


@pytest.mark.usefixtures("blind")
def test_runs_of_workers_that_do_not_see_the_disk_travel_back(two: Cluster, tmp_path: Path, marks: Path) -> None:
    here = quick(out=tmp_path / "here")
    there = run_study(study(), engine=Fake(str(marks)), out=tmp_path / "there", executor=two, quiet=True)
    assert runs(there) == runs(here)
    assert len(list(marks.iterdir())) == 8


@pytest.mark.usefixtures("blind")
def test_captures_need_a_disk_that_workers_see(two: Cluster, tmp_path: Path) -> None:
    given = study(scenario={"duration": "1 s", "path": {"rate": "1 Mbit/s"}}, vary={}, columns={}, published=None)
    with expected_error(code="unsupported", field="capture"):
        run_study(given, out=tmp_path, executor=two, capture=True, quiet=True)


def test_what_a_killed_worker_had_is_done_by_another_and_each_point_counts_once(
    two: Cluster, tmp_path: Path, marks: Path
) -> None:
    engine = Killed(str(marks), once=str(tmp_path / "once"))
    there = run_study(study(), engine=engine, out=tmp_path / "there", executor=two, quiet=True)
    assert (tmp_path / "once").exists()
    assert runs(there) == runs(quick(out=tmp_path / "here"))
    assert len(there.details) == 12
    assert not list(there.directory.glob("points/.*"))


def die(_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_task_that_kills_every_worker_is_an_error_and_does_not_continue_forever(two: Cluster) -> None:
    with expected_error(code="worker-died"):
        fan_out(die, ["a"], done=lambda *_: None, executor=two)
    assert results(abs, [-1], executor=two) == [1]


def negative(number: int) -> int:
    return -number


def bad(number: int) -> int:
    if number == 5:
        raise SawtoothError("core-failed", "it broke", field="here", fix="mend it")
    if number == 6:
        raise KeyError(lambda: "no pickle takes this")
    return number


def test_results_are_in_the_order_of_the_tasks(two: Cluster) -> None:
    assert results(negative, range(1000), executor=two) == [-number for number in range(1000)]
    assert results(negative, [], executor=two) == []


def test_an_error_of_a_worker_is_raised_here_with_its_code(two: Cluster) -> None:
    with expected_error(code="core-failed", field="here", fix="mend it"):
        results(bad, range(6), executor=two)
    with expected_error(code="internal", match="KeyError"):
        results(bad, [6], executor=two)


def test_a_study_that_failed_continues_where_it_was(two: Cluster, tmp_path: Path, marks: Path) -> None:
    with expected_error(code="core-failed"):
        run_study(study(), engine=Failing(), out=tmp_path / "out", executor=two, quiet=True)
    (directory,) = (tmp_path / "out" / "small").iterdir()
    kept = len(list(directory.glob("points/*")))
    result = run_study(study(), engine=Fake(str(marks)), out=tmp_path / "out", executor=two, quiet=True)
    assert result.directory == directory
    assert len(list(marks.iterdir())) == 8 - kept
    assert runs(result) == runs(quick(out=tmp_path / "here"))


@pytest.mark.usefixtures("blind")
def test_ctrl_c_stops_workers_that_see_no_disk_and_the_next_run_continues(two: Cluster, tmp_path: Path) -> None:
    out = tmp_path / "out"
    begun: list[float] = []

    def interrupt() -> None:
        until(lambda: len(list(out.glob("small/*/points/[0-9]*"))) >= 2)
        begun.append(time.monotonic())
        _thread.interrupt_main()

    asking = threading.Thread(target=interrupt)
    asking.start()
    with pytest.raises(SawtoothError) as caught:
        run_study(study(), engine=Slow(), out=out, executor=two, quiet=True)
    asking.join()
    assert caught.value.code == "interrupted"
    assert time.monotonic() - begun[0] < 60
    result = run_study(study(), engine=Fake(), out=out, executor=two, quiet=True)
    assert runs(result) == runs(quick(out=tmp_path / "here"))


def test_a_worker_of_other_versions_is_refused_and_both_are_reported(
    two: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crew, "versions", lambda: versions() | {"core": "0123456789abcdef"})
    # Workers are asked for the name that they know, here that of the function above.
    monkeypatch.setattr(two.client, "run", lambda _, workers, **__: dict.fromkeys(workers, versions()))
    with expected_error(code="no-workers") as caught:
        results(abs, [-1], executor=two)
    assert f"core {versions()['core']} there, 0123456789abcdef here" in caught.value.message


class Others:
    """A scheduler with three workers: ours, one of another version, one without sawtooth."""

    def nthreads(self) -> dict[str, int]:
        return {"tcp://a": 2, "tcp://b": 4, "tcp://c": 8}

    def run(self, function: Callable[[], Any], *, workers: list[str], on_error: str) -> dict[str, Any]:
        found = {"tcp://a": versions(), "tcp://b": versions() | {"sawtooth": "0.0.9"}}
        return {**found, "tcp://c": ModuleNotFoundError("No module named 'sawtooth'")}


def test_others_do_not_keep_the_right_ones_from_work(caplog: pytest.LogCaptureFixture) -> None:
    there = Crew(Others())
    assert there.refresh()
    assert there.alive == {"tcp://a": 2}
    assert there.only == ["tcp://a"]
    assert there.refused.keys() == {"tcp://b", "tcp://c"}
    assert f"worker tcp://b is not used: sawtooth 0.0.9 there, {versions()['sawtooth']} here" in caplog.text
    assert "tcp://c is not used: it has no sawtooth of this kind (No module named 'sawtooth')" in caplog.text


class Stuck(Others):
    """Its first task killed its workers, the second is under way, and nobody answers the message to stop."""

    status = "running"

    def __init__(self) -> None:
        self.futures: list[Mock] = []
        self.seen: list[str] = []
        self.over = threading.Event()

    def run(self, function: Callable[..., Any], *given: Any, **options: Any) -> Any:
        if function is not request_stop:
            return super().run(function, **options)
        self.seen.append("asked")
        self.futures[1].status = "finished"
        self.over.wait(60)
        self.seen.append("answered")
        return None

    def submit(self, *_: Any, key: str, **options: Any) -> Mock:
        future = Mock(status="pending", result=Mock(side_effect=KilledWorker(key, Mock(), 3)))
        if not self.futures:
            future.status = "error"
            future.add_done_callback.side_effect = lambda landed: landed(future)
        self.futures.append(future)
        return future

    def cancel(self, futures: list[Any]) -> None:
        self.seen.append("cancelled")
        self.over.set()


def test_an_error_is_raised_before_a_dead_worker_that_is_still_listed_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flight, "GRACE_S", 60)
    there = Stuck()
    with expected_error(code="worker-died"):
        flight.Flight(there, Crew(there), negative, [1, 2]).run(
            done=lambda number, result: None, poll=lambda: None, stop=lambda: None, renew=lambda: None
        )
    assert there.seen[:2] == ["asked", "cancelled"]


def test_a_worker_that_nobody_has_looked_at_refuses_by_itself() -> None:
    same, other = (
        pickle.loads(Call("k", "f", asked, abs, [-1, -2]).packed()) for asked in (versions(), {"sawtooth": "0"})
    )
    assert pickle.loads(same).results == [1, 2]
    assert (pickle.loads(other).refused, pickle.loads(other).results) == (True, [])
    assert isinstance(pickle.loads(other), Answer)


GRID = """
[scenario]
duration = "1 s"
path = { rate = "10 Mbit/s", rtt = "10 ms", loss = "1%" }
[budget]
sim = { runs = 3 }
[[blocks]]
name = "one"
vary = { "flows.cc" = ["reno", "cubic", "bbr"] }
"""


def test_a_grid_s_points_are_answered_as_by_threads_and_what_is_kept_is_not_run_again(
    two: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "grid.toml").write_text(GRID)
    points = Grid.load(tmp_path / "grid.toml").points()

    def measured(cache: str, executor: Cluster | None) -> dict[str, list[dict[str, Any]]]:
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / cache))
        found: dict[str, list[dict[str, Any]]] = {}
        Campaign("sim", 2, lambda point, rows: found.update({point.name: rows}), True, executor).run(points)
        taken = ("cpu_s", "date")
        return {name: [{k: repr(v) for k, v in row.items() if k not in taken} for row in found[name]] for name in found}

    here = measured("here", None)
    there = measured("there", two)
    assert {len(rows) for rows in there.values()} == {3}
    assert there == here
    monkeypatch.setattr(campaign, "_run", None)
    assert measured("there", None).keys() == here.keys()


def test_a_grid_is_not_answered_by_another_build(two: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(campaign, "build", lambda engine, scenario: ("0123456789ab", {}))
    (tmp_path / "grid.toml").write_text(GRID)
    with expected_error(code="unsupported", match=r"a worker's sim is another build: [0-9a-f]{12}, not 0123456789ab"):
        Campaign("sim", 2, lambda *_: None, True, two).run(Grid.load(tmp_path / "grid.toml").points())


def test_measurements_to_calibrate_from_are_the_bytes_of_a_pool(two: Cluster, tmp_path: Path) -> None:
    asked = [Measurement(10_000_000, 40, 0.02, flows, 0, seed=1) for flows in (2, 3)]
    make(tmp_path / "here", asked, jobs=2, quiet=True)
    make(tmp_path / "there", asked, executor=two, quiet=True)
    here, there = (sorted((tmp_path / side).iterdir()) for side in ("here", "there"))
    assert len(here) == 2
    assert [(file.name, file.read_bytes()) for file in there] == [(file.name, file.read_bytes()) for file in here]


def test_a_search_finds_what_it_finds_here(two: Cluster) -> None:
    scenario = Scenario.from_dict({"duration": "1 s", "path": {"rate": "10 Mbit/s", "rtt": "20 ms"}})
    asked = {"vary": "path.loss=0.1%..10%", "want": "goodput >= 50% of path.rate", "within": "50%"}
    here, there = (sawtooth.find(scenario, **asked, executor=executor).describe() for executor in (None, two))
    assert here.pop("seconds") > 0
    assert there.pop("seconds") > 0
    assert there == here


@pytest.mark.parametrize(
    "command",
    [
        ["compare", "--grid", "grid.toml"],
        ["congestion", "calibrate", "--out", "out"],
        ["find", "one-percent-loss"],
        ["run", "one-percent-loss"],
    ],
)
def test_commands_that_fan_out_take_a_cluster(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of([*command, "--cluster", "nonsense"]) == 2
    assert '"nonsense" is not the address of a scheduler' in " ".join(capsys.readouterr().err.split())
    assert status_of([*command, "--cluster", "local", "--jobs", "2"]) == 2
    assert "a cluster has its own workers" in " ".join(capsys.readouterr().err.split())


def test_groups_grow_to_some_seconds_and_shrink_at_the_end() -> None:
    made: Any = SimpleNamespace(_crew=SimpleNamespace(threads=4), _waiting=range(10_000), _each_s=float("nan"))
    size = flight.Flight._size
    assert size(made) == 1
    made._each_s = 0.04
    assert size(made) == 100
    made._waiting = range(80)
    assert size(made) == 10
    made._each_s = 60.0
    assert size(made) == 1


def test_a_thousand_workers_get_groups_so_long_that_fifty_a_second_end() -> None:
    made: Any = SimpleNamespace(_crew=SimpleNamespace(threads=1000), _waiting=range(10**6), _each_s=1.0)
    assert flight.Flight._size(made) == 20


def test_a_worker_that_comes_late_gets_work(two: Cluster, tmp_path: Path) -> None:
    assert two._local is not None
    before = set(two._local.processes)
    came = tmp_path / "came"
    seen: set[int] = set()

    def done(_: int, process: int) -> None:
        if not seen:
            two._local._start()
        seen.add(process)
        if seen - before:
            came.touch()

    # Work is still left then, however long the start takes; afterward the rest is done at once.
    fan_out(whose, [str(came)] * 4000, done=done, executor=two)
    assert seen - before


def whose(came: str) -> int:
    if not Path(came).exists():
        time.sleep(0.05)
    return os.getpid()


@pytest.mark.parametrize(
    "given", ["nonsense", "local:0", "local:99999", "tcp:", "tcp://host", "tcp://host:1\x1b[31m", "/no/such/file.json"]
)
def test_what_is_no_scheduler_is_refused(given: str) -> None:
    with expected_error(code="bad-usage"):
        Cluster(given)


def test_where_no_scheduler_answers_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "CONNECT_S", 1.0)
    with expected_error(code="cluster-unreachable", field="tcp://127.0.0.1:9"):
        Cluster("tcp://127.0.0.1:9")


def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with expected_error(code="tool-missing") as caught:
        Cluster("local")
    assert 'pip install "$(ls dist/sawtooth-*.whl)[cluster]"' in str(caught.value)


def test_a_lost_scheduler_is_reported_and_what_is_saved_stays(tmp_path: Path) -> None:
    about = tmp_path / "scheduler.json"
    options = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(about)]
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", *options]
    scheduler = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.DEVNULL)
    worker = None
    try:
        # The file exists before its text is written.
        until(lambda: about.exists() and about.read_text().endswith("}"))
        address = json.loads(about.read_text())["address"]
        worker = subprocess.Popen(
            [sys.executable, "-m", "distributed.cli.dask_worker", address, "--nthreads", "1", "--no-nanny"],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

        def kill() -> None:
            until(lambda: len(list(tmp_path.glob("out/small/*/points/[0-9]*"))) >= 4)
            scheduler.kill()

        threading.Thread(target=kill, daemon=True).start()
        with Cluster(str(about)) as lost, pytest.raises(SawtoothError) as caught:
            run_study(study(), engine=Slow(), out=tmp_path / "out", executor=lost, quiet=True)
        assert caught.value.code == "cluster-lost"
        assert "4 of 8 points are finished and kept" in caught.value.message
    finally:
        scheduler.kill()
        scheduler.wait()
        if worker is not None:
            worker.kill()
            worker.wait()


def test_workers_that_are_lost_with_their_parent_are_replaced(two: Cluster) -> None:
    local = two._local
    assert local is not None
    until(lambda: local.processes)
    before = local.processes
    os.kill(local._parent.pid, signal.SIGKILL)
    until(lambda: not any(map(is_running, before)))
    assert results(abs, [-1], executor=two) == [1]
    assert not set(before) & set(local.processes)


def test_the_workers_of_a_local_cluster_end_with_it_also_when_it_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "killed.py"
    script.write_text(
        textwrap.dedent("""
            import os, signal
            from sawtooth.dask import Cluster
            from sawtooth.io.parallel import results

            with Cluster("local:2") as cluster:
                assert results(abs, [-1, -2], executor=cluster) == [1, 2]
                print(*cluster._local.processes, cluster._local._parent.pid, flush=True)
                os.kill(os.getpid(), signal.SIGKILL)
        """)
    )
    told = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120)
    processes = [int(word) for word in told.stdout.split()]
    assert len(processes) == 3, told.stderr
    until(lambda: not any(map(is_running, processes)))
