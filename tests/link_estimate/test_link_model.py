"""CongestionModel learns from synthetic series whose goodput is known by construction. Needs scikit-learn."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sawtooth.cli.program import status_of
from sawtooth.link_estimate import RttSeries
from sawtooth.link_estimate.calibrate import learn
from sawtooth.link_estimate.features import OF_LOSS, features
from sawtooth.link_estimate.model import COLUMNS, CongestionModel

pytestmark = pytest.mark.usefixtures("patience")


def toy(count: int, seed: int) -> pd.DataFrame:
    """Queues that vary more and lose less the more each flow gets."""
    random = np.random.default_rng(seed)
    rows = []
    for throughput_bps in np.geomspace(1e6, 1e8, count):
        size_s = 1e-4 * (throughput_bps / 1e6) ** 0.7
        walk = np.convolve(random.normal(0, size_s, 404), np.exp(-np.arange(5) / 2), "valid")
        rtt_s = 0.06 + walk - walk.min()
        rtt_s[random.random(400) < 0.05 * (1e6 / throughput_bps) ** 0.5] = np.nan
        rtt_s[:4] = 0.06
        series = RttSeries(np.arange(400) * 0.1, rtt_s, 0.1, "toy", clock="start")
        known = {"rtt_s": 0.02, "rate_bps": 1e9, "throughput_bps": throughput_bps, "state": "congested"}
        rows.append({**known, **features(series)})
        still = RttSeries(np.arange(400) * 0.1, 0.06 + random.exponential(2e-5, 400), 0.1, "toy", clock="start")
        rows.append({**known, "throughput_bps": np.nan, "state": "idle", **features(still)})
    return pd.DataFrame(rows)


@pytest.fixture(scope="module")
def model() -> CongestionModel:
    return learn(toy(60, seed=1))


@pytest.fixture(scope="module")
def unseen() -> pd.DataFrame:
    return toy(25, seed=2)


def test_it_predicts_what_it_has_not_seen(model: CongestionModel, unseen: pd.DataFrame) -> None:
    congested = unseen[unseen["state"] == "congested"]
    truth = congested["throughput_bps"].to_numpy()
    assert np.median(np.abs(model.predict(congested) / truth - 1)) < 0.15
    assert model.score(congested, truth) > 0.95


def test_intervals_hold_about_their_share_and_the_prediction(model: CongestionModel, unseen: pd.DataFrame) -> None:
    congested = unseen[unseen["state"] == "congested"]
    low, high = model.predict_interval(congested).T
    truth, middle = congested["throughput_bps"].to_numpy(), model.predict(congested)
    assert ((low < middle) & (middle < high)).all()
    assert 0.75 <= np.mean((low <= truth) & (truth <= high)) <= 1
    assert np.median(high / low) < 3


def test_states_are_distinguished(model: CongestionModel, unseen: pd.DataFrame) -> None:
    assert np.mean(np.array(model.predict_state(unseen)) == unseen["state"].to_numpy()) > 0.95


def test_what_is_unlike_the_training_is_far(model: CongestionModel, unseen: pd.DataFrame) -> None:
    congested = unseen[unseen["state"] == "congested"]
    assert np.median(model.distance(congested)) < 1.5
    odd = congested.assign(lag1=-0.9, asymmetry=20.0, full=0.5, skew=8.0)
    assert model.distance(odd).min() > 3


def test_its_ends_are_those_of_the_links_that_are_alike(model: CongestionModel) -> None:
    table = toy(60, seed=1)
    slow = toy(30, seed=5).assign(rate_bps=1e8)
    slow["throughput_bps"] /= 4
    both = learn(pd.concat([table, slow]))
    assert model.ends(0.02, 1e9) == pytest.approx((1e6, 1e8))
    assert both.ends(0.02, 1e9) == pytest.approx((1e6, 1e8))
    assert both.ends(0.02, 1e8) == pytest.approx((0.25e6, 0.25e8))
    assert both.ends(0.02, None) == pytest.approx((0.25e6, 1e8))
    with pytest.raises(ValueError, match="learnt"):
        both.ends(0.2, 1e9)


def test_an_unknown_rate_is_allowed_and_another_answer(model: CongestionModel, unseen: pd.DataFrame) -> None:
    congested = unseen[unseen["state"] == "congested"]
    free = model.predict(congested.assign(rate_bps=np.nan))
    assert np.median(np.abs(free / congested["throughput_bps"].to_numpy() - 1)) < 0.2


def test_losses_that_are_not_known_are_allowed_and_cost_accuracy(model: CongestionModel, unseen: pd.DataFrame) -> None:
    congested = unseen[unseen["state"] == "congested"]
    bare = congested.assign(**dict.fromkeys(OF_LOSS, np.nan))
    truth = congested["throughput_bps"].to_numpy()
    assert np.median(np.abs(model.predict(bare) / truth - 1)) < 0.3
    assert (model.usual_loss(bare)[:, 0] <= model.usual_loss(bare)[:, 1]).all()
    with pytest.raises(ValueError, match="may be NaN"):
        model.predict(congested.assign(loss=np.nan))


def test_a_saved_model_answers_the_same(model: CongestionModel, unseen: pd.DataFrame, tmp_path: Path) -> None:
    again = CongestionModel.load(model.save(tmp_path / "model.json"))
    # The model's file stores nine digits of each number.
    assert again.predict(unseen) == pytest.approx(model.predict(unseen), rel=1e-3)
    assert again.predict_state(unseen) == model.predict_state(unseen)
    assert again.distance(unseen) == pytest.approx(model.distance(unseen), rel=1e-4)


def test_the_same_series_give_the_same_model(model: CongestionModel, tmp_path: Path) -> None:
    again = learn(toy(60, seed=1))
    assert again.save(tmp_path / "a").read_bytes() == model.save(tmp_path / "b").read_bytes()


def test_a_wider_level_gives_wider_intervals(unseen: pd.DataFrame) -> None:
    widths = []
    for level in (0.5, 0.95):
        low, high = learn(toy(60, seed=1), level).predict_interval(unseen).T
        widths.append(np.median(high / low))
    assert widths[0] < widths[1]


def test_it_has_scikit_learns_parameters() -> None:
    from sklearn.base import clone

    assert clone(CongestionModel(level=0.8)).get_params() == {"level": 0.8}
    with pytest.raises(ValueError, match="no parameter"):
        CongestionModel().set_params(depth=3)


def test_one_state_only_is_always_that_state(unseen: pd.DataFrame) -> None:
    table = toy(40, seed=3)
    congested = table[table["state"] == "congested"]
    model = CongestionModel().fit(congested, congested["throughput_bps"].to_numpy())
    assert set(model.predict_state(unseen)) == {"congested"}


def test_calibrate_makes_series_a_table_and_a_model_and_takes_up_what_is_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flows = [part for count in (3, 4, 5, 7, 9, 12, 16, 20) for part in ("--flows", str(count))]
    command = [
        "congestion",
        "calibrate",
        "--rate",
        "20 Mbit/s",
        *flows,
        "--out",
        str(tmp_path),
        "--jobs",
        "2",
        "--quiet",
    ]
    assert status_of(command) == 0
    assert "held-out numbers of flows" in capsys.readouterr().out
    series = {file: file.stat().st_mtime_ns for file in (tmp_path / "series").iterdir()}
    table = pd.read_csv(tmp_path / "corpus.csv")
    assert (table["state"] == "congested").sum() == 3 * 8
    model = CongestionModel.load(tmp_path / "model.json")
    assert model.trained_on_["rate_bps"] == pytest.approx([20e6, 20e6])
    next(iter(series)).unlink()
    assert status_of(command) == 0
    again = {file: file.stat().st_mtime_ns for file in (tmp_path / "series").iterdir()}
    assert set(again) == set(series)
    assert sum(again[file] != series[file] for file in series) == 1
    assert CongestionModel.load(tmp_path / "model.json").predict(table) == pytest.approx(model.predict(table))


@pytest.mark.parametrize(
    ("message", "change"),
    [
        ("at least 20", lambda table: table.head(10)),
        ("columns are missing", lambda table: table.drop(columns="lag1")),
        ("may be NaN", lambda table: table.assign(skew=np.nan)),
        ("above zero", lambda table: table.assign(throughput_bps=0.0)),
        ("above zero", lambda table: table.assign(rtt_s=-1.0)),
    ],
)
def test_what_cannot_be_learnt_from_is_refused(message: str, change: object) -> None:
    table = toy(25, seed=4)
    changed = change(table[table["state"] == "congested"])
    with pytest.raises(ValueError, match=message):
        CongestionModel().fit(changed, changed["throughput_bps"].to_numpy())


def test_a_level_is_a_share() -> None:
    table = toy(25, seed=4)
    with pytest.raises(ValueError, match="level"):
        CongestionModel(level=90).fit(table[list(COLUMNS)], table["throughput_bps"].to_numpy(), table["state"].tolist())
