"""Level shifts are found if a route changed, and not if a queue appears, disappears, fills or drains."""

import numpy as np
import pytest

from sawtooth.link_estimate import RttSeries, check, level_shifts


def series(rtt_s: np.ndarray) -> RttSeries:
    return RttSeries(0.1 * np.arange(len(rtt_s)), rtt_s, 0.1, "a test", clock="start")


def sawtooth_queue(probes: int, period: int, seed: int, low: float = 0.3) -> np.ndarray:
    """Queueing delay, in s, of flows that fill 48 ms and back off together, each time to a different share of it."""
    random = np.random.default_rng(seed)
    found: list[float] = []
    while len(found) < probes:
        length = max(2, round(period * random.uniform(0.6, 1.4)))
        found += list(np.linspace(random.uniform(low, low + 0.3), 1, length) * 0.048)
    return np.array(found[:probes]) + random.exponential(2e-4, probes)


@pytest.mark.parametrize("period", [2, 5, 20, 75, 200])
@pytest.mark.parametrize("seed", range(6))
def test_a_queue_that_fills_and_drains_is_no_shift(period: int, seed: int) -> None:
    assert level_shifts(series(0.02 + sawtooth_queue(1000, period, seed))) == []


@pytest.mark.parametrize("seed", range(6))
def test_noise_alone_is_no_shift(seed: int) -> None:
    assert level_shifts(series(0.02 + np.random.default_rng(seed).exponential(0.001, 1000))) == []


@pytest.mark.parametrize("period", [2, 5, 20])
@pytest.mark.parametrize("size_s", [0.03, -0.03])
@pytest.mark.parametrize("at", [150, 500, 820])
def test_a_shift_is_found_under_a_queue_with_its_size_and_place(period: int, size_s: float, at: int) -> None:
    rtt_s = 0.06 + sawtooth_queue(1000, period, 3)
    rtt_s[at:] += size_s
    found = level_shifts(series(rtt_s))
    assert len(found) == 1
    assert found[0].size_s == pytest.approx(size_s, rel=0.35)
    assert abs(found[0].index - at) <= 50
    assert found[0].alike


def test_a_shift_of_an_idle_path_is_found_to_the_probe() -> None:
    rtt_s = 0.02 + np.random.default_rng(1).exponential(1e-4, 1000)
    rtt_s[613:] += 0.002
    found = level_shifts(series(rtt_s))
    assert [(shift.index, shift.at_s, shift.alike) for shift in found] == [(613, pytest.approx(61.3), True)]
    assert found[0].size_s == pytest.approx(0.002, rel=0.05)


def test_a_route_that_came_back_is_two_shifts() -> None:
    rtt_s = 0.02 + np.random.default_rng(1).exponential(1e-4, 3000)
    rtt_s[1000:2000] += 0.005
    assert [shift.index for shift in level_shifts(series(rtt_s))] == [1000, 2000]


def test_lost_probes_do_not_move_the_place() -> None:
    rtt_s = 0.02 + np.random.default_rng(1).exponential(1e-4, 1000)
    rtt_s[600:] += 0.005
    rtt_s[100:300:2] = np.nan
    assert [shift.index for shift in level_shifts(series(rtt_s))] == [600]


def test_a_queue_that_comes_at_once_is_distinguished_from_a_route_by_its_spread() -> None:
    rtt_s = 0.02 + np.random.default_rng(1).exponential(5e-5, 1000)
    rtt_s[500:] += sawtooth_queue(500, 4, 1, low=0.7)
    found = level_shifts(series(rtt_s))
    assert [shift.alike for shift in found] == [False]
    assert "a queue came or went" in found[0].remark().text


def test_a_queue_that_grows_over_minutes_is_no_shift() -> None:
    rtt_s = 0.02 + np.random.default_rng(1).exponential(5e-4, 3000)
    rtt_s += np.clip((np.arange(3000) - 1000) / 1000, 0, 1) * 0.03
    assert level_shifts(series(rtt_s)) == []


@pytest.mark.usefixtures("patience")
def test_a_day_of_probes_is_searched_within_seconds_and_its_shift_found() -> None:
    probes = 864_000
    rtt_s = 0.02 + np.random.default_rng(1).exponential(1e-3, probes)
    rtt_s += 0.02 * np.clip(np.sin(np.arange(probes) / probes * 2 * np.pi), 0, None)
    rtt_s[700_000:] += 0.012
    found = level_shifts(series(rtt_s))
    assert len(found) == 1
    assert abs(found[0].index - 700_000) < 1000


def test_too_short_a_series_has_none() -> None:
    assert level_shifts(series(np.concatenate([np.full(90, 0.02), np.full(90, 0.04)]))) == []
    assert level_shifts(series(np.full(500, np.nan))) == []


def test_a_checked_series_carries_the_doubt() -> None:
    rtt_s = 0.02 + np.random.default_rng(1).exponential(1e-4, 1000)
    rtt_s[600:] += 0.005
    remarks = [remark for remark in check(series(rtt_s)).remarks if remark.code == "level-shift"]
    assert [(remark.doubt, remark.at_s) for remark in remarks] == [(True, pytest.approx(60.0))]
    assert "ms from probe 600 on: the route changed" in remarks[0].text
