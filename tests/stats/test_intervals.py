"""Intervals over seeds: skewness, possible values, outliers, and seeds that change nothing."""

import math
from pathlib import Path

import numpy as np
import pytest

from sawtooth.scenario import Scenario
from sawtooth.scenario.units import Span
from sawtooth.stats import independent, of_runs
from sawtooth.stats.interval import Mean
from sawtooth.stats.outliers import outliers
from sawtooth.study.goodput_ceiling import most_mbps
from sawtooth.study.interval_text import Course, ends, outlying


def test_without_skewness_the_interval_is_students() -> None:
    found = independent([1.0, 2.0, 3.0, 4.0, 5.0])
    half = 2.776445 * math.sqrt(2.5 / 5)
    assert (found.low, found.high) == pytest.approx((3 - half, 3 + half), abs=1e-5)


def test_the_interval_is_longer_on_the_side_of_the_tail() -> None:
    found = independent([98.0, 184.0, 184.5, 185.0, 185.2])
    assert found.mean - found.low > 2 * (found.high - found.mean)
    assert independent([-98.0, -184.0, -184.5, -185.0, -185.2]).high == pytest.approx(-found.low)


def test_of_a_skewed_population_it_holds_the_mean_more_often_than_students() -> None:
    chance, held, student, truth = np.random.default_rng(3), 0, 0, -math.exp(0.5)
    for _ in range(1000):
        one = Mean.of((-chance.lognormal(0, 1, 10)).tolist())
        low, high = one.bounds()
        held += low <= truth <= high
        student += abs(one.value - truth) <= one.half()
    assert held > student + 30


def test_bounds_are_possible_and_hold_the_mean() -> None:
    seeds = [[98.0] * 30, [184.0] * 30, [185.0] * 30]
    free, cut = of_runs(seeds), of_runs(seeds, most=191.3)
    assert free.high > 191.3
    assert cut.high == 191.3
    assert cut.low >= 0
    # A mean above the ceiling, from data that waited for a hole to be filled, stays inside.
    assert of_runs(seeds, most=100.0).high == pytest.approx(free.mean)


def test_the_ceiling_is_what_headers_leave_of_the_rate() -> None:
    path = {"rate": "200 Mbit/s", "rtt": "40 ms"}
    asked = {"duration": "10 s", "path": path, "flows": [{"cc": "cubic"}]}
    assert most_mbps(Scenario.from_dict(asked)) == pytest.approx(200 * 1448 / 1514)


def test_outliers_are_found_also_where_several_hide_each_other() -> None:
    assert outliers([98.0, 184.0, 184.0, 185.0, 185.1]) == [0]
    others = [184.0, 184.2, 184.5, 184.4, 184.9, 185.0, 184.7, 184.3]
    assert outliers([32.8, 160.3, 169.6, 181.0, *others]) == [0, 1, 2, 3]
    assert outliers([1.0, 2.0, 3.0, 4.0, 5.5]) == []
    assert outliers([5.0] * 6) == []


def test_an_outlier_is_named_by_its_seed_and_the_rule() -> None:
    course = Course("", [[mean] * 3 for mean in (184.0, 185.0, 98.0, 184.5, 185.1)], 0.0, Span(10**9), range(1, 6))
    (said,) = outlying([course])
    assert said.startswith("seed 3 (98 Mbit/s) is an outlier among 5 by Rosner's test at 1%")


def test_the_ends_have_three_digits_or_all_before_the_point() -> None:
    assert ends([98.234, 184.95, 120.0]) == "98.2 … 185"
    assert ends([0.0, 12345.6]) == "0 … 12346"
    assert ends([5.2, 5.2]) == "-"


def test_what_the_tool_of_coverage_measures_is_the_interval_that_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "experiments")
    import coverage_of_intervals as coverage

    chance = np.random.default_rng(1)
    samples = np.concatenate([chance.lognormal(0, 1, (20, 5)), np.full((1, 5), 3.0), np.array([[1.0, 2, 3, 4, 5]])])
    measured = np.stack(coverage.hall(samples, math.inf), axis=1)
    used = np.array([Mean.of(row.tolist()).bounds() for row in samples])
    assert measured == pytest.approx(used)
    low, high = coverage.bootstrap_t(samples, math.inf, chance)
    assert (low <= samples.mean(axis=1)).all()
    assert (high >= samples.mean(axis=1)).all()
