"""SQL over all results: which views exist, which columns they have, and that nothing is written."""

import builtins
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from expected_error import expected_error
from fake_engine import Fake, quick, study
from sawtooth import Scenario
from sawtooth.cli.program import status_of
from sawtooth.cli.query_command import MOST_PROBLEMS
from sawtooth.engines.sim import Sim
from sawtooth.errors import SawtoothError, install_extra
from sawtooth.results.query import query, views


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two studies with different axes, in a directory whose name contains pattern characters, and a saved run beside
    them.
    """
    out = tmp_path_factory.mktemp("it's [a] place") / "results"
    quick(out=out)
    # Its column has the name of a column in every view.
    vary = {"flows.cc": ["bbr", "reno"]}
    quick(study(name="other", vary=vary, columns={"point": {"field": "flows.cc"}}), out=out)
    scenario = study().points()[0].scenario
    Fake().run(scenario).save(out / "mine")
    return out


def rows(home: Path, sql: str, **options) -> list[dict]:
    return query(sql, home, **options).to_pylist()


def refused(home: Path, sql: str) -> SawtoothError:
    with expected_error(code="bad-query") as caught:
        query(sql, home)
    return caught.value


@pytest.mark.usefixtures("patience")
def test_summaries_of_all_results_are_one_table_with_the_results_names(home: Path) -> None:
    found = rows(home, "SELECT study, count(*) AS n FROM summary WHERE seed = 'all' GROUP BY study ORDER BY study")
    assert found == [{"study": "other", "n": 2}, {"study": "small", "n": 4}]
    (one,) = rows(home, "SELECT DISTINCT result FROM summary WHERE study = 'small'")
    assert (home / one["result"] / "summary.csv").is_file()


def test_fields_of_a_scenario_are_numbers_by_their_own_names(tmp_path: Path) -> None:
    for at, loss in enumerate(("0.5%", "1%", "2%")):
        path = {"rate": "100 Mbit/s", "rtt": "20 ms", "loss": loss, "queue": "1 bdp" if at else "64 KiB"}
        Fake().run(Scenario.from_dict({"duration": "2 s", "path": path})).save(tmp_path / str(at))
    sql = 'SELECT path.loss, path.rate, path.rtt, path.queue, "path.loss" AS text FROM points'
    found = rows(tmp_path, f"{sql} WHERE path.loss > 0.007 ORDER BY path.loss DESC")
    assert found == [
        {"loss": loss, "rate": 1e8, "rtt": 0.02, "queue": "1 bdp", "text": text}
        for loss, text in ((0.02, "2%"), (0.01, "1%"))
    ]
    # A column with more than one kind of unit is text.
    assert rows(tmp_path, "SELECT DISTINCT path.queue FROM points WHERE path.loss < 0.007") == [{"queue": "64 KiB"}]


def test_a_column_that_is_called_as_a_table_of_the_scenario_stays_what_it_is(home: Path) -> None:
    found = rows(home, "SELECT DISTINCT path, chain.loss FROM points WHERE study = 'small' ORDER BY chain.loss")
    assert found == [{"path": "symmetric", "loss": loss} for loss in (0.0, 0.01, 0.02, 0.03)]


def test_tables_of_runs_have_result_point_seed_and_what_varied(home: Path) -> None:
    found = rows(
        home, "SELECT loss_percent, seed, avg(goodput_bps) AS bps FROM intervals WHERE study = 'small' GROUP BY ALL"
    )
    means = {(one["loss_percent"], one["seed"]): one["bps"] for one in found}
    assert sorted(means) == [(loss, seed) for loss in range(4) for seed in (1, 2)]
    assert means[0, 1] == pytest.approx(905e6, rel=0.01)


def test_what_did_not_vary_in_a_study_is_empty_and_a_saved_run_has_its_own_name(home: Path) -> None:
    found = rows(home, "SELECT DISTINCT result, study, loss_percent FROM intervals WHERE study <> 'small' ORDER BY 1")
    assert [one["loss_percent"] for one in found] == [None, None]
    assert found[0]["result"] == "mine"


def test_points_have_the_scenarios_fields(home: Path) -> None:
    found = rows(home, 'SELECT DISTINCT "chain.loss", "flows.0.cc" FROM points WHERE study = \'small\' ORDER BY 1')
    assert found == [{"chain.loss": f"{loss}%", "flows.0.cc": "cubic"} for loss in range(4)]


def test_results_themselves_are_a_view(home: Path) -> None:
    found = rows(home, "SELECT study, kind, state FROM results ORDER BY study, kind")
    assert {one["state"] for one in found} == {"whole"}
    assert sorted(one["kind"] for one in found) == ["run", "study", "study"]


def test_only_what_is_there_is_listed_with_its_columns(home: Path) -> None:
    found = views(home)
    assert {"results", "points", "summary", "details", "published", "intervals", "tcp_info"} <= set(found)
    assert "pages" not in found
    assert found["intervals"][:5] == ["result", "study", "engine", "point", "seed"]


@pytest.mark.parametrize(
    "sql",
    [
        "",
        "-- nothing",
        "SELEKT 1",
        "SELECT * FROM nothing",
        "SELECT nothing FROM summary",
        "SELECT 1; SELECT 2",
        "CREATE TABLE x AS SELECT 1",
        "DROP VIEW intervals",
        "COPY (SELECT 1) TO '{home}/x.csv'",
        "EXPORT DATABASE '{home}/x'",
        "ATTACH '{home}/x.db'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "SELECT * FROM read_text('/etc/hostname')",
        "SELECT * FROM read_csv('https://example.org/x.csv')",
        "SELECT * FROM glob('/*')",
        "SELECT * FROM '/etc/hostname'",
        "SELECT 'a'::INTEGER",
        "SELECT 1" + " " * 100_000,
    ],
)
def test_what_is_no_question_of_results_is_refused_and_writes_nothing(home: Path, sql: str) -> None:
    before = sorted(home.rglob("*"))
    refused(home, sql.format(home=home))
    assert sorted(home.rglob("*")) == before


def test_an_unknown_table_is_answered_by_those_that_there_are(home: Path) -> None:
    assert "summary" in str(refused(home, "SELECT * FROM sumary").fix)


def test_a_damaged_table_is_reported_and_a_damaged_result_left_out(home: Path, tmp_path: Path) -> None:
    mine = Path(shutil.copytree(home, tmp_path / "results", symlinks=True))
    path = next(mine.glob("small/2*/points/*/intervals.parquet"))
    path.write_bytes(b"PAR1 no table PAR1")
    assert "--verify" in str(refused(mine, "SELECT count(*) FROM intervals").fix)
    next(mine.glob("small/2*/study.json")).write_text("{")
    with pytest.warns(match=r"small/\S+ is left out: study.json: cannot be read"):
        assert rows(mine, "SELECT DISTINCT study FROM summary") == [{"study": "other"}]


@pytest.mark.parametrize("sql", [["SELECT DISTINCT study FROM summary"], []], ids=["query", "views"])
def test_the_command_names_what_it_leaves_out_and_its_exit_status_is_5(
    home: Path, tmp_path: Path, sql: list[str], capsys
) -> None:
    mine = Path(shutil.copytree(home, tmp_path / "results", symlinks=True))
    next(mine.glob("small/2*/study.json")).write_text("{")
    capsys.readouterr()
    assert status_of(["query", *sql, "--in", str(mine), "--csv"]) == 5
    said = capsys.readouterr()
    assert said.err.startswith("problem: small/2")
    assert said.err.count("\n") == 1
    assert "is left out: study.json: cannot be read" in said.err
    assert ("small" in said.out, "other" in said.out) == (False, bool(sql))


def test_a_point_with_a_damaged_description_is_left_out_of_the_points(home: Path, tmp_path: Path) -> None:
    mine = Path(shutil.copytree(home, tmp_path / "results", symlinks=True))
    every = query("SELECT point FROM points WHERE study = 'small'", mine).num_rows
    path = sorted(mine.glob("small/2*/points/*/run.json"))[1]
    path.write_text("{")
    problems: list[str] = []
    found = query("SELECT point FROM points WHERE study = 'small'", mine, problem=problems.append)
    assert found.num_rows == every - 1
    assert path.parent.name not in found["point"].to_pylist()
    assert [path.parent.name in one for one in problems] == [True]


def test_a_run_whose_table_is_missing_is_left_out_and_the_exit_status_is_5(home: Path, tmp_path: Path, capsys) -> None:
    mine = Path(shutil.copytree(home, tmp_path / "results", symlinks=True))
    path = sorted(mine.glob("small/2*/points/*/intervals.parquet"))[1]
    sql = "SELECT count(DISTINCT point) AS n FROM intervals WHERE study = 'small'"
    assert rows(mine, sql) == [{"n": 8}]
    path.unlink()
    capsys.readouterr()
    assert status_of(["query", sql, "--in", str(mine), "--csv"]) == 5
    said = capsys.readouterr()
    assert said.out == "n\n7\n"
    (problem,) = said.err.splitlines()
    assert problem.endswith(f"point {path.parent.name}, is left out: intervals.parquet is missing")
    (path.parent / "run.json").write_text("{")
    with pytest.warns(match=f"{path.parent.name}, is left out: cannot be read"):
        assert rows(mine, sql) == [{"n": 7}]


def test_a_run_without_a_table_is_no_problem(home: Path, tmp_path: Path) -> None:
    probed = Scenario.from_dict({"duration": "1 s", "probes": [{"interval": "100 ms"}]})
    mine = Path(shutil.copytree(home, tmp_path / "results", symlinks=True))
    Sim().run(probed).save(mine / "probed")
    problems: list[str] = []
    found = query("SELECT DISTINCT result FROM probes", mine, problem=problems.append)
    assert (found.to_pylist(), problems) == ([{"result": "probed"}], [])


def test_of_many_results_that_are_left_out_the_first_are_named(home: Path, tmp_path: Path, capsys) -> None:
    for number in range(MOST_PROBLEMS + 2):
        shutil.copytree(home / "mine", tmp_path / str(number))
        (tmp_path / str(number) / "run.json").write_text("{")
    assert status_of(["query", "SELECT * FROM results", "--in", str(tmp_path)]) == 5
    said = capsys.readouterr().err.splitlines()
    assert len(said) == MOST_PROBLEMS + 1
    assert said[-1] == f"problem: 2 more are left out: sawtooth results --verify --in {tmp_path}"


def test_an_empty_directory_has_views_without_rows_or_none(tmp_path: Path) -> None:
    assert rows(tmp_path, "SELECT * FROM results") == []
    assert rows(tmp_path, "SELECT * FROM points") == []
    refused(tmp_path, "SELECT * FROM intervals")


@pytest.mark.parametrize("ending", ["csv", "json", "parquet"])
def test_the_command_writes_what_it_prints(home: Path, ending: str, tmp_path: Path, capsys) -> None:
    import pandas as pd

    target = tmp_path / f"x.{ending}"
    sql = "SELECT study, mean_mbps FROM summary WHERE seed = 'all' ORDER BY ALL"
    assert status_of(["query", sql, "--in", str(home), "--out", str(target)]) == 0
    capsys.readouterr()
    read = {"csv": pd.read_csv, "json": pd.read_json, "parquet": pd.read_parquet}[ending](target)
    assert len(read) == 6
    if ending != "parquet":
        assert status_of(["query", sql, "--in", str(home), f"--{ending}"]) == 0
        assert capsys.readouterr().out == target.read_text()
        both = ["--out", str(tmp_path / f"both.{ending}"), f"--{ending}"]
        assert status_of(["query", sql, "--in", str(home), *both]) == 0
        assert capsys.readouterr().out == target.read_text() == (tmp_path / f"both.{ending}").read_text()


@pytest.mark.parametrize("form", ["table", "csv", "json", "parquet"])
def test_columns_of_one_name_are_all_there(home: Path, form: str, tmp_path: Path, capsys) -> None:
    import pandas as pd

    target = tmp_path / "x.parquet"
    how = {"table": [], "parquet": ["--out", str(target)]}.get(form, [f"--{form}"])
    assert status_of(["query", "SELECT 1 a, 2 a, 3 a_1, 4 a", "--in", str(home), *how]) == 0
    told = capsys.readouterr().out
    found = {
        "table": lambda: [line.split() for line in told.splitlines()],
        "csv": lambda: [line.split(",") for line in told.splitlines()],
        "json": lambda: [list(json.loads(told)[0]), [str(one) for one in json.loads(told)[0].values()]],
        "parquet": lambda: [list(pd.read_parquet(target)), [str(one) for one in pd.read_parquet(target).iloc[0]]],
    }[form]()
    assert found == [["a", "a_2", "a_1", "a_3"], ["1", "2", "3", "4"]]


def test_sums_and_decimals_are_numbers_in_json(home: Path, capsys) -> None:
    sql = "SELECT sum(points) s, 0.25 q, [1.50] l, 2::HUGEINT * 9223372036854775807 big FROM results"
    assert status_of(["query", sql, "--in", str(home), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [{"s": 13, "q": 0.25, "l": [1.5], "big": 18446744073709551614}]


def test_the_command_shows_a_table_and_without_sql_the_views(home: Path, capsys) -> None:
    assert status_of(["query", "SELECT study, 0.25 AS x, NULL AS y FROM results", "--in", str(home)]) == 0
    assert capsys.readouterr().out.splitlines()[0].split() == ["study", "x", "y"]
    assert status_of(["query", "--in", str(home), "--json"]) == 0
    assert "summary" in json.loads(capsys.readouterr().out)


def test_a_table_that_is_too_wide_continues_below_by_the_numbers_of_its_rows(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Empty columns are omitted there."""
    wide = ", ".join(f"'{letter * 12}' AS {letter}, NULL AS no_{letter}" for letter in "abcde")
    asked = ["query", f"SELECT {wide} FROM range(2)", "--in", str(home)]
    monkeypatch.setenv("COLUMNS", "50")
    assert status_of(asked) == 0
    told = capsys.readouterr().out
    tables = [[line.split() for line in part.splitlines()] for part in told.split("\n\n")]
    assert [one[0] for one in tables] == [["row", "a", "b", "c"], ["row", "d", "e"]]
    assert [line[0] for line in tables[1][1:3]] == ["1", "2"]
    assert " ".join(told.split()).endswith("without any value: no_a, no_b, no_c, no_d, no_e")
    monkeypatch.setenv("COLUMNS", "200")
    assert status_of(asked) == 0
    told = capsys.readouterr().out
    assert "no_e" in told.splitlines()[0]
    assert not told.startswith("row")


def test_without_duckdb_the_extra_is_named(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = builtins.__import__

    def absent(name, *arguments, **options):
        if name == "duckdb":
            raise ImportError(name)
        return known(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", absent)
    with expected_error(code="tool-missing", fix=install_extra("query")):
        query("SELECT 1", home)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.usefixtures("patience")
def test_a_signal_ends_a_question_that_would_take_years(home: Path, number: int) -> None:
    sql = "SELECT count(*) FROM range(100000000000) a, range(1000) b WHERE a.range % 7 = b.range"
    command = [sys.executable, "-c", "from sawtooth.cli import main; main()", "query", sql, "--in", str(home)]
    # If the tests are a background job, child processes ignore SIGINT. Sent well within the question, since a whole
    # one takes less.
    short = [*command[:4], "SELECT 1", *command[5:]]
    before = os.times().children_user
    subprocess.run(short, check=True, stdout=subprocess.DEVNULL)
    enough_s = 2 * (os.times().children_user - before)
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, preexec_fn=_heed)
    try:
        while psutil.Process(process.pid).cpu_times().user < enough_s:
            assert process.poll() is None
            time.sleep(0.1)
        process.send_signal(number)
        _, said = process.communicate(timeout=200)
    finally:
        process.kill()
    assert process.returncode == 130
    assert "error[interrupted]" in said


def _heed() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
