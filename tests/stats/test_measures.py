"""Measures besides goodput: latency under load, responsiveness, the bottleneck's queue, completion times, time to
converge, harm.
"""

import io
import itertools
import math

import numpy as np
import pandas as pd
import pytest

import sawtooth
from expected_error import expected_error
from fake_engine import quick
from sawtooth.io.table_store import Rows
from sawtooth.report.figures import figures
from sawtooth.run import Run
from sawtooth.scenario import Scenario
from sawtooth.stats import (
    completions,
    converges_s,
    counters,
    harm,
    latencies,
    rpm,
    smoothed_s,
    throughput,
    throughput_by_flow,
    trimmed_mean,
)
from sawtooth.stats.completion import bins, quantile
from sawtooth.stats.queueing import Queueing, bottleneck, delays_s, mean_delay_s, total
from sawtooth.stats.summary import summary
from sawtooth.study import Study, measures

pytestmark = pytest.mark.usefixtures("patience")

PATH = {"rate": "10 Mbit/s", "rtt": "20 ms", "queue": {"kind": "pfifo", "limit": "100 packets"}}
PROBE = {"from": "sender", "to": "receiver", "interval": "20 ms"}


def run(**changes):
    given = {"topology": "path", "duration": "6 s", "path": PATH, "probes": [PROBE]}
    return sawtooth.run(Scenario.from_dict(given | changes))


def made(scenario, **tables):
    return Run(Scenario.from_dict(scenario), "made", {name: pd.DataFrame(rows) for name, rows in tables.items()})


# Latency under load


def test_a_probe_on_an_empty_path_takes_what_the_scenario_says():
    (seen,) = latencies(run(flows=[{"start": "5.9 s"}]))
    assert seen.rtt_s[:200] == pytest.approx([seen.idle_s] * 200, rel=1e-9)


def test_a_probe_on_its_way_at_the_end_is_not_lost():
    (seen,) = latencies(run(flows=[{"start": "5.9 s"}]))
    assert np.isfinite(seen.rtt_s).all()
    assert len(seen.rtt_s) >= 298


def test_latency_is_of_what_was_sent_after_the_warm_up():
    (seen,) = latencies(run(flows=[{}], warmup="2 s"))
    assert seen.sent_s.min() == pytest.approx(2.0)
    assert seen.rtt_s[np.isfinite(seen.rtt_s)].min() > 1.5 * seen.idle_s


# Responsiveness


def test_the_trimmed_mean_is_of_all_but_the_largest_twentieth():
    assert trimmed_mean([*range(95), *[1e9] * 5]) == pytest.approx(np.mean(range(95)))
    assert trimmed_mean([3.0, math.nan]) == 3.0
    assert math.isnan(trimmed_mean([]))


def test_responsiveness_is_round_trips_a_minute():
    assert rpm([0.02] * 40) == pytest.approx(3000)
    assert math.isnan(rpm([]))


def test_what_a_flow_finds_itself_is_its_smoothed_round_trip():
    samples = smoothed_s(run(flows=[{}], warmup="2 s"))
    assert len(samples) == 4
    assert (samples > 0.02).all()


# The bottleneck's queue


def delay_s(seen, share):
    return delays_s(seen, [share])[0]


def queue(**columns):
    return Queueing("a>b", Rows.of(pd.DataFrame(columns)))


def interval(p50, p95, p99, packets, **more):
    return {"delay_p50_s": p50, "delay_p95_s": p95, "delay_p99_s": p99, "sent_packets": packets, **more}


def of_packets(*intervals):
    """The tables of a run whose packets left with these delays."""
    rows = [interval(*np.quantile(one, (0.5, 0.95, 0.99)), len(one), delay_mean_s=np.mean(one)) for one in intervals]
    return [Queueing("a>b", Rows.of(pd.DataFrame(rows)))]


def test_percentiles_of_one_interval_are_its_own():
    seen = of_packets(np.linspace(0.3, 0.5, 1001))
    for share in (0.5, 0.95, 0.99):
        assert delay_s(seen, share) == pytest.approx(0.3 + 0.2 * share, rel=2e-3)
    assert delay_s(seen, 0.05) == pytest.approx(0.31, rel=0.1)


def test_an_interval_weighs_as_many_packets_as_left_in_it():
    seen = of_packets(np.full(90, 0.01), np.full(10, 1.0))
    assert delay_s(seen, 0.5) == pytest.approx(0.01, abs=2e-3)
    assert delay_s(seen, 0.95) == pytest.approx(1.0, abs=2e-3)


def test_percentiles_are_near_those_of_the_packets_themselves():
    random = np.random.default_rng(1)
    packets = [random.gamma(3, 0.01 * (1 + at % 7), 800) for at in range(40)]
    for share in (0.5, 0.95, 0.99):
        assert delay_s(of_packets(*packets), share) == pytest.approx(np.quantile(packets, share), rel=0.06)


def test_an_engine_without_percentiles_has_none_and_its_mean_stays():
    rows = [interval(math.nan, math.nan, math.nan, 10, delay_mean_s=0.02)]
    seen = [Queueing("a>b", Rows.of(pd.DataFrame(rows)))]
    assert math.isnan(delay_s(seen, 0.5))
    assert mean_delay_s(seen) == pytest.approx(0.02)


def test_a_mean_needs_no_percentiles_that_only_some_runs_have():
    seen = [*of_packets([0.1, 0.1]), queue(delay_mean_s=[0.3], sent_packets=[2])]
    assert mean_delay_s(seen) == pytest.approx(0.2)
    assert math.isnan(delay_s(seen, 0.5))


def test_the_mean_delay_is_that_of_packets_not_of_intervals():
    seen = [queue(delay_mean_s=[0.1, 0.0, 0.3], sent_packets=[100, 0, 300])]
    assert mean_delay_s(seen) == pytest.approx(0.25)


def test_a_column_that_a_run_does_not_have_is_not_counted_as_nothing():
    assert total([queue(drops=[1, 2]), queue(drops=[3])], "drops") == 6
    assert math.isnan(total([queue(drops=[1, 2])], "marks"))


def test_the_bottleneck_is_the_lowest_rate_that_the_first_flow_meets():
    assert bottleneck(run(flows=[{}])).name == "router>loss"


# Completion times


def test_a_transfer_alone_that_fits_the_first_window_has_no_slowdown():
    done = completions(run(flows=[{"bytes": "14480 bytes"}], probes=[]))
    assert done["slowdown"].tolist() == pytest.approx([1.0], abs=0.01)


@pytest.mark.parametrize("size", ["1 byte", "1448 bytes", "1449 bytes", "1 MB"])
def test_no_transfer_is_faster_than_on_the_empty_path(size):
    done = completions(run(flows=[{"bytes": size}], probes=[]))
    assert 1 - 1e-9 <= done["slowdown"].iloc[0] < 1.2


def test_transfers_that_did_not_end_or_began_in_the_warm_up_are_left_out():
    flows = [
        {"name": "early", "bytes": "10 kB"},
        {"name": "late", "bytes": "10 kB", "start": "2 s"},
        {"name": "endless"},
    ]
    assert completions(run(flows=flows, warmup="1 s"))["flow"].tolist() == ["late"]


def test_connections_of_pages_answers_and_videos_are_no_transfers():
    asked = [
        {"source": {"kind": "pages", "objects": 6, "sizes": "10 kB", "think": "100 ms"}},
        {"source": {"kind": "requests", "sizes": "20 kB", "think": "100 ms"}, "duration": "1 s"},
        {"source": {"kind": "video", "rates": ["1 Mbit/s"]}},
    ]
    made = run(flows=[*asked, {"name": "file", "bytes": "10 kB"}])
    assert made.tables["flows"].query("flow == 0")["completed"].sum() > 6
    assert completions(made)["flow"].tolist() == ["file"]
    assert measures.columns([measures.Measured.of(made)])["transfers"] == 1
    assert summary(made)["transfers"].tolist() == [0, 0, 0, 1]


def test_few_sizes_are_reported_one_by_one_and_many_in_bins():
    assert bins(np.array([5, 1000, 5])) == [(5, 5), (1000, 1000)]
    many = np.arange(1, 100_000)
    found = bins(many)
    assert found[0] == (1, 2)
    assert all(low[1] + 1 == high[0] for low, high in itertools.pairwise(found))
    assert sum(((many >= low) & (many <= high)).sum() for low, high in found) == many.size


def test_a_percentile_that_the_samples_are_too_few_for_is_none():
    assert math.isnan(quantile(np.arange(99.0), 0.99))
    assert quantile(np.arange(100.0), 0.99) == pytest.approx(98.01)
    assert quantile(np.array([7.0]), 0.5) == 7.0


# Time to converge


def shared(rates, *, interval="1 s", **flow):
    """Two flows, the second from 2 s on, with these rates in bit/s in each interval."""
    flows = [{"name": "a"}, {"name": "b", "start": "2 s", **flow}]
    scenario = {"topology": "path", "interval": interval, "duration": "60 s", "flows": flows}
    step = Scenario.from_dict(scenario).interval.seconds
    rows = [
        {"t_s": (at + 1) * step, "flow": flow, "goodput_bps": float(rate)}
        for at, pair in enumerate(rates)
        for flow, rate in enumerate(pair)
    ]
    return made(scenario, intervals=rows)


def test_flows_converge_where_five_seconds_are_within_a_quarter_of_the_equal_share():
    uneven, even = (90, 10), (60, 40)
    rates = [(100, 0)] * 2 + [uneven] * 3 + [even] * 3 + [uneven] + [even] * 5
    assert converges_s(shared(rates)) == pytest.approx(7)


def test_shorter_intervals_are_put_together_to_seconds():
    rates = [(100, 0)] * 4 + [(100, 0), (0, 100)] * 6
    assert converges_s(shared(rates, interval="500 ms")) == pytest.approx(0)


def test_flows_that_never_share_do_not_converge():
    assert math.isnan(converges_s(shared([(90, 10)] * 20)))
    assert math.isnan(converges_s(shared([(50, 50)] * 6)))


def test_flows_that_end_before_the_run_have_no_time_to_converge():
    assert math.isnan(converges_s(shared([(50, 50)] * 20, duration="9 s")))


# Harm


def test_harm_is_what_is_gone_of_what_a_flow_has_alone():
    assert harm(100, 25) == 0.75
    assert harm(100, 110) == pytest.approx(-0.1)
    assert math.isnan(harm(0, 0))


# In a study


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    flows = [{"name": "bulk"}, {"name": "page", "bytes": "20 kB", "count": 3, "start": "2 s"}]
    scenario = {"topology": "path", "duration": "6 s", "warmup": "1 s", "path": PATH, "flows": flows, "probes": [PROBE]}
    content = {
        "name": "queues",
        "scenario": scenario,
        "vary": {"path.queue.kind": ["pfifo", "fq_codel"], "path.rtt": ["20 ms", "40 ms"]},
        "columns": {
            "queue": {"field": "path.queue.kind"},
            "rtt_ms": {"field": "path.rtt", "unit": "ms", "title": "RTT, ms"},
        },
        "repeat": {"seeds": [1, 2]},
        "report": {
            "plots": ["latency", "latency-cdf", "completion", "measures", "trade"],
            "measures": ["latency_p95_ms", "mean_srtt_ms", "queue_drops"],
        },
    }
    content["scenario"]["path"] = PATH | {"queue": {"kind": "pfifo"}}
    return quick(Study.from_dict(content), out=tmp_path_factory.mktemp("results"), engine="sim")


def test_a_point_has_columns_of_latency_responsiveness_queue_and_completion(result):
    rows = result.pooled.set_index(["queue", "rtt_ms"])
    tail, fair = rows.loc["pfifo", 20], rows.loc["fq_codel", 20]
    assert tail["latency_idle_ms"] == fair["latency_idle_ms"] == pytest.approx(20.0784)
    assert tail["latency_p50_ms"] > 2 * fair["latency_p50_ms"]
    assert tail["latency_p50_ms"] <= tail["latency_p95_ms"] <= tail["latency_p99_ms"]
    assert tail["latency_added_ms"] == pytest.approx(tail["latency_p50_ms"] - tail["latency_idle_ms"])
    assert tail["rpm"] == pytest.approx((tail["rpm_foreign"] + tail["rpm_self"]) / 2)
    assert fair["rpm_foreign"] > 2 * tail["rpm_foreign"]
    assert tail["queue_delay_mean_ms"] > fair["queue_delay_mean_ms"]
    assert fair["queue_early_drops"] > 0 == tail["queue_early_drops"]
    assert tail["slowdown_p50"] > fair["slowdown_p50"] >= 1
    assert tail["transfers"] == 3


def test_tables_of_probes_and_transfers_have_a_row_for_each_seed_and_one_for_all(result):
    assert result.latency["seed"].tolist() == [1, 2, "all"] * 4
    assert result.completions[["flow", "bytes_from", "transfers"]].to_numpy().tolist()[:3] == [
        ["page", 20000, 3],
        ["page", 20000, 3],
        ["page", 20000, 3],
    ]
    for name in ("latency", "completions"):
        written = pd.read_csv(result.directory / f"{name}.csv")
        assert list(written.columns) == list(getattr(result, name).columns)
    assert "latency under load in ms" in result.table()


def test_figures_of_measures_are_drawn_from_their_tables(result):
    drawn = {figure.name: figure for figure in figures(result)}
    assert list(drawn) == ["latency", "latency-cdf", "completion", "measures", "trade"]
    bands = [line for panel in drawn["latency"].panels for line in panel.series if line.band]
    assert len(bands) == 4 == len(drawn["latency"].panels)
    assert all(low <= y <= high for line in bands for low, y, high in zip(line.low, line.y, line.high, strict=True))
    shares = drawn["latency-cdf"].table.groupby(["queue", "rtt_ms"])["latency_ms"]
    assert shares.apply(lambda one: one.is_monotonic_increasing).all()
    assert len(drawn["measures"].panels) == 3
    assert sum(len(panel.series) for panel in drawn["trade"].panels) == 2


def test_a_count_of_all_seeds_together_has_no_ends_among_theirs(result):
    table = next(figure for figure in figures(result) if figure.name == "measures").table
    assert (table["queue_drops_low"] == table["queue_drops"]).all()
    assert (table["queue_drops_high"] == table["queue_drops"]).all()
    assert (table["latency_p95_ms_low"] <= table["latency_p95_ms_high"]).all()


def test_a_study_without_probes_and_transfers_has_neither_table(tmp_path):
    result = quick(out=tmp_path)
    assert result.latency.empty
    assert result.completions.empty
    assert not (result.directory / "latency.csv").exists()
    assert result.details["rpm"].isna().all()


def test_a_measure_that_no_figure_has_is_refused_with_the_nearest():
    content = {"name": "a", "scenario": {"flows": [{}]}, "report": {"measures": ["latency_p59_ms"]}}
    with expected_error(field="report.measures", match="latency_p59_ms") as caught:
        Study.from_dict(content)
    assert "latency_p" in caught.value.fix


# Tables that are short, or empty


FLOWS = [{"name": "a"}, {"name": "b"}]


def test_a_run_shorter_than_a_second_has_no_time_to_converge_and_is_measured(tmp_path):
    short = run(duration="500 ms", interval="100 ms", flows=FLOWS, probes=[])
    assert math.isnan(converges_s(short))
    assert math.isnan(measures.columns([measures.Measured.of(short)])["converges_s"])


def test_empty_tables_are_measured_in_memory_and_read_again(tmp_path):
    headers = {name: "\n".join([",".join(table.columns), ""]) for name, table in run(flows=FLOWS).tables.items()}
    empty = {name: pd.read_csv(io.StringIO(text)) for name, text in headers.items()}
    one = Run(Scenario.from_dict({"topology": "path", "path": PATH, "flows": FLOWS, "probes": [PROBE]}), "made", empty)
    for made_of in (one, Run.load(one.save(tmp_path / "empty"))):
        assert throughput(made_of).empty
        assert throughput_by_flow(made_of).empty
        assert math.isnan(counters(made_of)["mean_srtt_ms"])
        assert math.isnan(measures.columns([measures.Measured.of(made_of)])["queue_delay_mean_ms"])
        assert summary(made_of)["mean_mbps"].tolist() == [0.0, 0.0]
        assert completions(made_of).empty


def test_what_was_not_counted_for_a_part_of_the_run_is_unknown():
    rows = {"t_s": [1.0, 2.0], "flow": [0, 0], "goodput_bps": [8.0, 8.0], "timeouts": [math.nan, 5.0]}
    assert math.isnan(summary(made({"duration": "2 s"}, intervals=rows))["timeouts"][0])
