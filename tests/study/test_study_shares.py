"""Shares: what each flow of a study's scenarios gets, and how fairly."""

import pandas as pd
import pytest

from expected_error import expected_error
from fake_engine import quick, study
from sawtooth.study import Study, StudyResult, run_study


def mixed(**changes):
    """One flow of two connections beside another of one that gets twice as much."""
    flows = [{"name": "many", "cc": "cubic", "count": 2}, {"name": "one", "cc": "bbr"}]
    scenario = {"topology": "chain", "duration": "20 s", "flows": flows}
    given = {"scenario": scenario, "vary": {"chain.loss": ["0%", "1%"]}, "published": None}
    columns = {"loss_percent": {"field": "chain.loss", "unit": "%"}}
    return study(**(given | {"columns": columns} | changes))


def test_what_each_flow_gets_has_a_row_a_flow_and_run_and_one_for_all_seeds(tmp_path):
    shares = quick(mixed(), out=tmp_path).shares
    keys = shares[["loss_percent", "seed", "flow", "flow_cc", "connections"]]
    assert keys.iloc[:6].to_numpy().tolist() == [
        [0, seed, *flow] for seed in (1, 2, "all") for flow in (["many", "cubic", 2], ["one", "bbr", 1])
    ]
    assert len(shares) == 2 * 3 * 2
    assert shares["share_percent"].to_numpy() == pytest.approx([100 / 3, 200 / 3] * 6)
    # Connections with 1 and 2 parts; all three with 1, 2 and 2.
    assert shares["jain"].dropna().to_numpy() == pytest.approx([9 / 10] * 6)
    assert shares["jain_all"].to_numpy() == pytest.approx([25 / 27] * 12)
    assert (shares["std_mbps"] > 0).all()


def test_the_means_of_the_flows_add_up_to_the_mean_of_the_sum(tmp_path):
    result = quick(mixed(), out=tmp_path)
    added = result.shares.groupby(["loss_percent", "seed"])["mean_mbps"].sum()
    whole = result.summary.set_index(["loss_percent", "seed"])["mean_mbps"]
    assert added.to_dict() == pytest.approx(whole.to_dict())


def test_one_seed_has_no_interval_of_its_share_and_several_have(tmp_path):
    shares = quick(mixed(), out=tmp_path).shares
    every = shares[shares["seed"] == "all"]
    assert shares.loc[shares["seed"] != "all", "share_low_percent"].isna().all()
    assert (every["share_low_percent"] <= every["share_percent"] + 1e-9).all()
    assert (every["share_percent"] <= every["share_high_percent"] + 1e-9).all()


def test_a_flow_whose_connections_replace_each_other_has_no_index_of_fairness(tmp_path):
    flows = [{"name": "a", "count": 2, "replace": {"lifetime": ["1 s", "2 s"]}}, {"name": "b", "count": 2}]
    given = mixed(scenario={"topology": "chain", "duration": "20 s", "flows": flows})
    shares = quick(given, out=tmp_path).shares
    assert shares.loc[shares["flow"] == "a", "jain"].isna().all()
    assert shares.loc[shares["flow"] == "b", "jain"].notna().all()
    assert shares["jain_all"].isna().all()


def test_a_flow_that_is_spread_over_the_pairs_of_a_dumbbell_is_one(tmp_path):
    flows = [{"name": "a", "from": "s*", "to": "r*", "count": 3}, {"name": "b", "from": "s*", "to": "r*"}]
    scenario = {
        "topology": "dumbbell",
        "duration": "2 s",
        "dumbbell": {"pairs": 2, "rate": "10 Mbit/s"},
        "flows": flows,
    }
    given = study(scenario=scenario, vary={}, columns={}, published=None, repeat={"seeds": [1]})
    shares = quick(given, out=tmp_path, engine="sim").shares
    assert shares[["flow", "connections"]].to_numpy().tolist()[:2] == [["a", 3], ["b", 1]]
    assert shares["share_percent"].iloc[:2].sum() == pytest.approx(100)
    assert shares["jain_all"].between(0.25, 1).all()


def test_the_shares_are_written_and_loaded_as_they_were_made_and_reported_on_a_terminal(tmp_path):
    result = quick(mixed(), out=tmp_path)
    again = StudyResult.load(result.directory)
    pd.testing.assert_frame_equal(again.shares, result.shares)
    assert list(pd.read_csv(result.directory / "shares.csv").columns) == list(result.shares.columns)
    assert "66.7%" in result.table()
    assert max(len(line) for line in result.table().splitlines()) <= 120


@pytest.mark.usefixtures("patience")
def test_a_study_of_single_flows_has_no_shares(tmp_path):
    result = quick(out=tmp_path)
    assert result.shares.empty
    assert not (result.directory / "shares.csv").exists()


def test_no_axis_can_take_the_name_of_a_column_of_any_table(tmp_path):
    result = quick(mixed(), out=tmp_path)
    keys = set(result.places[0].key)
    for table in (result.details, result.samples, result.shares):
        for column in set(table.columns) - keys:
            with expected_error(code="conflict"):
                study(columns={column: {"field": "chain.loss"}})


@pytest.mark.usefixtures("patience")
def test_harm_is_what_a_flow_loses_against_the_point_where_it_is_alone(tmp_path):
    """The fake engine gives the n-th flow n times what a single flow has."""
    cubic, reno = {"name": "cubic", "cc": "cubic"}, {"name": "reno", "cc": "reno"}
    given = study(
        scenario={"topology": "chain", "duration": "20 s"},
        vary={"flows": [[cubic], [reno, cubic], [cubic, reno]], "chain.loss": ["0%", "1%"]},
        columns={"together": {"field": "flows"}, "loss_percent": {"field": "chain.loss", "unit": "%"}},
        published=None,
    )
    shares = quick(given, out=tmp_path).shares
    whole = shares[(shares["flow"] == "cubic") & (shares["seed"] == "all")]
    assert whole["harm"].to_numpy() == pytest.approx([-1, -1, 0, 0], abs=1e-9)
    assert shares.loc[shares["flow"] == "reno", "harm"].isna().all()


def test_a_study_in_which_no_flow_is_alone_has_no_harm(tmp_path):
    assert quick(mixed(), out=tmp_path).shares["harm"].isna().all()


@pytest.mark.usefixtures("patience")
def test_a_scenario_by_itself_has_each_flow_in_a_line_and_no_change(tmp_path):
    flows = [
        {"cc": "cubic"},
        {"cc": "reno", "count": 2},
        {"source": {"kind": "arrivals", "load": "5%", "sizes": "9 kB"}},
    ]
    asked = {"name": "one", "scenario": {"duration": "3 s", "flows": flows, "probes": [{"interval": "100 ms"}]}}
    told = run_study(Study.from_dict(asked), out=tmp_path, jobs=1).table()
    lines = told.splitlines()
    assert "seed 1" in lines[1]
    assert "change" not in told
    assert "headers take the rest" in lines[2]
    assert lines[4].split() == [
        "flow",
        "goodput",
        "std",
        "share",
        "Jain's",
        "index",
        "RTT",
        "ms",
        "retransmits",
        "timeouts",
        "utilization",
    ]
    assert [line.split()[0] for line in lines[5:9]] == ["cubic", "reno", "cubic-2", "all"]
    assert all(float(line.split()[-3]) > 20 for line in lines[5:8])
    assert "queue at the bottleneck: " in told
    assert "\nflow     bytes  transfers" in told
    assert "latency under load" in told


@pytest.mark.usefixtures("patience")
def test_a_flow_that_ends_is_reported_by_its_completion_time_not_by_a_rate(tmp_path):
    asked = {"name": "one", "scenario": {"duration": "3 s", "flows": [{"bytes": "1 MB"}]}}
    told = run_study(Study.from_dict(asked), out=tmp_path, jobs=1).table()
    assert told.splitlines()[3].split() == ["RTT", "ms", "retransmits", "timeouts", "utilization"]
    assert "completion times" in told


@pytest.mark.usefixtures("patience")
def test_each_flow_s_round_trip_and_losses_are_its_own(tmp_path):
    flows = [{"cc": "cubic"}, {"cc": "bbr"}]
    asked = {"name": "one", "scenario": {"duration": "5 s", "flows": flows}}
    found = run_study(Study.from_dict(asked), out=tmp_path, jobs=1)
    run = found.run(found.places[0])
    rows = found.shares[found.shares["seed"] == "all"].reset_index()
    for index in range(2):
        own = run.tables["tcp_info"][run.tables["tcp_info"]["flow"] == index]
        assert rows["mean_srtt_ms"][index] == pytest.approx(own["srtt_s"][own["srtt_s"] > 0].mean() * 1e3)
        # CUBIC and BBR fill the line. A rate is over one round trip, in which a queue may have grown.
        assert rows["delivery_mbps"][index] == pytest.approx(own["delivery_bps"].mean() / 1e6)
        assert rows["delivery_mbps"][index] == pytest.approx(rows["mean_mbps"][index], rel=0.25)
        sent = run.tables["intervals"][run.tables["intervals"]["flow"] == index]
        assert rows["retransmits"][index] == sent["retransmits"].sum()
