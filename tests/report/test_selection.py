"""Reports of studies with very many points draw some of them, and say so."""

import csv
import re

import pytest

from sawtooth.report import write_report
from sawtooth.report.page import MOST_POINTS
from sawtooth.report.selection import MOST, selected
from sawtooth.study import Study, run_study


def study(rtts, rates, **more):
    scenario = {"duration": "10 ms", "interval": "10 ms", "path": {"queue": "1 bdp"}}
    vary = {
        "path.rtt": [f"{1 + number / 100:.2f} ms" for number in range(rtts)],
        "path.rate": [f"{10 + number} Mbit/s" for number in range(rates)],
    }
    return Study.from_dict({"name": "many", "scenario": scenario, "vary": vary} | more)


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    given = study(65, 20, report={"baseline": "13 Mbit/s", "plots": ["mean", "distribution"]})
    return run_study(given, engine="model", out=tmp_path_factory.mktemp("many"), jobs=1, quiet=True)


def test_the_points_drawn_are_at_even_values_with_the_first_the_last_and_the_baseline(many):
    few = selected(many)
    drawn = few.pooled
    rtts = next(axis.names for axis in many.study.axes() if axis.column == "path_rtt")
    shown = drawn["path_rtt"].drop_duplicates().tolist()
    assert shown == [rtts[at] for at in (0, 9, 18, 27, 37, 46, 55, 64)]
    assert drawn["path_rate"].nunique() == 20
    assert len(few.places) == len(drawn) == len(few.moved) == 8 * 20
    assert set(few.samples["path_rtt"]) == set(shown)
    whole = many.pooled
    same = whole[whole["path_rtt"].isin(shown)].reset_index(drop=True)
    assert drawn.equals(same)


def test_a_study_of_few_points_is_drawn_whole(tmp_path):
    few = run_study(study(MOST // 20, 20), engine="model", out=tmp_path, jobs=1, quiet=True)
    assert selected(few) is few


def test_one_axis_keeps_its_baseline_between_the_even_values(tmp_path):
    given = study(1, 600, report={"baseline": "11 Mbit/s"})
    few = selected(run_study(given, engine="model", out=tmp_path, jobs=1, quiet=True))
    shown = few.pooled["path_rate"].tolist()
    assert len(shown) == 401
    assert {"10 Mbit/s", "11 Mbit/s", "609 Mbit/s"} <= set(shown)


def test_a_study_whose_points_are_all_at_the_values_drawn_is_drawn_whole(tmp_path):
    scenario = {"duration": "10 ms", "interval": "10 ms", "path": {"queue": "1 bdp"}}
    vary = {
        "path.rtt": [f"{1 + number} ms" for number in range(36)],
        "path.rate": [f"{10 + number} Mbit/s" for number in range(8)],
        "path.loss": ["0%", "1%"],
    }
    roles = {"x": "path_rtt", "series": "path_rate"}
    given = Study.from_dict({"name": "many", "scenario": scenario, "vary": vary} | {"report": roles})
    every = run_study(given, engine="model", out=tmp_path, jobs=1, quiet=True)
    assert len(every.pooled) == 576 > MOST
    assert selected(every) is every


def test_tables_of_flows_have_the_first_points_too(tmp_path):
    given = study(51, 20, report={"plots": ["mean"]}).to_dict()
    flows = [{"cc": "cubic", "count": 1}, {"cc": "reno", "count": 1}]
    given["scenario"]["flows"] = flows
    made = run_study(Study.from_dict(given), out=tmp_path, jobs=2, quiet=True)
    page = write_report(made).read_text()
    (shares,) = re.findall("What each flow gets.*?</table>", page, re.DOTALL)
    assert f"Here are the first {MOST_POINTS:,} of 1,020 points." in shares
    assert shares.count("<tr") == 1 + 2 * MOST_POINTS
    assert '64 runs per directory under <a href="packs/">packs</a>' in page


def test_the_page_says_what_it_leaves_out_and_the_table_has_all(many):
    page = write_report(many).read_text()
    assert "160 of 1,300 points are drawn; table.csv has all." in page
    assert f"Here are the first {MOST_POINTS:,} of 1,300 points." in page
    assert "The changes below are those of the 160 points that are drawn,\nof 1,300." in page
    with (many.directory / "table.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 2 * 1300
    with (many.directory / "plots" / "mean.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 160
