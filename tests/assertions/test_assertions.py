"""A study's expectations: how they are read, matched with points, judged by intervals, and reported to people and
machines.
"""

import json
import math
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from expected_error import expected_error
from fake_engine import Fake, quick, study
from sawtooth.assertions import ABSENT, FAILS, HOLDS, UNKNOWN, Judgement, Verdict, judge
from sawtooth.assertions.combined_estimate import Sample, estimate
from sawtooth.assertions.machine_formats import annotated, junit
from sawtooth.assertions.observations import Observations, refuse_parts
from sawtooth.assertions.text import expectation_text, words
from sawtooth.cli.commands import _written
from sawtooth.cli.program import status_of
from sawtooth.errors import SawtoothError
from sawtooth.scenario.expressions import RATE
from sawtooth.stats import Interval, independent
from sawtooth.study import Dataset, Study, StudyResult, run_into
from sawtooth.study.study import Point
from sawtooth.testing import assert_holds

KEEPS = "mean_mbps(cc='bbr', loss=1%) > 0.85 * mean_mbps(cc='bbr', loss=0%)"


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> StudyResult:
    """cubic 900 and bbr 1000 Mbit/s, less 8% at 1% loss, plus up to 10 at random; two seeds."""
    return quick(asked(), out=tmp_path_factory.mktemp("results"))


def asked() -> Study:
    """Two controls at two losses."""
    vary = {"flows.cc": ["cubic", "bbr"], "topology": ["chain"], "chain.loss": ["0%", "1%"]}
    return study(vary=vary, scenario={"topology": "chain", "duration": "30 s", "chain": {"rate": "1 Gbit/s"}})


def verdicts(result: StudyResult | Dataset, *texts: str) -> list[Verdict]:
    return list(judge(result, {text: text for text in texts}).verdicts)


def only(result: StudyResult, text: str) -> Verdict:
    (found,) = verdicts(result, text)
    return found


def code_of(result: StudyResult, text: str) -> str:
    with expected_error(field=f"expect.{text}") as caught:
        verdicts(result, text)
    return caught.value.code


@pytest.mark.usefixtures("patience")
def test_an_expectation_holds_where_all_of_its_margins_interval_is_on_the_right_side(result) -> None:
    found = only(result, f"{KEEPS}")
    assert found.verdict == HOLDS
    assert found.margin.low > 0
    assert found.left.mean == pytest.approx(925e6, rel=0.01)
    assert found.right.mean == pytest.approx(0.85 * 1005e6, rel=0.01)


def test_and_fails_where_none_of_it_is(result) -> None:
    found = only(result, "mean_mbps(cc='bbr', loss=1%) > mean_mbps(cc='bbr', loss=0%)")
    assert found.verdict == FAILS
    assert found.margin.high < 0
    assert found.seeds_to_decide is None


def test_and_else_these_runs_cannot_tell_and_say_how_many_seeds_would(result) -> None:
    seeds = result.details[(result.details["cc"] == "bbr") & (result.details["loss_percent"] == 1)]
    means = seeds[seeds["seed"] != "all"]["mean_mbps"].to_numpy(dtype=float)
    assert means[0] != means[1]
    between = means.mean() - (max(means) - min(means)) / 4
    found = only(result, f"mean_mbps(cc='bbr', loss=1%) > {between:.9f} Mbit/s")
    assert found.verdict == UNKNOWN
    assert found.margin.low < 0 < found.margin.high
    # As many seeds of the same spread would decide by Student's t.
    spread, distance = means.std(ddof=1), means.mean() - between
    needed = found.seeds_to_decide
    assert needed is not None
    half = independent([-spread / math.sqrt(2), spread / math.sqrt(2)])
    assert half.high > distance
    from sawtooth.stats.interval import t_quantile

    assert t_quantile(needed - 1) * spread / math.sqrt(needed) < distance
    assert t_quantile(needed - 2) * spread / math.sqrt(needed - 1) >= distance


def test_an_axis_that_no_measure_sets_is_each_of_its_values_in_turn(result) -> None:
    found = verdicts(result, "mean_mbps(cc='bbr') > mean_mbps(cc='cubic')")
    assert [(one.case, one.verdict) for one in found] == [({"loss_percent": loss}, HOLDS) for loss in (0, 1)]


def test_an_axis_that_one_measure_sets_and_another_does_not_is_a_conflict(result) -> None:
    assert code_of(result, "mean_mbps(cc='bbr', loss=1%) > mean_mbps(cc='cubic')") == "conflict"


@pytest.mark.parametrize("name", ["loss", "loss_percent", "chain.loss"])
@pytest.mark.parametrize("value", ["1%", "1.0%", "1"])
def test_an_axis_is_named_by_column_field_or_its_last_word_and_a_value_as_written_or_shown(result, name, value) -> None:
    if value == "1" and name != "loss_percent":
        value = "'1%'"
    found = only(result, f"mean_mbps(cc='bbr', {name}={value}) > 900 Mbit/s")
    assert found.left.mean == pytest.approx(925e6, rel=0.01)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("mean_mbps(cc='bbq') > 1 Mbit/s", "unknown-name"),
        ("mean_mbps(speed='high') > 1 Mbit/s", "unknown-name"),
        ("main_mbps > 1 Mbit/s", "unknown-name"),
        ("mean_mbps(seed=1) > 1 Mbit/s", "unknown-name"),
        ("mean_mbps > 1", "missing-unit"),
        ("mean_mbps > mean_srtt_ms", "bad-expression"),
        ("mean_mbps", "bad-expression"),
        ("1 Mbit/s > 2 Mbit/s", "bad-expression"),
        ("path.rate > 2 Mbit/s", "bad-expression"),
        ("mean_mbps > 50% of chain.rat", "unknown-name"),
        ("mean_mbps > 50% of chain.rate.x.y", "unknown-name"),
        ("mean_mbps > 5 parsec", "unknown-unit"),
        ("mean_mbps(flow='nobody') > 1 Mbit/s", "unknown-name"),
        ("", "bad-expression"),
    ],
)
def test_what_cannot_be_asked_is_reported_with_its_place(result, text: str, code: str) -> None:
    assert code_of(result, text) == code


@pytest.mark.parametrize("text", ["mean_mbps(cc='bbq') > 1 Mbit/s", "mean_mbps > 1", "main_mbps > 1 Mbit/s"])
def test_a_study_with_such_an_expectation_is_refused_before_anything_runs(text: str) -> None:
    content = asked().to_dict() | {"expect": {"it": text}}
    with expected_error(field="expect.it"):
        Study.from_dict(content)


def test_a_study_without_expectations_is_what_it_was() -> None:
    assert "expect" not in asked().to_dict()
    with_one = Study.from_dict(asked().to_dict() | {"expect": {"it": KEEPS}})
    assert with_one.to_dict()["expect"] == {"it": KEEPS}
    assert with_one.digest() != asked().digest()


def test_a_field_of_the_scenario_is_its_amount(result) -> None:
    found = only(result, "mean_mbps(cc='bbr', loss=0%) > 90% of chain.rate")
    assert (found.right.mean, found.right.low, found.verdict) == (0.9e9, 0.9e9, HOLDS)


def test_a_value_that_is_nowhere_measured_cannot_be_judged(result) -> None:
    found = only(result, "fct_ms_p99(cc='bbr', loss=0%) < 1 s")
    assert (found.verdict, found.seeds_to_decide) == (UNKNOWN, None)
    assert "has no value" in found.reason


@pytest.mark.usefixtures("patience")
def test_one_seed_has_the_interval_within_its_run_where_throughput_is_asked_and_else_none(tmp_path: Path) -> None:
    one = quick(asked(), out=tmp_path, seeds=[1])
    found = only(one, KEEPS)
    assert (found.verdict, found.seeds) == (HOLDS, 1)
    counted = only(one, "mean_srtt_ms(cc='bbr', loss=1%) < 1 s")
    assert counted.verdict == UNKNOWN
    assert counted.reason == "one seed gives no confidence interval: run the study with several"
    # Run from a terminal, and from pytest.
    assert "run the study with several, --seeds 5" in expectation_text(counted)
    with pytest.raises(
        AssertionError, match="run the study with several, seeds=5 in the marker, or --sawtooth-seeds 5"
    ):
        assert_holds(one, counted.text)


def test_what_set_left_out_of_the_study_is_not_judged_but_reported(tmp_path: Path) -> None:
    left = quick(asked(), out=tmp_path, overrides={"chain.loss": "1%"})
    found = only(left, KEEPS)
    assert (found.verdict, found.case) == (ABSENT, {})
    assert "loss_percent is never 0%" in found.reason


def test_a_study_that_expects_nothing_has_nothing_to_judge(result) -> None:
    with pytest.raises(SawtoothError, match=r"has no table \[expect\]"):
        judge(result)


# The interval.


def test_seeds_that_both_sides_have_are_paired() -> None:
    rng = np.random.default_rng(1)
    common = rng.normal(100, 10, 8)
    left, right = common + rng.normal(1, 0.1, 8), common + rng.normal(0, 0.1, 8)
    found = estimate(lambda mean: mean["left"] - mean["right"], {"left": Sample(left), "right": Sample(right)})
    paired = independent((left - right).tolist())
    assert found.interval.low == pytest.approx(paired.low)
    assert found.interval.high == pytest.approx(paired.high)
    assert found.interval.low > 0


def test_a_ratio_is_that_of_the_means_and_covers_the_truth_as_often_as_it_says() -> None:
    rng = np.random.default_rng(2)
    covered = 0
    for _ in range(600):
        left, right = rng.normal(90, 9, 6), rng.normal(100, 5, 6)
        found = estimate(lambda mean: mean["l"] / mean["r"], {"l": Sample(left), "r": Sample(right)}).interval
        assert found.mean == pytest.approx(left.mean() / right.mean())
        covered += found.low <= 0.9 <= found.high
    assert 0.92 <= covered / 600 <= 0.98


def test_what_is_the_same_for_every_seed_is_known() -> None:
    same = Sample(np.array([5.0, 5.0, 5.0]))
    assert estimate(lambda mean: mean["x"] * 3, {"x": same}).interval == Interval(15.0, 15.0, 15.0, 3, "same")


def test_one_seed_without_an_interval_has_none() -> None:
    found = estimate(lambda mean: mean["x"], {"x": Sample(np.array([5.0]))})
    assert math.isnan(found.interval.low)
    assert found.seeds_to_decide() is None


# Told.


def made(verdict: str, name: str = "it", text: str = KEEPS, source: str | None = None) -> Judgement:
    side = Interval(1e6, 0.9e6, 1.1e6, 3)
    one = Verdict(name, text, {"path": "a,b"}, verdict, side, side, side, RATE, 3, 12, "")
    return Judgement("a study", source, (one,))


def test_people_read_both_sides_with_intervals_and_how_many_seeds_would_tell() -> None:
    told = words(made(UNKNOWN))
    assert "inconclusive  it (path a,b)" in told
    assert "1 Mbit/s [900 kbit/s, 1.1 Mbit/s] against 1 Mbit/s" in told
    assert "you need about 12 seeds" in told
    assert told.endswith("expectations: 0 hold, 1 inconclusive")


@pytest.mark.parametrize(
    ("verdict", "child"), [(HOLDS, "system-out"), (FAILS, "failure"), (UNKNOWN, "error"), (ABSENT, "skipped")]
)
def test_junit_has_a_test_case_a_verdict(verdict: str, child: str) -> None:
    suite = ElementTree.fromstring(junit(made(verdict, name="<&\x00>")))[0]
    assert suite.attrib["tests"] == "1"
    assert (suite.attrib["failures"], suite.attrib["errors"]) == (
        str(int(verdict == FAILS)),
        str(int(verdict == UNKNOWN)),
    )
    assert [one.tag for one in suite[0]] == [child]
    assert suite[0].attrib["name"] == "<&\ufffd> (path a,b)"


def test_github_gets_a_command_a_line_at_the_line_of_the_study_with_nothing_that_ends_it(tmp_path: Path) -> None:
    file = tmp_path / "a,b.toml"
    file.write_text(f'[expect]\n"it" = "{KEEPS}"\n')
    (line,) = annotated(made(FAILS, source=str(file)))
    command, _, message = line.removeprefix("::").partition("::")
    assert command.startswith("error file=")
    assert "a%2Cb.toml," in command
    assert command.endswith(",line=2")
    assert "1%25" in message
    assert "\n" not in annotated(made(UNKNOWN, name="a\n::error::b"))[0]
    assert annotated(made(UNKNOWN))[0].startswith("::warning ")
    assert annotated(made(HOLDS)) == []


@pytest.mark.usefixtures("patience")
@pytest.mark.parametrize(
    ("text", "status"),
    [(KEEPS, 0), ("mean_mbps(cc='bbr') < 1 Mbit/s", 3), ("fct_ms_p99 < 1 s", 4), ("mean_mbps > 1", 2)],
)
def test_the_command_ends_with_the_status_of_what_it_found(result, text, status, tmp_path, capsys) -> None:
    xml = tmp_path / "junit.xml"
    asked = ["check", str(result.directory), "--expect", text, "--junit", str(xml), "--github", "--json"]
    assert status_of(asked) == status
    told = capsys.readouterr()
    if status == 2:
        assert not xml.exists()
        return
    found = json.loads(told.out)
    assert [found["holds"], found["fails"], found["cannot_tell"]].index(len(found["expectations"])) == max(
        status - 2, 0
    )
    assert len(list(ElementTree.parse(xml).iter("testcase"))) == len(found["expectations"])
    assert told.err.count("::error ") == found["fails"]


SCENARIO = """
name = "gate"
[vary]
"path.loss" = ["0%", "1%"]
[repeat]
seeds = [1, 2]
[scenario]
name = "gate"
topology = "path"
duration = "2 s"
interval = "100 ms"
[scenario.path]
rate = "10 Mbit/s"
rtt = "10 ms"
[expect]
"""


@pytest.mark.parametrize(("line", "status"), [("mean_mbps > 1 Mbit/s", 0), ("mean_mbps < 1 kbit/s", 3)])
@pytest.mark.usefixtures("patience")
def test_run_reports_at_its_end_and_the_saved_result_can_be_asked_again(tmp_path, capsys, line, status) -> None:
    file = tmp_path / "gate.toml"
    file.write_text(f'{SCENARIO}gate = "{line}"\n')
    out = str(tmp_path / "results")
    assert status_of(["run", str(file), "-q", "--jobs", "1", "--out", out, "--json"]) == status
    told = json.loads(capsys.readouterr().out)
    assert [one["verdict"] for one in told["expectations"]] == [HOLDS if status == 0 else FAILS] * 2
    assert status_of(["check", told["results"]]) == status
    file.write_text(f'{SCENARIO}gate = "mean_mbps > 1 kbit/s"\n')
    assert status_of(["check", told["results"], "--study", str(file)]) == 0


@pytest.mark.parametrize(
    ("line", "options", "status"),
    [
        ("mean_mbps > 1 Mbit/s", [], 0),
        ("mean_mbps(loss=0%) < 50% of path.rate", [], 3),
        ("mean_mbps(flow='cubic') < 1 kbit/s", [], 3),
        ("mean_srtt_ms < 12 ms", ["--seeds", "1"], 4),
        ("mean_mbps(loss=0%) > 1 Mbit/s", ["--set", "path.loss=1%"], 0),
    ],
)
@pytest.mark.usefixtures("patience")
def test_rows_of_a_dataset_are_judged_as_results_are(tmp_path, capsys, line, options, status) -> None:
    file, xml = tmp_path / "gate.toml", tmp_path / "junit.xml"
    file.write_text(f'{SCENARIO}gate = "{line}"\n')
    asked = ["run", str(file), "-q", "--jobs", "1", *options, "--json"]
    assert status_of([*asked, "--out", str(tmp_path / "results")]) == status
    there = json.loads(capsys.readouterr().out)
    url = f"file://{tmp_path}/out"
    assert status_of([*asked, "--out", url, "--junit", str(xml), "--github"]) == status
    captured = capsys.readouterr()
    told = json.loads(captured.out)
    assert told["expectations"] == there["expectations"]
    assert len(list(ElementTree.parse(xml).iter("testcase"))) == len(told["expectations"])
    assert captured.err.count("::error ") == sum(one["verdict"] == FAILS for one in told["expectations"])
    assert status_of(["check", told["dataset"], "--json"]) == (status or 4 * bool("--set" in options))
    assert json.loads(capsys.readouterr().out)["expectations"] == told["expectations"]


def test_what_a_dataset_has_no_rows_of_is_refused_before_anything_runs(tmp_path, capsys) -> None:
    file = tmp_path / "gate.toml"
    file.write_text(f"{SCENARIO}gate = \"share_percent(flow='cubic') > 50%\"\n")
    assert status_of(["run", str(file), "-q", "--out", f"file://{tmp_path}/out"]) == 2
    assert "error[unsupported]: expect.gate: a dataset keeps whole points only" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_dataset_that_lacks_rows_is_not_judged(tmp_path) -> None:
    made = run_into(asked(), f"file://{tmp_path}", engine=Fake(), executor=ThreadPoolExecutor(1), quiet=True)
    assert verdicts(made, KEEPS)[0].verdict == HOLDS
    (part,) = Path(made.url.removeprefix("file://")).glob("part-*")
    part.unlink()
    for url, told in ((made.url, "0 of 8 points are there"), (f"file://{tmp_path}", "no readable _study.json")):
        with expected_error(code="not-a-result", match=told):
            judge(Dataset(url), {"it": KEEPS})


def test_scenarios_are_read_only_where_an_expectation_needs_them(tmp_path, monkeypatch) -> None:
    made = run_into(asked(), f"file://{tmp_path}", engine=Fake(), executor=ThreadPoolExecutor(1), quiet=True)
    points, read = asked().points(), []
    scenario = Point.scenario.fget
    monkeypatch.setattr(Point, "scenario", property(lambda point: read.append(point.id) or scenario(point)))
    refuse_parts({"whole": KEEPS, "again": KEEPS}, points)
    Observations.of(made)
    assert read == []
    refuse_parts({"flow": f"mean_mbps(flow='{scenario(points[0]).flow_names[0]}') > 1 Mbit/s"}, points)
    assert read == [points[0].id]


@pytest.mark.parametrize("means", [0, 7, 103])
def test_of_many_points_of_a_dataset_those_with_the_lowest_and_highest_mean_are_shown(means, capsys) -> None:
    rates = [f"{at} Mbit/s" for at in range(1, 104)]
    given = {"name": "many", "scenario": {"duration": "1 s"}, "vary": {"path.rate": rates}}
    known = [float(at) if at <= means else math.nan for at in range(1, 104)]

    class Rows:
        url = "file:///rows"

        def read(self) -> pd.DataFrame:
            return pd.DataFrame({"path_rate": rates, "seed": 1, "mean_mbps": known})

    _written(Study.from_dict(given), Rows(), None, as_json=False)
    said = capsys.readouterr().out.splitlines()
    shown = [int(line.split()[0]) for line in said[1:] if line.split()[1] == "Mbit/s"]
    assert shown == {0: [], 7: [*range(1, 8)], 103: [*range(1, 6), *range(99, 104)]}[means]
    assert said[0].endswith("the lowest and the highest mean" if means else "none has a mean")


def test_run_refuses_junit_where_nothing_is_expected(tmp_path, capsys) -> None:
    file = tmp_path / "gate.toml"
    file.write_text(SCENARIO.replace("[expect]", ""))
    assert status_of(["run", str(file), "--junit", str(tmp_path / "x.xml")]) == 2
    assert "has no table [expect]" in capsys.readouterr().err


def test_the_only_flow_is_known_by_its_name(result) -> None:
    whole = only(result, "mean_mbps(cc='bbr', loss=1%) > 800 Mbit/s")
    own = only(result, "mean_mbps(cc='bbr', loss=1%, flow='bbr') > 800 Mbit/s")
    assert (own.verdict, own.left) == (whole.verdict, whole.left)
    assert code_of(result, "mean_mbps(cc='bbr', loss=1%, flow='cubic') > 800 Mbit/s") == "unknown-name"
