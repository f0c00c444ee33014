"""Engine sim at the limits of scenarios: every valid one runs to its end, in small steps."""

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from expected_error import expected_error
from sawtooth import _core, engines
from sawtooth.errors import SawtoothError
from sawtooth.scenario import Scenario

SIM = engines.get("sim")
RATES = ("1 bit/s", "9600 bit/s", "1 Mbit/s", "100 Mbit/s", "1 Gbit/s", "100 Gbit/s", "10 Tbit/s")
DELAYS = ("0 s", "1 ns", "999 ns", "1 us", "40 us", "1 ms", "20 ms", "3600 s")
QUEUES = ("1 packet", "2 packets", "1000 packets", "1000000000 packets", "64 KiB", "1 TiB", "1 ns", "3 ms", "3600 s")
LOSSES = (
    "0%",
    "1e-7%",
    "2%",
    "50%",
    "100%",
    {"every": 1},
    {"every": 7},
    {"gilbert_elliott": {"p": "1%", "r": "30%"}},
    {"gilbert_elliott": {"p": "100%", "r": "0%"}},
)
SPANS = ("1 ms", "3 ms", "17 ms", "1 s", "30 d")


def tables(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """A table from which any field may be missing."""
    return st.fixed_dictionaries({}, optional=fields)


def rates() -> st.SearchStrategy[str]:
    return st.sampled_from(RATES)


def queues(*more: str) -> st.SearchStrategy[str]:
    return st.sampled_from((*QUEUES, *more))


HOST = tables(
    hz=st.sampled_from((100, 250, 300, 1000)),
    mss=st.sampled_from((48, 49, 100, 535, 536, 537, 1448, 8948, 65400)),
    initial_window=st.sampled_from((1, 2, 3, 10, 1000)),
    receive_buffer=st.sampled_from(("4 KiB", "4768 bytes", "6000 bytes", "64 KiB", "6 MiB", "1 GiB")),
    send_buffer=st.sampled_from(("4 KiB", "6000 bytes", "64 KiB", "4 MiB", "1 GiB")),
    delayed_ack=st.booleans(),
    sack=st.booleans(),
    timestamps=st.booleans(),
    offload=st.booleans(),
)


def readers() -> st.SearchStrategy[dict[str, Any]]:
    sizes = st.sampled_from(("1 byte", "10 kB", {"kind": "pareto", "least": "1 byte", "most": "1 MB", "shape": 0.5}))
    think = st.sampled_from(("0 s", "1 ns", "1 ms", {"kind": "exponential", "mean": "1 us"}))
    common = {"sizes": sizes, "think": think}
    return st.one_of(
        st.fixed_dictionaries({"kind": st.just("requests"), **common}),
        st.fixed_dictionaries(
            {"kind": st.just("pages"), **common, "objects": st.sampled_from((1, 9)), "keep": st.booleans()}
        ),
        st.just({"kind": "video", "rates": ["1 kbit/s", "1 Mbit/s"], "segment": "100 ms", "buffer": "1 s"}),
    )


@st.composite
def flows(draw: st.DrawFn, ends: tuple[str, ...] | None) -> dict[str, Any]:
    flow: dict[str, Any] = {"cc": draw(st.sampled_from(("reno", "cubic", "bbr")))}
    flow |= draw(tables(count=st.sampled_from((1, 2, 7, 40)), start=st.sampled_from(("0 s", "1 ns", "3 ms"))))
    how = draw(st.sampled_from(("endless", "duration", "bytes", "replace", "source")))
    if how == "duration":
        flow["duration"] = draw(st.sampled_from(SPANS))
    elif how == "bytes":
        flow["bytes"] = draw(st.sampled_from(("1 byte", "1447 bytes", "1 MB", "1000 TB")))
    elif how == "replace":
        flow["replace"] = {"lifetime": sorted(draw(st.tuples(*[st.sampled_from(SPANS)] * 2)), key=SPANS.index)}
    elif how == "source":
        flow["source"] = draw(readers())
    if ends is not None:
        flow["from"], flow["to"] = draw(st.permutations(ends))[:2]
    return flow


def links(ends: tuple[str, str]) -> st.SearchStrategy[dict[str, Any]]:
    way = tables(rate=rates(), delay=st.sampled_from(DELAYS), loss=st.sampled_from(LOSSES))
    drawn = tables(
        rate=rates(),
        delay=st.sampled_from(DELAYS),
        queue=queues("1 bdp"),
        loss=st.sampled_from(LOSSES),
        overhead=st.sampled_from(("0 bytes", "38 bytes", "1000 bytes")),
        forward=way,
        backward=way,
    )
    return drawn.map(lambda link: {"from": ends[0], "to": ends[1], **link})


@st.composite
def scenarios(draw: st.DrawFn) -> dict[str, Any]:
    topology = draw(st.sampled_from(("path", "chain", "chain-asymmetric", "dumbbell", "custom")))
    asked: dict[str, Any] = {
        "topology": topology,
        "duration": draw(st.sampled_from(("1 ms", "20 ms", "300 ms", "2 s"))),
        "interval": draw(st.sampled_from(("1 ms", "7 ms"))),
        "seed": draw(st.integers(0, 2**63 - 1)),
        "host": draw(HOST),
    }
    ends: tuple[str, ...] | None = None
    if topology == "custom":
        ends = ("a", "b", "c")
        asked["hosts"] = {name: draw(HOST) for name in ends}
        asked["links"] = [draw(links(("a", "b"))), draw(links(("b", "c")))]
        asked["cards"] = draw(tables(b=st.fixed_dictionaries({"rate": rates()}, optional={"queue": queues()})))
    else:
        path = {"rate": rates(), "rtt": st.sampled_from(DELAYS), "queue": queues("0.001 bdp", "1 bdp", "9 bdp")}
        path["loss"] = st.sampled_from(LOSSES)
        own = {"path": {"ack_loss": path["loss"]}, "dumbbell": {"pairs": st.sampled_from((1, 3, 40))}}
        own["dumbbell"]["access_rate"] = rates()
        asked["chain" if "chain" in topology else topology] = draw(tables(**path, **own.get(topology, {})))
    asked["flows"] = draw(st.lists(flows(ends), max_size=3))
    probe = tables(
        interval=st.sampled_from(("100 us", "1 ms", "3600 s")), count=st.sampled_from((1, 40)), start=st.just("1 ms")
    )
    if ends is not None:
        probe = probe.map(lambda one: {"from": "a", "to": "c", **one})
    asked["probes"] = draw(st.lists(probe, max_size=2))
    return asked


def sound(asked: dict[str, Any]) -> Scenario | None:
    try:
        scenario = Scenario(**asked)
        SIM.check(scenario)
    except SawtoothError as error:
        assert error.field is not None
        assert error.fix
        return None
    return scenario


def stepped(scenario: Scenario, events: int, limit: int) -> Iterator[Any]:
    """Runs the core, yielding after each step, up to the end or ``limit`` events."""
    simulation = _core.Simulation(scenario.compile().to_json())
    finished = False
    while not finished and simulation.events < limit:
        finished = simulation.advance(scenario.duration.ns, events)
        yield simulation


ran: list[int] = []


@settings(derandomize=True, max_examples=400, deadline=None)
@given(scenarios())
@pytest.mark.usefixtures("patience")
def test_whatever_validates_runs_in_steps_as_small_as_asked_for(asked: dict[str, Any]) -> None:
    scenario = sound(asked)
    if scenario is None:
        return
    before, now = 0, 0
    for simulation in stepped(scenario, 1_000, 20_000):
        assert simulation.events - before <= 1_001
        assert now <= simulation.now_ns <= scenario.duration.ns
        before, now = simulation.events, simulation.now_ns
        simulation.take()
    ran.append(before)


@pytest.mark.usefixtures("patience")
def test_most_of_those_scenarios_validate_and_send() -> None:
    if not ran:
        pytest.skip("the test before this one counts them: run the whole file")
    assert len(ran) > 100
    assert sum(events > 100 for events in ran) > len(ran) / 3


@pytest.mark.parametrize("mss", [48, 536, 537, 1448, 8948, 65400])
@pytest.mark.parametrize("acks", [{}, {"sack": False}, {"delayed_ack": False}])
def test_a_flow_gets_through_the_smallest_receive_buffer(mss: int, acks: dict[str, bool]) -> None:
    # The limit is defined once, so take it from the message.
    with expected_error(code="out-of-range") as caught:
        Scenario(host={"mss": mss, "receive_buffer": "4 KiB"} if mss > 1100 else {"receive_buffer": "1 byte"})
    least = str(caught.value.fix).split('"')[1] if mss > 1100 else "4 KiB"
    host = {"mss": mss, "receive_buffer": least, "send_buffer": "4 KiB", **acks}
    run = SIM.run(Scenario(host=host, duration="20 s", interval="10 s", path={"rtt": "2 ms", "loss": "1%"}))
    assert (run.tables["intervals"]["goodput_bps"] > 0).all()


def test_a_receive_buffer_of_6000_bytes_runs() -> None:
    run = SIM.run(Scenario(host={"receive_buffer": "6000 bytes"}, duration="1 s"))
    assert (run.tables["intervals"]["goodput_bps"] > 0).all()


CIRCLE: dict[str, Any] = {
    "topology": "custom",
    "hosts": {"a": {}, "b": {}},
    "links": [{"from": "a", "to": "b"}],
    "flows": [{"from": "a", "to": "b"}],
}


@pytest.mark.parametrize(
    ("asked", "field", "took"),
    [
        (CIRCLE, "links", "0 ns"),
        ({"path": {"rate": "10 Tbit/s", "rtt": "0 s"}}, "path.rtt", "1.21 ns"),
        ({"path": {"rate": "12112000001 bit/s", "rtt": "0 s"}}, "path.rtt", "1e+03 ns"),
        ({"topology": "chain", "chain": {"rate": "10 Tbit/s", "rtt": "900 ns"}}, "chain.rtt", "905 ns"),
        ({"topology": "dumbbell", "dumbbell": {"rtt": "999 ns", "rate": "10 Tbit/s"}}, None, ""),
        ({"topology": "dumbbell", "dumbbell": {"rtt": "7 ns", "rate": "10 Tbit/s"}}, "dumbbell.rtt", "8.26 ns"),
        ({"path": {"rate": "12112 Mbit/s", "rtt": "0 s"}}, None, ""),
        ({"path": {"rate": "10 Tbit/s", "rtt": "1 us"}}, None, ""),
    ],
)
def test_a_round_trip_that_takes_no_time_is_refused(asked: dict[str, Any], field: str | None, took: str) -> None:
    scenario = Scenario(duration="20 ms", interval="20 ms", **asked)
    if field is None:
        SIM.check(scenario)
        list(stepped(scenario, 1_000, 10_000))
        return
    for refusing in (SIM.check, SIM.run):
        with expected_error(code="unsupported", field=field) as caught:
            refusing(scenario)
        assert f"take at least {took}," in caught.value.message
        assert "delay" in str(caught.value.fix)
    with pytest.raises(ValueError, match="round trip"):
        _core.Simulation(scenario.compile().to_json())


@pytest.mark.parametrize("routed", [False, True])
def test_the_longest_way_that_a_packet_survives_runs(routed: bool) -> None:
    def line(hosts: int) -> Scenario:
        names = [f"h{number}" for number in range(hosts)]
        links = [{"from": one, "to": other, "delay": "1 us"} for one, other in itertools.pairwise(names)]
        ends = {"from": names[0], "to": names[-1]}
        network = {"hosts": {name: {} for name in names}, "links": links}
        if routed:
            network["routes"] = [{**ends, "via": names[1:-1]}]
        return Scenario(topology="custom", **network, flows=[ends], duration="5 ms", interval="5 ms")

    SIM.run(line(256))
    with expected_error(code="no-route", field="routes.0.via" if routed else "flows.0"):
        line(257)


def test_a_stop_is_heard_within_a_long_interval_of_one_cell() -> None:
    # More than 64 hosts form one cell, so only the end of the interval limits a step.
    pairs = Scenario(
        topology="dumbbell",
        dumbbell={"pairs": 40, "rate": "1 Gbit/s", "rtt": "10 ms"},
        flows=[{"count": 40}],
        interval="60 s",
    )
    seen: list[float] = []
    with expected_error(code="interrupted"):
        SIM.run(pairs, progress=seen.append, stop=lambda: len(seen) > 5)
    assert 0 < seen[0] < seen[-1] < 0.5
