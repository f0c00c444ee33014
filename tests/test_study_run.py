"""Running studies: complete tables, nothing overwritten, nothing half-written believed, and every stop resumes."""

import errno
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pandas as pd
import pytest

from fake_engine import Failing, Fake, Full, Killed, Slow
from sawtooth.errors import SawtoothError
from sawtooth.study import Study, StudyResult, run_study
from sawtooth.study.store import results_directory

COLUMNS = (
    "engine,cc,path,loss_percent,seed,count,mean_mbps,std_mbps,min_mbps,q25_mbps,q50_mbps,q75_mbps,max_mbps,"
    "published_mean_mbps"
)


def study(**changes):
    content = {
        "name": "small",
        "scenario": {"topology": "chain", "duration": "30 s"},
        "vary": {
            "flows.cc": ["cubic"],
            "topology": ["chain"],
            "chain.loss": {"from": "0%", "to": "3%", "step": "1%"},
        },
        "columns": {
            "cc": {"field": "flows.cc"},
            "path": {"field": "topology", "labels": {"chain": "symmetric"}},
            "loss_percent": {"field": "chain.loss", "unit": "%"},
        },
        "repeat": {"seeds": [1, 2]},
        "published": {"file": "one-percent-loss"},
    }
    return Study.from_dict(content | changes)


@pytest.fixture
def marks(tmp_path):
    path = tmp_path / "marks"
    path.mkdir()
    return path


def quick(given=None, *, out, engine=None, workers=1, **options):
    """Runs in threads: no time is lost on starting processes."""
    with ThreadPoolExecutor(workers) as executor:
        return run_study(given or study(), engine=engine or Fake(), out=out, executor=executor, quiet=True, **options)


def test_the_summary_has_exactly_the_published_columns_a_row_a_run_and_a_row_for_all(tmp_path):
    result = quick(out=tmp_path)
    lines = (result.directory / "summary.csv").read_text().splitlines()
    assert lines[0] == COLUMNS
    assert [line.split(",")[:6] for line in lines[1:4]] == [
        ["fake", "cubic", "symmetric", "0", "1", "30"],
        ["fake", "cubic", "symmetric", "0", "2", "30"],
        ["fake", "cubic", "symmetric", "0", "all", "60"],
    ]
    assert len(lines) == 1 + 4 * 3
    assert lines[4].endswith(",235.51")


def test_the_row_for_all_pools_the_samples_of_the_seeds(tmp_path):
    summary = quick(out=tmp_path).summary
    one, two, both = (summary[summary["loss_percent"] == 0].iloc[at] for at in range(3))
    assert both["mean_mbps"] == pytest.approx((one["mean_mbps"] + two["mean_mbps"]) / 2)
    assert both["min_mbps"] == min(one["min_mbps"], two["min_mbps"])
    assert both["seed"] == "all"


def test_the_wider_table_has_intervals_changes_counters_and_published_figures(tmp_path):
    result = quick(out=tmp_path)
    row = result.records[1]
    assert row["loss_percent"] == 1
    assert row["ci_low_mbps"] < row["mean_mbps"] < row["ci_high_mbps"]
    assert row["seeds_low_mbps"] < row["mean_mbps"] < row["seeds_high_mbps"]
    assert row["change_percent"] == pytest.approx(-8, abs=0.1)
    assert row["retransmits"] == 2 * 30 * 10
    assert row["mean_srtt_ms"] == pytest.approx(2)
    assert row["rwnd_limited_percent"] == pytest.approx(25)
    assert row["published_std_mbps"] == 13.57
    assert row["published_change_percent"] == pytest.approx(-70.7, abs=0.05)
    assert row["ratio"] == pytest.approx(row["mean_mbps"] / 235.51)
    assert list(pd.read_csv(result.directory / "table.csv").columns) == list(result.details.columns)


def test_the_table_for_a_terminal_sets_the_published_means_beside_ours(tmp_path):
    text = quick(out=tmp_path).table()
    assert "published" in text
    assert "235.51" in text
    assert max(len(line) for line in text.splitlines()) <= 120


def test_a_misprint_is_not_compared_with(tmp_path):
    path = {"field": "topology", "labels": {"chain-asymmetric": "asymmetric"}}
    given = study(
        vary={"flows.cc": ["cubic"], "topology": ["chain-asymmetric"], "chain.loss": ["0%", "9%"]},
        columns=study().to_dict()["columns"] | {"path": path},
    )
    result = quick(given, out=tmp_path)
    assert result.summary["published_mean_mbps"].dropna().unique().tolist() == [864.14]


def test_results_are_loaded_as_they_were_made(tmp_path):
    result = quick(out=tmp_path)
    again = StudyResult.load(result.directory)
    pd.testing.assert_frame_equal(again.details, result.details)
    pd.testing.assert_frame_equal(again.samples, result.samples)
    assert again.warnings == result.warnings
    assert again.published.source == result.published.source
    assert again.study == result.study
    assert again.table() == result.table()


@pytest.mark.parametrize("table", ["intervals", "tcp_info"])
def test_a_damaged_table_of_a_point_is_no_result_and_the_file_is_named(tmp_path, table):
    result = quick(out=tmp_path)
    path = result.directory / "points" / result.places[3].id / f"{table}.parquet"
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 1
    path.write_bytes(content)
    with pytest.raises(SawtoothError) as caught:
        StudyResult.load(result.directory)
    assert (caught.value.code, caught.value.file) == ("not-a-result", str(path))


def test_published_figures_that_were_changed_in_a_result_are_no_result(tmp_path):
    path = quick(out=tmp_path).directory / "published.csv"
    path.write_text(path.read_text().replace("235.51", "236.51"))
    with pytest.raises(SawtoothError) as caught:
        StudyResult.load(path.parent)
    assert (caught.value.code, caught.value.file) == ("not-a-result", str(path))


def described(change):
    """A finished study's description after ``change``, which edits it in place."""

    def edit(directory):
        path = directory / "study.json"
        content = json.loads(path.read_text())
        change(content)
        path.write_text(json.dumps(content))

    return edit


@pytest.mark.parametrize(
    "damage",
    [
        *(
            described(lambda content, name=name: content.pop(name))
            for name in ("finished", "started", "engine", "points", "overrides", "versions", "study", "format")
        ),
        described(lambda content: content.update(points=[])),
        described(lambda content: content.update(points=[7])),
        described(lambda content: content.update(engine=7)),
        described(lambda content: content["points"][0].update(id="../../x")),
        described(lambda content: content["points"][0].update(key={})),
        described(lambda content: content["points"][0].update(key={"other": 1})),
        described(lambda content: content["points"][0].update(key={"cc": [], "path": 1, "loss_percent": 1})),
        described(lambda content: content["published"].pop("caveats")),
        described(lambda content: content["study"].update(vary={"chain.loss": []})),
        described(lambda content: content.update(format=99)),
        lambda directory: (directory / "study.json").write_text("[]"),
        lambda directory: (directory / "study.json").unlink(),
    ],
)
def test_a_description_that_is_not_whole_is_no_result(tmp_path, damage):
    directory = quick(out=tmp_path).directory
    damage(directory)
    with pytest.raises(SawtoothError) as caught:
        StudyResult.load(directory)
    assert (caught.value.code, caught.value.file) == ("not-a-result", str(directory / "study.json"))
    assert caught.value.fix


def test_an_unfinished_study_is_no_result_and_is_told_so(tmp_path):
    with pytest.raises(SawtoothError):
        quick(out=tmp_path, engine=Failing())
    (directory,) = (tmp_path / "small").iterdir()
    with pytest.raises(SawtoothError, match="not finished") as caught:
        StudyResult.load(directory)
    assert caught.value.code == "not-a-result"
    assert "same command" in caught.value.fix


def mixed(**changes):
    """One flow of two connections beside another of one that gets twice as much."""
    flows = [{"name": "many", "cc": "cubic", "count": 2}, {"name": "one", "cc": "bbr"}]
    scenario = {"topology": "chain", "duration": "20 s", "flows": flows}
    given = {"scenario": scenario, "vary": {"chain.loss": ["0%", "1%"]}, "published": None}
    columns = {"loss_percent": {"field": "chain.loss", "unit": "%"}}
    return study(**(given | {"columns": columns} | changes))


def test_what_each_flow_gets_has_a_row_a_flow_and_run_and_one_for_all_seeds(tmp_path):
    shares = quick(mixed(), out=tmp_path).shares
    keys = shares[["loss_percent", "seed", "flow", "flow_cc", "connections"]]
    assert keys.iloc[:6].to_numpy().tolist() == [
        [0, seed, *flow] for seed in (1, 2, "all") for flow in (["many", "cubic", 2], ["one", "bbr", 1])
    ]
    assert len(shares) == 2 * 3 * 2
    assert shares["share_percent"].to_numpy() == pytest.approx([100 / 3, 200 / 3] * 6)
    # Connections with 1 and 2 parts; all three with 1, 2 and 2.
    assert shares["jain"].dropna().to_numpy() == pytest.approx([9 / 10] * 6)
    assert shares["jain_all"].to_numpy() == pytest.approx([25 / 27] * 12)
    assert (shares["std_mbps"] > 0).all()


def test_the_means_of_the_flows_add_up_to_the_mean_of_the_sum(tmp_path):
    result = quick(mixed(), out=tmp_path)
    added = result.shares.groupby(["loss_percent", "seed"])["mean_mbps"].sum()
    whole = result.summary.set_index(["loss_percent", "seed"])["mean_mbps"]
    assert added.to_dict() == pytest.approx(whole.to_dict())


def test_one_seed_has_no_interval_of_its_share_and_several_have(tmp_path):
    shares = quick(mixed(), out=tmp_path).shares
    every = shares[shares["seed"] == "all"]
    assert shares.loc[shares["seed"] != "all", "share_low_percent"].isna().all()
    assert (every["share_low_percent"] <= every["share_percent"] + 1e-9).all()
    assert (every["share_percent"] <= every["share_high_percent"] + 1e-9).all()


def test_a_flow_whose_connections_replace_each_other_has_no_index_of_fairness(tmp_path):
    flows = [{"name": "a", "count": 2, "replace": {"lifetime": ["1 s", "2 s"]}}, {"name": "b", "count": 2}]
    given = mixed(scenario={"topology": "chain", "duration": "20 s", "flows": flows})
    shares = quick(given, out=tmp_path).shares
    assert shares.loc[shares["flow"] == "a", "jain"].isna().all()
    assert shares.loc[shares["flow"] == "b", "jain"].notna().all()
    assert shares["jain_all"].isna().all()


def test_a_flow_that_is_spread_over_the_pairs_of_a_dumbbell_is_one(tmp_path):
    flows = [{"name": "a", "from": "s*", "to": "r*", "count": 3}, {"name": "b", "from": "s*", "to": "r*"}]
    scenario = {
        "topology": "dumbbell",
        "duration": "2 s",
        "dumbbell": {"pairs": 2, "rate": "10 Mbit/s"},
        "flows": flows,
    }
    given = study(scenario=scenario, vary={}, columns={}, published=None, repeat={"seeds": [1]})
    shares = quick(given, out=tmp_path, engine="sim").shares
    assert shares[["flow", "connections"]].to_numpy().tolist()[:2] == [["a", 3], ["b", 1]]
    assert shares["share_percent"].iloc[:2].sum() == pytest.approx(100)
    assert shares["jain_all"].between(0.25, 1).all()


def test_the_shares_are_written_and_loaded_as_they_were_made_and_told_on_a_terminal(tmp_path):
    result = quick(mixed(), out=tmp_path)
    again = StudyResult.load(result.directory)
    pd.testing.assert_frame_equal(again.shares, result.shares)
    assert list(pd.read_csv(result.directory / "shares.csv").columns) == list(result.shares.columns)
    assert "66.7%" in result.table()
    assert max(len(line) for line in result.table().splitlines()) <= 120


def test_a_study_of_single_flows_has_no_shares(tmp_path):
    result = quick(out=tmp_path)
    assert result.shares.empty
    assert not (result.directory / "shares.csv").exists()


def test_no_axis_can_take_the_name_of_a_column_of_any_table(tmp_path):
    result = quick(mixed(), out=tmp_path)
    keys = set(result.places[0].key)
    for table in (result.details, result.samples, result.shares):
        for column in set(table.columns) - keys:
            with pytest.raises(SawtoothError) as caught:
                study(columns={column: {"field": "chain.loss"}})
            assert caught.value.code == "conflict"


def test_small_losses_keep_their_digits_in_tables(tmp_path):
    given = mixed(vary={"chain.loss": ["0%", "1e-7%", "2.5e-6%"]})
    lines = (quick(given, out=tmp_path).directory / "summary.csv").read_text().splitlines()
    assert [line.split(",")[1] for line in lines[1::3]] == ["0", "0.0000001", "0.0000025"]


def test_the_directory_of_a_study_is_named_after_it(tmp_path):
    assert quick(study(name="日本: a/b"), out=tmp_path).directory.parent == tmp_path / "日本--a-b"


def test_a_warning_of_all_points_is_one_sentence(tmp_path):
    (warning,) = quick(out=tmp_path).warnings
    assert warning.startswith("made up (all 8 points")


def test_what_was_set_by_hand_is_warned_of_beside_published_figures(tmp_path):
    result = quick(out=tmp_path, overrides={"chain.rtt": "5 ms"})
    assert any("chain.rtt = 5 ms" in warning for warning in result.warnings)
    assert result.description["overrides"] == {"chain.rtt": "5 ms"}


def test_a_finished_study_is_never_overwritten_and_latest_is_the_newest(tmp_path, marks):
    first = quick(out=tmp_path, engine=Fake(str(marks)))
    second = quick(out=tmp_path, engine=Fake(str(marks)))
    assert first.directory != second.directory
    assert first.directory.exists()
    assert (tmp_path / "small" / "latest").resolve() == second.directory.resolve()
    assert len(list(marks.iterdir())) == 16
    assert (first.directory / "summary.csv").read_bytes() == (second.directory / "summary.csv").read_bytes()


def test_the_tables_are_the_same_bytes_whatever_the_workers(tmp_path):
    one = run_study(study(), engine=Fake(), out=tmp_path / "a", jobs=1, quiet=True)
    two = run_study(study(), engine=Fake(), out=tmp_path / "b", jobs=2, quiet=True)
    three = quick(out=tmp_path / "c", workers=3)
    names = sorted(
        path.relative_to(one.directory) for path in one.directory.rglob("*") if path.suffix in (".csv", ".parquet")
    )
    assert len(names) == 3 + 8 * 2
    for name in names:
        assert (one.directory / name).read_bytes() == (two.directory / name).read_bytes()
        assert (one.directory / name).read_bytes() == (three.directory / name).read_bytes()


def test_the_simulator_s_tables_are_the_same_bytes_whatever_the_workers(tmp_path):
    given = study(scenario={"topology": "chain", "duration": "2 s", "interval": "100 ms"})
    one = run_study(given, out=tmp_path / "a", jobs=1, quiet=True)
    two = run_study(given, out=tmp_path / "b", jobs=2, quiet=True)
    names = sorted(
        path.relative_to(one.directory) for path in one.directory.rglob("*") if path.suffix in (".csv", ".parquet")
    )
    assert len(names) >= 3 + 8 * 2
    for name in names:
        assert (one.directory / name).read_bytes() == (two.directory / name).read_bytes()
    assert one.summary["mean_mbps"].between(0, 957).all()
    assert one.summary["mean_mbps"].nunique() > 8


def test_no_table_holds_a_date(tmp_path):
    result = quick(out=tmp_path)
    for path in result.directory.rglob("*.csv"):
        assert result.directory.name[:8] not in path.read_text()


def test_every_point_is_checked_before_the_first_one_starts(tmp_path, marks):
    with pytest.raises(SawtoothError, match="at the point") as caught:
        quick(study(vary={"chain.loss": ["1%", "60%"]}, columns={}), out=tmp_path, engine=Fake(str(marks)))
    assert caught.value.code == "unsupported"
    assert not list(marks.iterdir())
    assert not (tmp_path / "small").exists()


def test_an_unknown_engine_or_missing_figures_are_found_before_the_start(tmp_path):
    with pytest.raises(SawtoothError) as caught:
        run_study(study(), engine="simm", out=tmp_path)
    assert caught.value.code == "unknown-name"
    with pytest.raises(SawtoothError) as caught:
        quick(study(published={"file": "nothing"}), out=tmp_path)
    assert caught.value.code == "bad-published"
    assert list(tmp_path.iterdir()) == []


def test_a_failing_point_ends_the_study_by_name_and_keeps_what_is_finished(tmp_path, marks):
    with pytest.raises(SawtoothError) as caught:
        quick(out=tmp_path, engine=Failing())
    assert caught.value.code == "core-failed"
    assert caught.value.field == "point 4-cubic-chain-2pct-seed1"
    (directory,) = (tmp_path / "small").iterdir()
    assert len(list((directory / "points").iterdir())) == 4
    assert not (tmp_path / "small" / "latest").exists()


def test_an_unfinished_study_is_taken_up_again_and_finished_points_are_not_run_twice(tmp_path, marks):
    with pytest.raises(SawtoothError):
        quick(out=tmp_path, engine=Failing())
    (directory,) = (tmp_path / "small").iterdir()
    result = quick(out=tmp_path, engine=Fake(str(marks)))
    assert result.directory == directory
    assert len(list(marks.iterdir())) == 4
    whole = quick(out=tmp_path / "other")
    assert (result.directory / "summary.csv").read_bytes() == (whole.directory / "summary.csv").read_bytes()


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


def test_half_written_points_are_not_taken_for_results(tmp_path, marks):
    with pytest.raises(SawtoothError):
        quick(out=tmp_path, engine=Failing())
    (directory,) = (tmp_path / "small").iterdir()
    points = directory / "points"
    left = points / ".5-cubic-chain-2pct-seed2.123.part"
    left.mkdir()
    (left / "run.json").write_text("{")
    # A directory without a description, as no version of ours leaves it, is no result either.
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
    with pytest.raises(SawtoothError) as caught:
        quick(out=tmp_path, engine=Full())
    assert caught.value.code == "disk-full"
    (directory,) = (tmp_path / "small").iterdir()
    assert sorted(path.name for path in (directory / "points").iterdir()) == [
        "0-cubic-chain-0pct-seed1",
        "1-cubic-chain-0pct-seed2",
        "2-cubic-chain-1pct-seed1",
        "3-cubic-chain-1pct-seed2",
    ]


def test_a_disk_that_is_full_from_the_start_is_told(tmp_path, monkeypatch):
    def full(*_args, **_options):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "mkdir", full)
    with pytest.raises(SawtoothError) as caught:
        quick(out=tmp_path)
    assert caught.value.code == "disk-full"


def test_an_output_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(SawtoothError) as caught:
        quick(out=tmp_path / "file")
    assert caught.value.code == "unwritable-output"
    assert caught.value.fix


def test_the_caller_s_executor_is_left_running(tmp_path):
    with ThreadPoolExecutor(1) as executor:
        run_study(study(), engine=Fake(), out=tmp_path, executor=executor, quiet=True)
        assert executor.submit(int, "7").result() == 7


@pytest.mark.parametrize("jobs", [0, -1])
def test_workers_are_at_least_one(tmp_path, jobs):
    with pytest.raises(SawtoothError) as caught:
        run_study(study(), engine=Fake(), out=tmp_path, jobs=jobs)
    assert caught.value.code == "bad-usage"


def test_a_killed_worker_is_one_clear_error_and_the_next_run_goes_on(tmp_path, marks):
    engine = Killed(str(marks), once=str(tmp_path / "once"))
    with pytest.raises(SawtoothError) as caught:
        run_study(study(), engine=engine, out=tmp_path / "out", jobs=1, quiet=True)
    assert caught.value.code == "worker-died"
    assert "4 of 8 points" in caught.value.message
    result = run_study(study(), engine=engine, out=tmp_path / "out", jobs=1, quiet=True)
    assert len(list((tmp_path / "out" / "small").iterdir())) == 2  # one directory, and latest
    assert len(list(marks.iterdir())) == 4 + 1 + 4
    assert len(result.summary) == 12


def script(tmp_path, engine, out, *, given=None, around="contextlib.nullcontext()"):
    """A program of its own, as the command line is, that runs the study in two workers."""
    path = tmp_path / "program.py"
    path.write_text(
        textwrap.dedent(
            f"""
            import contextlib, json, sys
            import fake_engine
            from sawtooth.cli.process import prepared
            from sawtooth.errors import SawtoothError
            from sawtooth.study import Study, run_study

            if __name__ == "__main__":
                study = Study.from_dict(json.loads({json.dumps(json.dumps((given or study()).to_dict()))}))
                try:
                    with {around}:
                        run_study(study, engine=fake_engine.{engine}(), out={str(out)!r}, jobs=2, quiet=True)
                except SawtoothError as error:
                    print(error, file=sys.stderr)
                    sys.exit(error.exit_status)
            """
        )
    )
    roots = [str(Path(__file__).parent), str(Path(__file__).parent.parent / "src"), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, roots))}
    return subprocess.Popen(
        [sys.executable, str(path)],
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def wait_until(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)


def processes_of(session):
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return found


def test_a_service_that_is_stopped_ends_cleanly_with_all_its_processes(tmp_path):
    out = tmp_path / "out"
    # More points wait than a pool of two workers has taken.
    given = study(repeat={"seeds": list(range(1, 7))})
    program = script(tmp_path, "Stubborn", out, given=given, around="prepared()")
    try:
        wait_until(lambda: len(list(out.glob("small/*/points/[0-9]*"))) == 12)
        os.killpg(program.pid, signal.SIGTERM)
        _, said = program.communicate(timeout=60)
    finally:
        program.kill()
    assert program.returncode == 130
    assert said.splitlines()[0].startswith("error[interrupted]: interrupted; 12 of 24 points")
    assert len(said.splitlines()) == 2
    wait_until(lambda: processes_of(program.pid) == [], seconds=5)


@pytest.mark.parametrize("engine", ["Slow", "Stubborn"])
def test_ctrl_c_ends_cleanly_keeps_what_is_finished_and_a_second_run_resumes(tmp_path, marks, engine):
    out = tmp_path / "out"
    program = script(tmp_path, engine, out)
    try:
        wait_until(lambda: len(list(out.glob("small/*/points/[0-9]*"))) == 4)
        os.killpg(program.pid, signal.SIGINT)
        _, said = program.communicate(timeout=60)
    finally:
        program.kill()
    assert program.returncode == 130
    assert "error[interrupted]" in said
    assert "4 of 8 points" in said
    assert "run the same command again" in said
    assert "Traceback" not in said
    wait_until(lambda: processes_of(program.pid) == [], seconds=5)
    result = quick(out=out, engine=Fake(str(marks)))
    assert len(list(marks.iterdir())) == 4
    assert len([path for path in (out / "small").iterdir() if not path.is_symlink()]) == 1
    assert len(result.summary) == 12


def test_workers_do_not_outlive_a_parent_that_is_killed(tmp_path):
    out = tmp_path / "out"
    program = script(tmp_path, "Stubborn", out)
    wait_until(lambda: len(list(out.glob("small/*/points/[0-9]*"))) == 4)
    program.kill()
    program.communicate(timeout=60)
    wait_until(lambda: processes_of(program.pid) == [], seconds=20)


def test_an_interrupt_while_threads_work_leaves_the_executor_usable(tmp_path, monkeypatch):
    from sawtooth.study import runner

    waits = []

    def interrupted(*arguments):
        waits.append(arguments)
        if len(waits) == 3:
            raise KeyboardInterrupt
        return real(*arguments)

    real = runner.wait
    monkeypatch.setattr(runner, "wait", interrupted)
    with ThreadPoolExecutor(1) as executor:
        with pytest.raises(SawtoothError) as caught:
            run_study(study(), engine=Slow(), out=tmp_path, executor=executor, quiet=True)
        assert executor.submit(int, "7").result(timeout=20) == 7
    assert caught.value.code == "interrupted"
    assert caught.value.exit_status == 130
