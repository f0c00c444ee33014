"""Studies of many short points: their runs are in packs, and are read, counted, checked and queried like others."""

import contextlib
import dataclasses
import gc
import json
import os
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from expected_error import expected_error
from sawtooth.engines.sim import Sim
from sawtooth.io.atomic_io import checksum, read_description, write_description
from sawtooth.io.parallel import Misfit
from sawtooth.link_estimate.inputs import load_series, read_series
from sawtooth.results import listing
from sawtooth.results.lookup import place
from sawtooth.run import Run, is_saved, table_digests, unsaved
from sawtooth.run.pack import RUNS
from sawtooth.study import Study, run_study
from sawtooth.study import batches as plan
from sawtooth.study.result import StudyResult
from sawtooth.study.store import FORMAT
from waiting import until

POINTS = 300


def short(points=POINTS, **changes):
    rtts = [f"{1 + number / 100:.2f} ms" for number in range(points)]
    scenario = {"duration": "10 ms", "interval": "10 ms", "path": {"rate": "10 Mbit/s", "queue": "1 bdp"}}
    return Study.from_dict({"name": "short", "scenario": scenario | changes, "vary": {"path.rtt": rtts}})


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    return run_study(short(), out=tmp_path_factory.mktemp("packed"), jobs=2, quiet=True)


@pytest.fixture
def copied(packed, tmp_path):
    directory = tmp_path / "short" / packed.directory.name
    shutil.copytree(packed.directory, directory)
    return directory


def unfinished(directory):
    """Makes a study's results unfinished, and returns their description."""
    description = read_description(directory / "study.json", FORMAT) | {"finished": None}
    write_description(directory / "study.json", description)
    return description


def points_of(directory):
    return [directory / "points" / one["id"] for one in json.loads((directory / "study.json").read_text())["points"]]


def test_each_run_is_the_one_that_the_engine_makes(packed):
    assert sorted(int(one.name) for one in (packed.directory / "packs").iterdir()) == list(range(-(-POINTS // RUNS)))
    assert not list((packed.directory / "points").iterdir())
    for at in (0, RUNS - 1, RUNS, POINTS - 1):
        point = packed.study.points()[at]
        made, saved = Sim().run(point.scenario), packed.run(packed.places[at])
        assert saved.scenario == point.scenario
        assert saved.meta | {"wall_s": 0} == made.meta | {"wall_s": 0}
        assert list(saved.tables) == sorted(made.tables)
        for name in made.tables:
            assert saved.tables[name].equals(made.tables[name]), name


def test_the_tables_are_those_of_runs_that_are_read_again(packed):
    again = StudyResult.load(packed.directory)
    for name in ("summary", "details", "samples", "shares"):
        assert getattr(again, name).equals(getattr(packed, name)), name
    assert again.limits == packed.limits
    assert again.warnings == packed.warnings


def test_the_number_of_workers_changes_nothing(packed, tmp_path):
    alone = run_study(short(), out=tmp_path, jobs=1, quiet=True)
    for name in ("summary.csv", "table.csv"):
        assert (alone.directory / name).read_bytes() == (packed.directory / name).read_bytes()
    tables = sorted(path.relative_to(packed.directory) for path in packed.directory.glob("packs/*/*.parquet"))
    assert len(tables) >= POINTS // RUNS
    for path in tables:
        assert (alone.directory / path).read_bytes() == (packed.directory / path).read_bytes()


def test_few_points_and_long_ones_have_directories(tmp_path):
    few = run_study(short(plan.LEAST - 1), out=tmp_path, jobs=1, quiet=True)
    assert not (few.directory / "packs").exists()
    assert len(list((few.directory / "points").iterdir())) == plan.LEAST - 1
    assert json.loads((few.directory / "study.json").read_text())["format"] == 1
    (point, *_) = short(1, path={"rate": "10 Gbit/s", "queue": "1 bdp"}, duration="1 s").points()
    assert not plan.is_short(point.scenario)
    groups = plan.groups(POINTS, {RUNS + 1}, "sim")
    assert [len(one) for one in groups] == [RUNS, *[1] * RUNS, RUNS, RUNS, POINTS - 4 * RUNS]
    assert [number for group in groups for number in group] == list(range(POINTS))
    assert plan.groups(POINTS, set(), "kernel") == [[number] for number in range(POINTS)]


def test_a_run_is_named_by_its_directory_and_verified(packed, copied):
    point = points_of(copied)[70]
    assert is_saved(point)
    assert not is_saved(point.with_name("70-other"))
    assert place(point) == point
    assert len(set(table_digests(points_of(copied)[:2], "queues"))) == 2
    assert len(set(table_digests([point, packed.directory / "points" / point.name], "queues"))) == 1
    (entry,) = listing(copied.parent.parent, verify=True)
    assert (entry.state, entry.done, entry.older) == ("whole", POINTS, False)


@pytest.mark.parametrize("name", ["pack.json", "runs.jsonl", "intervals.parquet"])
def test_damage_is_found_and_after_its_fix_the_study_continues(packed, copied, name):
    unfinished(copied)
    path = copied / "packs" / "1" / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    (entry,) = listing(copied.parent.parent, verify=True)
    assert (entry.state, entry.engine, entry.points) == ("damaged", "sim", POINTS)
    assert entry.done == (POINTS - RUNS if name == "pack.json" else POINTS)
    fix = f"delete {path.parent} and run the study again: it computes the runs that were there"
    with expected_error(code="not-a-result", file=str(path), fix=fix):
        Run.load(points_of(copied)[RUNS])
    with expected_error(code="not-a-result", file=str(path), fix=fix):
        run_study(short(), out=copied.parent.parent, jobs=1, quiet=True)
    shutil.rmtree(path.parent)
    again = run_study(short(), out=copied.parent.parent, jobs=1, quiet=True)
    assert again.directory == copied
    assert again.details.equals(packed.details)


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({"runs": ["064-a", "064-a"]}, "two runs have the same name"),
        ({"rows": {"intervals": "x"}}, "a line is not a run"),
        ({"rows": {"intervals": -1}}, "a line is not a run"),
        ({"rows": {"intervals": 10**9}}, "a line is not a run"),
        ({"rows": {"../other": 1}}, "a line is not a run"),
    ],
)
def test_a_pack_that_says_something_else_of_itself_is_refused(copied, said, reason):
    where = copied / "packs" / "1"
    described = read_description(where / "pack.json", 1)
    if "rows" in said:
        lines = [json.loads(line) | said for line in (where / "runs.jsonl").read_text().splitlines()]
        (where / "runs.jsonl").write_text("\n".join(map(json.dumps, lines)))
        described["files"]["runs.jsonl"] = checksum(where / "runs.jsonl")
    else:
        described["runs"][:2] = [points_of(copied)[RUNS].name] * 2
    write_description(where / "pack.json", described)
    with expected_error(code="not-a-result", match=reason):
        Run.load(points_of(copied)[RUNS])


def test_a_run_whose_pack_is_missing_or_lacks_it_is_an_error_about_the_pack(copied):
    point, path = points_of(copied)[RUNS], copied / "packs" / "1" / "pack.json"
    described = read_description(path, 1)
    described["runs"][0] = "64-other"
    write_description(path, described)
    with expected_error(code="not-a-result", file=str(path), match=f"has no run {point.name}"):
        Run.load(point)
    shutil.rmtree(path.parent)
    with expected_error(code="not-a-result", file=str(path), match="there is no such file"):
        Run.load(point)


def test_rows_of_another_run_than_the_list_says_are_damage(copied):
    """The list gives one run's row to the next; the table itself says whose each row is."""
    where = copied / "packs" / "1"
    lines = [json.loads(line) for line in (where / "runs.jsonl").read_text().splitlines()]
    lines[0]["rows"]["intervals"], lines[1]["rows"]["intervals"] = 0, 2
    (where / "runs.jsonl").write_text("\n".join(map(json.dumps, lines)))
    described = read_description(where / "pack.json", 1)
    described["files"]["runs.jsonl"] = checksum(where / "runs.jsonl")
    write_description(where / "pack.json", described)
    with expected_error(code="not-a-result", file=str(where / "intervals.parquet"), match="other rows"):
        Run.load(points_of(copied)[RUNS + 1])


def test_whether_a_point_is_saved_reads_only_the_names(copied):
    (copied / "packs" / "1" / "runs.jsonl").unlink()
    assert is_saved(points_of(copied)[RUNS])


def test_of_many_points_those_without_a_run_are_found_at_once(copied):
    names = [point.name for point in points_of(copied)]
    Run.load(points_of(copied)[RUNS + 1]).save(copied / "points" / "99999-alone")
    shutil.rmtree(copied / "packs" / "1")
    assert unsaved(copied, [*names, "99999-alone", "70-other", "other"]) == {
        *names[RUNS : 2 * RUNS],
        "70-other",
        "other",
    }
    assert all(is_saved(copied / "points" / one) == (one not in unsaved(copied, names)) for one in names)


def test_series_of_probes_are_read_from_packs(tmp_path):
    given = short(260, probes=[{"count": 5, "interval": "1 ms"}])
    made = run_study(given, out=tmp_path, jobs=2, quiet=True)
    assert (made.directory / "packs").is_dir()
    every = read_series(made.directory)
    assert len(every) == 260
    one = load_series(made.directory / "points" / made.places[70].id)
    probes = made.run(made.places[70]).tables["probes"]
    for found in (one, every[70]):
        np.testing.assert_array_equal(found.rtt_s, probes["rtt_s"])
    for name in ("points", "packs"):
        shutil.rmtree(made.directory / name)
    (made.directory / "points").mkdir()
    with expected_error(code="not-a-series", fix="run the study to its end"):
        load_series(made.directory)


def test_a_pack_that_workers_saved_elsewhere_is_not_counted(tmp_path):
    class Elsewhere(ThreadPoolExecutor):
        def submit(self, function, tasks):
            moved = [dataclasses.replace(task, directory=tmp_path / "other") for task in tasks]
            return super().submit(function, moved)

    (tmp_path / "other" / "points").mkdir(parents=True)
    with Elsewhere(1) as executor, pytest.raises(Misfit, match="was not saved"):
        run_study(short(), out=tmp_path / "out", executor=executor, quiet=True)


def test_half_a_batch_in_directories_is_continued_with_a_pack_of_the_rest(packed, copied):
    description = unfinished(copied)
    write_description(copied / "study.json", description | {"format": 1})
    given = points_of(copied)
    runs = {point: Run.load(point) for point in given[:RUNS:2]}
    for number in (0, 1):
        shutil.rmtree(copied / "packs" / str(number))
    for point, run in runs.items():
        run.save(point)
    again = run_study(short(), out=copied.parent.parent, jobs=1, quiet=True)
    assert again.directory == copied
    assert again.details.equals(packed.details)
    assert read_description(copied / "packs" / "0" / "pack.json", 1)["runs"] == [one.name for one in given[1:RUNS:2]]
    assert read_description(copied / "study.json", FORMAT)["format"] == FORMAT


def test_a_query_joins_each_row_with_its_run(packed):
    pytest.importorskip("duckdb")
    from sawtooth.results.query import query

    home = packed.directory.parent.parent
    found = query("SELECT point, goodput_bps, path_rtt FROM intervals ORDER BY point", home).to_pylist()
    assert [one["point"] for one in found] == [one.id for one in packed.places]
    assert [one["path_rtt"] for one in found] == [one.key["path_rtt"] for one in packed.places]
    means = packed.summary[packed.summary["seed"] != "all"]["mean_mbps"].tolist()
    assert [one["goodput_bps"] / 1e6 for one in found] == pytest.approx(means)
    (columns,) = query("SELECT count(*) AS rows FROM intervals", home).to_pylist()
    assert columns == {"rows": POINTS}


def test_a_query_leaves_out_a_pack_whose_table_is_missing(copied):
    pytest.importorskip("duckdb")
    from sawtooth.results.query import query

    (copied / "packs" / "1" / "intervals.parquet").unlink()
    problems = []
    (found,) = query("SELECT count(*) AS n FROM intervals", copied.parent.parent, problem=problems.append).to_pylist()
    assert found == {"n": POINTS - RUNS}
    assert [one.endswith("pack 1, is left out: intervals.parquet is missing") for one in problems] == [True]


@pytest.mark.parametrize(
    ("changes", "paused"),
    [({}, True), ({"executor": ThreadPoolExecutor}, False), ({"long": True}, False)],
    ids=["short", "executor", "a long point"],
)
def test_the_collector_pauses_only_for_short_runs_of_own_workers(changes, paused, tmp_path):
    seen = []
    rtts = [f"{1 + number / 100:.2f} ms" for number in range(POINTS)]
    durations = ["10 ms"] * (POINTS - 1) + ["100 s" if "long" in changes else "10 ms"]
    cases = [
        {"key": {"at": at}, "set": {"path.rtt": rtt, "duration": lasts}}
        for at, (rtt, lasts) in enumerate(zip(rtts, durations, strict=True))
    ]
    given = {"name": "cases", "scenario": short().scenario, "cases": cases}
    with contextlib.ExitStack() as stack:
        executor = stack.enter_context(changes["executor"](1)) if "executor" in changes else None
        run_study(
            Study.from_dict(given),
            engine="model",
            out=tmp_path,
            jobs=None if executor else 1,
            executor=executor,
            quiet=True,
            ending=lambda _: seen.append(gc.isenabled()),
        )
    assert seen == [not paused]


def test_after_a_kill_the_same_study_continues_with_the_packs_that_are_whole(packed, tmp_path):
    program = tmp_path / "program.py"
    given = json.dumps(short().to_dict())
    program.write_text(
        f"import json, threading\nfrom concurrent.futures import ThreadPoolExecutor\n"
        f"from sawtooth.study import Study, run_study, worker\n"
        f"save, saved = worker.save_together, []\n"
        f"def held(runs):\n"
        f"    threading.Event().wait(600 if len(saved) == 2 else 0)\n"
        f"    save(runs)\n"
        f"    saved.append(runs)\n"
        f"worker.save_together = held\n"
        f"study = Study.from_dict(json.loads({given!r}))\n"
        f"run_study(study, out={str(tmp_path / 'out')!r}, executor=ThreadPoolExecutor(1), quiet=True)\n"
    )
    roots = [str(Path(__file__).parents[2] / "src"), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, roots))}
    running = subprocess.Popen([sys.executable, str(program)], env=environment, start_new_session=True)
    try:
        until(lambda: len(list(tmp_path.glob("out/short/2*/packs/[0-9]*"))) == 2 or running.poll() is not None)
        assert running.poll() is None
    finally:
        if running.poll() is None:
            os.killpg(running.pid, signal.SIGKILL)
        running.wait()
    (directory,) = tmp_path.glob("out/short/2*")
    before = {path: path.stat().st_mtime_ns for path in directory.glob("packs/[0-9]*/pack.json")}
    assert len(before) == 2
    # What a worker leaves that is killed while it writes.
    half = directory / "packs" / ".2.here-1.part"
    half.mkdir(exist_ok=True)
    (half / "pack.json").write_text("{")
    result = run_study(short(), out=tmp_path / "out", jobs=2, quiet=True)
    assert result.directory == directory
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert not list(result.directory.glob("packs/.*"))
    assert result.details.equals(packed.details)


def test_a_point_that_fails_leaves_those_before_it(tmp_path, monkeypatch):
    from sawtooth.errors import SawtoothError
    from sawtooth.study.worker import Task, run_points

    points = short().points()[:3]
    run, seen = Sim.run, []

    def failing(self, scenario, **more):
        seen.append(scenario)
        if len(seen) == 3:
            raise SawtoothError("core-failed", "made to fail")
        return run(self, scenario, **more)

    monkeypatch.setattr(Sim, "run", failing)
    (tmp_path / "points").mkdir()
    outcomes = run_points([Task(one.id, one.scenario.to_dict(), "sim", tmp_path) for one in points])
    assert {one.point: (one.saved, getattr(one.error, "code", None)) for one in outcomes} == {
        points[0].id: (True, None),
        points[1].id: (True, None),
        points[2].id: (False, "core-failed"),
    }
    assert sorted(one.name for one in (tmp_path / "points").iterdir()) == [points[0].id, points[1].id]
    assert not (tmp_path / "packs").exists()


def test_after_a_failure_to_save_the_pack_the_first_error_is_told(tmp_path, monkeypatch):
    from sawtooth.errors import SawtoothError
    from sawtooth.study import worker

    def full(*given):
        raise SawtoothError("disk-full", f"failure {len(failures)}", file=failures.append(given))

    failures = []
    points = short().points()[:3]
    tasks = [worker.Task(one.id, one.scenario.to_dict(), "sim", tmp_path) for one in points]
    (tmp_path / "points").mkdir()
    monkeypatch.setattr(worker, "save_together", full)
    with monkeypatch.context() as patch:
        patch.setattr(Run, "save", full)
        outcomes = worker.run_points(tasks)
    assert [one.saved for one in outcomes] == [False] * 3
    assert outcomes[-1].error.message == "failure 0"
    assert len(failures) == 2
    assert [one.saved for one in worker.run_points(tasks)] == [True] * 3
    assert [one.saved for one in worker.run_points(tasks)] == [True] * 3


def test_a_run_with_other_columns_is_saved_alone(tmp_path):
    from sawtooth.run import save_together

    engine = Sim()
    first, second, third = (engine.run(point.scenario) for point in short().points()[:3])
    second.tables["intervals"] = second.tables["intervals"].assign(more=1)
    given = {tmp_path / "points" / f"{at}-x": run for at, run in enumerate((first, second, third))}
    save_together(given)
    assert [one.name for one in (tmp_path / "points").iterdir()] == ["1-x"]
    for directory, run in given.items():
        assert Run.load(directory).tables["intervals"].equals(run.tables["intervals"])
