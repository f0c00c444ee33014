"""What `watch` gives others: a Parquet file of all looks, and sums for Prometheus with bounded labels."""

from __future__ import annotations

import urllib.request
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from sawtooth.cli import watch_command
from sawtooth.errors import SawtoothError
from sawtooth.watch import MEANINGS, Watcher
from sawtooth.watch.metrics import MOST_CONTROLS, Metrics
from sawtooth.watch.record import OF_LOOK, Recorder
from test_watch_screen import Played


def test_a_recording_has_a_row_for_each_connection_and_look(tmp_path: Path) -> None:
    watcher = Watcher(Played())
    with Recorder(tmp_path / "looks.parquet") as recorder:
        for _ in range(3):
            recorder.add(watcher.look())
        assert not (tmp_path / "looks.parquet").exists()
    table = pq.read_table(tmp_path / "looks.parquet")
    assert table.column_names == ["time", "at_s", *OF_LOOK, *MEANINGS]
    assert table["connections_total"].to_pylist() == [2] * 6
    assert table.num_rows == 6
    assert table["at_s"].to_pylist() == [1.0, 1.0, 2.0, 2.0, 3.0, 3.0]
    assert table["segments"].to_pylist()[:2] == [None, None]
    assert [path.name for path in tmp_path.iterdir()] == ["looks.parquet"]


def test_a_recording_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    with pytest.raises(SawtoothError) as refused:
        Recorder(tmp_path / "none" / "looks.parquet")
    assert refused.value.code == "unwritable-output"


def test_prometheus_reads_sums_by_control_and_limit() -> None:
    watcher = Watcher(Played())
    watcher.look()
    with Metrics(0) as metrics:
        metrics.add(watcher.look())
        with urllib.request.urlopen(f"http://127.0.0.1:{metrics.port}/metrics", timeout=10) as answer:
            told = answer.read().decode()
    assert 'sawtooth_connections{cc="reno",limit="congestion window"} 1.0' in told
    assert 'sawtooth_window_lost_segments{cc="reno",limit="congestion window"} 30.0' in told
    assert "sawtooth_connections_total 2.0" in told
    assert "192.0.2.9" not in told


def test_labels_are_bounded() -> None:
    with Metrics(0) as metrics:
        names = {metrics._name(f"cc{at}".encode()) for at in range(100)}
    assert len(names) == MOST_CONTROLS + 1


@pytest.mark.parametrize("port", ["", ":", "0.0.0.0:9090", ":99999", ":x"])
def test_what_is_no_port_is_refused(port: str) -> None:
    with pytest.raises(SawtoothError) as refused:
        watch_command._metrics(port)
    assert refused.value.code == "bad-usage"
