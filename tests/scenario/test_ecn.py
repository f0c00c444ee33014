"""ECN: in scenario files, in the testbed's plan, in captures, and against the real kernel."""

from pathlib import Path
from typing import Any

import jsonschema
import pytest

from expected_error import expected_error
from sawtooth import engines
from sawtooth.capture import read_capture
from sawtooth.capture.identify.captured import identify_capture
from sawtooth.capture.summary import Judgement
from sawtooth.capture.text import describe
from sawtooth.capture.verdict import verdict
from sawtooth.engines.sim import Sim
from sawtooth.run import Run
from sawtooth.scenario import Scenario
from sawtooth.testbed.plan import build
from sawtooth.testbed.target_kernel import Place
from sawtooth.testbed.unsupported import check

MARKING: dict[str, Any] = {
    "duration": "15 s",
    "traffic": "native",
    "path": {"rate": "10 Mbit/s", "rtt": "40 ms", "queue": {"kind": "codel", "ecn": True}},
    "host": {"ecn": True},
}


@pytest.mark.parametrize("cc", ["dctcp", "prague", {"name": "bbr3", "variant": "ecn"}])
def test_a_control_that_lives_by_marks_is_warned_of_where_its_receiver_gives_none(cc: Any) -> None:
    path = {"rate": "10 Mbit/s", "queue": {"kind": "codel", "ecn": True}}
    told = {
        ecn: Sim().run(Scenario(duration="1 s", path=path, flows=[{"cc": cc}], host={"ecn": ecn})) for ecn in (0, 2)
    }
    assert "set host.ecn = 2" in told[0].warnings[0]
    assert told[2].warnings == []


@pytest.mark.parametrize(("given", "meant"), [(True, 1), (False, 0), (0, 0), (1, 1), (2, 2)])
def test_ecn_is_linuxs_number_or_whether_at_all(given: Any, meant: int) -> None:
    scenario = Scenario(host={"ecn": given})
    assert {host.ecn for host in scenario.compile().hosts} == {meant}
    assert Scenario(**scenario.to_dict()) == scenario
    # Not ``jsonschema.validate``, which checks the schema too; tests of the public interface do that once.
    jsonschema.Draft202012Validator(Scenario.json_schema()).validate({"host": {"ecn": given}})


@pytest.mark.parametrize("given", [3, -1, "yes", 1.5])
def test_other_values_are_refused_by_their_field(given: Any) -> None:
    with expected_error(field="host.ecn"):
        Scenario(host={"ecn": given})


def test_on_a_kernel_it_is_the_sysctl_of_each_host() -> None:
    given = {"host": {"ecn": 2}, "hosts": {"sender": {"ecn": True, "ecn_fallback": False}}}
    plan = build(Scenario(**given).compile(), Place(), "st-1-0-1-")
    told = {
        space.name.rsplit("-", 1)[1]: (space.sysctls["net/ipv4/tcp_ecn"], space.sysctls["net/ipv4/tcp_ecn_fallback"])
        for space in plan.namespaces
    }
    assert (told["sender"], told["receiver"]) == (("1", "0"), ("2", "1"))


def test_dctcp_with_ecn_needs_both_ends_which_iperf3_does_not_give() -> None:
    compiled = Scenario(**MARKING, flows=[{"cc": "dctcp"}]).compile()
    check(compiled, "native", Place(), where="here")
    with expected_error(code="unsupported", field="flows.0.cc"):
        check(compiled, "iperf3", Place(), where="here")


def test_a_capture_shows_who_agreed_what_was_marked_echoed_and_answered(tmp_path: Path) -> None:
    run = Sim(capture=tmp_path, capture_at=("sender", "receiver")).run(Scenario(**MARKING))
    assert run is not None
    seen = {}
    for at in ("sender", "receiver"):
        (connection,) = read_capture(tmp_path / f"capture-{at}.pcap").facts["connections"]
        assert connection["handshake"]["ecn"] is True
        seen[at] = connection["directions"][0]
    marks = run.tables["queues"]["marks"].sum()
    assert marks > 10
    assert seen["sender"]["ce_marks"] == 0
    assert seen["receiver"]["ce_marks"] in (marks, marks - 1), "one may be on its way still"
    assert seen["receiver"]["ecn_echoes"] > marks
    # In the state that a mark begins, each answer is reported once.
    assert 0 < seen["receiver"]["window_reductions"] <= marks
    capture = read_capture(tmp_path / "capture-sender.pcap", 0)
    echoes, reductions = seen["sender"]["ecn_echoes"], seen["sender"]["window_reductions"]
    assert f"marked        0 segments seen with CE; {echoes} acknowledgements with ECE, " in describe(capture.facts)
    judged = Judgement.of(capture.facts["connections"][0])
    assert judged is not None
    told = dict(verdict(judged, identify_capture(capture)))["What was lost, and where?"]
    assert f"{echoes:,} acknowledgements echoed an ECN mark, and {reductions:,} segments" in told


def test_without_ecn_the_same_queue_drops(tmp_path: Path) -> None:
    tables = engines.get("sim").run(Scenario(**{**MARKING, "host": {}})).tables
    assert (tables["queues"]["marks"].sum(), tables["tcp_info"]["delivered_ce_segments"].max()) == (0, 0)
    assert tables["queues"]["drops"].sum() > 0


STEP = {"kind": "codel", "target": "1 s", "interval": "1 s", "ce_threshold": "5 ms"}


COMPARED = {
    cc: Scenario(**{**MARKING, "path": {**MARKING["path"], "queue": queue}}, flows=[{"cc": cc}])
    for cc, queue in (("cubic", {"kind": "codel", "ecn": True}), ("dctcp", STEP))
}


@pytest.mark.parametrize("cc", COMPARED)
def test_the_kernel_and_the_simulator_agree_on_marks(cc: str, compared: dict[str, Run]) -> None:
    found = {}
    for engine, run in (("sim", engines.get("sim").run(COMPARED[cc])), ("kernel", compared[cc])):
        tables = run.tables
        queues = tables["queues"].query("transmitter == 0")
        told = tables["tcp_info"]["delivered_ce_segments"].max()
        found[engine] = (tables["intervals"]["goodput_bps"].mean(), queues["marks"].sum(), told)
        assert queues["drops"].sum() == 0
    (goodput, marks, told), (real_goodput, real_marks, real_told) = found["sim"], found["kernel"]
    assert goodput == pytest.approx(real_goodput, rel=0.03)
    assert marks == pytest.approx(real_marks, rel=0.2, abs=3)
    assert told == pytest.approx(real_told, rel=0.2, abs=5)


@pytest.mark.parametrize(("name", "beta"), [("reno", 0.8), ("cubic", 0.85)])
def test_alternative_backoff_takes_less_for_a_mark_and_as_much_for_a_loss(name: str, beta: float) -> None:
    """RFC 8511, section 3.1: a mark leaves ``beta`` of the window, a loss as much as ever."""
    abe = {"name": name, "variant": "abe"}

    def left(cc: Any, **changes: Any) -> float:
        """As shares of the sampled window, in the median."""
        run = Sim().run(Scenario(**MARKING | {"interval": "10 ms", "flows": [{"cc": cc}]} | changes))
        seen = run.tables["tcp_info"].iloc[200:]
        came_down = seen["ssthresh_segments"].diff().fillna(0) != 0
        return float((seen["ssthresh_segments"] / seen["cwnd_segments"].shift())[came_down].median())

    assert left(abe) == pytest.approx(beta, abs=0.03)
    unmarked = {"host": {"ecn": False}, "path": MARKING["path"] | {"queue": "40 packets"}}
    assert left(abe, **unmarked) == pytest.approx({"reno": 0.5, "cubic": 0.7}[name], abs=0.03)


def test_bbr3_reacts_to_marks_where_it_is_set_to_over_a_short_path() -> None:
    def waited(cc: Any, rtt: str) -> tuple[float, float]:
        path = {"rate": "100 Mbit/s", "rtt": rtt, "queue": STEP | {"ce_threshold": "500 us"}}
        tables = Sim().run(Scenario(**MARKING | {"path": path, "flows": [{"cc": cc}]})).tables
        return tables["queues"].query("transmitter == 0")["delay_mean_s"].mean(), tables["intervals"][
            "goodput_bps"
        ].mean()

    heeding = {"name": "bbr3", "variant": "ecn"}
    (plain, most), (short, goodput) = waited("bbr3", "2 ms"), waited(heeding, "2 ms")
    assert short < 0.8 * plain
    assert goodput > 0.95 * most
    assert waited(heeding, "20 ms") == pytest.approx(waited("bbr3", "20 ms"), rel=0.01), "longer than 5 ms"


def test_alternative_backoff_is_the_simulator_s_only() -> None:
    scenario = Scenario(**MARKING | {"flows": [{"cc": {"name": "cubic", "variant": "abe"}}]})
    assert [flow.name for flow in scenario.compile().flows] == ["cubic-abe"]
    with expected_error(code="unsupported", field="flows.0.cc.variant"):
        check(scenario.compile(), "native", Place(), where="the engine kernel")
