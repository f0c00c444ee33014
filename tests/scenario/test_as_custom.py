"""`sawtooth show --as custom`: a ready topology written out has the same paths, and is a file that can be read."""

from typing import Any

import pytest

from sawtooth.scenario import Scenario
from sawtooth.scenario.compiled import Compiled
from sawtooth.scenario.compiled_form import Flow
from sawtooth.scenario.toml import parse_toml, toml_text

READY: list[dict[str, Any]] = [
    {"path": {"rate": "10 Mbit/s", "reverse_rate": "1 Mbit/s", "loss": "1%", "ack_loss": {"every": 9}, "rtt": "7 ms"}},
    {"topology": "chain", "chain": {"loss": "1%", "ack_loss": "2%"}, "hosts": {"h3": {"hz": 1000}}},
    {"topology": "chain", "chain": {"reverse_rate": "10 Mbit/s", "rtt": "9 ms"}},
    {"topology": "chain-asymmetric", "chain": {"ack_loss": "2%", "rtt": "9 ms"}, "flows": [{"from": "h2", "to": "h4"}]},
    {"topology": "chain-asymmetric", "chain": {"reverse_rate": "10 Mbit/s"}},
    {
        "topology": "dumbbell",
        "dumbbell": {"rtt": ["10 ms", "50 ms", "20 ms"], "access_rate": "1 Gbit/s", "reverse_rate": "5 Mbit/s"},
        "flows": [{"count": 7}, {"cc": "bbr", "from": "s2"}],
        "probes": [{}],
    },
    {
        "topology": "home",
        "home": {"loss": "1%", "down": "30 Mbit/s"},
        "flows": [{}, {"from": "device", "to": "server"}],
    },
    {"path": {"changes": [{"at": "1 s", "rate": "1 Mbit/s", "delay": "9 ms", "loss": "1%"}], "jitter": "1 ms"}},
    {"topology": "parking-lot", "parking-lot": {"hops": 2, "loss": "1%"}, "flows": [{}, {"from": "c2", "to": "d2"}]},
]


def way(compiled: Compiled, flow: Flow, direction: str) -> list[tuple[Any, ...]]:
    found = []
    for link in compiled.way(getattr(flow, direction)):
        transmitter = None if link.transmitter is None else compiled.transmitters[link.transmitter]
        limits = transmitter and (transmitter.rate_bps, transmitter.queue_packets, transmitter.queue_bytes)
        hosts = compiled.hosts[link.from_], compiled.hosts[link.to]
        pace = transmitter and transmitter.pace
        varies = (pace, link.aggregation_ns, link.losses, link.delays, link.jitter)
        found.append((*hosts, limits, link.delay_ns, link.loss_ppb, link.loss_pattern, varies))
    return found


@pytest.mark.parametrize("tables", READY, ids=lambda tables: tables.get("topology", "path"))
def test_a_topology_that_is_written_out_has_the_same_paths(tables: dict[str, Any]) -> None:
    ready = Scenario.from_dict(tables)
    drawn = Scenario.from_dict(parse_toml(toml_text(ready.as_custom().to_dict())))
    ours, theirs = ready.compile(), drawn.compile()
    assert drawn.topology == "custom"
    assert [flow.name.replace("@", "-") for flow in ours.flows] == [flow.name for flow in theirs.flows]
    for one, other in zip(ours.flows, theirs.flows, strict=True):
        assert (one.count, one.cc, one.start_ns) == (other.count, other.cc, other.start_ns)
        assert way(ours, one, "forward") == way(theirs, other, "forward")
        assert way(ours, one, "backward") == way(theirs, other, "backward")
    assert len(ours.probes) == len(theirs.probes)
    shared = [len({link.from_ for link in one.links if link.transmitter == 0}) for one in (ours, theirs)]
    assert shared == [1, 1]


def test_what_is_drawn_already_stays_as_it_is() -> None:
    drawn = Scenario().as_custom()
    assert drawn.as_custom() is drawn


def test_text_in_a_file_that_is_written_out_is_quoted() -> None:
    tables = {"name": 'a "b" \\ ü', "flows": [{"cc": {"source": "a.c", "parameters": {"on": True}}, "via": ["x", "y"]}]}
    assert parse_toml(toml_text(tables)) == tables
