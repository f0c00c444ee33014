"""A study stopped after its last point: the same command writes the report, and computes nothing again."""

import importlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from expected_error import expected_error
from fake_engine import Fake, quick
from sawtooth.cli.program import status_of
from sawtooth.errors import SawtoothError
from sawtooth.io.atomic_io import writing
from sawtooth.study import StudyResult

pytestmark = pytest.mark.usefixtures("patience")

# Like the command line, but it waits before drawing the report.
WAITING = """
import importlib, sys, time
from pathlib import Path

def wait(result):
    Path(sys.argv[1]).touch()
    time.sleep(60)

importlib.import_module("sawtooth.report").write_report = wait
from sawtooth.cli import main
main(sys.argv[2:])
"""


@pytest.fixture
def asked(tmp_path: Path) -> list[str]:
    scenario = tmp_path / "scenario.toml"
    scenario.write_text('duration = "3 s"\n[path]\nrate = "10 Mbit/s"\nloss = "1%"\n')
    return ["run", str(scenario), "--engine", "model", "--seeds", "2", "--jobs", "1", "--out", str(tmp_path / "out")]


def points(out: Path) -> dict[str, int]:
    """Each saved run below ``out`` by its name, and when it was written."""
    return {str(path.relative_to(out)): path.stat().st_mtime_ns for path in out.glob("*/2*/points/*/run.json")}


def finished(out: Path) -> bool:
    (directory,) = out.glob("*/2*")
    described = json.loads((directory / "study.json").read_text())
    report = directory / "report.html"
    whole = report.is_file() and "</html>" in report.read_text()
    return described["finished"] is not None and whole and (directory.parent / "latest").resolve() == directory


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
def test_a_signal_while_the_report_is_drawn_costs_no_point(asked: list[str], tmp_path: Path, number: signal.Signals):
    out, drawing = tmp_path / "out", tmp_path / "drawing"
    command = [sys.executable, "-c", WAITING, str(drawing), *asked]
    program = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not drawing.exists():
        assert program.poll() is None, program.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    program.send_signal(number)
    _, told = program.communicate(timeout=200)
    if number != signal.SIGKILL:
        assert program.returncode == 130
        assert told.startswith("error[interrupted]: interrupted; all 2 points are finished and kept in ")
        assert "run the same command again" in told
    computed = points(out)
    assert len(computed) == 2
    assert status_of(asked) == 0
    assert points(out) == computed
    assert finished(out)


def test_a_disk_that_is_full_when_the_report_is_written_costs_no_point(
    asked: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def full(path: Path, content: bytes) -> None:
        with writing(path):
            raise OSError(28, os.strerror(28))

    with monkeypatch.context() as patched:
        patched.setattr(importlib.import_module("sawtooth.report.page"), "write_bytes", full)
        assert status_of(asked) == 1
    assert "error[disk-full]" in capsys.readouterr().err
    computed = points(tmp_path / "out")
    assert status_of(asked) == 0
    assert points(tmp_path / "out") == computed
    assert finished(tmp_path / "out")


def test_an_answer_that_could_not_be_printed_costs_no_point(asked: list[str], tmp_path: Path):
    command = [sys.executable, "-c", "from sawtooth.cli import main; main()", *asked]
    with open("/dev/full", "w") as full:
        assert subprocess.run(command, stdout=full, stderr=subprocess.DEVNULL, timeout=200).returncode == 1
    computed = points(tmp_path / "out")
    told = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert told.returncode == 0
    assert points(tmp_path / "out") == computed
    assert finished(tmp_path / "out")


def test_a_reader_who_has_seen_enough_leaves_a_finished_study(asked: list[str], tmp_path: Path):
    command = [sys.executable, "-c", "from sawtooth.cli import main; main()", *asked]
    reading, written = os.pipe()
    os.close(reading)
    with open(written, "w") as nobody:
        subprocess.run(command, stdout=nobody, stderr=subprocess.DEVNULL, timeout=200)
    assert finished(tmp_path / "out")


def test_what_an_ending_raises_leaves_the_study_to_be_taken_up(tmp_path: Path, marks: Path):
    def ending(result: StudyResult) -> None:
        assert result.description["finished"] is None
        assert result.description["computed"]
        raise SawtoothError("disk-full", "full")

    with expected_error(code="disk-full"):
        quick(out=tmp_path / "out", engine=Fake(str(marks)), ending=ending)
    first = [path.name for path in (tmp_path / "out" / "small").iterdir()]
    seen: list[StudyResult] = []
    result = quick(out=tmp_path / "out", engine=Fake(str(marks)), ending=seen.append)
    assert seen == [result]
    assert [result.directory.name] == first
    assert len(list(marks.iterdir())) == 8
    assert result.description["finished"]


def test_a_finished_study_is_started_again(tmp_path: Path, marks: Path):
    for _ in range(2):
        quick(out=tmp_path / "out", engine=Fake(str(marks)))
    assert len(list(marks.iterdir())) == 16


@pytest.mark.parametrize("place", [".", "points", "plots"])
def test_what_a_killed_command_left_half_written_is_gone_at_the_end(tmp_path: Path, marks: Path, place: str):
    def ending(result: StudyResult) -> None:
        (result.directory / place).mkdir(exist_ok=True)
        (result.directory / place / ".mean.png.1.part").touch()
        raise SawtoothError("disk-full", "full")

    with pytest.raises(SawtoothError):
        quick(out=tmp_path / "out", engine=Fake(str(marks)), ending=ending)
    result = quick(out=tmp_path / "out", engine=Fake(str(marks)))
    assert list(result.directory.rglob("*.part")) == []
