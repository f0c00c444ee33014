"""A run is saved completely and read back unchanged, and a damaged one is never accepted as a result."""

import errno
import json
import os

import pandas as pd
import pytest

from expected_error import expected_error
from fake_engine import Fake
from sawtooth.errors import SawtoothError
from sawtooth.io import table_store
from sawtooth.run import Run, is_saved, versions
from sawtooth.scenario import Scenario


@pytest.fixture
def run():
    return Fake().run(Scenario(topology="chain", duration="5 s", seed=7))


def test_a_run_is_read_back_as_it_was_saved(run, tmp_path):
    saved = Run.load(run.save(tmp_path / "run"))
    assert saved.scenario == run.scenario
    assert saved.engine == "fake"
    assert saved.meta == run.meta
    assert saved.warnings == ["made up"]
    assert sorted(saved.tables) == ["intervals", "tcp_info"]
    for name, table in run.tables.items():
        pd.testing.assert_frame_equal(saved.tables[name], table)


def test_run_json_has_the_whole_scenario_the_seed_and_the_versions(run, tmp_path):
    described = json.loads((run.save(tmp_path / "run") / "run.json").read_text())
    assert described["seed"] == 7
    assert Scenario.from_dict(described["scenario"]) == run.scenario
    assert described["digest"] == run.scenario.digest()
    assert described["versions"] == versions()
    assert {"python", "sawtooth", "core", "pandas"} <= set(described["versions"])


def test_the_same_run_gives_the_same_bytes(run, tmp_path):
    again = Fake().run(Scenario(topology="chain", duration="5 s", seed=7))
    first, second = run.save(tmp_path / "a"), again.save(tmp_path / "b")
    names = sorted(path.name for path in first.iterdir())
    assert names == ["intervals.parquet", "run.json", "tcp_info.parquet"]
    for name in names:
        assert (first / name).read_bytes() == (second / name).read_bytes()


def test_only_the_tables_asked_for_are_read(run, tmp_path):
    path = run.save(tmp_path / "run")
    assert list(Run.load(path, tables=("intervals",)).tables) == ["intervals"]
    assert Run.load(path, tables=()).tables == {}


def test_a_saved_run_is_never_overwritten(run, tmp_path):
    run.save(tmp_path / "run")
    with expected_error(code="unwritable-output"):
        run.save(tmp_path / "run")


def test_a_full_disk_leaves_no_directory(run, tmp_path, monkeypatch):
    def full(*_args, **_options):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(table_store, "save", full)
    with expected_error(code="disk-full"):
        run.save(tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def test_a_directory_without_its_description_is_not_a_result(run, tmp_path):
    path = run.save(tmp_path / "run")
    assert is_saved(path)
    (path / "run.json").unlink()
    assert not is_saved(path)
    with expected_error(code="not-a-result"):
        Run.load(path)


@pytest.mark.parametrize("damage", ["absent", "cut", "empty", "pipe"])
def test_a_damaged_table_is_not_a_result(run, tmp_path, damage):
    path = run.save(tmp_path / "run")
    table = path / "intervals.parquet"
    if damage in ("absent", "pipe"):
        table.unlink()
        if damage == "pipe":
            os.mkfifo(table)
    else:
        table.write_bytes(table.read_bytes()[:100] if damage == "cut" else b"")
    with expected_error(code="not-a-result"):
        Run.load(path)


def test_one_changed_byte_anywhere_in_a_table_is_found_and_the_file_is_named(run, tmp_path):
    path = run.save(tmp_path / "run") / "intervals.parquet"
    whole = path.read_bytes()
    for at in range(0, len(whole), max(1, len(whole) // 40)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with expected_error(code="not-a-result", file=str(path)) as caught:
            Run.load(path.parent)
        assert caught.value.fix


def test_a_table_that_was_not_asked_for_may_be_damaged(run, tmp_path):
    path = run.save(tmp_path / "run")
    (path / "tcp_info.parquet").write_bytes(b"")
    assert list(Run.load(path, tables=("intervals",)).tables) == ["intervals"]


def of_format_1(path):
    """The description in its format before checksums."""
    described = json.loads((path / "run.json").read_text())
    del described["sha256"]
    described |= {"format": 1, "tables": sorted(described["tables"])}
    (path / "run.json").write_text(json.dumps(described))
    return path


def test_a_run_of_the_format_without_checksums_is_still_read(run, tmp_path):
    saved = Run.load(of_format_1(run.save(tmp_path / "run")))
    pd.testing.assert_frame_equal(saved.tables["intervals"], run.tables["intervals"])


def test_another_table_s_file_is_not_a_result_with_or_without_checksums(run, tmp_path):
    path = run.save(tmp_path / "run")
    (path / "intervals.parquet").write_bytes((path / "tcp_info.parquet").read_bytes())
    with pytest.raises(SawtoothError, match="is damaged"):
        Run.load(path)
    with expected_error(code="not-a-result", match="no column goodput_bps"):
        Run.load(of_format_1(path))


@pytest.mark.parametrize(
    "change",
    [
        *({"tables": {}}, {"tables": 7}, {"tables": None}, {"scenario": {"x": 1}}, {"scenario": []}, {"meta": 7}),
        *({"meta": {"warnings": False}}, {"meta": {"warnings": [1]}}, {"meta": {"names": {"flow": 3}}}),
        {"meta": {"names": ["flow"]}},
    ],
)
def test_a_description_without_what_a_run_has_is_not_a_result(run, tmp_path, change):
    path = run.save(tmp_path / "run")
    described = json.loads((path / "run.json").read_text()) | change
    del described["sha256"]
    (path / "run.json").write_text(json.dumps(described))
    with expected_error(code="not-a-result", file=str(path / "run.json")):
        Run.load(path)


@pytest.mark.parametrize(("was", "is_now"), [('"duration": "5 s"', '"duration": "9 s"'), ('"fake"', '"sham"')])
def test_a_description_that_was_changed_is_not_a_result(run, tmp_path, was, is_now):
    path = run.save(tmp_path / "run") / "run.json"
    text = path.read_text()
    assert was in text
    path.write_text(text.replace(was, is_now))
    with expected_error(code="not-a-result", file=str(path), match="SHA-256"):
        Run.load(path.parent)


@pytest.mark.parametrize("content", ["[]", "{}", '{"format": 1}', '{"format": "1"}', '{"format": 99}', "null"])
def test_a_description_of_something_else_is_not_a_result(run, tmp_path, content):
    path = run.save(tmp_path / "run")
    (path / "run.json").write_text(content)
    with expected_error(code="not-a-result"):
        Run.load(path)
