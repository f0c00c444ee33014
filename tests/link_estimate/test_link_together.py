"""One answer for several windows of a link, and what would narrow it."""

import copy
import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from expected_error import expected_error
from sawtooth.cli.program import status_of
from sawtooth.explain import explain
from sawtooth.link_estimate import RttSeries
from sawtooth.link_estimate.calibrate import Measurement, make, read
from sawtooth.link_estimate.estimate import Estimate, estimate
from sawtooth.link_estimate.model import CongestionModel
from sawtooth.link_estimate.random_links import PROBES
from sawtooth.link_estimate.report import Assumed, Link
from sawtooth.link_estimate.report.verdict import verdict
from sawtooth.link_estimate.together import Narrower, narrower, narrower_text, together

RATE_BPS = 100e6
SAME = [Measurement(100_000_000, 396, 0.02, 12, 0, seed=seed) for seed in (1, 2)]
MORE_FLOWS = Measurement(100_000_000, 396, 0.02, 100, 0, seed=1)
BUSY = Measurement(100_000_000, 396, 0.04, 10, 0, seed=1, load=0.5)
TRUTH_BPS = 7.95e6


@pytest.fixture(scope="module")
def model() -> CongestionModel:
    return CongestionModel.default()


@pytest.fixture(scope="module")
def windows(tmp_path_factory: pytest.TempPathFactory) -> dict[Measurement, RttSeries]:
    directory = tmp_path_factory.mktemp("windows")
    make(directory, [*SAME, MORE_FLOWS, BUSY], jobs=1, quiet=True)
    return {one.one: one.series for one in read(directory) if isinstance(one.one, Measurement)}


def joined(*parts: RttSeries) -> RttSeries:
    rtt_s = np.asarray(np.concatenate([one.rtt_s for one in parts]), dtype=np.float64)
    return RttSeries(np.linspace(0, (len(rtt_s) - 1) / 10, len(rtt_s)), rtt_s, 0.1, "test", clock="start")


@pytest.fixture(scope="module")
def long(windows: dict[Measurement, RttSeries]) -> RttSeries:
    return joined(*(windows[one] for one in SAME))


@pytest.mark.parametrize("rate_bps", [None, RATE_BPS])
def test_windows_of_one_link_give_one_narrower_answer(
    long: RttSeries, model: CongestionModel, rate_bps: float | None
) -> None:
    told = estimate(long, model, rate_bps=rate_bps)
    whole = together(told, model, rate_bps=rate_bps)
    assert whole is not None
    assert whole.low_bps is not None
    assert whole.high_bps is not None
    assert whole.low_bps < TRUTH_BPS < whole.high_bps
    assert (whole.start_s, whole.end_s, whole.probes) == (told[0].start_s, told[1].end_s, 2 * PROBES)
    width = np.mean([math.log(one.factor) for one in told])
    assert math.log(whole.factor) == pytest.approx(width * model.shrinks(2, rtt=False, rate=rate_bps is not None))
    assert math.log(whole.factor) < width
    middle_bps = math.exp(np.mean([math.log(one.throughput_bps or 0) for one in told]))
    assert whole.throughput_bps == pytest.approx(middle_bps)


@pytest.mark.parametrize("second", [MORE_FLOWS, BUSY], ids=["other flows", "not congested"])
def test_windows_that_do_not_agree_have_no_common_answer(
    windows: dict[Measurement, RttSeries], model: CongestionModel, second: Measurement
) -> None:
    told = estimate(joined(windows[SAME[0]], windows[second]), model, rate_bps=RATE_BPS)
    assert told[0].throughput_bps is not None
    assert together(told, model, rate_bps=RATE_BPS) is None


def test_a_window_that_changes_has_no_common_answer_with_others(long: RttSeries, model: CongestionModel) -> None:
    told = estimate(long, model)
    assert together([told[0], replace(told[1], changes_s=120.0)], model) is None


def test_most_windows_must_have_a_number(long: RttSeries, model: CongestionModel) -> None:
    told = estimate(long, model)
    unknown = Estimate("test", 200.0, 300.0, PROBES, None, reason="level-shift")
    assert together([*told, unknown], model) is not None
    assert together([*told, *[unknown] * 3], model) is None
    assert together(told[:1], model) is None


def test_a_model_that_was_not_tried_on_several_windows_answers_each_alone(
    long: RttSeries, model: CongestionModel
) -> None:
    without = copy.copy(model)
    without.chance_ = {}
    told = estimate(long, without)
    assert together(told, without) is None
    assert "ten-minutes" not in {one.measure for one in narrower(told, None, without)}


def test_it_foretells_what_the_rate_would_give(long: RttSeries, model: CongestionModel) -> None:
    first = estimate(long, model)[:1]
    said = {one.measure: one for one in narrower(first, None, model)}
    assert said["rate"].now == first[0].factor
    known = estimate(long, model, rate_bps=RATE_BPS)[:1]
    assert math.log(said["rate"].factor) == pytest.approx(math.log(known[0].factor), rel=0.15)
    assert math.log(known[0].factor) < math.log(first[0].factor)
    assert "rate" not in {one.measure for one in narrower(known, None, model, rate_bps=RATE_BPS)}


def test_ten_minutes_narrow_one_window_and_not_six(long: RttSeries, model: CongestionModel) -> None:
    first = estimate(long, model)[:1]
    said = {one.measure: one.factor for one in narrower(first, None, model)}
    whole = together(first * 6, model)
    assert whole is not None
    assert said["ten-minutes"] == pytest.approx(whole.factor)
    assert "ten-minutes" not in {one.measure for one in narrower(first * 6, whole, model)}


def measures(told: list[Estimate], whole: Estimate | None, model: CongestionModel) -> set[str]:
    return {one.measure for one in narrower(told, whole, model, rate_bps=RATE_BPS)}


def test_ten_minutes_are_not_named_for_windows_that_differ_or_after_them(
    windows: dict[Measurement, RttSeries], model: CongestionModel
) -> None:
    differ = estimate(joined(windows[SAME[0]], windows[MORE_FLOWS]), model, rate_bps=RATE_BPS)
    first = differ[:1]
    assert "ten-minutes" in measures(first, None, model)
    idle = Estimate("test", 500.0, 600.0, PROBES, "idle")
    for told in (differ, [*first * 5, idle]):
        assert together(told, model, rate_bps=RATE_BPS) is None
        assert "ten-minutes" not in measures(told, None, model)
    unknown = Estimate("test", 500.0, 600.0, PROBES, None, reason="level-shift")
    whole = together(told := [*first * 5, unknown], model, rate_bps=RATE_BPS)
    assert whole is not None
    assert "ten-minutes" not in measures(told, whole, model)


def test_without_an_interval_nothing_narrows_it(model: CongestionModel) -> None:
    idle = Estimate("test", 0.0, 100.0, PROBES, "idle")
    one_sided = Estimate("test", 0.0, 100.0, PROBES, "congested", 1e6, 0.0, 2e6, bound="at-most", edge_bps=0.5e6)
    assert narrower([idle, one_sided], None, model) == []
    assert narrower_text([]) == ""


def test_the_sentence_has_the_most_useful_first() -> None:
    found = [Narrower("rate", 3.94, 5.5), Narrower("ten-minutes", 5.04, 5.5)]
    text = "with the link's rate (--rate) the interval would be a factor of about 3.9 instead of 5.5"
    assert narrower_text(found) == f"{text}; with ten minutes of probes 5.0"


NAMES = ("all", "without rtt", "without rate", "without rtt, rate")


@pytest.mark.parametrize("chance", [{"all": 0.2}, dict.fromkeys(NAMES, 1.5), "much"])
def test_shares_of_chance_that_are_none_are_refused(tmp_path: Path, model: CongestionModel, chance: object) -> None:
    kept = json.loads(model.save(tmp_path / "model.json").read_text())
    assert CongestionModel.load(tmp_path / "model.json").chance_ == model.chance_ == kept["chance"]
    (tmp_path / "model.json").write_text(json.dumps(kept | {"chance": chance}))
    with expected_error(code="not-a-result"):
        CongestionModel.load(tmp_path / "model.json")


def test_the_command_and_explain_show_both(long: RttSeries, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(long.save(tmp_path / "long.csv"))
    assert status_of(["congestion", "estimate", file]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "0.0 … 199.9 s: persistently congested in 2 windows that agree: " in text
    assert "with the link's rate (--rate) the interval would be a factor of about " in text
    assert status_of(["congestion", "estimate", file, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    (one,) = told["series"]
    assert len(told["estimates"]) == 2
    assert one["together"]["low_bps"] < TRUTH_BPS < one["together"]["high_bps"]
    assert one["narrower"][0]["measure"] == "rate"
    explained = explain([file])
    assert any("with the link's rate (--rate)" in step for step in explained.next)
    assert "2 windows that agree: " in explained.probed[0].says
    assert " a flow (" in explained.probed[0].says


def test_explain_does_not_list_windows_that_differ(windows: dict[Measurement, RttSeries], tmp_path: Path) -> None:
    differing = joined(windows[SAME[0]], windows[MORE_FLOWS]).save(tmp_path / "differing.csv")
    assert explain([str(differing)]).probed[0].says == "persistently congested"


def test_the_report_has_both_in_its_verdict(long: RttSeries, model: CongestionModel) -> None:
    link = Link.of(long, model, Assumed())
    assert link.whole is not None
    assert link.whole == together(estimate(long, model), model)
    text = verdict(link, model.level)
    assert f"The windows agree: over all of them a TCP flow gets {link.whole.gets} " in text
    assert ". With the link's rate (--rate) the interval would be a factor of about " in text
