"""Policers: in scenario files, on the simulator, in the testbed's plan, and against the kernel."""

import struct
from typing import Any

import pytest

from expected_error import expected_error
from sawtooth.cli.scenario_text import describe
from sawtooth.engines import get
from sawtooth.run import Run
from sawtooth.scenario import Scenario
from sawtooth.scenario.compiled import Compiled
from sawtooth.scenario.compiled_form import Policer
from sawtooth.testbed.plan import build
from sawtooth.testbed.target_kernel import Place
from sawtooth.testbed.unsupported import check

POLICER = {"rate": "8 Mbit/s", "burst": "64 KiB"}
PATH = {"rate": "100 Mbit/s", "rtt": "40 ms", "queue": "1000 packets", "policer": POLICER}


def custom(link: dict[str, Any], **more: Any) -> Scenario:
    hosts = {"a": {}, "b": {}, "c": {}}
    links = [{"from": "a", "to": "b", "delay": "5 ms", **link}, {"from": "b", "to": "c", "delay": "5 ms"}]
    return Scenario(topology="custom", hosts=hosts, links=links, flows=[{"from": "a", "to": "c"}], **more)


def test_a_path_has_it_after_its_bottleneck_and_a_link_in_each_direction() -> None:
    given = Policer(rate_bps=8_000_000, burst_bytes=65_536)
    assert {one.name: one.policer for one in Scenario(path=PATH).compile().links if one.policer} == {
        "loss>delay": given
    }
    found = {one.name: one.policer for one in custom({"policer": POLICER}).compile().links if one.policer}
    assert found == {"a>b": given, "b>a": given}
    found = {one.name: one.policer for one in custom({"backward": {"policer": POLICER}}).compile().links if one.policer}
    assert found == {"b>a": given}


@pytest.mark.parametrize(
    ("policer", "code", "field"),
    [
        ({"rate": "8 Mbit/s"}, "missing-field", "path.policer.burst"),
        ({**POLICER, "rate": 8}, "missing-unit", "path.policer.rate"),
        ({**POLICER, "burst": "1513 bytes"}, "out-of-range", "path.policer.burst"),
        ({**POLICER, "burts": "1 kB"}, "unknown-field", "path.policer.burts"),
    ],
)
def test_what_is_wrong_is_reported_by_its_field(policer: dict[str, Any], code: str, field: str) -> None:
    with expected_error(code=code, field=field):
        Scenario(path={"policer": policer}).compile()


def test_it_is_written_and_read_back_and_shown() -> None:
    scenario = Scenario(path=PATH)
    assert Scenario(**scenario.to_dict()) == scenario
    made = scenario.compile()
    assert Compiled.from_dict(made.to_dict()) == made
    shown = describe(scenario)
    assert "–[policed to 8 Mbit/s]→" in shown
    assert "bottleneck 8 Mbit/s" in shown


def test_closed_forms_refuse_it() -> None:
    with expected_error(code="unsupported", field="policer"):
        get("model").check(Scenario(path=PATH))


def test_a_link_that_shares_a_card_has_none_on_a_kernel() -> None:
    links = [{"from": "a", "to": "b", "policer": POLICER}, {"from": "a", "to": "c"}, {"from": "b", "to": "c"}]
    card = {"a": {"rate": "1 Gbit/s"}}
    flows = [{"from": "a", "to": "b"}, {"from": "a", "to": "c"}]
    scenario = Scenario(topology="custom", hosts={"a": {}, "b": {}, "c": {}}, cards=card, links=links, flows=flows)
    with expected_error(code="unsupported", field="links"):
        check(scenario.compile(), "native", Place(), where="here")


def test_no_more_passes_than_its_rate_and_nothing_waits() -> None:
    run = get("sim").run(Scenario(duration="20 s", path=PATH, flows=[{"cc": "cubic", "count": 3}]))
    late = run.tables["intervals"].query("t_s > 2").groupby("t_s")["goodput_bps"].sum()
    assert 5e6 < late.mean() <= 8e6 * 1448 / 1514
    assert run.tables["links"]["policed"].sum() > 50
    assert run.tables["links"]["lost"].sum() == 0
    assert run.tables["queues"]["drops"].sum() == 0
    # Except for delayed acknowledgements of small windows, the round trip is the path's.
    assert run.tables["tcp_info"].query("t_s > 2")["srtt_s"].median() < 0.045
    assert run.tables["queues"]["delay_mean_s"].max() < 0.001


def test_a_burst_passes_at_once_after_silence() -> None:
    def seconds(burst: str) -> float:
        path = PATH | {"policer": {"rate": "1 Mbit/s", "burst": burst}}
        run = get("sim").run(Scenario(duration="20 s", path=path, flows=[{"cc": "reno", "bytes": "100 kB"}]))
        return float(run.tables["flows"]["end_s"].iloc[0])

    assert seconds("200 kB") < 0.3 < 0.5 < seconds("10 kB")


def test_on_a_kernel_a_filter_drops_before_the_delay() -> None:
    ports = build(Scenario(path=PATH).compile(), Place(), "st-1-0-1-").ports
    (choice,) = [one for one in ports.filters if one.kind == "matchall"]
    (prio,) = [one for one in ports.qdiscs if one.handle == choice.parent and one.device == choice.device]
    (child,) = [one for one in ports.qdiscs if one.parent == prio.handle | 1 and one.device == prio.device]
    assert (prio.kind, child.kind) == ("prio", "netem")
    assert [(one.handle, one.child) for one in ports.losses if one.polices] == [(prio.handle, child.handle)]
    at = choice.options.index(b"police\0")
    # struct tc_police after the headers of TCA_ACT_OPTIONS and TCA_POLICE_TBF: action TC_ACT_SHOT, burst in 64 ns.
    action, burst = struct.unpack_from("=4xi4xI", choice.options, at + 8 + 8)
    assert (action, burst) == (2, round(65_536 / 1e6 * 1e9 / 64))


def test_frames_are_cut_before_a_policer_that_no_transmitter_is_before() -> None:
    policed = build(custom({"policer": POLICER}).compile(), Place(), "st-1-0-1-").ports
    plain = build(custom({}).compile(), Place(), "st-1-0-1-").ports
    assert len(policed.subs) == len(plain.subs) + 4


COMPARED = {
    cc: Scenario(duration="15 s", traffic="native", path=PATH, flows=[{"cc": cc}]) for cc in ("reno", "cubic", "bbr")
} | {"own": custom({"policer": POLICER, "loss": "0.1%"}, duration="10 s", traffic="native")}


@pytest.mark.parametrize("cc", ["reno", "cubic", "bbr"])
def test_the_kernel_and_the_simulator_agree_on_a_policer(cc: str, compared: dict[str, Run]) -> None:
    ours, theirs = get("sim").run(COMPARED[cc]).tables, compared[cc].tables
    goodput = [one["intervals"]["goodput_bps"].mean() for one in (ours, theirs)]
    assert goodput[0] == pytest.approx(goodput[1], rel=0.03)
    policed = [int(one["links"]["policed"].sum()) for one in (ours, theirs)]
    # BBR draws its own phases, and its drops follow them.
    assert policed[0] == pytest.approx(policed[1], rel=0.3 if cc == "bbr" else 0.1)


def test_a_link_polices_what_its_own_host_sends(compared: dict[str, Run]) -> None:
    ours, theirs = get("sim").run(COMPARED["own"]).tables, compared["own"].tables
    goodput = [one["intervals"]["goodput_bps"].mean() for one in (ours, theirs)]
    assert goodput[0] == pytest.approx(goodput[1], rel=0.1)
    assert theirs["links"]["policed"].sum() > 0 < theirs["links"]["lost"].sum()
    assert not theirs["links"].duplicated(["t_s", "link"]).any()
