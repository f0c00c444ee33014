"""Engine sim: the core accepts every compiled scenario, and follows the engines' contract."""

import json
from typing import Any

import pytest

from expected_error import expected_error
from sawtooth import engines
from sawtooth.scenario import CONGESTION_CONTROLS, Scenario
from sawtooth.scenario.compiled import Compiled

SIM = engines.get("sim")
LOSSY = Scenario(
    topology="chain",
    duration="3 s",
    chain={"loss": "1%"},
    flows=[{"cc": cc} for cc in ("reno", "cubic", "bbr")],
    probes=[{"interval": "100 ms"}],
)
COLUMNS = {
    "intervals": [
        "t_s",
        "flow",
        "goodput_bps",
        "segments_out",
        "retransmits",
        "timeouts",
        "tail_probes",
        "window_probes",
    ],
    "tcp_info": [
        "t_s",
        "flow",
        "connection",
        "cwnd_segments",
        "ssthresh_segments",
        "srtt_s",
        "min_rtt_s",
        "rto_s",
        "in_flight_segments",
        "pacing_bps",
        "delivery_bps",
        "delivered_segments",
        "delivered_ce_segments",
        "lost_segments",
        "state",
        "rwnd_limited_s",
        "sndbuf_limited_s",
    ],
    "queues": [
        "t_s",
        "transmitter",
        "packets",
        "bytes",
        "mean_packets",
        "drops",
        "sent_packets",
        "sent_bytes",
        "early_drops",
        "marks",
        "delay_mean_s",
        "delay_p50_s",
        "delay_p95_s",
        "delay_p99_s",
        "overlimits",
        "new_flow_count",
        "new_flows",
        "old_flows",
    ],
    "links": ["t_s", "link", "lost", "policed"],
    "probes": ["t_s", "probe", "rtt_s"],
    "flows": [
        "flow",
        "connection",
        "generation",
        "start_s",
        "end_s",
        "asked_bytes",
        "delivered_bytes",
        "segments_out",
        "retransmits",
        "timeouts",
        "tail_probes",
        "completed",
        "window_probes",
    ],
}


def test_the_cores_congestion_controls_are_in_the_scenario_format() -> None:
    from sawtooth import _core

    assert set(_core.congestion_controls()) <= set(CONGESTION_CONTROLS)


def test_a_congestion_control_that_the_core_lacks_is_refused_before_the_run() -> None:
    asked = Scenario(flows=[{"cc": "cubic"}, {"cc": "westwood"}])
    for refusing in (SIM.check, SIM.run):
        with expected_error(code="unsupported", field="flows.1.cc") as caught:
            refusing(asked)
        assert "sim has no westwood" in caught.value.message
        assert "--engine kernel" in str(caught.value.fix)


@pytest.mark.parametrize(
    ("rate", "took"), [("12.112 Gbit/s", None), ("12.2 Gbit/s", "993 ns"), ("10 Tbit/s", "1.21 ns")]
)
def test_a_path_too_short_for_tcps_clock_is_refused_before_the_run(rate: str, took: str | None) -> None:
    asked = Scenario(duration="1 ms", interval="1 ms", path={"rate": rate, "rtt": "0 s"})
    if took is None:
        SIM.check(asked)
        return
    for again in (asked, asked.with_seed(2), asked.set({"path.loss": "1%"})):
        with expected_error(code="unsupported", field="path.rtt", match=f"take at least {took}"):
            SIM.run(again)


def test_links_that_aggregate_are_refused_by_closed_forms() -> None:
    links = [{"from": "a", "to": "b", "delay": "1 ms", "rate": "1 Mbit/s", "aggregation": "5 ms"}]
    asked = Scenario(topology="custom", hosts={"a": {}, "b": {}}, links=links, flows=[{"from": "a", "to": "b"}])
    with expected_error(code="unsupported", field="links"):
        engines.get("model").check(asked)


def test_the_tables_have_the_columns_of_the_contract() -> None:
    run = SIM.run(LOSSY)
    assert {name: list(table.columns) for name, table in run.tables.items()} == COLUMNS
    assert run.engine == "sim"
    assert run.scenario == LOSSY
    assert run.meta["names"]["flow"] == ["reno", "cubic", "bbr"]


def test_there_is_a_row_an_interval_and_flow_and_a_row_a_probe() -> None:
    tables = SIM.run(LOSSY).tables
    assert list(tables["intervals"]["t_s"].unique()) == [1.0, 2.0, 3.0]
    assert len(tables["intervals"]) == 3 * 3
    assert len(tables["probes"]) == 30
    assert (tables["intervals"]["goodput_bps"] > 0).all()


def test_the_same_scenario_gives_the_same_tables_and_another_seed_gives_others() -> None:
    one, again, other = SIM.run(LOSSY), SIM.run(LOSSY), SIM.run(LOSSY.set({"seed": 2}))
    for name, table in one.tables.items():
        assert table.equals(again.tables[name])
    assert not one.tables["intervals"].equals(other.tables["intervals"])


def test_how_often_the_engine_looks_up_does_not_change_the_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = SIM.run(LOSSY)
    monkeypatch.setattr("sawtooth.engines.sim.EVENTS_A_SLICE", 1_000)
    sliced = SIM.run(LOSSY)
    for name, table in whole.tables.items():
        assert table.equals(sliced.tables[name])


def test_progress_rises_to_one() -> None:
    seen: list[float] = []
    SIM.run(LOSSY, progress=seen.append)
    assert len(seen) > 1
    assert seen == sorted(seen)
    assert seen[-1] == 1.0


def test_a_run_that_is_stopped_is_interrupted() -> None:
    asked: list[bool] = []

    def stop() -> bool:
        asked.append(True)
        return len(asked) > 1

    with expected_error(code="interrupted"):
        SIM.run(LOSSY, stop=stop)
    assert len(asked) == 2


@pytest.mark.parametrize(
    "tables",
    [
        {"path": {"rate": "50 Mbit/s", "queue": "48 ms", "ack_loss": "1%"}},
        {"topology": "chain-asymmetric", "chain": {"loss": "2%"}},
        {"topology": "dumbbell", "dumbbell": {"pairs": 3, "access_rate": "1 Gbit/s"}, "flows": [{"count": 5}]},
        {"flows": [{"count": 3, "replace": {"lifetime": ["100 ms", "500 ms"]}}]},
        {"flows": [{"bytes": "1 MB"}, {"cc": "bbr", "start": "1 s", "duration": "500 ms"}]},
        {"host": {"sack": False, "timestamps": False, "delayed_ack": False, "hz": 1000, "mss": 536}},
        {"host": {"offload": True}, "path": {"loss": "1%"}},
        {"host": {"receive_buffer": "64 KiB", "send_buffer": "32 KiB", "initial_window": 3}},
        {"flows": [], "probes": [{}], "path": {"queue": "10 packets"}},
        {
            "topology": "custom",
            "hosts": {"a": {}, "b": {}},
            "cards": {"a": {"rate": "100 Mbit/s"}},
            "links": [{"from": "a", "to": "b", "delay": "1 ms", "overhead": "24 bytes", "loss": "1%"}],
            "flows": [{"from": "a", "to": "b"}, {"from": "b", "to": "a"}],
        },
    ],
    ids=lambda tables: "-".join(tables),
)
def test_whatever_a_scenario_can_say_is_simulated(tables: dict[str, Any]) -> None:
    scenario = Scenario.from_dict({"duration": "2 s", **tables})
    SIM.check(scenario)
    run = SIM.run(scenario)
    delivered = run.tables["flows"].groupby("flow")["delivered_bytes"].sum()
    assert len(delivered) == len(scenario.compile().flows)
    assert (delivered > 0).all()


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("rate", ["1 Mbit/s", "5 Mbit/s"])
def test_a_flow_goes_as_fast_as_its_receiver_reads(rate: str, whole: bool) -> None:
    reader = {"rate": rate, "read": "16 kB", "whole": whole}
    intervals = SIM.run(Scenario(duration="20 s", flows=[{"reader": reader}])).tables["intervals"]
    assert intervals["goodput_bps"].mean() == pytest.approx(float(rate.split()[0]) * 1e6, rel=0.02)


def test_a_reader_that_takes_what_has_arrived_sleeps_after_each_read() -> None:
    # A segment arrives every 12 ms. A reader of whole reads is late from then on, and takes each at once.
    asked = {"duration": "10 s", "path": {"rate": "1 Mbit/s"}}
    for whole, least, most in ((True, 150, 300), (False, 45, 62)):
        reader = {"rate": "8 Mbit/s", "read": "50 kB", "whole": whole}
        intervals = SIM.run(Scenario(**asked, interval="10 ms", flows=[{"reader": reader}])).tables["intervals"]
        reads = int((intervals["goodput_bps"] > 0)[-300:].sum())
        assert least <= reads <= most, (whole, reads)


def test_a_reader_that_pauses_closes_the_window_and_the_sender_probes_it() -> None:
    reader = {"rate": "2 Mbit/s", "read": "16 kB", "on": "1 s", "off": "9 s"}
    run = SIM.run(Scenario(duration="30 s", flows=[{"reader": reader}]))
    intervals, flows = run.tables["intervals"], run.tables["flows"]
    assert intervals["goodput_bps"].mean() == pytest.approx(0.2e6, rel=0.1)
    assert flows["window_probes"].sum() == intervals["window_probes"].sum() >= 6
    assert run.tables["tcp_info"]["rwnd_limited_s"].max() > 20


def test_a_flow_of_a_volume_delivers_it_and_ends() -> None:
    flows = SIM.run(Scenario(duration="5 s", flows=[{"bytes": "1 MB"}])).tables["flows"]
    assert list(flows["delivered_bytes"]) == [10**6]
    assert list(flows["completed"]) == [1]
    assert flows["end_s"][0] < 5


def test_without_loss_the_goodput_is_the_line_rate_less_headers() -> None:
    run = SIM.run(Scenario(duration="4 s", path={"rate": "100 Mbit/s", "rtt": "10 ms"}))
    last = run.tables["intervals"]["goodput_bps"].iloc[-1]
    assert last == pytest.approx(100e6 * 1448 / 1514, rel=0.01)


def test_a_buffer_that_limits_a_flow_is_warned_of() -> None:
    small = Scenario(duration="5 s", path={"rtt": "100 ms"}, hosts={"receiver": {"receive_buffer": "256 KiB"}})
    warnings = SIM.run(small).meta["warnings"]
    assert len(warnings) == 1
    assert "receive buffer limited" in warnings[0]
    assert SIM.run(Scenario(duration="5 s")).meta["warnings"] == []


UP = {"name": "up", "from": "receiver", "to": "sender"}


def test_a_flow_that_nothing_limits_is_warned_of_before_anything_else() -> None:
    flows = [{"name": "down"}, UP]
    found = SIM.run(
        Scenario(path={"rate": "20 Mbit/s"}, host={"receive_buffer": "64 KiB"}, flows=flows, duration="2 s")
    ).warnings
    assert found[0].startswith('flow "up" sends from receiver to sender, and no link on the way has a rate')
    assert [warning for warning in found if "receive buffer limited" in warning]
    assert not [warning for warning in found if '"down" sends' in warning]


def test_a_reverse_flow_gets_the_reverse_rate_of_a_path() -> None:
    run = SIM.run(Scenario(path={"rate": "20 Mbit/s", "reverse_rate": "5 Mbit/s"}, flows=[UP], duration="4 s"))
    late = run.tables["intervals"].query("t_s > 1")["goodput_bps"].mean() / 1e6
    assert late == pytest.approx(5 * 1448 / 1514, rel=0.01)
    assert run.warnings == []


def test_offload_on_a_lossy_link_of_the_sender_is_warned_of() -> None:
    lossy = {
        "topology": "custom",
        "duration": "1 s",
        "host": {"offload": True},
        "hosts": {"a": {}, "b": {}},
        "links": [{"from": "a", "to": "b", "rate": "100 Mbit/s", "loss": "1%"}],
        "flows": [{"from": "a", "to": "b"}],
    }
    warnings = SIM.run(Scenario.from_dict(lossy)).meta["warnings"]
    assert any("super-packets" in warning for warning in warnings)


def test_a_queue_of_super_packets_is_warned_of_and_loses_more_than_it_drops() -> None:
    short = Scenario(path={"rate": "500 Mbit/s", "rtt": "10 ms", "queue": "100 KiB"}, duration="5 s")
    single, whole = (SIM.run(short.set({"host.offload": offload})) for offload in (False, True))
    again = [int(run.tables["intervals"]["retransmits"].sum()) for run in (single, whole)]
    drops = [int(run.tables["queues"]["drops"].sum()) for run in (single, whole)]
    assert again[0] <= drops[0]
    assert again[1] > 5 * drops[1] > 0
    assert single.warnings == []
    (warning,) = whole.warnings
    assert 'the queue of "router>loss" holds and drops super-packets' in warning


@pytest.mark.parametrize("text", ["", "{}", "[]", "not json"])
def test_the_core_refuses_what_is_no_compiled_scenario(text: str) -> None:
    from sawtooth import _core

    with pytest.raises(ValueError, match=r"."):
        _core.Simulation(text)


@pytest.mark.parametrize(
    ("table", "field", "value"),
    [
        ("flows", "forward", [99]),
        ("flows", "cc", "cubik"),
        ("flows", "count", -1),
        ("links", "transmitter", 99),
        ("links", "to", 99),
        ("links", "loss_ppb", 10**9 + 1),
        ("transmitters", "rate_bps", 0),
        ("hosts", "mss", 0),
        ("hosts", "hz", 0),
    ],
)
def test_the_core_refuses_nonsense_in_a_compiled_scenario(table: str, field: str, value: object) -> None:
    from sawtooth import _core

    compiled = LOSSY.compile().to_dict()
    compiled[table][0][field] = value
    with pytest.raises(ValueError, match=r"."):
        _core.Simulation(json.dumps(compiled))


def test_a_refusal_of_the_core_is_a_defect_with_a_code(monkeypatch: pytest.MonkeyPatch) -> None:
    empty: dict[str, object] = {name: [] for name in ("hosts", "transmitters", "links", "flows", "probes")}
    empty |= {"duration_ns": 1, "interval_ns": 1, "seed": 1}
    monkeypatch.setattr(Scenario, "compile", lambda self: Compiled.from_dict(empty))
    with expected_error(code="core-failed"):
        SIM.run(LOSSY)


def test_jitter_that_may_use_up_the_whole_delay_is_refused_with_a_fix_and_runs_with_it() -> None:
    tables = {
        "topology": "custom",
        "duration": "1 s",
        "hosts": {"a": {}, "b": {}},
        "links": [{"from": "a", "to": "b", "delay": "1 ms", "jitter": {"deviation": "1 ms", "ordered": False}}],
        "flows": [{"from": "a", "to": "b"}],
    }
    with expected_error(code="unsupported", field="links"):
        engines.get("sim").check(Scenario.from_dict(tables))
    slower = tables | {"links": [tables["links"][0] | {"rate": "100 Mbit/s"}]}
    assert engines.get("sim").run(Scenario.from_dict(slower)).tables["intervals"]["goodput_bps"].sum() > 0
