"""Fields set by dotted path, from the command line and by the axes of studies."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from expected_error import expected_error
from sawtooth.errors import InputError, SawtoothError
from sawtooth.scenario import Scenario
from sawtooth.scenario.overrides import parse_assignment

TWO = Scenario(flows=[{"name": "one"}, {"name": "two", "cc": "bbr"}])
CUSTOM = Scenario(
    topology="custom",
    hosts={"a": {}, "b": {}},
    links=[{"from": "a", "to": "b", "rate": "1 Gbit/s"}],
    flows=[{"from": "a", "to": "b"}],
)


def ccs(scenario: Scenario) -> list[str]:
    return [flow.cc for flow in scenario.flows]


def test_a_field_of_a_table_is_set_whether_or_not_the_file_has_the_table() -> None:
    assert str(Scenario().set({"path.rtt": "140 ms"}).path_table.rtt) == "140 ms"
    assert str(Scenario(path={"loss": "1%"}).set({"path.rtt": "140 ms"}).path_table.loss) == "1%"


def test_a_field_at_the_top_is_set() -> None:
    assert Scenario().set({"seed": 9, "duration": "5 s"}).compile().seed == 9


def test_flows_without_a_name_or_number_means_every_flow() -> None:
    assert ccs(TWO.set({"flows.cc": "reno"})) == ["reno", "reno"]


def test_a_flow_is_chosen_by_number_or_by_name() -> None:
    assert ccs(TWO.set({"flows.0.cc": "reno"})) == ["reno", "bbr"]
    assert ccs(TWO.set({"flows.two.cc": "reno"})) == ["cubic", "reno"]


def test_the_flow_that_a_scenario_has_by_default_can_be_set() -> None:
    assert ccs(Scenario().set({"flows.cc": "bbr"})) == ["bbr"]
    assert ccs(Scenario().set({"flows.cubic.cc": "bbr"})) == ["bbr"]


def test_a_field_inside_a_table_of_a_flow_is_set() -> None:
    changed = TWO.set({"flows.replace.lifetime": ["1 s", "2 s"]})
    assert [flow.lifetime_ns for flow in changed.compile().flows] == [(10**9, 2 * 10**9)] * 2


def test_host_sets_all_hosts_and_hosts_sets_one() -> None:
    changed = Scenario(topology="chain").set({"host.hz": 1000, "hosts.h1.hz": 100})
    assert [host.hz for host in changed.compile().hosts] == [100, 1000, 1000, 1000, 1000]


def test_a_link_is_chosen_by_its_name_and_one_direction_of_it_by_forward() -> None:
    changed = CUSTOM.set({"links.a-b.loss": "1%", "links.a-b.forward.loss": "2%"})
    assert [link.loss_ppb for link in changed.compile().links] == [20_000_000, 10_000_000]


def test_the_topology_can_be_changed_where_both_share_a_table() -> None:
    changed = Scenario(topology="chain", chain={"loss": "1%"}).set({"topology": "chain-asymmetric"})
    assert len(changed.compile().flows[0].backward) == 1


def test_the_scenario_itself_stays_as_it_was() -> None:
    before = TWO.to_dict()
    TWO.set({"flows.cc": "reno", "path.rtt": "1 s"})
    assert TWO.to_dict() == before


@pytest.mark.parametrize(
    ("changes", "code", "field"),
    [
        ({"path.rtx": "1 ms"}, "unknown-field", "path.rtx"),
        ({"pathh.rtt": "1 ms"}, "unknown-field", "pathh"),
        ({"path.rtt": 20}, "missing-unit", "path.rtt"),
        ({"path.rtt.x": "1 ms"}, "wrong-type", "path.rtt"),
        ({"path.rtt": "1 ms", "path.rtt.x": "1 ms"}, "bad-override", "path.rtt.x"),
        ({"": 1}, "bad-override", ""),
        ({"path..rtt": 1}, "bad-override", "path..rtt"),
        ({"flows.5.cc": "bbr"}, "bad-override", "flows.5.cc"),
        ({"flows.tow.cc": "bbr"}, "unknown-name", "flows.tow.cc"),
        ({"flows.one": "bbr"}, "bad-override", "flows.one"),
        ({"flows.0": "bbr"}, "bad-override", "flows.0"),
        ({"flows.ccc": "bbr"}, "unknown-field", "flows.0.ccc"),
        ({"probes.interval": "1 s"}, "bad-override", "probes.interval"),
        ({"links.a.loss": "1%"}, "bad-override", "links.a.loss"),
        ({"flows.cc": "cubik"}, "unknown-name", "flows.0.cc"),
    ],
)
def test_a_path_that_leads_nowhere_is_refused_at_its_field(changes: dict[str, Any], code: str, field: str) -> None:
    with expected_error(code=code, field=field or None) as caught:
        TWO.set(changes)
    assert caught.value.fix


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("path.rtt=140 ms", "path.rtt", "140 ms"),
        ('path.rtt="140 ms"', "path.rtt", "140 ms"),
        ("path.loss=1%", "path.loss", "1%"),
        ("host.hz = 1000", "host.hz", 1000),
        ("host.sack=false", "host.sack", False),
        ('flows.replace.lifetime=["1 s", "5 s"]', "flows.replace.lifetime", ["1 s", "5 s"]),
        ("name=a=b", "name", "a=b"),
        ("name=1\nseed = 2", "name", "1\nseed = 2"),
        ("name=", "name", ""),
        ("host.kernel=6.10", "host.kernel", "6.10"),
        ("host.kernel=7", "host.kernel", "7"),
        ('host.kernel="6.1"', "host.kernel", "6.1"),
        ("host.kernel=6.12.117", "host.kernel", "6.12.117"),
    ],
)
def test_an_assignment_is_toml_where_it_can_be_and_text_otherwise(text: str, key: str, value: object) -> None:
    assert parse_assignment(text) == (key, value)


@pytest.mark.parametrize("text", ["", "path.rtt", "=3", " =3"])
def test_an_assignment_without_a_field_or_value_is_refused(text: str) -> None:
    with expected_error(code="bad-override"):
        parse_assignment(text)


@given(st.text(max_size=20), st.none() | st.integers() | st.text(max_size=10) | st.lists(st.integers(), max_size=2))
def test_any_override_makes_a_scenario_or_one_clear_error(key: str, value: object) -> None:
    for scenario in (TWO, CUSTOM):
        try:
            scenario.set({key: value})
        except SawtoothError as error:
            assert error.fix


def test_what_follows_a_list_that_is_set_whole_means_its_items() -> None:
    before = Scenario(flows=[{"name": "a"}, {"name": "b"}])
    changed = before.set({"flows": [{"name": "c", "cc": "reno"}], "flows.c.cc": "bbr", "flows.0.start": "1 s"})
    assert [(flow.name, flow.cc, str(flow.start)) for flow in changed.flows] == [("c", "bbr", "1 s")]
    for key in ("flows.b.cc", "flows.1.cc"):
        with pytest.raises(SawtoothError) as caught:
            before.set({"flows": [{"name": "c"}], key: "bbr"})
        assert caught.value.code in ("unknown-name", "bad-override")


@pytest.mark.parametrize("value", [3, "x", {"a": 1}, True])
def test_below_a_list_that_is_set_to_something_else_nothing_can_be_set(value: object) -> None:
    with expected_error(code="bad-override"):
        Scenario().set({"flows": value, "flows.0.cc": "bbr"})


def test_what_is_set_stays_as_it_was_given_when_a_field_in_it_is_set_after() -> None:
    path = {"rate": "50 Mbit/s", "queue": "1 bdp"}
    changed = Scenario().set({"path": path, "path.queue": "2 bdp"})
    assert changed.to_dict()["path"]["queue"] == "2 bdp"
    assert path == {"rate": "50 Mbit/s", "queue": "1 bdp"}


@pytest.mark.parametrize("text", ["path.rtt=1\udc9b ms", "\udc9b=1"])
def test_bytes_that_are_no_text_are_refused(text: str) -> None:
    with expected_error(code="bad-override", field="--set", kind=InputError):
        parse_assignment(text)
