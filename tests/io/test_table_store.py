"""Growing tables: in memory while small, then in a file; the same rows and bytes either way."""

import io
import math
import pickle
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from expected_error import expected_error
from sawtooth import engines
from sawtooth.io import table_store
from sawtooth.io.table_store import GrowingTables, Rows, StoredTable, Tables
from sawtooth.run import Run
from sawtooth.scenario import Scenario
from sawtooth.stats import counters, throughput

RUN = """
import sys
from pathlib import Path
from sawtooth import engines
from sawtooth.scenario import Scenario
flow = {"count": 20, "replace": {"lifetime": ["2 ms", "2 ms"]}}
path = {"rate": "1 Mbit/s", "rtt": "1 ms"}
engines.get("sim").run(Scenario(duration=sys.argv[1], path=path, flows=[flow])).save(Path(sys.argv[2]))
print(*[line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")])
"""


def frame(count: int) -> pd.DataFrame:
    return pd.DataFrame({"t_s": np.arange(count) / 8, "flow": np.arange(count) % 3, "rtt_s": np.full(count, np.nan)})


def grown(table: pd.DataFrame, batch: int) -> Tables:
    growing = GrowingTables()
    for start in range(0, max(len(table), 1), batch):
        part = table[start : start + batch]
        growing.add({"it": {str(name): part[name].to_numpy() for name in part}})
    return growing.finish()


@pytest.fixture
def small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_store, "GROUP", 1_000)


@pytest.mark.usefixtures("patience")
@pytest.mark.usefixtures("small_groups")
@pytest.mark.parametrize("count", [0, 1, 999, 1_000, 1_001, 2_000, 3_500])
def test_a_table_has_the_same_rows_and_bytes_however_it_grew(tmp_path: Path, count: int) -> None:
    wanted = frame(count)
    table_store.save({"it": wanted}, "it", tmp_path / "whole")
    for batch in (1, 7, 1_000, 4_000):
        tables = grown(wanted, batch)
        assert "it" in tables
        assert list(tables) == ["it"]
        assert isinstance(tables.kept("it"), StoredTable) == (count > 1_000)
        assert table_store.whole(tables, "it").frame().equals(wanted)
        table_store.save(tables, "it", tmp_path / "grown")
        assert (tmp_path / "grown").read_bytes() == (tmp_path / "whole").read_bytes()
        assert tables["it"].equals(wanted)
        assert tables["it"] is tables["it"]
        table_store.save(tables, "it", tmp_path / "read")
        assert (tmp_path / "read").read_bytes() == (tmp_path / "whole").read_bytes()


@pytest.mark.parametrize("count", [100, 500])
def test_pandas_reads_a_saved_table_as_it_was_and_so_does_a_run(tmp_path: Path, count: int) -> None:
    table = frame(count).assign(text="ü", unknown=None, maybe=[math.nan, 1.5] * (count // 2), on=True)
    table_store.save({"it": table}, "it", tmp_path / "it")
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "it"), table)
    pd.testing.assert_frame_equal(Tables({"it": table_store.load(tmp_path / "it")})["it"], table)


def test_rows_are_read_like_a_data_frame() -> None:
    rows = Rows.joined([Rows.of(frame(4)), Rows.of(frame(2))])
    assert len(rows) == 6
    assert rows["flow"].tolist() == [0, 1, 2, 0, 0, 1]
    assert rows[rows["flow"] == 1]["t_s"].tolist() == [0.125, 0.125]
    assert "rtt_s" in rows
    assert "missing" not in rows
    assert rows.frame().equals(pd.concat([frame(4), frame(2)], ignore_index=True))


@pytest.mark.usefixtures("small_groups")
@pytest.mark.parametrize("count", [900, 3_500])
def test_only_the_thread_that_asks_reads_a_file(tmp_path: Path, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread of Arrow's that still held the file at the end of the interpreter would abort it."""
    table_store.save({"it": frame(count)}, "it", tmp_path / "it")
    readers: set[int] = set()

    class Heeded(io.FileIO):
        def read(self, *size: int) -> bytes | None:
            readers.add(threading.get_ident())
            return super().read(*size)

        def readinto(self, buffer: Any) -> int | None:
            readers.add(threading.get_ident())
            return super().readinto(buffer)

    monkeypatch.setattr(Path, "open", lambda path, _: Heeded(path))
    found = table_store.load(tmp_path / "it")
    if isinstance(found, table_store.StoredTable):
        assert sum(map(len, found.groups(["t_s", "flow"]))) == count
        found = found.read()
    assert found.frame().equals(frame(count))
    assert readers == {threading.get_ident()}


@pytest.mark.usefixtures("small_groups")
def test_a_run_with_long_tables_is_saved_pickled_and_changed_like_any_other(tmp_path: Path) -> None:
    tables = grown(frame(2_500), 100)
    run = Run(
        Scenario(),
        "sim",
        Tables({"intervals": frame(3).assign(goodput_bps=1.0), "links": tables.kept("it")}),
    )
    run.save(tmp_path / "run")
    assert Run.load(tmp_path / "run").tables["links"].equals(frame(2_500))
    again = pickle.loads(pickle.dumps(run))
    assert sorted(again.tables) == ["intervals", "links"]
    assert again.tables["links"].equals(frame(2_500))
    run.tables["links"] = frame(1)
    assert len(run.tables["links"]) == 1
    del run.tables["links"]
    assert list(run.tables) == ["intervals"]


@pytest.mark.usefixtures("small_groups")
def test_statistics_of_a_long_table_are_those_of_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flows = [{"count": 2}, {"cc": "bbr", "start": "1 s"}, {"cc": "reno"}]
    scenario = Scenario(duration="5 s", warmup="1 s", interval="7 ms", flows=flows, path={"loss": "1%"})
    run = engines.get("sim").run(scenario)
    assert isinstance(run.tables, Tables)
    run.save(tmp_path / "run")
    stored = Run.load(tmp_path / "run")
    assert isinstance(run.tables.kept("intervals"), StoredTable)
    assert run.warnings == stored.warnings
    monkeypatch.setattr(table_store, "GROUP", 10**9)
    whole = Run.load(tmp_path / "run")
    pd.testing.assert_series_equal(throughput(stored), throughput(whole), check_exact=True)
    assert counters(stored) == pytest.approx(counters(whole), rel=1e-12)
    assert isinstance(stored.tables, Tables)
    assert isinstance(stored.tables.kept("intervals"), StoredTable), "the statistics did not read it as a whole"
    again = engines.get("sim").run(scenario)
    assert again.warnings == run.warnings
    assert all(again.tables[name].equals(table) for name, table in run.tables.items())


@pytest.mark.usefixtures("small_groups")
def test_a_full_directory_for_temporary_files_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    # Every write to this device fails because no space is left.
    monkeypatch.setattr("tempfile.TemporaryFile", lambda **_: open("/dev/full", "r+b", buffering=0))  # noqa: SIM115
    with expected_error(code="disk-full"):
        grown(frame(3_000), 100)


@pytest.mark.usefixtures("patience")
def test_memory_does_not_grow_with_the_connections_that_have_ended(tmp_path: Path) -> None:
    def peak_mib(duration: str) -> float:
        command = [sys.executable, "-c", RUN, duration, str(tmp_path / duration)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
        return int(done.stdout) / 2**10

    short, long = peak_mib("60 s"), peak_mib("120 s")
    # 600,000 and 1,200,000 rows of 88 bytes, of which there used to be two copies; a single write is smaller.
    assert long < short + 30


def test_tables_show_their_names_and_sizes_and_suggest_one_for_a_name_that_is_not_there() -> None:
    tables = Tables({"flows": pd.DataFrame({"a": [1, 2]}), "queues": pd.DataFrame()})
    assert repr(tables) == "Tables(flows: 2 rows, queues: 0 rows)"
    with pytest.raises(KeyError, match='did you mean "flows"'):
        tables["flow"]
    assert "flow" not in tables
    assert tables.get("flow") is None


def test_pickled_rows_keep_columns_types_and_values() -> None:
    """Also names, and no rows at all."""
    columns: dict[str, Any] = {
        "t_s": np.array([0.5, math.nan]),
        "flow": np.array([1, 2], np.int32),
        "name": np.array(["a", "b"], object),
    }
    for rows in (Rows(columns), Rows(columns)[np.array([False, False])]):
        sent = pickle.loads(pickle.dumps(rows))
        assert list(sent.columns) == list(rows.columns)
        for name, values in rows.columns.items():
            assert sent[name].dtype == values.dtype
            np.testing.assert_array_equal(sent[name], values)


def test_a_mask_selects_rows_and_only_selects_columns() -> None:
    rows = Rows({"t_s": np.array([1.0, 2.0]), "flow": np.array([0, 1])})
    assert rows[np.array([False, True])].only(("flow", "absent")).columns == {"flow": np.array([1])}
    assert len(rows[np.array([True, True])]) == 2
