"""Estimates for a link: features of a series, estimates from the bundled model, the command line."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from expected_error import expected_error
from sawtooth.cli.program import status_of
from sawtooth.link_estimate import RttSeries, difference, read_series, save_series
from sawtooth.link_estimate.calibrate import (
    MOST,
    PROBES,
    Measurement,
    corpus,
    grid,
    jittered,
    make,
    read,
    usual_flows,
)
from sawtooth.link_estimate.estimate import FARTHEST, estimate
from sawtooth.link_estimate.features import FEATURES, features, vector
from sawtooth.link_estimate.model import COLUMNS, CongestionModel

CONGESTED = Measurement(100_000_000, 396, 0.02, 12, 0, seed=4711)
BUSY = Measurement(100_000_000, 396, 0.04, 10, 0, seed=4711, load=0.5)
LOSING = Measurement(100_000_000, 396, 0.02, 30, 0, seed=4711)
"""Loses one probe in sixteen; with twelve flows it is one in thirty, and half of such links lose none."""
SLOWER = Measurement(100_000_000, 396, 0.02, 400, 0, seed=4711)
FASTER = Measurement(100_000_000, 396, 0.02, 1, 0, seed=4711)
"""0.24 and 95 Mbit/s per flow: below and above the model's training range at that rate."""


def series(rtt_s: object, pace_s: float = 0.1, **more: object) -> RttSeries:
    rtt = np.asarray(rtt_s, dtype=float)
    return RttSeries(np.arange(len(rtt)) * pace_s, rtt, pace_s, "test", clock="start", **more)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("corpus")
    make(directory, [CONGESTED, BUSY], jobs=1, quiet=True)
    return directory


@pytest.fixture(scope="module")
def congested(made: Path) -> tuple[RttSeries, float]:
    return next((found.series, found.throughput_bps) for found in read(made) if found.one == CONGESTED)


def test_percent_increasing_is_the_sources_example() -> None:
    ten = [0.044, 0.046, 0.048, 0.043, 0.045, 0.044, 0.047, 0.042, 0.045, 0.048]
    # The source counts six of ten; the first probe has no predecessor, so six of nine differences are positive.
    assert features(series(ten))["increasing"] == pytest.approx(6 / 9)


def test_features_are_those_of_the_delay_above_nearly_the_smallest_rtt() -> None:
    values = features(series([0.010, 0.020, 0.010, 0.030, 0.010, 0.010]))
    assert values["mean_s"] == pytest.approx(0.005, rel=0.03)
    assert values["std_s"] == pytest.approx(np.std([0, 10, 0, 20, 0, 0]) / 1e3, rel=0.03)
    assert values["step_s"] == pytest.approx((10 + 10 + 20 + 20) / 5 / 1e3, rel=0.03)
    assert values["loss"] == 0


def test_features_do_not_depend_on_the_length_of_the_path() -> None:
    random = np.random.default_rng(1)
    rtt_s = 0.02 + random.gamma(2, 0.002, 500)
    near, far = features(series(rtt_s)), features(series(rtt_s + 0.07))
    assert all(far[name] == pytest.approx(near[name], rel=1e-6, abs=1e-9) for name in FEATURES)


def test_a_lost_probe_parts_its_neighbours() -> None:
    values = features(series([0.01, 0.02, math.nan, 0.01, 0.02, 0.03, 0.02]))
    assert values["increasing"] == pytest.approx(3 / 4)
    assert values["loss"] == pytest.approx(1 / 7)


def test_a_constant_series_has_no_features() -> None:
    with pytest.raises(ValueError, match="constant"):
        features(series([0.02] * 100))


def test_the_vector_is_finite_where_there_is_no_loss_and_no_fall() -> None:
    assert np.isfinite(vector(features(series(np.linspace(0.01, 0.02, 50))))).all()


@pytest.mark.usefixtures("patience")
def test_a_measurement_says_how_each_flow_did(congested: tuple[RttSeries, float]) -> None:
    probes, throughput_bps = congested
    assert len(probes) == PROBES
    # 12 flows share 100 Mbit/s less the frames' headers.
    assert 0.9 * 1448 / 1514 * 100e6 / 12 < throughput_bps < 1448 / 1514 * 100e6 / 12


@pytest.mark.usefixtures("patience")
def test_a_measurement_that_is_there_is_not_made_again(made: Path) -> None:
    before = {file: file.stat().st_mtime_ns for file in made.iterdir()}
    make(made, [CONGESTED, BUSY], jobs=1, quiet=True)
    assert {file: file.stat().st_mtime_ns for file in made.iterdir()} == before


def test_a_broken_measurement_is_named(tmp_path: Path) -> None:
    (tmp_path / "one.npz").write_bytes(b"PK\x03\x04 no archive")
    with expected_error(code="not-a-series", match="no measurement"):
        list(read(tmp_path))


def test_the_corpus_has_all_states_and_every_column_of_a_model(made: Path) -> None:
    table = corpus(made)
    assert set(table["state"]) == {"idle", "busy", "congested", "none"}
    assert set(COLUMNS) <= set(table.columns)
    assert corpus(made).equals(table)


def test_a_grid_has_every_combination_once_and_links_that_are_only_busy() -> None:
    found = grid(
        rates_bps=[10**8], queue_s=0.048, rtts_s=[0.02, 0.04], cubic_shares=[0, 0.5, 1], flows=[5, 50], seeds=[1, 2]
    )
    congested = [one for one in found if one.load is None]
    assert len(congested) == 2 * 3 * 2 * 2
    assert len({one.name for one in found}) == len(found)
    assert {one.queue_packets for one in found} == {396}
    assert {(one.cubic, one.reno) for one in congested if one.flows == 5} == {(0, 5), (2, 3), (5, 0)}
    assert len(found) > len(congested)


def test_a_grid_is_bounded() -> None:
    with expected_error(code="too-many-points"):
        grid(rates_bps=[10**8], queue_s=0.048, rtts_s=[0.02], cubic_shares=[1], flows=range(3, 5 + MOST), seeds=[1])


def test_usual_flows_get_one_to_a_hundred_mbits() -> None:
    assert usual_flows(10**9)[0] == 10
    assert usual_flows(10**9)[-1] == 1000
    assert usual_flows(10**8)[0] == 3


@pytest.mark.usefixtures("patience")
def test_a_congested_link_is_reported_with_an_interval(congested: tuple[RttSeries, float]) -> None:
    probes, truth = congested
    for rate_bps, within in ((1e8, 0.5), (None, 1.0)):
        (told,) = estimate(probes, rate_bps=rate_bps)
        assert told.state == "congested"
        assert told.throughput_bps == pytest.approx(truth, rel=within)
        assert told.low_bps < truth < told.high_bps
        assert told.distance < FARTHEST


Beyond = dict[Measurement, tuple[RttSeries, float]]


@pytest.fixture(scope="module")
def beyond(tmp_path_factory: pytest.TempPathFactory) -> Beyond:
    directory = tmp_path_factory.mktemp("beyond")
    make(directory, [SLOWER, FASTER], jobs=1, quiet=True)
    return {found.one: (found.series, found.throughput_bps) for found in read(directory)}


@pytest.mark.usefixtures("patience")
def test_below_what_was_trained_on_the_answer_is_at_most(
    beyond: Beyond, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    probes, truth = beyond[SLOWER]
    edge_bps, _ = CongestionModel.default().ends(None, 1e8)
    (told,) = estimate(probes, rate_bps=1e8)
    assert (told.state, told.bound, told.low_bps, told.edge_bps) == ("congested", "at-most", 0.0, edge_bps)
    assert truth < edge_bps <= told.high_bps < 5 * edge_bps
    probes.save(tmp_path / "slower.csv")
    command = ["congestion", "estimate", str(tmp_path / "slower.csv"), "--rate", "100 Mbit/s"]
    assert status_of(command) == 0
    text = capsys.readouterr().out
    assert f"at most {told.high_bps / 1e6:.3g} Mbit/s a flow" in text
    assert f"the model was trained on no less than {edge_bps / 1e6:.3g} Mbit/s" in text
    assert status_of([*command, "--json"]) == 0
    (described,) = json.loads(capsys.readouterr().out)["estimates"]
    assert (described["bound"], described["low_bps"], described["edge_bps"]) == ("at-most", 0, edge_bps)


@pytest.mark.usefixtures("patience")
def test_above_what_was_trained_on_the_answer_is_at_least(
    beyond: Beyond,
) -> None:
    probes, truth = beyond[FASTER]
    _, edge_bps = CongestionModel.default().ends(None, 1e8)
    (told,) = estimate(probes, rate_bps=1e8)
    assert (told.bound, told.high_bps, told.edge_bps) == ("at-least", None, edge_bps)
    assert told.low_bps <= edge_bps < truth
    assert told.gets == f"at least {told.low_bps / 1e6:.3g} Mbit/s"


def test_well_within_what_was_trained_on_the_answer_has_two_ends(congested: tuple[RttSeries, float]) -> None:
    (told,) = estimate(congested[0], rate_bps=1e8)
    assert (told.bound, told.edge_bps) == (None, None)
    assert told.within == f"{told.low_bps / 1e6:.3g} … {told.high_bps / 1e6:.3g} Mbit/s"


def test_an_interval_that_reaches_both_edges_is_no_answer(
    congested: tuple[RttSeries, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CongestionModel, "predict_interval", lambda self, X: np.array([[5e5, 1e9]]))
    (told,) = estimate(congested[0], rate_bps=1e8)
    assert (told.state, told.reason, told.throughput_bps) == (None, "unlike-training", None)
    assert "from 0.5 Mbit/s to 1e+03 Mbit/s" in told.text


def test_a_link_without_a_standing_queue_is_busy(made: Path) -> None:
    probes = next(found.series for found in read(made) if found.one == BUSY)
    (told,) = estimate(probes)
    assert told.state == "busy"
    assert told.throughput_bps is None


def test_a_still_link_is_idle() -> None:
    random = np.random.default_rng(9)
    (told,) = estimate(jittered(series(np.full(1000, 0.03)), 3e-5, random))
    assert told.state == "idle"
    assert told.throughput_bps is None


def test_a_link_that_loses_probes_is_not_called_idle() -> None:
    random = np.random.default_rng(9)
    lossy = np.where(random.random(1000) < 0.04, math.nan, 0.03)
    (told,) = estimate(jittered(series(lossy), 3e-5, random))
    assert (told.state, told.reason, told.throughput_bps) == (None, "unlike-training", None)


@pytest.mark.parametrize("seed", range(3))
def test_random_rtts_are_no_queues(seed: int) -> None:
    random = np.random.default_rng(seed)
    for told in estimate(series(random.uniform(0.020, 0.050, 2000))):
        assert (told.state, told.reason, told.throughput_bps) == (None, "not-a-queue", None)
    (told,) = estimate(series(0.030 + 0.005 * random.normal(size=1000)))
    assert (told.state, told.reason) == (None, "not-a-queue")


def test_a_few_probes_that_met_no_queue_do_not_change_the_answer(congested: tuple[RttSeries, float]) -> None:
    rtt_s = congested[0].rtt_s.copy()
    rtt_s[-8:] = 0.002
    (whole,), (spoilt,) = estimate(congested[0], rate_bps=1e8), estimate(series(rtt_s), rate_bps=1e8)
    assert spoilt.state == "congested"
    assert spoilt.throughput_bps == pytest.approx(whole.throughput_bps, rel=0.15)


def test_a_queue_that_is_never_empty_is_congested(congested: tuple[RttSeries, float]) -> None:
    rtt_s = congested[0].rtt_s
    (told,) = estimate(series(np.maximum(rtt_s, np.nanquantile(rtt_s, 0.05))), rate_bps=1e8)
    assert told.state == "congested"


@pytest.mark.usefixtures("patience")
def test_losses_that_a_source_leaves_out_are_missed_and_the_answer_does_without(tmp_path: Path) -> None:
    make(tmp_path, [LOSING], jobs=1, quiet=True)
    (found,) = read(tmp_path)
    probes, truth = found.series, found.throughput_bps
    answers = np.resize(probes.rtt_s[probes.answered], PROBES)
    (told,) = estimate(series(answers), rate_bps=1e8)
    assert (told.state, told.losses_known) == ("congested", False)
    assert "losses seem not to be recorded" in told.text
    (whole,) = estimate(probes, rate_bps=1e8)
    assert whole.losses_known
    assert told.low_bps <= truth <= told.high_bps


@pytest.mark.usefixtures("patience")
def test_a_throughput_that_changes_is_reported_with_both(congested: tuple[RttSeries, float], beyond: Beyond) -> None:
    before, after = congested[0].rtt_s[:500], beyond[SLOWER][0].rtt_s[:500]
    (told,) = estimate(series(np.concatenate([before, after])), rate_bps=1e8)
    assert told.state == "congested"
    assert told.changes_s == pytest.approx(50, abs=10)
    assert "Mbit/s before and" in told.text
    assert told.low_bps < beyond[SLOWER][1] * 2
    assert told.high_bps > congested[1] / 2
    assert estimate(congested[0], rate_bps=1e8)[0].changes_s is None


def test_a_long_series_is_reported_window_by_window(congested: tuple[RttSeries, float]) -> None:
    probes, _ = congested
    twice = series(np.concatenate([probes.rtt_s, probes.rtt_s, probes.rtt_s[:300]]))
    told = estimate(twice)
    assert [one.probes for one in told] == [PROBES, PROBES]
    assert told[1].start_s == pytest.approx(100.0)
    assert told[0].throughput_bps == told[1].throughput_bps


def shifted(rtt_s: np.ndarray) -> np.ndarray:
    return rtt_s + np.where(np.arange(len(rtt_s)) < 480, 0, 0.2)


@pytest.mark.parametrize(
    ("reason", "spoil"),
    [
        ("too-few-probes", lambda rtt_s: rtt_s[:999]),
        ("all-lost", lambda rtt_s: np.full(1000, math.nan)),
        ("constant-series", lambda rtt_s: np.full(1000, 0.02)),
        ("wrong-unit", lambda rtt_s: rtt_s * 1e3),
        ("level-shift", shifted),
        ("coarse", lambda rtt_s: np.round(rtt_s, 2)),
        ("not-a-queue", lambda rtt_s: 0.1 + 0.09 * np.sign(np.sin(np.arange(1000) * 2.0)) + rtt_s),
    ],
)
def test_a_bad_series_gives_no_number_and_says_why(
    congested: tuple[RttSeries, float], reason: str, spoil: object
) -> None:
    (told,) = estimate(series(spoil(congested[0].rtt_s)))
    assert told.state is None
    assert told.throughput_bps is None
    assert told.reason == reason
    assert told.text


def test_rows_that_are_there_twice_do_not_make_a_window(congested: tuple[RttSeries, float]) -> None:
    half = congested[0].part(slice(0, 600))
    twice = RttSeries(np.repeat(half.sent_s, 2), np.repeat(half.rtt_s, 2), 0.1, "test", clock="start")
    (told,) = estimate(twice)
    assert (told.state, told.reason) == (None, "too-few-probes")


def test_another_pace_than_the_models_is_no_answer(congested: tuple[RttSeries, float]) -> None:
    (told,) = estimate(series(congested[0].rtt_s, pace_s=1.0))
    assert (told.state, told.reason) == (None, "pace")
    assert "a probe every 1 s, but the model needs 100 ms" in told.text
    (told,) = estimate(series(congested[0].rtt_s, pace_s=240.0))
    assert "a probe every 240 s, " in told.text


def test_an_assumption_outside_the_model_is_refused(congested: tuple[RttSeries, float]) -> None:
    for assumed in ({"rtt_s": 0.5}, {"rate_bps": 1e11}, {"rtt_s": 0.5, "rate_bps": 5e8}):
        with expected_error(code="out-of-range"):
            estimate(congested[0], **assumed)


def test_the_command_answers_in_words_and_json(
    congested: tuple[RttSeries, float], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    probes, truth = congested
    good, short = tmp_path / "good.csv", tmp_path / "short.csv"
    probes.save(good)
    series(probes.rtt_s[:200]).save(short)
    assert status_of(["congestion", "estimate", str(good), str(short), "--rate", "100 Mbit/s"]) == 0
    text = capsys.readouterr().out
    assert "persistently congested" in text
    assert "inconclusive (too-few-probes)" in text
    assert status_of(["congestion", "estimate", str(good), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["estimates"][0]["low_bps"] < truth < told["estimates"][0]["high_bps"]


@pytest.mark.usefixtures("patience")
def test_the_command_takes_the_near_end_off(
    congested: tuple[RttSeries, float], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    probes, truth = congested
    random = np.random.default_rng(3)
    near = series(0.005 + 0.02 * (np.sin(np.arange(1000) / 20) + 1) + random.exponential(2e-5, 1000))
    far = series(probes.rtt_s + near.rtt_s)
    far.save(tmp_path / "far.csv")
    near.save(tmp_path / "near.csv")
    command = ["congestion", "estimate", str(tmp_path / "far.csv"), "--near", str(tmp_path / "near.csv"), "--json"]
    assert status_of(command) == 0
    (told,) = json.loads(capsys.readouterr().out)["estimates"]
    assert told["low_bps"] < truth < told["high_bps"]
    # The file that "probe link" writes holds both ends.
    save_series(tmp_path / "link.csv", [replace(near, label="near"), replace(far, label="far")])
    assert status_of(["congestion", "estimate", str(tmp_path / "link.csv"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["estimates"][0]["throughput_bps"] == told["throughput_bps"]


def test_the_command_names_the_option_that_is_wrong(
    congested: tuple[RttSeries, float], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    congested[0].save(tmp_path / "good.csv")
    assert status_of(["congestion", "estimate", str(tmp_path / "good.csv"), "--assumed-rtt", "2 s"]) == 2
    assert "--assumed-rtt" in capsys.readouterr().err
    assert status_of(["congestion", "estimate", str(tmp_path / "good.csv"), "--rate", "fast"]) == 2
    assert "--rate" in capsys.readouterr().err
    (tmp_path / "bad.csv").write_text("sent_s,rtt_s\n0,inf\n")
    assert status_of(["congestion", "estimate", str(tmp_path / "bad.csv")]) == 2
    told = capsys.readouterr().err
    assert "bad.csv: rtt_s: line 2" in told
    assert "--assumed-rtt" not in told


def test_the_command_says_within_which_rates_an_unknown_one_is_sought(
    congested: tuple[RttSeries, float], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    congested[0].save(tmp_path / "good.csv")
    assert status_of(["congestion", "estimate", str(tmp_path / "good.csv")]) == 0
    low, high = (f"{end / 1e6:,.0f}" for end in CongestionModel.default().trained_on_["rate_bps"])
    assert f"a link of unknown rate, {low} to {high} Mbit/s" in capsys.readouterr().out


def test_times_of_a_refused_series_are_short(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = "".join(f"{number}e17,0.02\n" for number in range(1000))
    (tmp_path / "huge.csv").write_text(f"sent_s,rtt_s\n{rows}")
    assert status_of(["congestion", "estimate", str(tmp_path / "huge.csv")]) == 0
    told = capsys.readouterr().out
    assert "wrong-unit" in told
    assert len(told) < 500


@pytest.mark.parametrize(
    "text", ["", "{}", "[1]", "[" * 99_999, '{"format": 7}', '{"format": 3, "columns": [], "level": 0.9}']
)
def test_a_file_that_is_no_model_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "model.json"
    file.write_text(text)
    with expected_error(code="not-a-result"):
        CongestionModel.load(file)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """The contents of the bundled model's file."""
    kept: dict[str, object] = json.loads(
        CongestionModel.default().save(tmp_path_factory.mktemp("model") / "model.json").read_text()
    )
    return kept


@pytest.mark.usefixtures("patience")
@pytest.mark.parametrize(
    "change",
    [
        {"trained_on": {}},
        {"trained_on": {"throughput_bps": "x", "rtt_s": [0.01, 0.08], "rate_bps": [1e8, 1e9]}},
        {"level": 5},
        {"level": "x"},
        {"unit": 0},
        {"unit": {"all": 1.0}},
        {"names": ["standing"]},
        {"states": {}},
        {"states": {"all": {"sure": 0.5, "trees": [[[0, 1.0, 0, 0]]]}}},
        {"states": {"all": {"sure": 2, "trees": [[[[1, 0, 0, 0]]]]}}},
        {"processes": {"all": {"lengths": [1.0], "signal": 1.0, "noise": 0.1}}},
        {"factors": {}},
        {"others": [[1.0]]},
        {"other_states": ["busy"]},
        {"series": [[math.nan] * 37] * 30, "control": []},
        {"series": [], "control": []},
    ],
)
def test_a_model_that_cannot_answer_is_refused(
    tmp_path: Path, saved: dict[str, object], change: dict[str, object]
) -> None:
    file = tmp_path / "model.json"
    file.write_text(json.dumps(saved | change))
    with expected_error(code="not-a-result", match=r"no model|different lengths"):
        CongestionModel.load(file)


def test_an_absent_model_is_named(tmp_path: Path) -> None:
    with expected_error(code="file-not-found"):
        CongestionModel.load(tmp_path / "none.json")


@pytest.mark.usefixtures("patience")
def test_a_model_is_saved_and_loaded_without_change(tmp_path: Path, made: Path) -> None:
    model = CongestionModel.default()
    again = CongestionModel.load(model.save(tmp_path / "model.json"))
    table = corpus(made)
    X = table[table["state"] == "congested"][list(COLUMNS)]
    assert again.predict(X) == pytest.approx(model.predict(X), rel=1e-9)
    assert again.predict_interval(X) == pytest.approx(model.predict_interval(X), rel=1e-9)
    assert again.predict_state(X) == model.predict_state(X)


def test_the_shipped_models_own_held_out_errors_are_within_the_bars() -> None:
    held_out = CongestionModel.default().held_out_["without rtt"]
    assert held_out["median"] < 0.25
    assert held_out["p90"] < 0.75


def test_a_link_whose_near_end_is_the_target_gets_no_number(tmp_path: Path) -> None:
    lines = ["series,pace_s,sent_s,rtt_s,reply"]
    for at in range(1000):
        lines.append(f"near,0.1,{at / 10},{0.0001 + at % 7 * 1e-6},echo-reply")
        lines.append(f"far,0.1,{at / 10},{0.0002 + at % 5 * 1e-6},echo-reply")
    path = tmp_path / "link.csv"
    path.write_text("\n".join(lines) + "\n")
    near, far = sorted(read_series(path), key=lambda one: one.label != "near")
    (found,) = estimate(difference(far, near), rtt_s=0.02, rate_bps=1e9)
    assert (found.state, found.reason, found.throughput_bps) == (None, "target-reached", None)
