"""The statistics are those of the published tables, and the intervals respect that seconds resemble each other."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fake_engine import Fake
from sawtooth.run import Run
from sawtooth.scenario import Scenario
from sawtooth.stats import (
    STATISTICS,
    batch_means,
    change_percent,
    counters,
    describe,
    independent,
    jain,
    throughput,
    throughput_by_flow,
)
from sawtooth.stats.interval import batch_count


def made(rows, *, warmup="0 s", duration="10 s", info=None):
    scenario = Scenario(topology="chain", duration=duration, warmup=warmup)
    tables = {"intervals": pd.DataFrame(rows)}
    if info is not None:
        tables["tcp_info"] = pd.DataFrame(info)
    return Run(scenario, "made", tables)


def test_throughput_is_summed_over_the_flows_of_an_interval_in_mbit_s():
    run = made({"t_s": [1.0, 1.0, 2.0], "flow": [0, 1, 0], "goodput_bps": [1e6, 2e6, 5e6]})
    assert throughput(run).to_list() == [3.0, 5.0]
    assert throughput(run).index.to_list() == [1.0, 2.0]


def test_intervals_that_begin_in_the_warmup_are_left_out():
    run = made({"t_s": [1.0, 2.0, 3.0], "flow": 0, "goodput_bps": [1e6, 2e6, 3e6]}, warmup="1.5 s")
    assert throughput(run).to_list() == [3.0]
    run = made({"t_s": [1.0, 2.0, 3.0], "flow": 0, "goodput_bps": [1e6, 2e6, 3e6]}, warmup="1 s")
    assert throughput(run).to_list() == [2.0, 3.0]


@pytest.mark.parametrize(("duration", "last"), [("3.5 s", 3.5), ("3.000000001 s", 3.000000001), ("3.999 s", 3.999)])
def test_a_last_interval_that_is_cut_short_is_no_sample_and_its_counts_are_counted(duration, last):
    rows = {"t_s": [1.0, 2.0, 3.0, last], "flow": 0, "goodput_bps": [1e6, 2e6, 3e6, 9e9], "timeouts": [0, 0, 1, 2]}
    run = made(rows, duration=duration)
    assert throughput(run).to_list() == [1.0, 2.0, 3.0]
    assert describe(throughput(run))["mean_mbps"] == 2.0
    assert counters(run)["timeouts"] == 3


def test_a_last_interval_that_is_whole_is_a_sample():
    run = made({"t_s": [8.0, 9.0, 10.0], "flow": 0, "goodput_bps": 1e6})
    assert len(throughput(run)) == 3


def test_throughput_by_flow_has_a_column_a_flow_and_adds_up_to_the_throughput():
    run = made({"t_s": [1.0, 1.0, 2.0], "flow": [0, 1, 0], "goodput_bps": [1e6, 2e6, 5e6]})
    each = throughput_by_flow(run)
    assert each.to_dict("list") == {0: [1.0, 5.0], 1: [2.0, 0.0]}
    assert each.sum(axis=1).to_list() == throughput(run).to_list()


@given(st.floats(1e-3, 1e9), st.integers(2, 50))
def test_jain_s_index_is_1_for_equals_and_one_nth_when_one_gets_all(rate, n):
    assert jain([rate] * n) == pytest.approx(1)
    assert jain([rate] + [0.0] * (n - 1)) == pytest.approx(1 / n)


def test_jain_s_index_is_the_square_of_the_sum_over_n_times_the_sum_of_squares():
    # (3 + 1)^2 / (2 (9 + 1))
    assert jain([3, 1]) == pytest.approx(0.8)


@pytest.mark.parametrize("rates", [[], [5.0], [0.0, 0.0]])
def test_one_connection_or_none_that_delivers_has_no_index(rates):
    assert math.isnan(jain(rates))


@given(st.lists(st.floats(0, 1e4), min_size=2, max_size=200))
def test_the_statistics_are_those_of_pandas_describe(samples):
    ours = describe(samples)
    theirs = pd.Series(samples).describe()
    names = ["count", "mean", "std", "min", "25%", "50%", "75%", "max"]
    assert list(ours) == list(STATISTICS)
    for mine, name in zip(ours.values(), names, strict=True):
        assert mine == pytest.approx(theirs[name], rel=1e-9, abs=1e-6)


def test_one_sample_has_no_deviation_and_none_has_no_mean():
    assert math.isnan(describe([5.0])["std_mbps"])
    assert describe([5.0])["mean_mbps"] == 5.0
    assert describe([])["count"] == 0
    assert math.isnan(describe([])["mean_mbps"])


def test_the_interval_of_independent_samples_is_the_textbook_one():
    # Mean 2, standard error sqrt(1/3), t(0.975, 2) = 4.30265.
    found = independent([1.0, 2.0, 3.0])
    assert found.mean == 2.0
    assert found.high - found.mean == pytest.approx(4.30265 / math.sqrt(3), rel=1e-5)
    assert found.low == pytest.approx(4.0 - found.high)


def test_one_run_gives_no_interval_between_runs():
    found = independent([5.0])
    assert found.mean == 5.0
    assert math.isnan(found.low)
    with pytest.raises(ValueError, match="at least one"):
        independent([])


def test_the_number_of_batches_is_between_ten_and_thirty_and_none_for_a_short_series():
    assert [batch_count(n) for n in (0, 19, 20, 60, 150, 300, 10_800)] == [0, 0, 10, 10, 15, 30, 30]


def test_batch_means_cover_the_mean_of_a_correlated_series_where_the_naive_interval_does_not():
    rng = np.random.default_rng(1)
    covered = naive = 0
    for _ in range(200):
        noise = rng.normal(size=1200)
        series = np.empty(1200)
        value = 0.0
        for at, step in enumerate(noise):
            value = 0.8 * value + step
            series[at] = value
        found = batch_means([series])
        covered += found.low <= 0 <= found.high
        textbook = independent(series.tolist())
        naive += textbook.low <= 0 <= textbook.high
    assert covered >= 176  # 95% of 200, less three standard errors and the batches' remaining correlation
    assert naive < 140


def test_batches_never_join_two_runs():
    # Two constant runs at different levels: all the variance is between them.
    found = batch_means([np.full(60, 1.0), np.full(60, 3.0)])
    assert found.mean == 2.0
    assert found.n == 20
    assert found.low < 2.0 < found.high


@given(st.lists(st.lists(st.floats(0, 1e4), min_size=1, max_size=80), min_size=1, max_size=4))
def test_an_interval_is_around_the_mean_of_all_samples(series):
    found = batch_means(series)
    assert found.mean == pytest.approx(np.mean(np.concatenate(series)))
    if found.n:
        assert found.low <= found.mean <= found.high


def test_change_is_in_percent_of_the_baseline():
    assert change_percent(235.51, 804.67) == pytest.approx(-70.73, abs=0.01)
    assert math.isnan(change_percent(1.0, 0.0))
    assert math.isnan(change_percent(1.0, math.nan))


def test_counters_are_summed_after_the_warmup_and_the_rtt_is_averaged():
    rows = {"t_s": [1.0, 2.0], "flow": 0, "goodput_bps": 1e6, "segments_out": [10, 20], "retransmits": [1, 2]}
    rows |= {"timeouts": [5, 1], "tail_probes": [0, 3]}
    info = {"t_s": [1.0, 2.0, 2.0], "flow": 0, "connection": [0, 0, 1], "srtt_s": [9.0, 0.002, 0.004]}
    info |= {"rwnd_limited_s": [0.5, 1.0, 0.0]}
    found = counters(made(rows, warmup="1 s", info=info))
    assert found["segments_out"] == 20
    assert found["retransmits"] == 2
    assert found["timeouts"] == 1
    assert found["tail_probes"] == 3
    assert found["mean_srtt_ms"] == pytest.approx(3.0)
    assert found["rwnd_limited_percent"] == pytest.approx(25.0)


def test_a_run_without_tcp_info_has_no_rtt():
    found = counters(made({"t_s": [1.0], "flow": 0, "goodput_bps": [1e6]}))
    assert math.isnan(found["mean_srtt_ms"])
    assert math.isnan(found["retransmits"])


def test_a_whole_run_has_one_value_an_interval():
    run = Fake().run(Scenario(topology="chain", duration="30 s"))
    assert len(throughput(run)) == 30
