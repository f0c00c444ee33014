"""``capture`` on files that are damaged, silent, or not files: the exit status says so, and nothing waits forever."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from expected_error import expected_error
from sawtooth import read_capture
from sawtooth.cli.program import status_of
from sawtooth.engines.sim import Sim
from sawtooth.scenario import Scenario

PARTLY = 5


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A capture of ten simulated seconds."""
    directory = tmp_path_factory.mktemp("capture")
    path = {"rate": "5 Mbit/s", "rtt": "40 ms", "queue": "50 packets", "loss": "0.5%"}
    Sim(capture=directory).run(Scenario(topology="path", duration="10 s", path=path))
    return directory / "capture-sender.pcap"


def test_a_page_never_overwrites_the_capture_that_it_is_of(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capture = tmp_path / "some.pcap"
    capture.write_bytes(whole.read_bytes())
    (tmp_path / "link.html").symlink_to(capture)
    for page in (capture, tmp_path / "link.html"):
        assert status_of(["capture", str(capture), "--html", str(page)]) == 2
        assert "error[conflict]" in capsys.readouterr().err
    assert capture.read_bytes() == whole.read_bytes()


@pytest.fixture
def damaged(whole: Path, tmp_path: Path) -> Path:
    """The first two thirds of the file, and half a record."""
    path = tmp_path / "damaged.pcap"
    content = whole.read_bytes()
    path.write_bytes(content[: len(content) * 2 // 3 + 7])
    assert read_capture(path).problems
    return path


def status(*arguments: object) -> int:
    return status_of([str(argument) for argument in arguments])


@pytest.mark.parametrize("option", [[], ["--json"], ["--connection", "0"], ["--identify"]])
def test_a_damaged_capture_is_answered_as_far_as_it_goes_and_the_status_says_so(
    damaged: Path, option: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert status("capture", damaged, *option) == PARTLY
    told = capsys.readouterr()
    assert "problem" in told.out + told.err
    assert ("congestion control" if option == ["--identify"] else "sender") in told.out or "10.0" in told.out


def test_what_was_asked_for_beside_is_made_of_a_damaged_capture_too(damaged: Path, tmp_path: Path) -> None:
    assert status("capture", damaged, "--out", tmp_path / "out", "--html", tmp_path / "page.html") == PARTLY
    assert (tmp_path / "out" / "facts.json").is_file()
    assert (tmp_path / "page.html").is_file()


def test_a_whole_capture_has_status_0(whole: Path) -> None:
    assert status("capture", whole) == 0


def test_one_damaged_capture_of_two_is_enough(whole: Path, damaged: Path) -> None:
    assert status("capture", whole, damaged) == PARTLY


def test_whatif_says_that_its_capture_is_damaged(damaged: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["whatif", damaged, "--draws", "2", "--quiet", "--cc", "cubic"]
    assert status(*asked) == PARTLY
    assert capsys.readouterr().out.startswith("problem: packet ")
    assert status(*asked, "--json") == PARTLY
    assert json.loads(capsys.readouterr().out)["observed"]["problems"]


def test_a_named_pipe_is_refused_unread(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with expected_error(code="file-unreadable") as caught:
        read_capture(tmp_path / "pipe")
    assert "standard input" in str(caught.value)


@pytest.mark.parametrize("begun", [b"", b"half a capture"])
@pytest.mark.usefixtures("patience")
def test_ctrl_c_ends_the_wait_for_a_standard_input_that_is_silent(whole: Path, begun: bytes) -> None:
    reading, writing = os.pipe()
    os.write(writing, whole.read_bytes()[:20_000] if begun else b"")
    code = "from sawtooth.cli import main; main(['capture', '-'])"
    program = subprocess.Popen([sys.executable, "-c", code], stdin=reading, stderr=subprocess.PIPE, text=True)
    try:
        # It now waits: it sleeps, and has computed nothing for a second.
        deadline = time.monotonic() + 100
        looks = [_look(program.pid)]
        while len(looks) < 10 or set(looks[-10:]) != {("S", looks[-1][1])}:
            assert time.monotonic() < deadline
            time.sleep(0.1)
            looks.append(_look(program.pid))
        program.send_signal(signal.SIGINT)
        _, told = program.communicate(timeout=200)
    finally:
        program.kill()
        os.close(reading)
        os.close(writing)
    assert program.returncode == 130
    assert told.lstrip().startswith("error[interrupted]")


def _look(process: int) -> tuple[str, str]:
    """Its state, and the processor time it has used."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return fields[0], " ".join(fields[11:13])


@pytest.mark.usefixtures("patience")
def test_a_capture_from_standard_input_is_read_as_from_its_file(whole: Path) -> None:
    code = "from sawtooth.cli import main; main(['capture', '-', '--json'])"
    with whole.open("rb") as file:
        done = subprocess.run([sys.executable, "-c", code], stdin=file, capture_output=True, text=True, timeout=200)
    assert json.loads(done.stdout)["connections"] == read_capture(whole).facts["connections"]
