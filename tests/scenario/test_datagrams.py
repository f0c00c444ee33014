"""Datagrams: their fields in a scenario, how engines run them, and a call's quality."""

from typing import Any

import numpy as np
import pytest

from expected_error import expected_error
from sawtooth import engines
from sawtooth.run import Run
from sawtooth.scenario import Scenario
from sawtooth.scenario.compiled import Compiled
from sawtooth.scenario.compiled_form import Datagrams
from sawtooth.stats.call import NOT_CONCEALED, call, mos, rating

PATH = {"rate": "10 Mbit/s", "rtt": "40 ms", "queue": "100 packets"}
CALL = {"source": {"kind": "udp"}}


def of(*flows: dict[str, Any], **tables: Any) -> Scenario:
    return Scenario(**{"path": PATH, "duration": "10 s", "traffic": "native", "flows": list(flows), **tables})


def test_a_source_of_datagrams_is_a_call_unless_it_says_otherwise() -> None:
    flow = of(CALL).compile().flows[0]
    assert (flow.name, flow.cc, flow.datagrams) == ("udp", "udp", Datagrams(bytes=172, rate_bps=68_800))
    assert 68_800 / 8 / 172 == 50
    turns = {"kind": "udp", "rate": "1 Mbit/s", "size": "1 kB", "pattern": "on-off", "on": "1 s", "off": "2 s"}
    assert of({"source": turns}).compile().flows[0].datagrams == Datagrams(
        bytes=1000, rate_bps=10**6, on_off_ns=(10**9, 2 * 10**9)
    )
    chance = of({"source": {"kind": "udp", "pattern": "poisson"}})
    assert chance.compile().flows[0].datagrams == Datagrams(bytes=172, rate_bps=68_800, poisson=True)
    for scenario in (chance, of({"source": turns})):
        assert Compiled.from_dict(scenario.compile().to_dict()).to_json() == scenario.compile().to_json()
        assert Scenario.from_dict(scenario.to_dict()) == scenario
        assert scenario.as_custom().compile().flows[0].datagrams == scenario.compile().flows[0].datagrams


@pytest.mark.parametrize(
    ("flow", "code", "field"),
    [
        ({**CALL, "cc": "cubic"}, "conflict", "cc"),
        ({**CALL, "bytes": "1 MB"}, "conflict", "source"),
        ({**CALL, "replace": {"lifetime": ["1 s", "2 s"]}}, "conflict", "replace"),
        ({"source": {"kind": "udp", "size": "15 bytes"}}, "out-of-range", "source.size"),
        ({"source": {"kind": "udp", "size": "1473 bytes"}}, "out-of-range", "source.size"),
        ({"source": {"kind": "udp", "rate": "1 Gbit/s", "size": "16 bytes"}}, "out-of-range", "source.rate"),
        ({"source": {"kind": "udp", "pattern": "on-off", "on": "1 s"}}, "missing-field", "source.off"),
        ({"source": {"kind": "udp", "on": "1 s"}}, "conflict", "source.on"),
        ({"source": {"kind": "udp", "pattern": "bursty"}}, "unknown-name", "source.pattern"),
    ],
)
def test_what_is_wrong_with_datagrams_is_reported_with_its_field(flow: dict[str, Any], code: str, field: str) -> None:
    with expected_error(code=code, field=f"flows.0.{field}"):
        of(flow)


def test_a_congestion_control_that_is_set_for_all_flows_is_none_of_datagrams() -> None:
    changed = of({"name": "bulk"}, CALL).set({"flows.cc": "bbr"})
    assert [flow.cc for flow in changed.compile().flows] == ["bbr", "udp"]
    with expected_error(field="flows.1.cc"):
        of({"name": "bulk"}, CALL).set({"flows.1.cc": "bbr"})


def test_the_model_and_iperf3_have_no_datagrams() -> None:
    for engine in ("model", "kernel"):
        with expected_error(code="unsupported", field="flows.0.source"):
            engines.get(engine).check(of(CALL, traffic="iperf3"))


def test_a_run_without_datagrams_has_no_table_of_them() -> None:
    assert "datagrams" not in engines.get("sim").run(of({}, duration="2 s")).tables


def test_a_call_beside_a_bulk_transfer_waits_in_its_queue() -> None:
    run = engines.get("sim").run(of({}, CALL))
    table = run.tables["datagrams"]
    assert set(table["flow"]) == {1}
    assert (table["sent"] == 50).all()
    # 100 packets on 10 Mbit/s are 0.12 s.
    assert 0.05 < table["delay_mean_s"].iloc[3:].mean() < 0.020 + 0.123


def test_a_rating_is_what_the_recommendation_says() -> None:
    """Without loss and delay, the default R of 93.2; beyond 177.3 ms delay counts more; MOS by annex B."""
    assert rating(0, 0) == pytest.approx(93.2)
    assert rating(0.1, 0) == pytest.approx(93.2 - 2.4)
    assert rating(0.2773, 0) == pytest.approx(93.2 - 0.024 * 277.3 - 11)
    assert rating(0, 0.02, robustness=NOT_CONCEALED) == pytest.approx(93.2 - 95 * 2 / 6.3)
    assert mos([93.2, 80, 50, 0, -10, 100]) == pytest.approx([4.41, 4.02, 2.58, 1, 1, 4.5], abs=0.01)
    ratings = np.linspace(-20, 120, 1000)
    assert (np.diff(mos(ratings)) >= 0).all()


def test_a_call_that_a_queue_delays_sounds_worse_and_one_that_is_lost_is_not_understood() -> None:
    sim = engines.get("sim")
    alone = call(sim.run(of(CALL)), 0)
    assert alone["delay_s"].to_numpy() == pytest.approx(0.020 + 0.020 + 214 * 8 / 1e7, rel=1 / 32)
    assert alone["mos"].to_numpy() == pytest.approx(float(mos(rating(0.04, 0))), abs=0.01)
    slow = {**PATH, "rate": "2 Mbit/s", "queue": "400 ms"}
    beside = call(sim.run(of({}, CALL, path=slow)), 1)
    assert beside["mos"].iloc[3:].mean() < 4
    lost = call(sim.run(of(CALL, path={**PATH, "loss": "30%"})), 0)
    assert 0.2 < lost["lost"].mean() < 0.4
    assert lost["mos"].mean() < 2.5
    nothing = call(sim.run(of(CALL, path={**PATH, "loss": "100%"})), 0)
    assert nothing["mos"].isna().all(), "a receiver that hears nothing knows of no loss"
    with expected_error(code="unknown-name"):
        call(sim.run(of({}, CALL)), 0)


def told(run: Run, flow: int) -> tuple[float, float, float, float]:
    """Received in each second, share lost, mean delay, 95th percentile, from the third second on."""
    table = run.tables["datagrams"].query("flow == @flow and t_s > 3.5")
    received, lost = table["received"].sum(), table["lost"].sum()
    mean = (table["delay_mean_s"] * table["received"]).sum() / received
    return received / len(table), lost / (received + lost), mean, table["delay_p95_s"].mean()


PATTERNS = {
    "even": {},
    "poisson": {"pattern": "poisson"},
    "on-off": {"pattern": "on-off", "on": "100 ms", "off": "50 ms"},
}
COMPARED = {
    name: of({"source": {"kind": "udp", "rate": "15 Mbit/s", "size": "1000 bytes", **pattern}})
    for name, pattern in PATTERNS.items()
} | {"calls": of({}, {"source": {"kind": "udp"}, "count": 2}, duration="20 s")}


@pytest.mark.parametrize("pattern", PATTERNS)
def test_more_than_a_bottleneck_takes_is_lost_as_on_the_kernel(pattern: str, compared: dict[str, Run]) -> None:
    ours, theirs = told(engines.get("sim").run(COMPARED[pattern]), 0), told(compared[pattern], 0)
    assert ours == pytest.approx(theirs, rel=0.02, abs=0.002)


def test_a_calls_delay_beside_a_bulk_transfer_is_the_kernels(compared: dict[str, Run]) -> None:
    simulated, real = engines.get("sim").run(COMPARED["calls"]), compared["calls"]
    ours, theirs = told(simulated, 1), told(real, 1)
    assert ours[2:] == pytest.approx(theirs[2:], rel=0.05)
    sent = [run.tables["datagrams"]["sent"].to_list() for run in (simulated, real)]
    assert sent[0] == sent[1] == [100] * 20
    assert [len(run.tables["flows"].query("flow == 1")) for run in (simulated, real)] == [2, 2]
