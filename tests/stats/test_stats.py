"""The statistics match published tables, and the intervals allow for correlation between seconds."""

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
    of_runs,
    settling,
    span,
    throughput,
    throughput_by_flow,
)
from sawtooth.stats.interval import batch_count
from sawtooth.stats.settling import MOST


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


@pytest.mark.usefixtures("patience")
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
        found = batch_means(series)
        covered += found.low <= 0 <= found.high
        textbook = independent(series.tolist())
        naive += textbook.low <= 0 <= textbook.high
    assert covered >= 176  # 95% of 200, less three standard errors and the batches' remaining correlation
    assert naive < 140


@given(st.lists(st.floats(0, 1e4), min_size=1, max_size=80))
def test_an_interval_within_a_run_is_around_the_mean_of_all_its_samples(series):
    for found in (batch_means(series), of_runs([series])):
        assert found.mean == pytest.approx(np.mean(series))
        assert found.of == "run"
        if found.n:
            assert found.low <= found.mean <= found.high


def test_the_interval_of_several_seeds_is_of_their_means():
    rng = np.random.default_rng(1)
    seeds = [rng.normal(level, 1, 60) for level in (10, 11, 15)]
    found, textbook = of_runs(seeds), independent([one.mean() for one in seeds])
    assert (found.low, found.high, found.n, found.of) == (textbook.low, textbook.high, 3, "seeds")


@given(st.lists(st.floats(0, 1e4), min_size=1, max_size=80), st.integers(2, 20))
def test_seeds_that_all_gave_the_same_are_one_sample_and_have_no_interval(series, seeds):
    found = of_runs([series] * seeds)
    assert found.mean == pytest.approx(np.mean(series))
    assert (math.isnan(found.low), math.isnan(found.high), found.n, found.of) == (True, True, seeds, "same")


def test_slow_start_counts_in_the_mean_of_a_run_and_not_in_its_spread():
    # Like office.toml without loss: 3 s of slow start, then the same every second.
    series = [20.0, 150.0, 270.0, *[286.9] * 57]
    found = of_runs([series])
    assert found.mean == pytest.approx(np.mean(series))
    assert found.high - found.low < 0.01
    naive = batch_means(series)
    assert naive.high - naive.low > 20


def test_the_interval_within_a_run_covers_the_mean_as_often_as_batch_means_do():
    rng = np.random.default_rng(2)
    covered = 0
    for _ in range(300):
        series = 5 + np.convolve(rng.normal(size=63), [0.4, 0.3, 0.2, 0.1], "valid")
        found = of_runs([series])
        covered += found.low <= 5 <= found.high
    assert covered >= 267  # 89%: short batches are still slightly correlated


def test_a_beginning_that_changes_the_mean_is_reported_with_its_length_and_both_means():
    rng = np.random.default_rng(3)
    seeds = [np.concatenate([[1, 5, 20], rng.normal(100, 2, 57)]) for _ in range(3)]
    for runs in (seeds, seeds[:1], [seeds[0]] * 3, [one[:12] for one in seeds]):
        found = settling(runs)
        assert found.samples in (3, 4)
        assert found.whole == pytest.approx(np.mean(runs))
        assert found.rest == pytest.approx(np.mean([run[found.samples :] for run in runs]))


def test_the_beginning_of_a_very_long_series_is_found_to_within_a_batch():
    rng = np.random.default_rng(5)
    series = np.concatenate([rng.normal(20, 2, 40_000), rng.normal(100, 2, 4 * MOST)])
    found = settling([series])
    batch = -(-series.size // MOST)
    assert batch > 1
    assert abs(found.samples - 40_000) <= batch
    assert found.whole == pytest.approx(series.mean())


def test_chance_and_what_changes_the_mean_by_less_than_a_hundredth_are_no_beginning():
    rng = np.random.default_rng(4)
    told = sum(settling([rng.normal(100, 30, 60)]) is not None for _ in range(100))
    assert told <= 12
    assert settling([[70, *[100.0] * 59]]) is None
    assert settling([[70, *[100.0] * 59]], least=0).samples == 1
    assert settling([[100.0] * 60]) is None
    assert settling([[1.0, 100, 100]]) is None
    assert settling([]) is None


@pytest.mark.parametrize(
    ("warmup", "duration", "expected"),
    [("0 s", "10 s", (0, 10)), ("1.5 s", "10 s", (2, 10)), ("2 s", "10.5 s", (2, 10))],
)
def test_the_span_of_a_mean_is_that_of_its_samples(warmup, duration, expected):
    ends = [*range(1, 11), *([10.5] if duration == "10.5 s" else [])]
    run = made({"t_s": [float(end) for end in ends], "flow": 0, "goodput_bps": 1e6}, warmup=warmup, duration=duration)
    assert span(run) == expected
    assert (throughput(run).index[0] - 1, throughput(run).index[-1]) == expected


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
