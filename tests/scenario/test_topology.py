"""Ready topologies: hosts, cards, loss and base RTT are where the design places them; custom networks with their
routes.
"""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from expected_error import expected_error
from sawtooth.scenario import Scenario


def hosts(compiled: dict[str, Any]) -> list[str]:
    return [host["name"] for host in compiled["hosts"]]


def way(compiled: dict[str, Any], direction: str, flow: int = 0) -> list[str]:
    return [compiled["links"][index]["name"] for index in compiled["flows"][flow][direction]]


def base_rtt_ns(compiled: dict[str, Any], flow: int = 0) -> int:
    taken = compiled["flows"][flow]
    return sum(compiled["links"][index]["delay_ns"] for index in taken["forward"] + taken["backward"])


def lossy(compiled: dict[str, Any]) -> dict[str, int]:
    return {link["name"]: link["loss_ppb"] for link in compiled["links"] if link["loss_ppb"]}


def test_a_path_has_its_rate_and_queue_at_the_router_and_its_loss_after_it() -> None:
    compiled = (
        Scenario(path={"rate": "50 Mbit/s", "rtt": "21 ms", "queue": "10 packets", "loss": "1%", "ack_loss": "2%"})
        .compile()
        .to_dict()
    )
    assert hosts(compiled) == ["sender", "router", "loss", "delay", "receiver"]
    assert compiled["transmitters"] == [
        {"name": "router>loss", "rate_bps": 50_000_000, "queue_packets": 10, "queue_bytes": None}
    ]
    assert [link["name"] for link in compiled["links"] if link["transmitter"] == 0] == ["router>loss"]
    assert lossy(compiled) == {"loss>delay": 10_000_000, "delay>loss": 20_000_000}
    assert base_rtt_ns(compiled) == 21_000_000


def test_the_way_back_of_a_path_has_a_rate_and_the_same_queue_of_its_own_where_it_is_given_one() -> None:
    path = {"rate": "100 Mbit/s", "reverse_rate": "10 Mbit/s", "rtt": "20 ms", "queue": "1 bdp"}
    compiled = Scenario(path=path).compile().to_dict()
    forward, reverse = compiled["transmitters"]
    assert (reverse["name"], reverse["rate_bps"]) == ("loss>router", 10_000_000)
    assert (forward["queue_packets"], reverse["queue_packets"]) == (165, 17)
    assert [link["name"] for link in compiled["links"] if link["transmitter"] == 1] == ["loss>router"]
    compiled = Scenario(path=path | {"queue": "40 ms"}).compile().to_dict()
    assert [one["queue_bytes"] for one in compiled["transmitters"]] == [500_000, 50_000]


def test_a_path_without_a_reverse_rate_asks_what_it_asked_before_there_was_one() -> None:
    assert "reverse_rate" not in Scenario(path={}).to_dict()["path"]


def test_a_chain_has_one_card_a_host_for_data_and_acknowledgements() -> None:
    compiled = Scenario(topology="chain").compile().to_dict()
    assert hosts(compiled) == ["h1", "h2", "h3", "h4", "h5"]
    assert [(one["name"], one["rate_bps"], one["queue_packets"]) for one in compiled["transmitters"]] == [
        (f"h{i}", 10**9, 1000) for i in range(1, 6)
    ]
    assert all(link["transmitter"] == link["from"] for link in compiled["links"])
    assert way(compiled, "forward") == ["h1>h2", "h2>h3", "h3>h4", "h4>h5"]
    assert way(compiled, "backward") == ["h5>h4", "h4>h3", "h3>h2", "h2>h1"]
    assert [link["delay_ns"] for link in compiled["links"]] == [50_000] * 8


def test_the_asymmetric_chain_answers_directly_from_the_last_host_with_the_same_base_rtt() -> None:
    compiled = Scenario(topology="chain-asymmetric", chain={"loss": "1%"}).compile().to_dict()
    assert way(compiled, "forward") == ["h1>h2", "h2>h3", "h3>h4", "h4>h5"]
    assert way(compiled, "backward") == ["h5>h1"]
    assert compiled["links"][compiled["flows"][0]["backward"][0]]["transmitter"] == 4
    assert base_rtt_ns(compiled) == base_rtt_ns(Scenario(topology="chain").compile().to_dict()) == 400_000


@pytest.mark.parametrize("topology", ["chain", "chain-asymmetric"])
def test_loss_in_a_chain_is_on_the_third_link_in_the_direction_of_the_data_only(topology: str) -> None:
    assert lossy(Scenario(topology=topology, chain={"loss": "3%"}).compile().to_dict()) == {"h3>h4": 30_000_000}


@given(st.integers(0, 10**10), st.sampled_from(["path", "chain", "chain-asymmetric", "dumbbell"]))
def test_the_base_rtt_is_the_one_asked_for_to_the_nanosecond(rtt_ns: int, topology: str) -> None:
    table = "chain" if topology.startswith("chain") else topology
    compiled = Scenario.from_dict({"topology": topology, table: {"rtt": f"{rtt_ns} ns"}}).compile().to_dict()
    assert base_rtt_ns(compiled) == rtt_ns


def test_a_dumbbell_joins_its_pairs_over_one_bottleneck() -> None:
    flows = [{"from": "s1"}, {"from": "s2", "to": "r2", "cc": "bbr"}]
    compiled = Scenario(topology="dumbbell", dumbbell={"pairs": 2, "loss": "1%"}, flows=flows).compile().to_dict()
    assert way(compiled, "forward", 0) == ["s1>left", "left>right", "right>r1"]
    assert way(compiled, "backward", 1) == ["r2>right", "right>left", "left>s2"]
    assert lossy(compiled) == {"left>right": 10_000_000}
    assert {one["name"] for one in compiled["transmitters"]} == {"left>right", "right>left"}


def test_access_links_of_a_dumbbell_have_a_transmitter_each_when_they_have_a_rate() -> None:
    compiled = Scenario(topology="dumbbell", dumbbell={"pairs": 3, "access_rate": "1 Gbit/s"}).compile().to_dict()
    assert len(compiled["transmitters"]) == 2 + 4 * 3
    assert all(link["transmitter"] is not None for link in compiled["links"])


def test_flows_of_a_dumbbell_are_spread_over_the_pairs_in_turn() -> None:
    flows = [{"count": 5}, {"cc": "bbr", "count": 2}]
    compiled = Scenario(topology="dumbbell", dumbbell={"pairs": 3}, flows=flows).compile().to_dict()
    placed = [
        (flow["name"], flow["count"], compiled["links"][flow["forward"][0]]["name"]) for flow in compiled["flows"]
    ]
    assert placed == [
        ("cubic@s1", 2, "s1>left"),
        ("cubic@s2", 2, "s2>left"),
        ("cubic@s3", 1, "s3>left"),
        ("bbr@s1", 1, "s1>left"),
        ("bbr@s2", 1, "s2>left"),
    ]


@pytest.mark.usefixtures("patience")
def test_a_thousand_pairs_compile_without_noticeable_delay() -> None:
    flows = [{"count": 1000}]
    scenario = Scenario(topology="dumbbell", dumbbell={"pairs": 1000, "access_rate": "1 Gbit/s"}, flows=flows)
    assert len(scenario.compile().to_dict()["flows"]) == 1000


CUSTOM: dict[str, Any] = {
    "topology": "custom",
    "hosts": {"a": {}, "b": {}, "c": {}},
    "links": [
        {"from": "a", "to": "b", "rate": "100 Mbit/s", "delay": "1 ms"},
        {"from": "b", "to": "c", "delay": "2 ms"},
    ],
    "flows": [{"from": "a", "to": "c"}],
}


def custom(**changes: Any) -> Scenario:
    return Scenario.from_dict({**CUSTOM, **changes})


def test_a_link_is_two_directions_and_overrides_hold_for_one() -> None:
    link = {"from": "a", "to": "b", "rate": "1 Gbit/s", "delay": "1 ms", "loss": "1%", "overhead": "24 bytes"}
    link |= {"forward": {"loss": "2%", "delay": "0 s", "rate": "2 Gbit/s", "queue": "5 packets", "overhead": "0 bytes"}}
    compiled = custom(hosts={"a": {}, "b": {}}, links=[link], flows=[{"from": "a", "to": "b"}]).compile().to_dict()
    out, back = compiled["links"]
    assert (out["loss_ppb"], out["delay_ns"], out["overhead_bytes"]) == (20_000_000, 0, 0)
    assert (back["loss_ppb"], back["delay_ns"], back["overhead_bytes"]) == (10_000_000, 1_000_000, 24)
    assert compiled["transmitters"] == [
        {"name": "a>b", "rate_bps": 2 * 10**9, "queue_packets": 5, "queue_bytes": None},
        {"name": "b>a", "rate_bps": 10**9, "queue_packets": 1000, "queue_bytes": None},
    ]


def test_links_that_leave_a_host_with_a_card_share_its_transmitter() -> None:
    links = [{"from": "a", "to": "b"}, {"from": "b", "to": "c"}]
    compiled = custom(links=links, cards={"b": {"rate": "1 Gbit/s", "queue": "7 packets"}}).compile().to_dict()
    assert [link["transmitter"] for link in compiled["links"]] == [None, 0, 0, None]


def test_the_way_with_the_fewest_hops_is_taken() -> None:
    links = [*CUSTOM["links"], {"from": "a", "to": "c", "delay": "50 ms"}]
    assert way(custom(links=links).compile().to_dict(), "forward") == ["a>c"]


def test_of_equally_short_ways_the_one_first_in_the_file_is_taken() -> None:
    square = {"a": {}, "x": {}, "y": {}, "c": {}}
    sides = [{"from": "a", "to": "y"}, {"from": "a", "to": "x"}, {"from": "x", "to": "c"}, {"from": "y", "to": "c"}]
    assert way(custom(hosts=square, links=sides).compile().to_dict(), "forward") == ["a>y", "y>c"]
    sides[0], sides[1] = sides[1], sides[0]
    assert way(custom(hosts=square, links=sides).compile().to_dict(), "forward") == ["a>x", "x>c"]


def test_a_route_holds_for_one_direction_so_that_the_way_back_can_differ() -> None:
    links = [*CUSTOM["links"], {"from": "a", "to": "c"}]
    compiled = custom(links=links, routes=[{"from": "c", "to": "a", "via": ["b"]}]).compile().to_dict()
    assert way(compiled, "forward") == ["a>c"]
    assert way(compiled, "backward") == ["c>b", "b>a"]


def test_a_route_names_the_link_where_two_join_the_same_hosts() -> None:
    pair = [{"from": "a", "to": "b", "name": "one"}, {"from": "b", "to": "a", "name": "two", "delay": "9 ms"}]
    base = {"hosts": {"a": {}, "b": {}}, "links": pair, "flows": [{"from": "a", "to": "b"}]}
    assert way(custom(**base).compile().to_dict(), "forward") == ["one:a>b"]
    compiled = custom(**base, routes=[{"from": "a", "to": "b", "via": ["link:two"]}]).compile().to_dict()
    assert way(compiled, "forward") == ["two:a>b"]
    assert way(compiled, "backward") == ["one:b>a"]


def test_a_bdp_queue_of_a_custom_link_goes_by_the_base_rtt_of_the_first_flow_across() -> None:
    links = [
        {"from": "a", "to": "b", "delay": "10 ms", "rate": "100 Mbit/s", "queue": "1 bdp"},
        {"from": "b", "to": "c", "delay": "40 ms"},
    ]
    near, far = {"from": "a", "to": "b"}, {"from": "a", "to": "c"}
    made = [custom(links=links, flows=flows).compile().transmitters[0] for flows in ([near, far], [far, near])]
    # 100 Mbit/s x 20 ms and x 100 ms, in frames of 1514 bytes.
    assert [one.queue_packets for one in made] == [165, 826]


def test_a_bdp_queue_holds_at_least_one_packet() -> None:
    compiled = Scenario(path={"rtt": "0 s"}).compile().to_dict()
    assert compiled["transmitters"][0]["queue_packets"] == 1


def test_a_queue_in_time_is_the_bytes_that_its_transmitter_sends_in_it() -> None:
    compiled = Scenario(path={"rate": "100 Mbit/s", "queue": "48 ms"}).compile().to_dict()
    assert compiled["transmitters"][0]["queue_bytes"] == 600_000
    assert compiled["transmitters"][0]["queue_packets"] is None


@pytest.mark.parametrize(
    ("changes", "code", "field"),
    [
        ({"hosts": {}}, "missing-field", "hosts"),
        ({"links": []}, "missing-field", "links"),
        ({"links": [{"from": "a", "to": "d"}]}, "unknown-name", "links.0.to"),
        ({"links": [{"from": "a", "to": "a"}]}, "route-loop", "links.0.to"),
        ({"links": [*CUSTOM["links"], {"from": "a", "to": "b"}]}, "duplicate-name", "links.2.name"),
        ({"links": [CUSTOM["links"][0]]}, "no-route", "flows.0"),
        ({"links": [{"from": "a", "to": "b", "queue": "5 packets"}, CUSTOM["links"][1]]}, "conflict", "links.0.queue"),
        ({"links": [{"from": "a", "to": "b", "queue": "5 ms"}, CUSTOM["links"][1]]}, "conflict", "links.0.queue"),
        (
            {"links": [{"from": "a", "to": "b", "backward": {"queue": "5 ms"}}, CUSTOM["links"][1]]},
            "conflict",
            "links.0.backward.queue",
        ),
        ({"links": [{"from": "a", "to": "b", "rate": "1gbit", "queue": "100 bytes"}]}, "no-route", "flows.0"),
        (
            {"links": [{**CUSTOM["links"][0], "queue": "100 bytes"}, CUSTOM["links"][1]]},
            "zero-queue",
            "links.0.queue",
        ),
        ({"cards": {"d": {"rate": "1gbit"}}}, "unknown-name", "cards.d"),
        ({"cards": {"a": {"rate": "1gbit"}}}, "conflict", "links.0.rate"),
        ({"cards": {"a": {"queue": "5 packets"}}}, "missing-field", "cards.a.rate"),
        ({"routes": [{"from": "a", "to": "c", "via": ["d"]}]}, "unknown-name", "routes.0.via"),
        ({"routes": [{"from": "a", "to": "d"}]}, "unknown-name", "routes.0.to"),
        ({"routes": [{"from": "a", "to": "c"}]}, "no-route", "routes.0.via"),
        ({"routes": [{"from": "a", "to": "a"}]}, "route-loop", "routes.0.to"),
        ({"routes": [{"from": "a", "to": "c", "via": ["b", "a", "b"]}]}, "route-loop", "routes.0.via"),
        ({"routes": [{"from": "a", "to": "c", "via": ["link:x"]}]}, "unknown-name", "routes.0.via"),
        ({"routes": [{"from": "a", "to": "c", "via": ["link:b-c"]}]}, "no-route", "routes.0.via"),
        ({"routes": [{"from": "a", "to": "c", "via": ["b"]}] * 2}, "conflict", "routes.1"),
        ({"flows": [{"from": "a", "to": "a"}]}, "route-loop", "flows.0"),
        ({"flows": [{"from": "a"}]}, "missing-field", "flows.0.to"),
        ({"flows": [{"to": "a"}]}, "missing-field", "flows.0.from"),
        ({"flows": [{"from": "s*", "to": "r*"}]}, "unknown-name", "flows.0.from"),
        ({"probes": [{"from": "a", "to": "z"}]}, "unknown-name", "probes.0.to"),
    ],
)
def test_a_network_that_cannot_be_is_refused_at_its_field(changes: dict[str, Any], code: str, field: str) -> None:
    with expected_error(code=code, field=field) as caught:
        custom(**changes)
    assert caught.value.fix


def test_a_bdp_queue_that_no_flow_crosses_is_refused() -> None:
    link = {"from": "b", "to": "c", "rate": "1 Gbit/s", "queue": "1 bdp"}
    with expected_error(field="links.1.queue", match="no flow crosses"):
        custom(links=[CUSTOM["links"][0], link], flows=[{"from": "a", "to": "b"}])


@pytest.mark.parametrize(
    ("flow", "field"),
    [
        ({"from": "s*", "to": "r1"}, "flows.0.from"),
        ({"from": "s1", "to": "r*"}, "flows.0.to"),
        ({"from": "s9"}, "flows.0.from"),
    ],
)
def test_ends_of_a_dumbbell_that_do_not_go_together_are_refused(flow: dict[str, str], field: str) -> None:
    with expected_error(field=field):
        Scenario(topology="dumbbell", dumbbell={"pairs": 2}, flows=[flow])


def delays_ms(compiled: dict[str, Any], flow: int, direction: str) -> list[float]:
    return [compiled["links"][index]["delay_ns"] / 1e6 for index in compiled["flows"][flow][direction]]


def test_pairs_of_a_dumbbell_have_rtts_of_their_own_from_a_list() -> None:
    flows = [{"from": "s1"}, {"from": "s2"}, {"from": "s3"}]
    dumbbell = {"pairs": 3, "rtt": ["10 ms", "100 ms"]}
    compiled = Scenario(topology="dumbbell", dumbbell=dumbbell, flows=flows).compile().to_dict()
    assert [base_rtt_ns(compiled, flow) for flow in range(3)] == [10_000_000, 100_000_000, 10_000_000]
    assert delays_ms(compiled, 1, "forward") == [0, 5, 45]
    assert delays_ms(compiled, 1, "backward") == [45, 5, 0]


def test_a_dumbbell_has_at_least_as_many_pairs_as_rtts() -> None:
    compiled = Scenario(topology="dumbbell", dumbbell={"rtt": ["1 ms", "2 ms"]}, flows=[{"count": 2}]).compile()
    assert [flow.name for flow in compiled.flows] == ["cubic@s1", "cubic@s2"]
    with expected_error(field="dumbbell.rtt"):
        Scenario(topology="dumbbell", dumbbell={"rtt": []})


@pytest.mark.parametrize(
    ("topology", "back"),
    [("chain", "h4>h3"), ("chain-asymmetric", "h5>h1"), ("dumbbell", "right>left"), ("parking-lot", "n1>n0")],
)
def test_acknowledgements_are_lost_on_the_way_back_and_have_a_rate_of_their_own(topology: str, back: str) -> None:
    table = topology.removesuffix("-asymmetric")
    given = {"ack_loss": "2%", "reverse_rate": "3 Mbit/s"}
    compiled = Scenario.from_dict({"topology": topology, table: given}).compile().to_dict()
    assert lossy(compiled) == {back: 20_000_000}
    rates = [
        compiled["transmitters"][compiled["links"][index]["transmitter"]]["rate_bps"]
        for index in compiled["flows"][0]["backward"]
        if compiled["links"][index]["transmitter"] is not None
    ]
    assert set(rates) == {3_000_000}


def test_a_parking_lot_is_crossed_by_one_path_and_by_one_at_each_bottleneck() -> None:
    flows = [{}, {"from": "c2", "to": "d2"}]
    tables = {"topology": "parking-lot", "parking-lot": {"hops": 3, "rtt": "60 ms"}, "flows": flows}
    compiled = Scenario.from_dict(tables).compile().to_dict()
    assert way(compiled, "forward") == ["a>n0", "n0>n1", "n1>n2", "n2>n3", "n3>b"]
    assert way(compiled, "forward", 1) == ["c2>n1", "n1>n2", "n2>d2"]
    assert (base_rtt_ns(compiled), base_rtt_ns(compiled, 1)) == (60_000_000, 20_000_000)
