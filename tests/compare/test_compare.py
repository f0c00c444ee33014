"""Runs of several engines or settings compared with the first: differences, intervals, a tolerance, a figure."""

import csv
import io
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import stdtrit

from expected_error import expected_error
from fake_engine import Fake, quick, study
from sawtooth.cli.program import status_of
from sawtooth.compare import compare, tolerance
from sawtooth.compare.comparison import difference, seeds_to_decide, verdict
from sawtooth.compare.text import words
from sawtooth.errors import SawtoothError
from sawtooth.run import Run
from sawtooth.scenario import Scenario
from sawtooth.stats import Interval
from sawtooth.stats.interval import MOST_SEEDS
from sawtooth.study import Study, run_study

SECONDS = 100


def saved(where: Path, mean: float, *, engine: str = "sim", retransmits: int = 10, **scenario: object) -> Path:
    """A saved run with one flow per name in ``mean`` (Mbit/s); noise of 1 Mbit/s, seeded by its position."""
    flows = scenario.pop("flows", [{"cc": "cubic"}])
    asked = Scenario(duration=f"{SECONDS} s", flows=flows, **scenario)
    noise = np.random.default_rng(len(where.name)).normal(0, 1, SECONDS)
    ends = np.arange(1.0, SECONDS + 1)
    frames = [
        pd.DataFrame(
            {
                "t_s": ends,
                "flow": at,
                "goodput_bps": (mean / len(flows) + (noise - noise.mean())) * 1e6,
                "segments_out": 1000,
                "retransmits": retransmits,
                "timeouts": 1,
                "tail_probes": 0,
            }
        )
        for at in range(len(flows))
    ]
    info = pd.DataFrame({"t_s": ends, "flow": 0, "connection": 0, "srtt_s": 0.002, "rwnd_limited_s": 0.0})
    names = {"flow": [flow["cc"] for flow in flows]}
    tables = {"intervals": pd.concat(frames, ignore_index=True), "tcp_info": info}
    return Run(asked, engine, tables, {"names": names}).save(where)


def call(*arguments: object) -> int:
    return status_of(["compare", *map(str, arguments)])


def test_the_difference_of_means_is_measured_from_the_first(tmp_path: Path) -> None:
    found = compare([saved(tmp_path / "a", 100), saved(tmp_path / "bb", 104, engine="kernel")])
    row = found.table.iloc[0]
    assert found.labels == ("sim", "kernel")
    assert row["reference_mbps"] == pytest.approx(100)
    assert row["difference_mbps"] == pytest.approx(4)
    assert row["difference_percent"] == pytest.approx(4)
    assert row["difference_low_mbps"] < 4 < row["difference_high_mbps"]
    assert row["q50_difference_mbps"] == pytest.approx(4, abs=0.5)
    assert row["verdict"] == "inside"


def test_the_interval_of_a_difference_is_welchs() -> None:
    # Two means of 10 batches with a standard error of 1 each: 18 degrees of freedom, t = 2.1009, sqrt(2) * t = 2.9711.
    half = 2.2621571628  # t quantile of 9 degrees of freedom
    one, other = Interval(10, 10 - half, 10 + half, 10), Interval(13, 13 - half, 13 + half, 10)
    found = difference(one, other)
    assert found.mean == 3
    assert found.high - found.mean == pytest.approx(2.9711, abs=1e-4)
    assert found.mean - found.low == pytest.approx(2.9711, abs=1e-4)


def test_the_interval_covers_the_true_difference_in_19_of_20_cases() -> None:
    random = np.random.default_rng(5)
    from sawtooth.stats import batch_means

    covered = 0
    for _ in range(400):
        pair = [batch_means(random.normal(mean, 3, 100)) for mean in (50, 52)]
        found = difference(*pair)
        covered += found.low <= 2 <= found.high
    assert 0.92 <= covered / 400 <= 0.98


def test_the_verdict_goes_by_the_whole_interval_of_the_difference() -> None:
    assert verdict(Interval(0.5, -1, 2, 10), 2) == "inside"
    assert verdict(Interval(-3, -4, -2.1, 10), 2) == "outside"
    assert verdict(Interval(3, 2.1, 4, 10), 2) == "outside"
    for low, high in ((-1, 2.1), (-2.1, 1), (1, 9), (-9, 9), (math.nan, math.nan)):
        assert verdict(Interval(0, low, high, 10), 2) == "inconclusive"


def test_so_many_seeds_would_tell_and_one_less_would_not() -> None:
    reference, other = Interval(7.89, 6.5, 9.28, 10, "run"), Interval(6.07, 4.9, 7.24, 10, "run")
    limit = 0.3 * reference.mean
    assert verdict(difference(reference, other), limit) == "inconclusive"
    seeds = seeds_to_decide(reference, other, limit)
    spread = math.hypot(*((one.high - one.low) / 2 / 2.2621571628 for one in (reference, other)))
    margin = abs(1.82 - limit)

    def half(n: int) -> float:
        errors = [(one.high - one.low) / 2 / 2.2621571628 / math.sqrt(n) for one in (reference, other)]
        freedom = sum(error**2 for error in errors) ** 2 / sum(error**4 / (n - 1) for error in errors)
        return float(stdtrit(freedom, 0.975)) * spread / math.sqrt(n)

    assert half(seeds) < margin <= half(seeds - 1)


def test_no_number_of_seeds_resolves_a_difference_as_large_as_the_tolerance_or_one_without_an_interval() -> None:
    reference = Interval(10, 9, 11, 5, "seeds")
    assert seeds_to_decide(reference, Interval(11.01, 10, 12, 5, "seeds"), 1) is None
    assert seeds_to_decide(reference, Interval(10, math.nan, math.nan, 0, "run"), 1) is None
    assert seeds_to_decide(reference, Interval(11.2, 10, 12.4, 5, "seeds"), 1) <= MOST_SEEDS


def test_seeds_that_are_all_the_same_have_no_error(tmp_path: Path) -> None:
    same, seeds = Interval(10, math.nan, math.nan, 10, "same"), Interval(12, 11, 13, 5, "seeds")
    assert difference(same, seeds).low == pytest.approx(1)
    assert difference(same, same).low == difference(same, same).high == 0


def test_a_series_too_short_for_an_interval_has_none() -> None:
    found = difference(Interval(1, math.nan, math.nan, 0), Interval(2, 1, 3, 10))
    assert found.mean == 1
    assert math.isnan(found.low)


@pytest.mark.parametrize(("within", "status"), [("5%", 0), ("4.5%", 0), ("4.1%", 4), ("3.9%", 4), ("3%", 3), ("0%", 3)])
def test_the_exit_status_is_0_inside_3_outside_and_4_where_the_runs_cannot_tell(
    tmp_path: Path, within: str, status: int
) -> None:
    runs = saved(tmp_path / "a", 100), saved(tmp_path / "bb", 104, engine="kernel")
    assert call(*runs, "--within", within) == status


def test_a_run_is_within_any_tolerance_of_itself(tmp_path: Path) -> None:
    run = saved(tmp_path / "a", 100)
    assert call(run, run, "--within", "0%") == 0


def test_where_one_is_outside_the_exit_status_is_3_whatever_cannot_be_judged(tmp_path: Path) -> None:
    runs = [saved(tmp_path / name, mean) for name, mean in (("a", 100), ("bb", 104), ("ccc", 120))]
    assert call(*runs, "--within", "4%") == 3


def test_the_words_say_how_many_seeds_would_tell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = saved(tmp_path / "a", 100), saved(tmp_path / "bb", 104, engine="kernel")
    assert call(*runs, "--within", "3.9%", "--json") == 4
    told = json.loads(capsys.readouterr().out)
    assert (told["outside"], told["cannot_tell"]) == (0, 1)
    seeds = told["rows"][0]["seeds_to_decide"]
    assert 2 <= seeds <= MOST_SEEDS
    assert call(*runs, "--within", "3.9%") == 4
    told = " ".join(capsys.readouterr().out.split())
    assert f"1 inconclusive with these runs; you need about {seeds:g} seeds on each side" in told


def test_the_quantiles_say_that_they_are_differences(tmp_path: Path) -> None:
    told = words(compare([saved(tmp_path / "a", 100), saved(tmp_path / "bb", 104)]))
    assert "Δ q25  Δ q50  Δ q75" in told
    assert "the 95% interval and Δ q25 … Δ q75 are those of the difference" in told


def test_what_is_omitted_is_left_out_of_both_as_a_warm_up_is(tmp_path: Path) -> None:
    whole = [saved(tmp_path / name, mean) for name, mean in (("a", 100), ("bb", 104))]
    warm = [saved(tmp_path / name, mean, warmup="30 s") for name, mean in (("A", 100), ("BB", 104))]
    omitted, meant = compare(whole, omit="30 s"), compare(warm)
    pd.testing.assert_frame_equal(omitted.table.drop(columns="against"), meant.table.drop(columns="against"))
    assert omitted.spans == meant.spans == ((30.0, 100.0),) * 2
    assert "means of 70 s, the first 30 s omitted" in words(omitted)
    assert "means of 100 s from the start, slow start included" in words(compare(whole))
    with pytest.raises(SawtoothError, match="leaves nothing"):
        compare(whole, omit="100 s")


def test_means_of_different_seconds_are_reported(tmp_path: Path) -> None:
    found = compare([saved(tmp_path / "a", 100), saved(tmp_path / "bb", 100, warmup="30 s")])
    assert "means over DIFFERENT times (a of 100 s from the start" in words(found)


def test_a_beginning_that_changes_the_mean_is_reported(tmp_path: Path) -> None:
    run = Run.load(saved(tmp_path / "a", 100))
    run.tables["intervals"].loc[:3, "goodput_bps"] = 0.0
    found = compare([tmp_path / "a", run.save(tmp_path / "late")])
    assert len(found.notes) == 1
    assert found.notes[0].startswith("late: the first 4 s differ from the rest")
    assert found.notes[0] in words(found)


def test_three_are_each_compared_with_the_first(tmp_path: Path) -> None:
    runs = [saved(tmp_path / name, mean) for name, mean in (("a", 100), ("bb", 120), ("ccc", 105))]
    found = compare(runs)
    assert found.labels == ("a", "bb", "ccc")
    assert list(found.table["against"]) == ["bb", "ccc"]
    assert list(found.table["verdict"]) == ["outside", "inside"]
    assert found.outside == 1


def test_flows_are_compared_one_by_one_and_together(tmp_path: Path) -> None:
    flows = [{"cc": "cubic"}, {"cc": "bbr"}]
    found = compare([saved(tmp_path / "a", 100, flows=flows), saved(tmp_path / "bb", 104, flows=flows)])
    assert list(found.table["point"]) == ["all flows", "cubic", "bbr"]
    assert list(found.table["difference_mbps"]) == pytest.approx([4, 2, 2])


def test_retransmissions_timeouts_and_round_trip_times_are_side_by_side(tmp_path: Path) -> None:
    row = compare([saved(tmp_path / "a", 100, retransmits=10), saved(tmp_path / "bb", 100, retransmits=20)]).table.iloc[
        0
    ]
    assert (row["reference_retransmitted_percent"], row["retransmitted_percent"]) == (1, 2)
    assert (row["reference_timeouts"], row["timeouts"]) == (SECONDS, SECONDS)
    assert row["mean_srtt_ms"] == pytest.approx(2)


def test_fields_of_the_scenarios_that_differ_are_named(tmp_path: Path) -> None:
    runs = saved(tmp_path / "a", 100, path={"loss": "1%"}), saved(tmp_path / "bb", 100, path={"loss": "2%"}, seed=7)
    found = compare(runs)
    assert found.differing == {"seed": [1, 7], "path.loss": ["1%", "2%"]}
    assert "path.loss: 1% | 2%" in words(found)
    assert compare([runs[0], runs[0]]).differing == {}


@pytest.fixture(scope="module")
def studies(patience: None, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The same study twice, the second with one point fewer and another chain."""
    out = tmp_path_factory.mktemp("studies")
    places = []
    for name, losses in (("one", ["0%", "1%", "2%"]), ("two", ["0%", "1%"])):
        study = Study.from_dict(
            {
                "name": name,
                "scenario": {"topology": "chain", "duration": "40 s", "chain": {"rtt": "1 ms"}},
                "vary": {"chain.loss": losses, "flows.cc": ["cubic", "bbr"]},
                "repeat": {"seeds": [1, 2]},
            }
        )
        places.append(run_study(study, engine=Fake(), out=out, jobs=1, quiet=True).directory)
    return places


def test_studies_are_compared_point_by_point_with_all_their_seeds(studies: list[Path]) -> None:
    found = compare(studies)
    assert len(found.table) == 4
    assert found.table["difference_mbps"].abs().max() < 1e-9
    assert found.alone["two" if "two" in found.labels else found.labels[1]] == sorted(
        name for name in found.subjects[0].cells if "2" in name
    )
    assert "not in" in words(found)


def test_each_run_of_a_study_is_read_once(studies: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    read, load = [], Run.load

    def noted(directory: Path, **options: Any) -> Run:
        read.append(directory)
        return load(directory, **options)

    monkeypatch.setattr(Run, "load", noted)
    compare(studies)
    assert len(read) == len(set(read)) == 12 + 8


@pytest.mark.usefixtures("patience")
def test_scenarios_with_their_seeds_are_compared_flow_by_flow_with_each_other_and_with_runs(tmp_path: Path) -> None:
    flows = [{"cc": "cubic"}, {"cc": "bbr"}]
    made = [
        quick(study(name=name, scenario={"duration": "30 s", "flows": flows}, **alone), out=tmp_path).directory
        for name in ("office", "home")
        for alone in [{"vary": {}, "columns": {}, "published": None}]
    ]
    found = compare(made)
    assert found.subjects[0].kind == "run"
    assert found.table["point"].tolist() == ["all flows", "cubic", "bbr"]
    assert len(found.subjects[0].cells["bbr"].series) == 2, "a series a seed"
    run = saved(tmp_path / "run", 10.0, flows=flows)
    assert compare([made[0], run]).table["point"].tolist() == ["all flows", "cubic", "bbr"]


def test_a_study_and_a_run_cannot_be_compared(studies: list[Path], tmp_path: Path) -> None:
    with expected_error(code="conflict"):
        compare([studies[0], saved(tmp_path / "a", 100)])


def test_runs_without_a_point_in_common_cannot_be_compared(studies: list[Path], tmp_path: Path) -> None:
    study = Study.from_dict(
        {"name": "other", "scenario": {"topology": "chain"}, "vary": {"chain.rtt": ["1 ms", "2 ms"]}}
    )
    other = run_study(study, engine=Fake(), out=tmp_path, jobs=1, quiet=True).directory
    with pytest.raises(SawtoothError, match="no point in common"):
        compare([studies[0], other])


@pytest.mark.parametrize(
    ("text", "code"), [("10", "missing-unit"), ("ten", "bad-quantity"), ("-1%", "bad-quantity"), ("", "bad-quantity")]
)
def test_a_tolerance_needs_a_number_and_its_unit(text: str, code: str) -> None:
    with expected_error(code=code) as caught:
        tolerance(text)
    assert "%" in caught.value.fix


def test_what_is_no_result_is_refused(tmp_path: Path) -> None:
    run = saved(tmp_path / "a", 100)
    for directories, code in (
        ([run], "bad-usage"),
        ([run, tmp_path], "not-a-result"),
        ([run, tmp_path / "absent"], "file-not-found"),
    ):
        with expected_error(code=code):
            compare(directories)


@pytest.mark.parametrize("kind", ["runs", "studies"])
@pytest.mark.usefixtures("patience")
def test_table_and_plots_are_written_the_same_each_time(tmp_path: Path, studies: list[Path], kind: str) -> None:
    both = studies if kind == "studies" else [saved(tmp_path / "a", 100), saved(tmp_path / "bb", 104, engine="kernel")]
    for name in ("x", "y"):
        assert call(*both, "--out", tmp_path / name) == 0
    names = ["comparison.csv", "comparison.json", "comparison.png", "comparison.svg"]
    assert sorted(path.name for path in (tmp_path / "x").iterdir()) == names
    for name in names:
        assert (tmp_path / "x" / name).read_bytes() == (tmp_path / "y" / name).read_bytes()
    assert (tmp_path / "x" / "comparison.png").read_bytes().startswith(b"\x89PNG")


def test_csv_and_json_hold_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = saved(tmp_path / "a", 100), saved(tmp_path / "bb", 150, engine="kernel")
    assert call(*runs, "--json") == 3
    told = json.loads(capsys.readouterr().out)
    assert (told["reference"], told["outside"], told["within_percent"]) == ("sim", 1, 10)
    assert call(*runs, "--csv") == 3
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert float(rows[0]["difference_percent"]) == pytest.approx(50)
    assert rows[0]["verdict"] == told["rows"][0]["verdict"] == "outside"


def test_the_words_have_the_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = saved(tmp_path / "a", 100), saved(tmp_path / "bb", 150, engine="kernel")
    call(*runs)
    told = capsys.readouterr().out
    assert "+50.00 (+50.0%)" in told
    assert told.endswith("within 10% of the reference's mean: 1 outside\n")
