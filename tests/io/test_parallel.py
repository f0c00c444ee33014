"""Parallel work: workers import nothing of the calling script, and a failure ends all of them."""

import importlib
import os
import signal
import subprocess
import sys
import textwrap
import time
from concurrent.futures import BrokenExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from expected_error import expected_error
from fake_engine import Fake, study
from sawtooth.io import parallel
from sawtooth.io.parallel import fan_out, results
from sawtooth.study import run_study

pytestmark = pytest.mark.usefixtures("patience")

STUDY = """
name = "small"
[scenario]
duration = "2 s"
[vary]
"path.loss" = ["1%", "2%"]
"""
SCRIPT = """
import pathlib, sawtooth
with open("imported", "a") as marks:
    marks.write("x")
result = sawtooth.run("small.toml", engine="model", jobs=2)
print(len(result.summary), "rows")
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory with a space in its name, with a study and a script."""
    path = tmp_path / "my studies"
    path.mkdir()
    (path / "small.toml").write_text(STUDY)
    (path / "script.py").write_text(SCRIPT)
    return path


def python(place: Path, *arguments: str, said: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=place, input=said, capture_output=True, text=True, timeout=200)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["script.py"], ""),
        (["-"], SCRIPT),
        (["-i", "-q"], SCRIPT.replace('    marks.write("x")\n', '    marks.write("x")\n\n')),
    ],
    ids=["script", "stdin", "interactive"],
)
def test_a_plain_script_without_a_guard_runs_a_study_and_is_run_once(
    place: Path, arguments: list[str], said: str
) -> None:
    told = python(place, *arguments, said=said)
    assert "Traceback" not in told.stderr
    assert told.stdout.endswith("4 rows\n")
    assert (place / "imported").read_text() == "x"
    assert len(list((place / "results" / "small").iterdir())) == 2  # one directory, and latest


def test_a_script_s_own_engine_is_refused_before_anything_starts(place: Path) -> None:
    (place / "script.py").write_text(
        textwrap.dedent("""
            from sawtooth.engines import get
            from sawtooth.study import run_study

            class Mine(type(get("model"))):
                pass

            run_study("small.toml", engine=Mine(), quiet=True)
        """)
    )
    told = python(place, "script.py")
    assert "the script itself defines it" in told.stderr
    assert not (place / "results").exists()


def test_what_is_in_the_working_directory_is_not_imported_by_the_command_line_s_workers(place: Path) -> None:
    (place / "random.py").write_text("open('imported', 'w')")
    command = [Path(sys.executable).with_name("sawtooth"), "run", "small.toml", "--engine", "model"]
    told = subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=200)
    assert told.returncode == 0, told.stderr
    assert not (place / "imported").exists()


def environment(_: int) -> str | None:
    return os.environ.get("PYTHONSAFEPATH")


def test_neither_this_process_nor_what_workers_start_keeps_the_setting_that_hides_the_working_directory() -> None:
    main = sys.modules["__main__"]
    assert results(environment, [1, 2], jobs=2) == [None, None]
    assert "PYTHONSAFEPATH" not in os.environ
    assert sys.modules["__main__"] is main


def square(number: int) -> int:
    time.sleep(0.02 * (3 - number % 3))
    return number * number


def test_results_are_in_the_order_of_the_tasks() -> None:
    assert results(square, list(range(9)), jobs=2) == [number * number for number in range(9)]


def test_without_tasks_nothing_is_started() -> None:
    assert results(square, []) == []


def test_an_error_stops_the_others_and_is_raised() -> None:
    told: list[str] = []
    with ThreadPoolExecutor(1) as executor, pytest.raises(ZeroDivisionError):
        fan_out(lambda n: 1 / n, [1, 0, 2], done=lambda *_: None, stop=lambda: told.append("stop"), executor=executor)
    assert told == ["stop"]


def die_or_stay(task: str) -> None:
    while task == "stay":
        time.sleep(0.1)
    # The other worker is busy by now.
    time.sleep(1.0)
    os.kill(os.getpid(), signal.SIGKILL)


def test_when_a_worker_dies_those_that_do_not_stop_by_themselves_are_ended_by_force(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(parallel, "GRACE_S", 0.5)
    begun = time.monotonic()
    with pytest.raises(BrokenExecutor):
        fan_out(die_or_stay, ["stay", "die"], done=lambda *_: None, jobs=2)
    assert time.monotonic() - begun < 60


def test_the_death_of_a_worker_that_was_slow_to_start_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    start, started = parallel._Process.start, []

    def slow(process: parallel._Process) -> None:
        # By then the pool has checked its processes.
        time.sleep(1.0 if started else 0.0)
        start(process)
        started.append(process)

    monkeypatch.setattr(parallel, "GRACE_S", 0.5)
    monkeypatch.setattr(parallel._Process, "start", slow)
    with pytest.raises(BrokenExecutor):
        fan_out(die_or_stay, ["stay", "die"], done=lambda *_: None, jobs=2)


def test_what_was_finished_while_a_worker_died_counts_as_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "GRACE_S", 15.0)
    with expected_error(code="worker-died") as caught:
        run_study(study(), engine=Dying(place=str(tmp_path)), out=tmp_path / "out", jobs=2, quiet=True)
    assert "1 of 8 points are finished" in caught.value.message
    assert len(list(tmp_path.glob("out/small/*/points/[0-9]*"))) == 1


@dataclass(frozen=True)
class Dying(Fake):
    """The worker of the second point is killed while the first one runs, which ends after the kill was noticed."""

    place: str = ""

    def before(self, scenario, stop):
        begun, died = Path(self.place) / "begun", Path(self.place) / "died"
        if scenario.seed == 1:
            begun.touch()
            wait_for(died)
            # A worker that is told to stop takes no other point.
            while not stop():
                time.sleep(0.02)
        else:
            wait_for(begun)
            died.touch()
            os.kill(os.getpid(), signal.SIGKILL)


def wait_for(file: Path) -> None:
    while not file.exists():
        time.sleep(0.02)


def test_a_system_without_named_semaphores_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    # Importing it asks for their largest value.
    importlib.import_module("multiprocessing.synchronize")

    def refused(*_: object) -> None:
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr("_multiprocessing.SemLock", refused)
    with expected_error(code="no-workers") as caught:
        results(abs, [-1, 2])
    assert "/dev/shm" in str(caught.value)


def test_threads_need_not_import_what_they_call_and_stop_at_the_word() -> None:
    stopped: list[bool] = []

    def task(number: int) -> int:
        if number == 2:
            raise ValueError("the second")
        while number == 3 and not stopped:
            time.sleep(0.01)
        return -number

    assert results(lambda number: -number, [1, 2, 3], jobs=2, threads=True) == [-1, -2, -3]
    with pytest.raises(ValueError, match="the second"):
        fan_out(task, [1, 2, 3], done=lambda *_: None, stop=lambda: stopped.append(True), jobs=3, threads=True)
    assert stopped == [True]
