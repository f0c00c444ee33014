"""Output of `watch` for other programs: a Parquet file of all samples, and sums for Prometheus with bounded labels."""

import errno
import re
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from prometheus_client.parser import text_string_to_metric_families as parsed

from expected_error import expected_error
from sawtooth.cli import watch_command
from sawtooth.cli.program import sawtooth
from sawtooth.errors import SawtoothError
from sawtooth.watch import MEANINGS, Watcher
from sawtooth.watch.metrics import MOST_CONTROLS, Metrics
from sawtooth.watch.record import OF_SAMPLE, Recorder, parts_of, written
from sawtooth.watch.replay import Recording
from sawtooth.watch.sample import Sample
from tests.watch.test_watch_screen import SENT, Played, message, sample


def test_a_recording_has_a_row_for_each_connection_and_sample(tmp_path: Path) -> None:
    watcher = Watcher(Played())
    with Recorder(tmp_path / "samples.parquet") as recorder:
        for _ in range(3):
            recorder.add(watcher.sample())
        assert not (tmp_path / "samples.parquet").exists()
    table = pq.read_table(tmp_path / "samples.parquet")
    assert table.column_names == ["time", "at_s", *OF_SAMPLE, *MEANINGS]
    assert table["connections_total"].to_pylist() == [2] * 6
    assert table.num_rows == 6
    assert table["at_s"].to_pylist() == [1.0, 1.0, 2.0, 2.0, 3.0, 3.0]
    assert table["segments"].to_pylist()[:2] == [None, None]
    assert [path.name for path in tmp_path.iterdir()] == ["samples.parquet"]


def test_a_recording_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    with expected_error(code="unwritable-output"):
        Recorder(tmp_path / "none" / "samples.parquet")


def test_a_recording_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "samples.parquet"
    path.write_text("an evening")
    with expected_error(code="unwritable-output", match="never overwritten"):
        Recorder(path)
    path.rename(tmp_path / "other")
    # It does not overwrite a file that takes the name meanwhile; then the parts remain.
    recorder = Recorder(path)
    recorder.add(Watcher(Played()).sample())
    path.write_text("another evening")
    with pytest.raises(SawtoothError, match="never overwritten"):
        recorder.close()
    assert path.read_text() == "another evening"
    with Recording(recorder.parts) as parts:
        assert len(list(parts.samples())) == 1


@pytest.mark.usefixtures("patience")
def test_samples_are_on_the_disk_from_the_first_on_and_every_ten_seconds(tmp_path: Path) -> None:
    watcher = Watcher(Played())
    recorder = Recorder(tmp_path / "samples.parquet")
    on_disk = []
    for _ in range(23):
        recorder.add(watcher.sample())
        with Recording(recorder.parts) as parts:
            on_disk.append(len(list(parts.samples())))
    assert on_disk == [1] * 10 + [11] * 10 + [21] * 3
    recorder.close()
    # The parts of a single file are large.
    assert pq.ParquetFile(tmp_path / "samples.parquet").num_row_groups == 1


def test_a_disk_that_is_full_costs_nothing_that_was_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    watcher = Watcher(Played())
    recorder = Recorder(tmp_path / "samples.parquet")
    recorder.add(watcher.sample())
    recorder.add(watcher.sample())
    monkeypatch.setattr("os.fsync", full)
    with expected_error(code="disk-full") as refused:
        recorder.close()
    assert f"--replay {recorder.parts}" in str(refused.value.fix)
    with Recording(recorder.parts) as parts:
        assert len(list(parts.samples())) == 1


def recording(path: Path, *arguments: str) -> subprocess.Popen[str]:
    """The command, once it has recorded something."""
    code = "from sawtooth.cli import main; main()"
    command = [sys.executable, "-c", code, "watch", "--interval", "0.1", "--record", str(path), *arguments]
    started = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    while not written(parts_of(path)):
        assert started.poll() is None
        time.sleep(0.01)
    return started


@pytest.mark.usefixtures("patience")
def test_a_kill_leaves_what_was_recorded_and_says_where(tmp_path: Path) -> None:
    path = tmp_path / "samples.parquet"
    killed = recording(path, "--lines")
    killed.kill()
    killed.communicate()
    assert not path.exists()
    with Recording(parts_of(path)) as recorded:
        (sample,) = recorded.samples()
    assert any("cut off" in one for one in sample.unseen)
    for again in (lambda: Recording(path), lambda: Recorder(path)):
        with pytest.raises(SawtoothError) as refused:
            again()
        assert str(parts_of(path)) in str(refused.value)


@pytest.mark.usefixtures("patience")
@pytest.mark.parametrize("arguments", [["--lines"], ["--count", "1000", "--json"]])
def test_ctrl_c_ends_a_recording_and_is_no_error(tmp_path: Path, arguments: list[str]) -> None:
    left = recording(tmp_path / "samples.parquet", *arguments)
    left.send_signal(signal.SIGINT)
    said = left.communicate()[1]
    assert left.returncode == 130
    assert "error" not in said
    assert f"{tmp_path}/samples.parquet: " in said
    assert [one.name for one in tmp_path.iterdir()] == ["samples.parquet"]


def test_a_port_that_the_system_chose_is_reported(tmp_path: Path) -> None:
    asked = ["watch", "--lines", "--count", "1", "--interval", "0.1", "--prometheus", ":0"]
    told = CliRunner().invoke(sawtooth, asked, catch_exceptions=False).stderr
    assert re.search(r"http://127\.0\.0\.1:[1-9]\d*/metrics", told)


def scraped(source: Played) -> str:
    """What Prometheus reads after the second sample."""
    watcher = Watcher(source)
    watcher.sample()
    with Metrics(0) as metrics:
        metrics.add(watcher.sample())
        with urllib.request.urlopen(f"http://127.0.0.1:{metrics.port}/metrics", timeout=10) as answer:
            return str(answer.read().decode())


def test_prometheus_reads_sums_by_control_and_limit() -> None:
    told = scraped(Played())
    assert 'sawtooth_connections{cc="reno",limit="congestion window"} 1.0' in told
    assert 'sawtooth_window_lost_segments{cc="reno",limit="congestion window"} 30.0' in told
    assert "sawtooth_connections_total 2.0" in told
    assert "192.0.2.9" not in told


def test_a_control_of_any_name_is_one_label() -> None:
    names = [b'a"} 1', b"x\\", b"\x1b[31m", b"a\nb 1", b"\xff\xfe", b"{=}", b"# HELP a"]

    class Named(Played):
        def sample(self) -> Sample:
            self.at += 1
            sent = SENT | {"bytes_acked": 10**5 * self.at}
            return sample(
                *[message(sent, cookie=at + 1, cc=name) for at, name in enumerate(names)], at_s=float(self.at)
            )

    told = scraped(Named())
    line = r'# (HELP|TYPE) .*|sawtooth_\w+(\{cc="([^"\\]|\\.)*",limit="[a-z -]*"\})? [0-9.e+]+'
    assert [one for one in told.splitlines() if not re.fullmatch(line, one)] == []
    seen = {sample.labels["cc"] for family in parsed(told) for sample in family.samples if "cc" in sample.labels}
    assert seen == {name.decode("ascii", "replace") for name in names}


def test_labels_are_bounded() -> None:
    with Metrics(0) as metrics:
        names = {metrics._name(f"cc{at}".encode()) for at in range(100)}
    assert len(names) == MOST_CONTROLS + 1


@pytest.mark.parametrize("port", ["", ":", "0.0.0.0:9090", ":99999", ":x"])
def test_what_is_no_port_is_refused(port: str) -> None:
    with expected_error(code="bad-usage"):
        watch_command._metrics(port)
