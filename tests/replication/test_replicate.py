"""Replications: a folder with cells is read, run and judged; each mistake in it is one clear error."""

import json
import math
from pathlib import Path

import pytest
from click.testing import CliRunner

from expected_error import expected_error
from sawtooth.cli.commands import sawtooth
from sawtooth.cli.program import status_of
from sawtooth.replication import Replication, evaluate, found, shipped, words, write_page
from sawtooth.replication.evaluation import Row
from sawtooth.replication.replication import Compare
from sawtooth.study import Study, StudyResult, run_study

TOML = """
title = "Two flows"
source = "nobody"
data = "nowhere"
licence = "none stated"
seeds = [1, 2]

[scenario]
duration = "2 s"
path = { rtt = "10 ms" }
flows = [{ name = "one" }, { name = "two" }]

[cells]
keys = ["rate_mbit", "cc", "aqm"]
set = { "path.rate" = "{rate_mbit} Mbit/s", "flows.one.cc" = "{cc}", "flows.two.cc" = "{cc}" }

[[cells.also]]
where = { aqm = ["codel", "pie"] }
set = { "path.queue" = { kind = "{aqm}" } }

[[compare]]
column = "sum_mbps"
spread = "sum_sd"

[[compare]]
column = "one_kbps"
flow = "one"
times = 0.001

[[differs]]
where = { cc = "reno" }
cause = "it is made up"

[[left_out]]
where = { aqm = "sfb" }
why = "not simulated"

[figure]
x = "rate_mbit"
series = "cc"
"""
CSV = """# From nowhere.
rate_mbit,cc,aqm,sum_mbps,sum_sd,one_kbps
5,reno,none,4.5,0.5,1
10,reno,none,9.3,0.1,
5,cubic,codel,4.6,0.3,2300
10,cubic,codel,9.3,0,4650
10,cubic,sfb,9.3,0,
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "two-flows"
    place.mkdir()
    (place / "replication.toml").write_text(TOML)
    (place / "cells.csv").write_text(CSV)
    return place


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> StudyResult:
    place = tmp_path_factory.mktemp("run") / "two-flows"
    place.mkdir()
    (place / "replication.toml").write_text(TOML)
    (place / "cells.csv").write_text(CSV)
    return run_study(Replication.load(place).study(), out=place / "out", jobs=1, quiet=True)


def test_cells_become_the_points_of_a_study_with_their_settings(folder: Path) -> None:
    replication = Replication.load(folder)
    study = replication.study()
    points = study.points()
    assert len(points) == 4 * 2
    assert points[0].key == {"rate_mbit": 5, "cc": "reno", "aqm": "none"}
    assert points[0].scenario.flows[0].cc == "reno"
    assert points[-1].scenario.to_dict()["path"]["queue"]["kind"] == "codel"
    assert replication.left_out[0][1] == "not simulated"
    assert Study.from_dict(study.to_dict()) == study


def test_only_some_cells_can_be_chosen(folder: Path) -> None:
    study = Replication.load(folder).study({"cc": ["reno"], "rate_mbit": ["10"]})
    assert [point.key["rate_mbit"] for point in study.points(seeds=[1])] == [10]


@pytest.mark.usefixtures("patience")
def test_every_figure_is_judged_by_its_own_spread(folder: Path, result: StudyResult) -> None:
    found = evaluate(Replication.load(folder), result)
    # Four cells; three published figures for the column one_kbps.
    assert len(found.rows) == 4 + 3
    first = found.rows[0]
    assert first.published == 4.5
    assert first.ours == pytest.approx(4.5, abs=0.4)
    assert not math.isnan(first.ours_sd)
    wrong = found.worst[0]
    assert (wrong.published, wrong.cause) == (0.001, "it is made up")
    assert found.describe()["inside"] == found.inside == sum(row["inside"] for row in found.describe()["rows"])
    assert "it is made up" in words(found, 200)


@pytest.mark.parametrize(
    ("published", "spread", "ours", "inside"),
    [
        (100, 5, 109.9, True),
        (100, 5, 110.1, False),
        (100, 1, 104.9, True),
        (100, 1, 105.1, False),
        (100, math.nan, 95.1, True),
        (0, 0.1, 0.1, True),
        (100, 5, math.nan, False),
    ],
)
def test_inside_is_two_deviations_or_five_percent(published, spread, ours, inside) -> None:
    row = Row({}, Compare(column="x"), published, spread, () if math.isnan(ours) else (ours,), "not found")
    assert row.inside is inside


@pytest.mark.parametrize(
    ("spread", "each", "runs", "attainable"),
    [
        # Theirs is known: 10 allowed, an error of 5 * sqrt(2).
        (5, (100.0,), 1, math.erf(1)),
        # Ours otherwise, 10 over two seeds: 5 allowed, an error of 10 * sqrt(1.5).
        (math.nan, (100 - 50**0.5, 100 + 50**0.5), 1, math.erf(0.5 / 3**0.5)),
        (math.nan, (90.0, 90.0), 1, 1.0),
        (math.nan, (), 1, 1.0),
    ],
)
def test_what_a_perfect_simulator_would_have_inside(spread, each, runs, attainable) -> None:
    row = Row({}, Compare(column="x"), 100, spread, each, "not found", runs)
    assert row.attainable == pytest.approx(attainable)


@pytest.mark.usefixtures("patience")
def test_the_page_has_every_figure_and_loads_nothing(folder: Path, result: StudyResult) -> None:
    page = write_page(evaluate(Replication.load(folder), result)).read_text()
    assert "published figures" in page
    assert "it is made up" in page
    assert "not simulated" in page
    for name in ("published-against-ours", "cells-0"):
        assert (result.directory / "plots" / f"{name}.png").exists()
    assert len((result.directory / "replication.csv").read_text().splitlines()) == 1 + 7


@pytest.mark.usefixtures("patience")
def test_a_run_ends_with_the_summary_and_the_page(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder.parent)
    arguments = ["replicate", str(folder), "--only", "cc=cubic", "--seeds", "1", "--jobs", "1", "--quiet"]
    told = CliRunner().invoke(sawtooth, arguments)
    assert told.exit_code == 0
    assert "sum mbps" in told.output
    assert "replication.html" in told.output
    described = json.loads(CliRunner().invoke(sawtooth, [*arguments, "--json"]).output)
    assert {row["cc"] for row in described["rows"]} == {"cubic"}


@pytest.mark.usefixtures("patience")
def test_a_saved_run_is_an_ordinary_result_that_can_be_loaded(result: StudyResult) -> None:
    again = StudyResult.load(result.directory)
    assert list(again.pooled["cc"]) == ["reno", "reno", "cubic", "cubic"]


@pytest.mark.parametrize(
    ("old", "new", "code", "field"),
    [
        ("title =", "titel =", "unknown-field", "titel"),
        ('"flows.one.cc" = "{cc}"', '"flows.one.cc" = "{c}"', "unknown-name", "cells.set"),
        ('flow = "one"', 'spread = "nothing"', "unknown-name", "compare.1"),
        ('where = { cc = "reno" }', 'where = { cc = "renoo" }', "unknown-name", "differs.0.where"),
        ('where = { aqm = "sfb" }', 'where = { queue = "sfb" }', "unknown-name", "left_out.0.where"),
        ('series = "cc"', 'series = "sum_mbps"', "unknown-name", "figure"),
        ("[scenario]", '[scenario]\nnme = "x"', "unknown-field", "scenario.nme"),
    ],
)
def test_a_mistake_in_the_file_names_its_field(folder: Path, old: str, new: str, code: str, field: str) -> None:
    path = folder / "replication.toml"
    assert old in TOML
    path.write_text(TOML.replace(old, new, 1))
    with expected_error(code=code) as caught:
        Replication.load(folder).study()
    assert (caught.value.field or "").startswith(field)
    assert caught.value.fix


def test_two_cells_with_the_same_key_are_refused(folder: Path) -> None:
    (folder / "cells.csv").write_text(f"{CSV}5,reno,none,4.6,0.5,1\n")
    with expected_error(code="duplicate-name", field="cases.4.key"):
        Replication.load(folder).study()


@pytest.mark.parametrize("csv", ["", "a,b\n", "a,a\n1,2\n", "a,b\n1\n", 'a,b\n"1,2\n'])
def test_a_table_that_is_none_is_refused(folder: Path, csv: str) -> None:
    (folder / "cells.csv").write_text(csv)
    with expected_error(code="bad-published"):
        Replication.load(folder)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["nothing-like-it"], "file-not-found"),
        (["--all", "thousandeyes"], "bad-usage"),
        (["thousandeyes", "--only", "cc"], "bad-usage"),
        (["thousandeyes", "--only", "cc=vegas"], "unknown-name"),
        (["thousandeyes", "--only", "colour=red"], "unknown-name"),
        (["--all", "--only", "cc=bbr"], "bad-usage"),
        (["thousandeyes", "--set", "path.nothing=1"], "unknown-field"),
    ],
)
def test_a_wrong_call_is_one_error_with_its_code(arguments, code, capsys, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert status_of(["replicate", *arguments]) == 2
    assert f"[{code}]" in capsys.readouterr().err


@pytest.mark.parametrize("name", shipped())
def test_each_shipped_replication_makes_its_points(name: str) -> None:
    replication = Replication.load(found(name))
    assert replication.about.licence
    assert len(replication.study().points(seeds=[1])) == len(replication.cells) > 0


def test_a_shipped_studys_scenario_gets_the_fields_that_the_replication_sets() -> None:
    scenario = Replication.load(found("long-fat-path")).study().scenario
    assert scenario["host"] == {"receive_buffer": "12 MiB", "adv_win_scale": 1}
    assert scenario["path"]["rtt"] == "140 ms"


@pytest.mark.usefixtures("patience")
def test_without_a_name_all_are_listed() -> None:
    told = CliRunner().invoke(sawtooth, ["replicate"]).output
    assert all(name in told for name in shipped())
    described = json.loads(CliRunner().invoke(sawtooth, ["replicate", "--json"]).output)
    assert [one["name"] for one in described] == list(shipped())
