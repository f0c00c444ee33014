"""RTT series: their contents, their files, when they are unusable, and the difference of two."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from expected_error import expected_error
from sawtooth.errors import SawtoothError
from sawtooth.link_estimate import RttSeries, check, difference, load_series, read_series, save_series
from sawtooth.link_estimate.series_checks import rate_limited


def series(rtt_s: Any = None, **given: Any) -> RttSeries:
    """A thousand probes through a queue, unless specified otherwise."""
    values = np.random.default_rng(1).gamma(2, 0.003, 1000) + 0.02 if rtt_s is None else np.asarray(rtt_s, dtype=float)
    sent_s = 1.7e9 + 0.1 * np.arange(len(values))
    return RttSeries(**{"sent_s": sent_s, "rtt_s": values, "pace_s": 0.1, "source": "a test", **given})


def codes(one: RttSeries) -> list[str]:
    return [remark.code for remark in one.remarks]


def refused(one: RttSeries) -> str:
    with pytest.raises(SawtoothError) as caught:
        check(one)
    assert caught.value.fix
    return caught.value.code


def test_a_series_knows_its_loss_and_its_windows() -> None:
    rtt_s = np.full(2500, 0.02)
    rtt_s[::10] = np.nan
    one = series(rtt_s)
    assert (len(one), round(one.loss, 9), round(one.duration_s, 6)) == (2500, 0.1, 250.0)
    parts = list(one.windows())
    assert [len(part) for part in parts] == [1000, 1000]
    assert parts[1].sent_s[0] == one.sent_s[1000]


@pytest.mark.parametrize(
    "wrong",
    [
        {"rtt_s": [0.1, 0.2]},
        {"rtt_s": [0.1, 0.2, np.inf]},
        {"rtt_s": [[0.1, 0.2, 0.3]]},
        {"rtt_s": ["a", 1, 2]},
        {"sent_s": [0.0, np.nan, 1.0]},
        {"pace_s": 0.0},
        {"pace_s": float("nan")},
        {"clock": "noon"},
        {"address": np.array(["a"], dtype=object)},
    ],
)
def test_a_series_that_is_none_is_refused(wrong: dict[str, Any]) -> None:
    with expected_error(code="not-a-series"):
        RttSeries(**{"sent_s": [0.0, 1.0, 2.0], "rtt_s": [0.1, 0.2, 0.3], "pace_s": 1.0, "source": "", **wrong})


def test_a_good_series_passes_without_a_remark() -> None:
    assert check(series()).remarks == ()


def test_what_was_saved_is_read_again_and_by_pandas(tmp_path: Path) -> None:
    rtt_s = np.array([0.02, np.nan, 0.0215, 0.022000001])
    near = series(
        rtt_s,
        label='near, odd "name"',
        target="192.0.2.1",
        hop=3,
        late_s=np.array([0, 1e-6, 0.002, 0]),
        address=np.array(["10.0.0.1", "", "10.0.0.1", "10.0.0.2"], dtype=object),
        reply=np.array(["time-exceeded", "", "time-exceeded", "time-exceeded"], dtype=object),
        duplicates=np.array([0, 0, 2, 0]),
    )
    far = series(rtt_s + 0.01, label="far")
    path = save_series(tmp_path / "two.csv", [near, far])
    again = read_series(path)
    assert [one.label for one in again] == [near.label, "far"]
    assert (again[0].target, again[0].hop, again[0].clock, again[0].pace_s) == ("192.0.2.1", 3, "unix", 0.1)
    np.testing.assert_allclose(again[0].rtt_s, rtt_s, atol=1e-9)
    np.testing.assert_allclose(again[0].sent_s, near.sent_s, atol=1e-6)
    assert list(again[0].address) == list(near.address)
    assert list(again[0].duplicates) == [0, 0, 2, 0]
    assert again[0].late_s[2] == 0.002
    table = pd.read_csv(path)
    assert table["rtt_s"].isna().sum() == 2
    assert {"sent_s", "rtt_s", "late_s", "pace_s"} <= set(table.columns)


def test_one_series_is_loaded_by_itself_and_two_are_not(tmp_path: Path) -> None:
    assert len(load_series(series(label="a").save(tmp_path / "one.csv"))) == 1000
    path = save_series(tmp_path / "two.csv", [series(label="a"), series(label="b")])
    with pytest.raises(SawtoothError, match="2 series: a, b"):
        load_series(path)
    with pytest.raises(SawtoothError, match="same label"):
        save_series(tmp_path / "three.csv", [series(label="a"), series(label="a")])


def test_too_few_probes_are_refused() -> None:
    assert refused(series(np.full(99, 0.02))) == "too-few-probes"
    rtt_s = np.full(1000, np.nan)
    rtt_s[:99] = 0.02 + np.arange(99) / 1e5
    assert refused(series(rtt_s)) == "too-few-probes"


def test_a_series_without_an_answer_is_refused() -> None:
    assert refused(series(np.full(1000, np.nan))) == "all-lost"


def test_a_constant_series_is_refused_and_a_rounded_one_doubted() -> None:
    assert refused(series(np.full(1000, 0.02))) == "constant-series"
    rounded = check(series(np.round(series().rtt_s, 2)))
    assert "coarse" in codes(rounded)
    assert any(remark.doubt for remark in rounded.remarks)


@pytest.mark.parametrize("factor", [1000, 1e6, 1e-6, 1e-9])
def test_rtts_in_another_unit_are_refused(factor: float) -> None:
    assert refused(series(series().rtt_s * factor)) == "wrong-unit"


def test_an_answer_that_nobody_waits_for_is_refused_in_a_difference_too() -> None:
    rtt_s = series().rtt_s.copy()
    rtt_s[5] = 1e308
    assert refused(series(rtt_s)) == "wrong-unit"
    rtt_s[5] = -1e308
    assert refused(replace(series(rtt_s), difference=True)) == "wrong-unit"


def test_a_time_since_the_start_that_nothing_lasts_is_refused() -> None:
    times = replace(series(sent_s=np.arange(1000) * 1e300), clock="start")
    assert refused(times) == "wrong-unit"


def test_seconds_read_as_milliseconds_are_remarked_on() -> None:
    assert "tiny-rtt" in codes(check(series(series().rtt_s * 1e-3)))


@pytest.mark.parametrize(("factor", "unit"), [(1e3, "ms"), (1e6, "µs"), (1e9, "ns")])
def test_times_in_another_unit_are_refused_and_the_unit_named(factor: float, unit: str) -> None:
    with expected_error(code="wrong-unit", match=f"looks like {unit}"):
        check(series(sent_s=series().sent_s * factor))


def test_a_clock_that_was_set_back_is_refused() -> None:
    sent_s = series().sent_s.copy()
    sent_s[400:] -= 3.0
    with expected_error(code="clock-step", match=r"set back by 2\.9 s before probe 400"):
        check(series(sent_s=sent_s))


def test_a_negative_rtt_is_refused_as_a_clock_that_was_set() -> None:
    rtt_s = series().rtt_s.copy()
    rtt_s[7] = -0.5
    assert refused(series(rtt_s)) == "clock-step"


def test_a_clock_that_was_set_forward_is_a_gap() -> None:
    sent_s = series().sent_s.copy()
    sent_s[400:] += 30.0
    gap = next(remark for remark in check(series(sent_s=sent_s)).remarks if remark.code == "gap")
    assert gap.at_s == sent_s[399]
    assert "30.1 s" in gap.text


def test_rows_in_order_of_arrival_are_sorted_with_their_values() -> None:
    one = series()
    order = np.arange(1000)
    order[[10, 11]] = order[[11, 10]]
    order[[500, 502]] = order[[502, 500]]
    again = check(one.part(order))
    assert codes(again) == ["reordered-rows"]
    np.testing.assert_array_equal(again.rtt_s, one.rtt_s)


def test_rows_that_are_there_twice_are_left_out() -> None:
    one = series()
    again = check(one.part(np.sort(np.concatenate([np.arange(1000), [5, 6, 7]]))))
    assert codes(again) == ["duplicate-rows"]
    assert len(again) == 1000


def test_probes_off_their_pace_are_doubted() -> None:
    sent_s = 1.7e9 + np.cumsum(np.random.default_rng(2).exponential(0.1, 1000))
    remark = next(one for one in check(series(sent_s=sent_s)).remarks if one.code == "irregular-pace")
    assert remark.doubt


def test_answers_that_overtook_each_other_are_counted() -> None:
    rtt_s = series().rtt_s.copy()
    rtt_s[[100, 200]] += 0.25
    told = next(one.text for one in check(series(rtt_s)).remarks if one.code == "reordered")
    assert told == "2 answers came after that of a later probe"


def test_a_path_that_changed_is_reported_by_its_answering_routers() -> None:
    address = np.array(["10.0.0.1"] * 600 + ["10.0.0.2"] * 400, dtype=object)
    remark = next(one for one in check(series(address=address)).remarks if one.code == "path-changed")
    assert remark.doubt
    assert remark.at_s == series().sent_s[600]


def test_late_probes_and_duplicates_are_remarked_on() -> None:
    late_s = np.zeros(1000)
    late_s[::20] = 0.05
    told = codes(check(series(late_s=late_s, duplicates=np.ones(1000, dtype=int))))
    assert told == ["duplicates", "late-probes"]


@pytest.mark.parametrize(
    "answered",
    [
        np.arange(1000) % 10 == 0,
        np.arange(1000) % 10 < 5,
        np.arange(1000) % 5 != 0,
        # One answer per second after a burst, a probe earlier or later: Linux' net.ipv4.icmp_ratelimit.
        np.isin(np.arange(1000), np.arange(0, 1000, 10) + np.random.default_rng(1).integers(0, 2, 100)),
    ],
)
def test_a_limit_on_answers_is_recognized_by_its_pattern(answered: np.ndarray) -> None:
    limited = series(np.where(answered, series().rtt_s, np.nan))
    assert rate_limited(limited)
    if answered.sum() >= 100:
        assert any(one.code == "rate-limited" and one.doubt for one in check(limited).remarks)


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.7])
@pytest.mark.parametrize("seed", range(5))
def test_losses_by_chance_and_in_bursts_are_not_taken_for_a_limit(share: float, seed: int) -> None:
    random = np.random.default_rng(seed)
    assert not rate_limited(series(np.where(random.random(1000) < share, np.nan, series().rtt_s)))
    state, bursts = False, []
    for draw in random.random(1000):
        state = draw < (0.9 if state else 0.1 * share / (1 - share))
        bursts.append(state)
    assert not rate_limited(series(np.where(bursts, np.nan, series().rtt_s)))


def test_the_difference_is_that_of_the_probes_nearest_in_time() -> None:
    near = series(label="near", hop=1)
    far = series(near.rtt_s + 0.01, sent_s=near.sent_s + 0.03, label="far", hop=2)
    link = difference(far, near)
    np.testing.assert_allclose(link.rtt_s, 0.01)
    assert link.difference
    assert (link.label, link.hop) == ("far - near", 2)
    np.testing.assert_array_equal(link.sent_s, far.sent_s)


def test_a_lost_far_probe_stays_lost_and_a_lost_near_one_is_stood_in_for() -> None:
    rtt_s = np.linspace(0.02, 0.03, 1000)
    near_s, far_s = rtt_s.copy(), rtt_s + 0.01
    near_s[100], far_s[200] = np.nan, np.nan
    link = difference(series(far_s), series(near_s))
    assert np.flatnonzero(np.isnan(link.rtt_s)).tolist() == [200]
    assert link.rtt_s[100] == pytest.approx(0.01, abs=2e-5)


def test_far_probes_without_a_near_one_at_their_time_are_left_out_with_a_remark() -> None:
    near = series()
    link = difference(series(), near.part(slice(0, 500)))
    assert len(link) == 501
    assert codes(link) == ["unpaired"]
    assert "499 of 1000" in link.remarks[0].text


def test_a_difference_may_be_negative_which_is_remarked_on() -> None:
    near = series(series().rtt_s + 0.1)
    told = check(difference(series(np.random.default_rng(3).gamma(2, 0.003, 1000) + 0.02), near))
    assert "negative-difference" in codes(told)
    with pytest.raises(SawtoothError, match="is not a series of probes"):
        told.save("never.csv")


def test_remarks_of_both_ends_stay_with_their_difference(tmp_path: Path) -> None:
    path = tmp_path / "near.csv"
    path.write_text("sent_s,rtt_ms,colour\n" + "".join(f"{1.7e9 + i / 10:.1f},{20 + i % 7},red\n" for i in range(1000)))
    assert codes(difference(series(), read_series(path)[0])) == ["ignored-columns"]


def test_series_that_do_not_meet_cannot_be_paired() -> None:
    for far, near in (
        (series(), series(sent_s=series().sent_s + 5000)),
        (series(), series(clock="start")),
        (series(clock="counted"), series(clock="counted")),
        (series(), series(np.full(1000, np.nan))),
        (series(np.full(1000, np.nan)), series()),
    ):
        with expected_error(code="unmatched-series"):
            difference(far, near)
