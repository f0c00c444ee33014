"""Segments merged by the receiving host's card (GRO): in a file, in the simulator, and against the kernel."""

from typing import Any

import pytest

from expected_error import expected_error
from sawtooth.engines import get
from sawtooth.run import Run
from sawtooth.scenario import Scenario
from sawtooth.scenario.compiled import Compiled
from sawtooth.testbed.plan import build
from sawtooth.testbed.ports import Merging
from sawtooth.testbed.target_kernel import Place
from sawtooth.testbed.unsupported import check

FAST = {"rate": "200 Mbit/s", "rtt": "20 ms", "queue": "1 bdp", "reverse_rate": "1 Gbit/s"}


def path(gro: bool | str | None, duration: str = "3 s", **given: Any) -> Scenario:
    host = {} if gro is None else {"gro": gro}
    return Scenario(duration=duration, traffic="native", host=host, path=FAST | given)


def told(scenario: Scenario, run: Run | None = None) -> tuple[float, float]:
    """Goodput in Mbit/s, and packets sent back per hundred received; of the simulator, or of a run."""
    tables = (run or get("sim").run(scenario)).tables
    sent = tables["queues"].groupby("transmitter")["sent_packets"].sum()
    return tables["intervals"]["goodput_bps"].mean() / 1e6, 100 * sent[1] / sent[0]


def test_a_time_or_whether_is_written_as_it_was_read() -> None:
    for given, wait_ns in ((True, 1), ("50 us", 50_000), (False, None), (None, None)):
        scenario = path(given)
        assert {host.gro_ns for host in scenario.compile().hosts} == {wait_ns}
        assert Scenario(**scenario.to_dict()) == scenario
        assert Compiled.from_dict(scenario.compile().to_dict()) == scenario.compile()
    assert "gro_ns" not in path(None).compile().to_dict()["hosts"][0]


@pytest.mark.parametrize("given", ["1 s", 50, "fast"])
def test_what_is_no_time_or_too_long_is_reported_by_its_field(given: Any) -> None:
    with expected_error(field="host.gro"):
        path(given)


def test_one_host_merges_and_others_do_not() -> None:
    scenario = Scenario(path=FAST, hosts={"receiver": {"gro": "20 us"}})
    assert [host.name for host in scenario.compile().hosts if host.gro_ns] == ["receiver"]
    [merging] = build(scenario.compile(), Place(), "st-").ports.merging
    assert merging == Merging(4, "y3", 20_000)


def test_hosts_behind_one_card_merge_alike() -> None:
    hosts: dict[str, Any] = {"a": {}, "b": {"gro": True}, "c": {}}
    links = [{"from": "a", "to": "b"}, {"from": "a", "to": "c"}]
    flows = [{"from": "a", "to": "b"}, {"from": "a", "to": "c"}]
    made = Scenario(topology="custom", hosts=hosts, links=links, flows=flows, cards={"a": {"rate": "1 Gbit/s"}})
    with expected_error(code="unsupported", field="host.gro"):
        check(made.compile(), "native", Place(), where="here")


def test_with_a_wait_there_are_fewer_acknowledgements_and_as_much_goodput() -> None:
    alone, merged = told(path(None)), told(path("100 us"))
    assert alone[1] == pytest.approx(50, abs=5)
    assert merged[1] < 15
    assert merged[0] == pytest.approx(alone[0], rel=0.05)


def test_on_a_line_that_sends_one_frame_after_the_other_none_come_at_once() -> None:
    assert told(path(True)) == told(path(None))


def test_what_a_link_aggregates_comes_at_once_and_is_acknowledged_once() -> None:
    links: list[dict[str, Any]] = [
        {"from": "a", "to": "r", "rate": "50 Mbit/s", "delay": "5 ms", "queue": "200 packets"},
        {"from": "r", "to": "b", "forward": {"aggregation": "2 ms"}},
    ]
    flows = [{"from": "a", "to": "b"}]
    acks = []
    for gro in (False, True):
        hosts: dict[str, Any] = {"a": {}, "r": {}, "b": {"gro": gro}}
        acks.append(told(Scenario(topology="custom", hosts=hosts, links=links, flows=flows, duration="3 s"))[1])
    # With and without GRO. On the kernel it is 12 per hundred: it merges nine segments at a time, fewer while the
    # window grows.
    assert acks == [pytest.approx(12, abs=1), pytest.approx(12, abs=1)]


def test_without_losses_all_that_is_sent_arrives_and_each_transfer_ends() -> None:
    flows = [{"from": "sender", "to": "receiver", "bytes": "1 MB", "count": 5}]
    scenario = Scenario(duration="5 s", host={"gro": "100 us"}, path=FAST, flows=flows)
    tables = get("sim").run(scenario).tables
    assert tables["flows"]["completed"].all()
    assert tables["intervals"]["goodput_bps"].sum() / 8 == 5_000_000


ACKNOWLEDGED = {
    "back-to-back": path("50 us"),
    "slower": path("200 us", rate="50 Mbit/s"),
    "few losses": path("100 us", loss="0.02%"),
    "many losses": path("100 us", loss="0.5%"),
}
LIMITED = Scenario(
    duration="3 s",
    traffic="native",
    host={"gro": "30 us", "receive_buffer": "1 MiB"},
    path=FAST | {"rate": "500 Mbit/s", "rtt": "40 ms", "queue": "2 bdp"},
)


COMPARED = ACKNOWLEDGED | {"limited": LIMITED}


@pytest.mark.parametrize("name", ACKNOWLEDGED)
def test_the_kernel_and_the_simulator_agree_on_acknowledgements(name: str, compared: dict[str, Run]) -> None:
    ours, theirs = told(ACKNOWLEDGED[name]), told(ACKNOWLEDGED[name], compared[name])
    assert ours[1] == pytest.approx(theirs[1], rel=0.05)
    if "losses" not in name:
        assert ours[0] == pytest.approx(theirs[0], rel=0.005)


def test_a_buffer_that_limits_the_flow_offers_as_much_for_merged_segments_as_the_kernel(
    compared: dict[str, Run],
) -> None:
    (ours, _), (theirs, _) = told(LIMITED), told(LIMITED, compared["limited"])
    assert ours == pytest.approx(theirs, rel=0.04)
