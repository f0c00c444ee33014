"""Queues of tc's kinds: in scenario files, on the simulator, and in the testbed's plan."""

from __future__ import annotations

import struct
from typing import Any

import jsonschema
import pytest

from sawtooth import compiled, engines
from sawtooth.cli.words import describe
from sawtooth.errors import SawtoothError
from sawtooth.scenario import Scenario
from sawtooth.scenario.overrides import parse_assignment
from sawtooth.scenario.queue import KINDS
from sawtooth.testbed.place import Place
from sawtooth.testbed.plan import build
from sawtooth.testbed.refusals import check

CODEL = {"kind": "codel", "target": "4 ms"}
CUSTOM: dict[str, Any] = {
    "topology": "custom",
    "hosts": {"a": {}, "b": {}},
    "flows": [{"from": "a", "to": "b"}],
}


def queues(**tables: Any) -> dict[str, Any]:
    """The disciplines of a compiled scenario's transmitters, by name."""
    return {one.name: one.discipline for one in Scenario(**tables).compile().transmitters}


def refusal(queue: Any) -> SawtoothError:
    with pytest.raises(SawtoothError) as caught:
        Scenario(path={"queue": queue}).compile()
    return caught.value


@pytest.mark.parametrize(
    ("tables", "names"),
    [
        ({"path": {"queue": CODEL, "reverse_rate": "1 Mbit/s"}}, ["router>loss", "loss>router"]),
        ({"topology": "chain", "chain": {"queue": CODEL}}, ["h1", "h2", "h3", "h4", "h5"]),
        ({"topology": "dumbbell", "dumbbell": {"queue": CODEL}}, ["left>right", "right>left"]),
        ({**CUSTOM, "links": [{"from": "a", "to": "b", "rate": "1 Mbit/s", "queue": CODEL}]}, ["a>b", "b>a"]),
        (
            {
                **CUSTOM,
                "cards": {"a": {"rate": "1 Mbit/s", "queue": CODEL}},
                "links": [{"from": "a", "to": "b", "backward": {"rate": "1 Mbit/s", "queue": CODEL}}],
            },
            ["a", "b>a"],
        ),
    ],
)
def test_a_table_may_stand_wherever_a_limit_may(tables: dict[str, Any], names: list[str]) -> None:
    assert queues(**tables) == dict.fromkeys(names, compiled.Codel(4_000_000, 100_000_000))


def test_defaults_are_those_of_tc() -> None:
    (one,) = Scenario(path={"queue": {"kind": "codel"}}).compile().transmitters
    assert (one.queue_packets, one.queue_bytes) == (1000, None)
    assert one.discipline == compiled.Codel(5_000_000, 100_000_000)
    (one,) = Scenario(path={"queue": {"kind": "bfifo"}}).compile().transmitters
    assert (one.queue_packets, one.queue_bytes) == (None, 1000 * 1514)


def test_a_limit_of_text_is_tail_drop_as_before() -> None:
    told = Scenario(path={"queue": "1 bdp"}).compile().to_dict()["transmitters"]
    assert told == [{"name": "router>loss", "rate_bps": 100_000_000, "queue_packets": 165, "queue_bytes": None}]


@pytest.mark.parametrize(
    ("queue", "code", "field", "said"),
    [
        ({}, "missing-field", "path.queue.kind", "name one of"),
        ({"kind": "fqcodel"}, "unknown-name", "path.queue.kind", "codel"),
        ({"kind": 3}, "unknown-name", "path.queue.kind", "codel"),
        ({"kind": "codel", "targt": "5 ms"}, "unknown-field", "path.queue.targt", "target"),
        ({"kind": "codel", "target": 5}, "missing-unit", "path.queue.target", "5 ms"),
        ({"kind": "codel", "target": "0 s"}, "out-of-range", "path.queue.target", "longer"),
        ({"kind": "codel", "limit": "64 KiB"}, "unknown-unit", "path.queue.limit", "1000 packets"),
        ({"kind": "bfifo", "limit": "10 packets"}, "unknown-unit", "path.queue.limit", "64 KiB"),
        ({"kind": "bfifo", "limit": "100 bytes"}, "zero-queue", "path.queue", "1514"),
        ({"kind": "codel", "ecn": True}, "unsupported", "path.queue.ecn", "leave it out"),
        (["codel"], "wrong-type", "path.queue", "1000 packets"),
    ],
)
def test_what_is_wrong_with_a_table_is_told_by_its_field(queue: Any, code: str, field: str, said: str) -> None:
    error = refusal(queue)
    assert (error.code, error.field) == (code, field)
    assert said in f"{error.fix}"


def test_a_table_is_written_and_read_back() -> None:
    for kind in KINDS:
        scenario = Scenario(path={"queue": {"kind": kind}})
        assert Scenario(**scenario.to_dict()) == scenario
        made = scenario.compile()
        assert compiled.Compiled.from_dict(made.to_dict()) == made
        jsonschema.validate(scenario.to_dict(), Scenario.model_json_schema())


def test_the_schema_refuses_a_kind_that_is_none() -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"path": {"queue": {"kind": "fq_cobalt"}}}, Scenario.model_json_schema())


def test_a_table_from_the_command_line_sets_a_queue_whole_or_one_field_of_it() -> None:
    whole = Scenario().set(dict([parse_assignment('path.queue={kind = "codel", target = "4 ms"}')]))
    assert whole == Scenario(path={"queue": CODEL})
    assert Scenario(path={"queue": CODEL}).set({"path.queue.target": "5 ms"}) == Scenario(
        path={"queue": {"kind": "codel", "target": "5 ms"}}
    )
    assert Scenario(path={"queue": "1 bdp"}).set({"path.queue.kind": "codel"}) == Scenario(
        path={"queue": {"kind": "codel"}}
    )


def test_show_names_the_kind_its_parameters_and_its_limit() -> None:
    shown = describe(Scenario(path={"queue": CODEL}))
    assert "queue of codel target 4 ms interval 100 ms, limit 1000 packets" in shown


def test_closed_forms_refuse_a_queue_of_another_kind() -> None:
    with pytest.raises(SawtoothError) as caught:
        engines.get("model").check(Scenario(path={"queue": CODEL}))
    assert (caught.value.code, caught.value.field) == ("unsupported", "queue")


def test_the_simulator_holds_a_queue_to_its_target_and_tells_delays() -> None:
    tables: dict[str, Any] = {"duration": "20 s", "path": {"rate": "20 Mbit/s", "rtt": "40 ms", "queue": CODEL}}
    controlled = engines.get("sim").run(Scenario(**tables)).tables["queues"].query("t_s > 5")
    tables["path"]["queue"] = {"kind": "pfifo", "limit": "4 bdp"}
    filled = engines.get("sim").run(Scenario(**tables)).tables["queues"].query("t_s > 5")
    assert controlled["delay_p50_s"].mean() < 0.008 < 0.04 < filled["delay_p50_s"].mean()
    assert (controlled["drops"] == controlled["early_drops"]).all()
    assert controlled["drops"].sum() > 0
    assert (filled["early_drops"] == 0).all()
    for quantile in ("delay_p50_s", "delay_p95_s"):
        assert (controlled[quantile] <= controlled["delay_p99_s"]).all()


def options_of(queue: dict[str, Any], place: Place | None = None) -> tuple[str, bytes]:
    """What is below the token bucket of a path."""
    made = build(Scenario(path={"queue": queue}).compile(), place or Place(), "st-1-0-1-").ports
    (bucket,) = [one for one in made.qdiscs if one.kind == "tbf"]
    (child,) = [one for one in made.qdiscs if one.parent == bucket.handle | 1 and one.device == bucket.device]
    assert [one.handle for one in made.queues] == [child.handle]
    return child.kind, child.options


def numbers(options: bytes) -> dict[int, int]:
    """Attributes of 32 bits."""
    found = {}
    for at in range(0, len(options), 8):
        length, kind, value = struct.unpack_from("=HHI", options, at)
        assert length == 8
        found[kind] = value
    return found


def test_on_a_kernel_the_queue_is_below_a_token_bucket() -> None:
    assert options_of({"kind": "pfifo", "limit": "7 packets"}) == ("pfifo", struct.pack("=I", 7))
    assert options_of({"kind": "bfifo", "limit": "64 KiB"}) == ("bfifo", struct.pack("=I", 65536))
    kind, options = options_of(CODEL)
    # TCA_CODEL_TARGET, LIMIT, INTERVAL, ECN (linux/pkt_sched.h), in microseconds.
    assert (kind, numbers(options)) == ("codel", {1: 4000, 2: 1000, 3: 100_000, 4: 0})


def test_a_queue_of_another_kind_is_refused_where_the_rate_comes_in_bursts() -> None:
    link = {"from": "a", "to": "b", "rate": "1 Mbit/s", "opportunity": "1500 bytes", "queue": CODEL}
    scenario = Scenario(**CUSTOM, links=[link])
    with pytest.raises(SawtoothError) as caught:
        check(scenario.compile(), scenario.traffic, Place(), where="here")
    assert (caught.value.code, caught.value.field) == ("unsupported", "links.queue")


@pytest.mark.parametrize("kind", list(KINDS))
def test_the_kernel_and_the_simulator_agree_on_a_queue(kind: str, kernel: Any) -> None:
    path = {"rate": "10 Mbit/s", "rtt": "40 ms", "queue": {"kind": kind}}
    if kind == "pfifo":
        path["queue"] = {"kind": kind, "limit": "2 bdp"}
    scenario = Scenario(
        duration="15 s",
        traffic="native",
        path=path,
        flows=[{"cc": "cubic", "count": 2}],
        probes=[{"interval": "20 ms"}],
    )
    found = {}
    for engine in ("sim", "kernel"):
        run = engines.get(engine).run(scenario)
        queue = run.tables["queues"].query("transmitter == 0")
        delay = run.tables["probes"]["rtt_s"].mean() - 0.04
        found[engine] = (run.tables["intervals"]["goodput_bps"].mean(), delay, queue["drops"].sum())
        assert (queue["early_drops"] <= queue["drops"]).all()
    (goodput, delay, drops), (real_goodput, real_delay, real_drops) = found["sim"], found["kernel"]
    assert goodput == pytest.approx(real_goodput, rel=0.05)
    assert delay == pytest.approx(real_delay, rel=0.3, abs=0.001)
    assert drops == pytest.approx(real_drops, rel=0.35, abs=8)
