"""Running studies: all is checked first, nothing overwritten, nothing half-written accepted, and a failure can be
resumed.
"""

import errno
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from expected_error import expected_error
from fake_engine import Failing, Fake, Full, quick, study
from sawtooth.errors import SawtoothError
from sawtooth.study import run_study
from sawtooth.study.store import results_directory


@pytest.mark.usefixtures("patience")
def test_the_directory_of_a_study_is_named_after_it(tmp_path):
    assert quick(study(name="日本: a/b"), out=tmp_path).directory.parent == tmp_path / "日本--a-b"


@pytest.mark.usefixtures("patience")
def test_a_finished_study_is_never_overwritten_and_latest_is_the_newest(tmp_path, marks):
    first = quick(out=tmp_path, engine=Fake(str(marks)))
    second = quick(out=tmp_path, engine=Fake(str(marks)))
    assert first.directory != second.directory
    assert first.directory.exists()
    assert (tmp_path / "small" / "latest").resolve() == second.directory.resolve()
    assert len(list(marks.iterdir())) == 16
    assert (first.directory / "summary.csv").read_bytes() == (second.directory / "summary.csv").read_bytes()


def tables(result):
    """Every table's bytes, by its path in the result."""
    files = [path for path in result.directory.rglob("*") if path.suffix in (".csv", ".parquet")]
    return {str(path.relative_to(result.directory)): path.read_bytes() for path in files}


@pytest.mark.usefixtures("patience")
def test_the_tables_are_the_same_bytes_whatever_the_workers(tmp_path):
    one = run_study(study(), engine=Fake(), out=tmp_path / "a", jobs=1, quiet=True)
    two = run_study(study(), engine=Fake(), out=tmp_path / "b", jobs=2, quiet=True)
    three = quick(out=tmp_path / "c", workers=3)
    assert len(tables(one)) == 3 + 8 * 2
    assert tables(one) == tables(two) == tables(three)


@pytest.mark.usefixtures("patience")
def test_the_simulator_s_tables_are_the_same_bytes_whatever_the_workers(tmp_path):
    given = study(scenario={"topology": "chain", "duration": "2 s", "interval": "100 ms"})
    one = run_study(given, out=tmp_path / "a", jobs=1, quiet=True)
    two = run_study(given, out=tmp_path / "b", jobs=2, quiet=True)
    assert len(tables(one)) >= 3 + 8 * 2
    assert tables(one) == tables(two)
    assert one.summary["mean_mbps"].between(0, 957).all()
    assert one.summary["mean_mbps"].nunique() > 8


def test_every_point_is_checked_before_the_first_one_starts(tmp_path, marks):
    with expected_error(code="unsupported", match="at the point"):
        quick(study(vary={"chain.loss": ["1%", "60%"]}, columns={}), out=tmp_path, engine=Fake(str(marks)))
    assert not list(marks.iterdir())
    assert not (tmp_path / "small").exists()


def test_an_unknown_engine_or_missing_figures_are_found_before_the_start(tmp_path):
    with expected_error(code="unknown-name"):
        run_study(study(), engine="simm", out=tmp_path)
    with expected_error(code="bad-published"):
        quick(study(published={"file": "nothing"}), out=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_failing_point_ends_the_study_by_name_and_keeps_what_is_finished(tmp_path, marks):
    with expected_error(code="core-failed", field="point 4-cubic-chain-2pct-seed1"):
        quick(out=tmp_path, engine=Failing())
    (directory,) = (tmp_path / "small").iterdir()
    assert len(list((directory / "points").iterdir())) == 4
    assert not (tmp_path / "small" / "latest").exists()


@pytest.mark.usefixtures("patience")
def test_an_unfinished_study_is_taken_up_again_and_finished_points_are_not_run_twice(tmp_path, marks):
    with pytest.raises(SawtoothError):
        quick(out=tmp_path, engine=Failing())
    (directory,) = (tmp_path / "small").iterdir()
    result = quick(out=tmp_path, engine=Fake(str(marks)))
    assert result.directory == directory
    assert len(list(marks.iterdir())) == 4
    whole = quick(out=tmp_path / "other")
    assert (result.directory / "summary.csv").read_bytes() == (whole.directory / "summary.csv").read_bytes()


@pytest.mark.usefixtures("patience")
@pytest.mark.parametrize("change", [{"seeds": [1]}, {"overrides": {"chain.rtt": "1 ms"}}, {"full": True}])
def test_another_question_does_not_take_up_an_unfinished_study(tmp_path, change):
    with pytest.raises(SawtoothError):
        quick(out=tmp_path, engine=Failing())
    (directory,) = (tmp_path / "small").iterdir()
    result = quick(study(full={"duration": "20 s"}) if "full" in change else None, out=tmp_path, **change)
    assert result.directory != directory


def test_a_directory_that_another_process_fills_is_left_alone(tmp_path):
    described = {"study": {}, "points": []}
    with (
        results_directory(tmp_path, "small", "same", described) as one,
        results_directory(tmp_path, "small", "same", described) as two,
    ):
        assert one != two
    with results_directory(tmp_path, "small", "same", described) as three:
        assert three in (one, two)


@pytest.mark.usefixtures("patience")
def test_half_written_points_are_not_taken_for_results(tmp_path, marks):
    with pytest.raises(SawtoothError):
        quick(out=tmp_path, engine=Failing())
    (directory,) = (tmp_path / "small").iterdir()
    points = directory / "points"
    left = points / ".5-cubic-chain-2pct-seed2.123.part"
    left.mkdir()
    (left / "run.json").write_text("{")
    # A directory without a description, which no version of ours leaves, is not a result either.
    done = points / "0-cubic-chain-0pct-seed1"
    (done / "run.json").unlink()
    for table in done.iterdir():
        table.unlink()
    done.rmdir()
    result = quick(out=tmp_path, engine=Fake(str(marks)))
    assert result.directory == directory
    assert not left.exists()
    assert len(list(marks.iterdir())) == 5


def test_a_full_disk_is_one_clear_error_and_nothing_half_written_is_kept(tmp_path):
    with expected_error(code="disk-full"):
        quick(out=tmp_path, engine=Full())
    (directory,) = (tmp_path / "small").iterdir()
    assert sorted(path.name for path in (directory / "points").iterdir()) == [
        "0-cubic-chain-0pct-seed1",
        "1-cubic-chain-0pct-seed2",
        "2-cubic-chain-1pct-seed1",
        "3-cubic-chain-1pct-seed2",
    ]


def test_a_disk_that_is_full_from_the_start_is_reported(tmp_path, monkeypatch):
    def full(*_args, **_options):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "mkdir", full)
    with expected_error(code="disk-full"):
        quick(out=tmp_path)


def test_an_output_that_cannot_be_written_is_reported(tmp_path):
    (tmp_path / "file").write_text("")
    with expected_error(code="unwritable-output") as caught:
        quick(out=tmp_path / "file")
    assert caught.value.fix


@pytest.mark.usefixtures("patience")
def test_the_caller_s_executor_is_left_running(tmp_path):
    with ThreadPoolExecutor(1) as executor:
        run_study(study(), engine=Fake(), out=tmp_path, executor=executor, quiet=True)
        assert executor.submit(int, "7").result() == 7


@pytest.mark.parametrize("jobs", [0, -1])
def test_workers_are_at_least_one(tmp_path, jobs):
    with expected_error(code="bad-usage"):
        run_study(study(), engine=Fake(), out=tmp_path, jobs=jobs)
