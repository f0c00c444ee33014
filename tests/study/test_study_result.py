"""Results of studies: the published columns, loaded as they were written, and nothing damaged accepted."""

import json
import math
import shlex
import shutil
import statistics
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from expected_error import expected_error
from fake_engine import Failing, Fixed, Late, quick, study
from sawtooth.errors import SawtoothError
from sawtooth.io.atomic_io import not_a_result, write_description
from sawtooth.report import write_report
from sawtooth.stats import independent
from sawtooth.study import Study, StudyResult, run_study, store
from sawtooth.study.terminal import MOST, _ends

COLUMNS = (
    "engine,cc,path,loss_percent,seed,count,mean_mbps,std_mbps,min_mbps,q25_mbps,q50_mbps,q75_mbps,max_mbps,"
    "published_mean_mbps"
)


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> StudyResult:
    """A finished study, shared read-only by tests."""
    return quick(out=tmp_path_factory.mktemp("results"))


@pytest.fixture
def copied(result: StudyResult, tmp_path: Path) -> Path:
    """The directory of a finished study, to damage."""
    return Path(shutil.copytree(result.directory, tmp_path / result.directory.name))


@pytest.mark.usefixtures("patience")
def test_the_summary_has_exactly_the_published_columns_a_row_a_run_and_a_row_for_all(result):
    lines = (result.directory / "summary.csv").read_text().splitlines()
    assert lines[0] == COLUMNS
    assert [line.split(",")[:6] for line in lines[1:4]] == [
        ["fake", "cubic", "symmetric", "0", "1", "30"],
        ["fake", "cubic", "symmetric", "0", "2", "30"],
        ["fake", "cubic", "symmetric", "0", "all", "60"],
    ]
    assert len(lines) == 1 + 4 * 3
    assert lines[4].endswith(",235.51")


def test_the_row_for_all_pools_the_samples_of_the_seeds(result):
    summary = result.summary
    one, two, both = (summary[summary["loss_percent"] == 0].iloc[at] for at in range(3))
    assert both["mean_mbps"] == pytest.approx((one["mean_mbps"] + two["mean_mbps"]) / 2)
    assert both["min_mbps"] == min(one["min_mbps"], two["min_mbps"])
    assert both["seed"] == "all"


def test_the_wider_table_has_intervals_changes_counters_and_published_figures(result):
    row = result.records[1]
    assert row["loss_percent"] == 1
    assert row["ci_low_mbps"] < row["mean_mbps"] < row["ci_high_mbps"]
    assert (row["from_s"], row["to_s"], row["ci_of"], row["ci_n"]) == (0, 30, "seeds", 2)
    assert row["change_percent"] == pytest.approx(-8, abs=0.1)
    assert row["retransmits"] == 30 * 10
    assert row["mean_srtt_ms"] == pytest.approx(2)
    assert row["rwnd_limited_percent"] == pytest.approx(25)
    assert row["published_std_mbps"] == 13.57
    assert row["published_change_percent"] == pytest.approx(-70.7, abs=0.05)
    assert row["ratio"] == pytest.approx(row["mean_mbps"] / 235.51)
    assert list(pd.read_csv(result.directory / "table.csv").columns) == list(result.details.columns)


def test_the_interval_over_seeds_is_of_their_means_and_that_of_one_seed_is_within_its_run(result):
    details = result.details
    one, two, both = (details[details["loss_percent"] == 0].iloc[at] for at in range(3))
    textbook = independent([one["mean_mbps"], two["mean_mbps"]])
    assert (both["ci_low_mbps"], both["ci_high_mbps"]) == pytest.approx((textbook.low, textbook.high))
    assert (one["ci_of"], one["ci_n"], both["ci_of"], both["ci_n"]) == ("run", 10, "seeds", 2)


def test_the_table_says_what_its_means_and_intervals_are_of(result, tmp_path):
    told = result.table()
    assert "means of 30 s from the start, slow start included; engine fake; 2 seeds per point" in told
    assert "95% interval and min … max: over the means of 2 seeds" in told
    assert "min … max" in told.splitlines()[4]
    told = quick(out=tmp_path, seeds=[1], overrides={"warmup": "5 s"}).table()
    assert "means of 25 s, the first 5 s omitted; engine fake; 1 seed per point" in told
    assert "95% interval: from batch means within one run; use --seeds to see the spread between runs" in told
    assert "min … max" not in told


@pytest.mark.usefixtures("patience")
def test_seeds_that_all_gave_the_same_are_reported_and_get_no_interval(tmp_path):
    result = quick(out=tmp_path, engine=Fixed())
    row = result.records[0]
    assert (row["ci_of"], row["ci_n"]) == ("same", 2)
    assert pd.isna(row["ci_low_mbps"])
    assert result.table().count("same for every seed") == 4
    assert "95% interval:" not in result.table()
    assert write_report(result).read_text().count("same for every seed") == 4


@pytest.mark.usefixtures("patience")
def test_a_beginning_that_changes_the_mean_is_reported_with_what_leaves_it_out(tmp_path):
    result = quick(out=tmp_path, engine=Late())
    (told,) = (warning for warning in result.warnings if "start of the run" in warning)
    assert told.startswith(
        "the start of the run changes the mean by 1% or more at 4 of 4 points, most at cc cubic, path symmetric, loss"
    )
    assert '--omit "3 s" discards them' in told
    assert told.replace('"', "&#34;") in write_report(result).read_text()
    later = quick(out=tmp_path, engine=Late(), overrides={"warmup": "3 s"}).warnings
    assert not [warning for warning in later if "start of the run" in warning]


def test_the_table_for_a_terminal_sets_the_published_means_beside_ours(result):
    text = result.table()
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


@pytest.mark.usefixtures("patience")
def test_results_are_loaded_as_they_were_made(result):
    again = StudyResult.load(result.directory)
    pd.testing.assert_frame_equal(again.details, result.details)
    pd.testing.assert_frame_equal(again.samples, result.samples)
    assert again.warnings == result.warnings
    assert again.published.source == result.published.source
    assert again.study == result.study
    assert again.table() == result.table()


@pytest.mark.parametrize("table", ["intervals", "tcp_info"])
def test_a_damaged_table_of_a_point_is_no_result_and_the_file_is_named(copied, result, table):
    path = copied / "points" / result.places[3].id / f"{table}.parquet"
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 1
    path.write_bytes(content)
    with expected_error(code="not-a-result", file=str(path)):
        StudyResult.load(copied)


@pytest.mark.parametrize("name", ["run.json", "intervals.parquet", "tcp_info.parquet"])
def test_the_fix_of_a_damaged_point_of_an_unfinished_study_continues_it(copied, result, tmp_path, name):
    out = tmp_path / "its out"
    home = out / "small" / copied.name
    shutil.copytree(copied, home)
    write_description(home / "study.json", store.describe(home) | {"finished": None})
    path = home / "points" / result.places[3].id / name
    path.write_bytes(path.read_bytes().replace(b"e", b"f", 1))
    fix = f"delete {shlex.quote(str(path.parent))} and run the same command again: it computes this point again"
    for _ in range(2):
        with expected_error(code="not-a-result", file=str(path), fix=fix):
            quick(out=out)
    shutil.rmtree(path.parent)
    again = quick(out=out)
    assert again.directory == home
    pd.testing.assert_frame_equal(again.details, result.details)


def test_published_figures_that_were_changed_in_a_result_are_no_result(copied):
    path = copied / "published.csv"
    path.write_text(path.read_text().replace("235.51", "236.51"))
    with expected_error(code="not-a-result", file=str(path)):
        StudyResult.load(copied)


def described(change, *, sealed=False):
    """A finished study's description after ``change``, which edits it in place, without its digest or ``sealed``."""

    def edit(directory):
        path = directory / "study.json"
        content = json.loads(path.read_text())
        if not sealed:
            del content["sha256"]
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
        described(lambda content: content.update(engine="kernel"), sealed=True),
        described(lambda content: content["points"][0].update(seed=7), sealed=True),
        lambda directory: (directory / "study.json").write_text("[]"),
        lambda directory: (directory / "study.json").unlink(),
    ],
)
def test_a_description_that_is_not_whole_is_no_result(copied, damage):
    damage(copied)
    with expected_error(code="not-a-result", file=str(copied / "study.json")) as caught:
        StudyResult.load(copied)
    assert caught.value.fix


def test_an_unfinished_study_is_no_result_and_is_reported(tmp_path):
    with pytest.raises(SawtoothError):
        quick(out=tmp_path, engine=Failing())
    (directory,) = (tmp_path / "small").iterdir()
    with expected_error(code="not-a-result", match="not finished") as caught:
        StudyResult.load(directory)
    assert "same command" in caught.value.fix


def test_small_losses_keep_their_digits_in_tables(tmp_path):
    columns = {"loss_percent": {"field": "chain.loss", "unit": "%"}}
    given = study(vary={"chain.loss": ["0%", "1e-7%", "2.5e-6%"]}, columns=columns, published=None)
    lines = (quick(given, out=tmp_path).directory / "summary.csv").read_text().splitlines()
    assert [line.split(",")[1] for line in lines[1::3]] == ["0", "0.0000001", "0.0000025"]


def test_a_warning_of_all_points_is_one_sentence(result):
    (warning,) = result.warnings
    assert warning.startswith("made up (all 8 points")


@pytest.mark.usefixtures("patience")
def test_what_was_set_by_hand_is_warned_of_beside_published_figures(tmp_path):
    result = quick(out=tmp_path, overrides={"chain.rtt": "5 ms"})
    assert any("chain.rtt = 5 ms" in warning for warning in result.warnings)
    assert result.description["overrides"] == {"chain.rtt": "5 ms"}


def test_no_table_holds_a_date(result):
    for path in result.directory.rglob("*.csv"):
        assert result.directory.name[:8] not in path.read_text()


def test_the_error_for_a_damaged_point_keeps_its_field(tmp_path: Path) -> None:
    with (
        expected_error(code="not-a-result", field="seed", match="delete"),
        store.results_directory(tmp_path, "small", "1", {"points": []}) as home,
    ):
        raise not_a_result("is damaged", home / "points" / "0" / "run.json").at(field="seed")


def test_of_many_points_the_terminal_shows_those_with_the_lowest_and_the_highest_goodput(tmp_path: Path) -> None:
    rates = [f"{at} Mbit/s" for at in range(1, MOST + 2)]
    given = {"name": "many", "scenario": {"duration": "10 s"}, "vary": {"path.rate": rates}}
    many = run_study(Study.from_dict(given), engine="model", out=tmp_path, jobs=1, quiet=True)
    told = many.table().splitlines()
    means = sorted(many.pooled["mean_mbps"])
    (counted,) = (line for line in told if line.startswith(f"{MOST + 1} points"))
    assert f"{means[0]:.2f} … {means[-1]:.2f}, median {statistics.median(means):.2f}" in counted
    rows = [line.split()[0] for line in told if line[2:].lstrip("0123456789 ").startswith("Mbit/s")]
    shown = many.only({("1 Mbit/s",), (f"{MOST + 1} Mbit/s",)})
    assert [len(table) for table in (shown.places, shown.details, shown.samples, shown.moved)] == [2, 4, 20, 2]
    assert rows == [str(at) for at in (*range(1, 6), *range(MOST - 3, MOST + 2))]
    known = many.details["path_rate"].isin(rates[:3])
    three = replace(many, details=many.details.assign(mean_mbps=many.details["mean_mbps"].where(known))).table()
    assert [line.split()[0] for line in three.splitlines() if " Mbit/s  " in line] == ["1", "2", "3"]
    few = Study.from_dict(given | {"vary": {"path.rate": rates[:MOST]}})
    whole = run_study(few, engine="model", out=tmp_path, jobs=1, quiet=True).table().splitlines()
    assert len([line for line in whole if " Mbit/s  " in line]) == MOST


def test_of_an_even_number_of_points_the_median_is_between_two_and_none_is_shown_twice() -> None:
    rows = [{"mean_mbps": mean} for mean in (*range(8), math.nan, math.nan)]
    low, high, told = _ends(rows, "mean_mbps", "points", "table.csv has all")
    assert [row["mean_mbps"] for row in (*low, *high)] == list(range(8))
    assert "10 points with means of 0.00 … 7.00, median 3.50" in told


def test_of_many_points_without_flows_the_first_and_the_last_are_shown(tmp_path: Path) -> None:
    rates = [f"{at} Mbit/s" for at in range(1, MOST + 2)]
    scenario = {"duration": "10 ms", "interval": "10 ms", "flows": [], "probes": [{"count": 2, "interval": "1 ms"}]}
    scenario["path"] = {"queue": "10 packets"}
    given = {"name": "pings", "scenario": scenario, "vary": {"path.rate": rates}}
    told = run_study(Study.from_dict(given), out=tmp_path, jobs=1, quiet=True).table().splitlines()
    assert f"{MOST + 1} points; table.csv has all, these are the first and the last" in told
    rows = [int(line.split()[0]) for line in told if line[2:].lstrip("0123456789 ").startswith("Mbit/s")]
    assert rows == [*range(1, 6), *range(MOST - 3, MOST + 2)]


def test_of_many_points_with_probes_those_are_shown_whose_flows_got_least_and_most(tmp_path: Path) -> None:
    rates = [f"{at} Mbit/s" for at in range(1, MOST + 2)]
    scenario = {"duration": "1 s", "interval": "100 ms", "probes": [{"interval": "50 ms"}]}
    given = {"name": "estimates", "scenario": scenario, "vary": {"path.rate": rates}}
    asked = Study.from_dict(given | {"report": {"plots": ["probe-estimates"]}})
    made = run_study(asked, out=tmp_path, jobs=1, quiet=True)
    told = made.table().splitlines()
    (counted,) = (line for line in told if line.startswith(f"{MOST + 1} rows"))
    got = sorted(made.probed["true_mbps"])
    assert f"{got[0]:.2f} … {got[-1]:.2f}, median {statistics.median(got):.2f}" in counted
    rows = [line for line in told if line[2:].lstrip("0123456789 ").startswith("Mbit/s")]
    assert [float(line.split()[2]) for line in rows] == pytest.approx([*got[:5], *got[-5:]], rel=1e-3)
