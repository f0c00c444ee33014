"""Queues of tc's kinds: in scenario files, on the simulator, and in the testbed's plan."""

import struct
from typing import Any

import jsonschema
import pytest

from expected_error import expected_error
from sawtooth import engines
from sawtooth.cli.scenario_text import describe
from sawtooth.errors import SawtoothError
from sawtooth.run import Run
from sawtooth.scenario import Scenario
from sawtooth.scenario.compiled import Compiled
from sawtooth.scenario.overrides import parse_assignment
from sawtooth.scenario.record import Choice, Record
from sawtooth.testbed.plan import build
from sawtooth.testbed.target_kernel import Place
from sawtooth.testbed.unsupported import check

SCHEMA = Scenario.json_schema()
KINDS = [
    SCHEMA["$defs"][told["$ref"].rpartition("/")[2]]["properties"]["kind"]["const"]
    for told in SCHEMA["$defs"]["Card"]["properties"]["queue"]["anyOf"][1:]
]
"""Kinds of queues that a scenario may name."""
CODEL = {"kind": "codel", "target": "4 ms"}
TBF = {"kind": "tbf", "rate": "5 Mbit/s", "burst": "16 KiB", "latency": "80 ms"}
CUSTOM: dict[str, Any] = {
    "topology": "custom",
    "hosts": {"a": {}, "b": {}},
    "flows": [{"from": "a", "to": "b"}],
}


def queues(**tables: Any) -> dict[str, Any]:
    """The disciplines of a compiled scenario's transmitters, by name."""
    return {one.name: one.discipline for one in Scenario(**tables).compile().transmitters}


def law(kind: str, **parameters: Any) -> Choice:
    return Choice(**{kind: Record(**parameters)})


def red_of(low: int, high: int, weight: int, chance: int, adaptive: bool) -> Choice:
    names = ("min_bytes", "max_bytes", "weight_log", "probability_ppb", "adaptive")
    return law("red", **dict(zip(names, (low, high, weight, chance, adaptive), strict=True)))


def cake_of(*values: Any) -> Choice:
    names = ("bandwidth_bps", "interval_ns", "target_ns", "isolation", "memory_bytes")
    return law("cake", **dict(zip(names, values, strict=True)))


def example(kind: str) -> dict[str, Any]:
    """With all fields that it needs."""
    needed = {"red": {"limit": "100 ms"}, "pfifo": {"limit": "2 bdp"}, "tbf": TBF}
    return {"kind": kind, **needed.get(kind, {})}


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
def test_a_table_is_allowed_wherever_a_limit_may(tables: dict[str, Any], names: list[str]) -> None:
    assert queues(**tables) == dict.fromkeys(names, law("codel", target_ns=4_000_000, interval_ns=100_000_000))


def test_defaults_are_those_of_tc() -> None:
    (one,) = Scenario(path={"queue": {"kind": "codel"}}).compile().transmitters
    assert (one.queue_packets, one.queue_bytes) == (1000, None)
    assert one.discipline == law("codel", target_ns=5_000_000, interval_ns=100_000_000)
    (one,) = Scenario(path={"queue": {"kind": "bfifo"}}).compile().transmitters
    assert (one.queue_packets, one.queue_bytes) == (None, 1000 * 1514)
    (one,) = Scenario(path={"queue": {"kind": "fq_codel"}}).compile().transmitters
    times = {"target_ns": 5_000_000, "interval_ns": 100_000_000}
    assert (one.queue_packets, one.discipline) == (
        10240,
        law("fq_codel", **times, flows=1024, quantum_bytes=None, ecn=True),
    )
    (one,) = Scenario(path={"queue": {"kind": "pie"}}).compile().transmitters
    pie = {"target_ns": 15_000_000, "tupdate_ns": 15_000_000, "alpha": 2, "beta": 20, "bytemode": False}
    assert (one.queue_packets, one.discipline) == (1000, law("pie", **pie))
    (one,) = Scenario(path={"queue": {"kind": "fq_pie"}}).compile().transmitters
    assert (one.queue_packets, one.discipline) == (
        10240,
        law("fq_pie", **pie, flows=1024, quantum_bytes=None),
    )
    (one,) = Scenario(path={"queue": {"kind": "cake"}}).compile().transmitters
    assert (one.queue_packets, one.queue_bytes) == (None, None)
    assert one.discipline == cake_of(None, 100_000_000, 5_000_000, "triple-isolate", 10240 * 1514)


def test_what_red_does_not_say_follows_from_its_limit() -> None:
    def red(**given: Any) -> Any:
        return queues(path={"rate": "20 Mbit/s", "queue": {"kind": "red", **given}})["router>loss"]

    assert red(limit="240 kB") == red_of(20_000, 60_000, 4, 20_000_000, False)
    # A time, at the transmitter's rate.
    assert red(limit="96 ms", max="24 ms", adaptive=True) == red_of(20_000, 60_000, 4, 20_000_000, True)
    # Floyd and Jacobson: a burst of 50 packets below a threshold of five needs a weight below 0.0042; tc takes 1/512.
    assert red(limit="1 MB", min="5 kB", max="15 kB", burst=50).value.weight_log == 9


def test_cake_reckons_target_and_memory_from_its_bandwidth_and_its_round_trip() -> None:
    def cake(**given: Any) -> Any:
        return queues(path={"rate": "200 Mbit/s", "queue": {"kind": "cake", **given}})["router>loss"]

    slow = cake(bandwidth="10 Mbit/s", rtt="metro", isolation="flows")
    assert slow == cake_of(10_000_000, 10_000_000, 500_000, "flows", 4 << 20)
    # Four times what arrives in a round trip.
    assert cake(bandwidth="100 Mbit/s").value.memory_bytes == 5_000_000
    assert cake(bandwidth="100 Mbit/s", rtt="10 s").value.memory_bytes == 10240 * 1514
    assert cake(rtt="interplanetary", memlimit="1 MiB") == cake_of(None, 10**12, 5 * 10**10, "triple-isolate", 1 << 20)
    assert cake(rtt="10 us").value.target_ns == 1000


def test_a_limit_of_text_is_tail_drop_as_before() -> None:
    told = Scenario(path={"queue": "1 bdp"}).compile().to_dict()["transmitters"]
    assert told == [{"name": "router>loss", "rate_bps": 100_000_000, "queue_packets": 165, "queue_bytes": None}]


@pytest.mark.parametrize(
    ("queue", "code", "field", "said"),
    [
        ({}, "missing-field", "path.queue.kind", "one of"),
        ({"kind": "fqcodel"}, "unknown-name", "path.queue.kind", "codel"),
        ({"kind": 3}, "unknown-name", "path.queue.kind", "codel"),
        ({"kind": "codel", "targt": "5 ms"}, "unknown-field", "path.queue.targt", "target"),
        ({"kind": "codel", "target": 5}, "missing-unit", "path.queue.target", "5 ms"),
        ({"kind": "codel", "target": "0 s"}, "out-of-range", "path.queue.target", "choose 1 ns … 3600 s"),
        ({"kind": "codel", "limit": "64 KiB"}, "unknown-unit", "path.queue.limit", "1000 packets"),
        ({"kind": "bfifo", "limit": "10 packets"}, "unknown-unit", "path.queue.limit", "64 KiB"),
        ({"kind": "bfifo", "limit": "100 bytes"}, "zero-queue", "path.queue", "1514"),
        ({"kind": "codel", "ecn": "yes"}, "wrong-type", "path.queue.ecn", "true"),
        ({"kind": "codel", "ce_threshold": 1}, "missing-unit", "path.queue.ce_threshold", "1 ms"),
        (["codel"], "wrong-type", "path.queue", "1000 packets"),
        ({"kind": "fq_codel", "flows": 0}, "out-of-range", "path.queue.flows", "at least 1"),
        ({"kind": "fq_codel", "quantum": "10 bytes"}, "out-of-range", "path.queue.quantum", "256 bytes"),
        ({"kind": "cake", "limit": "10 packets"}, "unknown-field", "path.queue.limit", "memlimit"),
        ({"kind": "cake", "rtt": "moon"}, "bad-quantity", "path.queue.rtt", "20 ms"),
        ({"kind": "cake", "bandwidth": "1 bit/s"}, "out-of-range", "path.queue.bandwidth", "1 kbit/s"),
        ({"kind": "cake", "isolation": "host"}, "unknown-name", "path.queue.isolation", "hosts"),
        ({"kind": "red"}, "missing-field", "path.queue.limit", "limit"),
        ({"kind": "red", "limit": "10 packets"}, "unknown-unit", "path.queue.limit", "64 KiB"),
        ({"kind": "red", "limit": "100 kB", "max": "5 ms"}, "conflict", "path.queue.max", "100 kB"),
        ({"kind": "red", "limit": "100 kB", "max": "200 kB"}, "conflict", "path.queue", "min < max"),
        ({"kind": "red", "limit": "100 kB", "burst": 1}, "conflict", "path.queue.burst", "at least"),
        ({"kind": "red", "limit": "100 kB", "probability": "0%"}, "out-of-range", "path.queue.probability", "2%"),
        ({"kind": "sfq", "perturb": "500 ms"}, "out-of-range", "path.queue.perturb", "10 s"),
        ({"kind": "dualpi2", "classic_protection": "2.5%"}, "out-of-range", "path.queue.classic_protection", "10%"),
        ({"kind": "dualpi2", "step_thresh": "1 bdp"}, "unknown-unit", "path.queue.step_thresh", "5 packets"),
        ({"kind": "dualpi2", "tupdate": "1 us"}, "out-of-range", "path.queue.tupdate", "100 us"),
        ({"kind": "sfq", "divisor": 1000}, "out-of-range", "path.queue.divisor", "1024"),
        ({"kind": "sfq", "limit": "1 packet"}, "out-of-range", "path.queue.limit", "2 packets"),
        ({"kind": "fq", "flow_limit": 0}, "out-of-range", "path.queue.flow_limit", "at least 1"),
        ({"kind": "tbf", "rate": "5 Mbit/s", "burst": "16 KiB"}, "missing-field", "path.queue.latency", "limit"),
        ({**TBF, "limit": "16 KiB"}, "conflict", "path.queue.latency", "limit"),
        ({**TBF, "burst": "1500 bytes"}, "out-of-range", "path.queue.burst", "1514 bytes"),
        ({**TBF, "rate": "100 Mbit/s"}, "out-of-range", "path.queue.rate", "lower"),
        ({**TBF, "peakrate": "5 Mbit/s"}, "out-of-range", "path.queue.peakrate", "higher"),
        ({**TBF, "minburst": "2 kB"}, "conflict", "path.queue.minburst", "peakrate"),
        ({**TBF, "peakrate": "9 Mbit/s", "minburst": "1 kB"}, "out-of-range", "path.queue.minburst", "1514"),
    ],
)
def test_what_is_wrong_with_a_table_is_reported_by_its_field(queue: Any, code: str, field: str, said: str) -> None:
    error = refusal(queue)
    assert (error.code, error.field) == (code, field)
    assert said in f"{error.fix}"


def test_a_table_is_written_and_read_back() -> None:
    schema = jsonschema.Draft202012Validator(Scenario.json_schema())
    for kind in KINDS:
        scenario = Scenario(path={"queue": example(kind)})
        assert Scenario(**scenario.to_dict()) == scenario
        made = scenario.compile()
        assert Compiled.from_dict(made.to_dict()) == made
        schema.validate(scenario.to_dict())


def test_the_schema_refuses_a_kind_that_is_none() -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(Scenario.json_schema()).validate({"path": {"queue": {"kind": "fq_cobalt"}}})


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
    # Fields that are off, or that follow from the card's frame, are not passed.
    shown = describe(Scenario(path={"queue": {"kind": "fq_codel"}}))
    assert "queue of fq_codel target 5 ms interval 100 ms flows 1024 ecn, limit 10240 packets" in shown
    shown = describe(Scenario(path={"queue": {"kind": "red", "limit": "100 kB", "adaptive": True}}))
    assert "probability 2% adaptive, limit 100 kB" in shown
    shown = describe(Scenario(path={"queue": {"kind": "cake", "bandwidth": "95 Mbit/s"}}))
    assert "cake bandwidth 95 Mbit/s interval 100 ms target 5 ms isolation triple-isolate memory 4.75 MB" in shown


def test_closed_forms_refuse_a_queue_of_another_kind() -> None:
    with expected_error(code="unsupported", field="queue"):
        engines.get("model").check(Scenario(path={"queue": CODEL}))


def test_the_simulator_holds_a_queue_to_its_target_and_reports_delays() -> None:
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


def test_delays_of_tail_drop_on_request_leave_the_run_the_same() -> None:
    tables: dict[str, Any] = {"duration": "10 s", "path": {"rate": "20 Mbit/s", "rtt": "40 ms", "queue": "2 bdp"}}
    silent, telling = (engines.get("sim").run(Scenario(queue_delays=asked, **tables)) for asked in (False, True))
    shares = ["delay_p50_s", "delay_p95_s", "delay_p99_s"]
    assert silent.tables["queues"][shares].isna().all(axis=None)
    queue = telling.tables["queues"].query("transmitter == 0")
    assert (queue["delay_p50_s"] <= queue["delay_p95_s"]).all()
    assert (queue["delay_p99_s"] < 0.083).all()
    for name, table in silent.tables.items():
        assert (
            telling.tables[name]
            .drop(columns=shares, errors="ignore")
            .equals(table.drop(columns=shares, errors="ignore"))
        )
    assert "queue_delays" not in Scenario(**tables).compile().to_dict()


def options_of(queue: dict[str, Any], place: Place | None = None) -> tuple[str, bytes]:
    """The queue below the token bucket of a path."""
    made = build(Scenario(path={"queue": queue}).compile(), place or Place(), "st-1-0-1-").ports
    bucket = next(one for one in made.qdiscs if one.kind == "tbf")
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
    # TCA_FQ_CODEL_…: the same in another order, FLOWS, QUANTUM, and unlimited memory.
    kind, options = options_of({"kind": "fq_codel", "quantum": "300 bytes"})
    told = {1: 5000, 2: 10240, 3: 100_000, 4: 1, 5: 1024, 6: 300, 9: 2**31 - 1}
    assert (kind, numbers(options)) == ("fq_codel", told)
    # TCA_PIE_TARGET, LIMIT, TUPDATE, ALPHA, BETA, ECN, BYTEMODE.
    kind, options = options_of({"kind": "pie", "target": "20 ms", "bytemode": True})
    assert (kind, numbers(options)) == ("pie", {1: 20_000, 2: 1000, 3: 15_000, 4: 2, 5: 20, 6: 0, 7: 1})
    # TCA_FQ_PIE_LIMIT, FLOWS, TARGET, TUPDATE, ALPHA, BETA, MEMORY_LIMIT, ECN, BYTEMODE.
    kind, options = options_of({"kind": "fq_pie"})
    told = {1: 10240, 2: 1024, 3: 15_000, 4: 15_000, 5: 2, 6: 20, 8: 2**31 - 1, 10: 0, 11: 0}
    assert (kind, numbers(options)) == ("fq_pie", told)


def test_cake_on_a_kernel_has_its_rate_in_bytes_and_the_links_overhead() -> None:
    link = {"from": "a", "to": "b", "rate": "1 Mbit/s", "overhead": "18 bytes"}
    queue = {"kind": "cake", "bandwidth": "800 kbit/s", "rtt": "30 ms", "isolation": "dual-dsthost"}
    made = build(Scenario(**CUSTOM, links=[{**link, "queue": queue}]).compile(), Place(), "st-1-0-1-").ports
    options = next(one.options for one in made.qdiscs if one.kind == "cake")
    # TCA_CAKE_BASE_RATE64; FLOW_MODE, OVERHEAD (beyond the IP packet), RTT, TARGET, MEMORY.
    assert struct.unpack_from("=HHQ", options) == (12, 2, 100_000)
    assert numbers(options[12:]) == {5: 6, 6: 32, 7: 30_000, 8: 1500, 10: 4 << 20}


def test_on_a_kernel_a_queue_marks_where_it_is_to() -> None:
    # The fields above, and TCA_CODEL_CE_THRESHOLD, TCA_FQ_CODEL_CE_THRESHOLD.
    assert numbers(options_of({**CODEL, "ecn": True, "ce_threshold": "1 ms"})[1])[4] == 1
    assert numbers(options_of({**CODEL, "ce_threshold": "1 ms"})[1])[5] == 1000
    assert numbers(options_of({"kind": "fq_codel", "ecn": False, "ce_threshold": "2 ms"})[1])[7] == 2000
    assert numbers(options_of({"kind": "fq_codel", "ecn": False})[1])[4] == 0
    assert numbers(options_of({"kind": "pie", "ecn": True})[1])[6] == 1
    assert numbers(options_of({"kind": "fq_pie", "ecn": True})[1])[10] == 1
    # TC_RED_ECN, TC_RED_HARDDROP.
    for given, flags in (({"ecn": True}, 1), ({"ecn": True, "harddrop": True}, 3), ({"harddrop": True}, 2)):
        _, options = options_of({"kind": "red", "limit": "240 kB", **given})
        assert options[4 + 15] == flags


def test_dualpi2_is_compiled_with_tcs_defaults_and_its_gains_in_256ths() -> None:
    (one,) = Scenario(path={"queue": {"kind": "dualpi2"}}).compile().transmitters
    own = {"target_ns": 15_000_000, "tupdate_ns": 16_000_000, "alpha_256": 41, "beta_256": 819, "coupling_factor": 2}
    step = {"step_thresh_ns": 1_000_000, "step_thresh_packets": None, "min_qlen_step": 0, "classic_protection": 10}
    flags = {"drop_on_overload": True, "drop_enqueue": False, "any_ect": False}
    assert (one.queue_packets, one.discipline) == (10_000, law("dualpi2", **own, **step, **flags))
    (one,) = Scenario(path={"queue": {"kind": "dualpi2", "step_thresh": "5 packets"}}).compile().transmitters
    assert one.discipline is not None
    assert [getattr(one.discipline.value, f"step_thresh_{unit}") for unit in ("ns", "packets")] == [None, 5]


def test_dualpi2_on_a_kernel_gets_what_tc_sends_it() -> None:
    # TCA_DUALPI2_LIMIT, MEMORY_LIMIT, TARGET, TUPDATE, ALPHA, BETA, STEP_THRESH_US, MIN_QLEN_STEP (linux/pkt_sched.h).
    kind, options = options_of({"kind": "dualpi2", "any_ect": True, "drop_on_overload": False})
    wide = {1: 10_000, 2: 2**31 - 1, 3: 15_000, 4: 16_000, 5: 41, 6: 819, 8: 1000, 9: 0}
    assert (kind, numbers(options[: 8 * len(wide)])) == ("dualpi2", dict(sorted(wide.items())))
    # COUPLING, DROP_OVERLOAD, DROP_EARLY, C_PROTECTION, ECN_MASK, SPLIT_GSO: a byte each.
    narrow = [struct.unpack_from("=HHB", options, at) for at in range(8 * len(wide), len(options), 8)]
    assert narrow == [(5, 10, 2), (5, 11, 0), (5, 12, 0), (5, 13, 10), (5, 14, 3), (5, 15, 1)]
    # TCA_DUALPI2_STEP_THRESH_PKTS.
    assert numbers(options_of({"kind": "dualpi2", "step_thresh": "5 packets"})[1][: 8 * len(wide)])[7] == 5


def test_a_kernel_too_old_for_dualpi2_is_reported(kernel: Any) -> None:
    scenario = Scenario(path={"queue": {"kind": "dualpi2"}})
    with expected_error(code="unsupported", field="queue") as caught:
        engines.get("kernel").check(scenario)
    assert "6.17" in str(caught.value.fix)
    with expected_error(code="unsupported", field="queue"):
        check(scenario.compile(), scenario.traffic, Place(dualpi2=False), where="here")


def test_red_on_a_kernel_has_its_thresholds_its_weight_and_its_exact_probability() -> None:
    kind, options = options_of({"kind": "red", "limit": "240 kB", "adaptive": True})
    assert kind == "red"
    length, of = struct.unpack_from("=HH", options)
    # struct tc_red_qopt: limit, qth_min, qth_max, Wlog, Plog, Scell_log, flags (TC_RED_HARDDROP, TC_RED_ADAPTATIVE).
    assert struct.unpack_from("=IIIBBBB", options, 4) == (240_000, 20_000, 60_000, 4, 1, 1, 6)
    assert (length, of) == (20, 1)
    assert struct.unpack_from("=HH", options, 20) == (260, 2)
    assert struct.unpack_from("=HHI", options, 280) == (8, 3, 2**32 // 50)


def test_fq_and_sfq_on_a_kernel_get_what_tc_sends_them() -> None:
    # TCA_FQ_PLIMIT, FLOW_PLIMIT, QUANTUM, INITIAL_QUANTUM, FLOW_REFILL_DELAY, ORPHAN_MASK.
    kind, options = options_of({"kind": "fq", "quantum": "3 kB", "initial_quantum": "9 kB"})
    assert (kind, numbers(options)) == ("fq", {1: 10_000, 2: 100, 3: 3000, 4: 9000, 9: 40_000, 10: 1023})
    kind, options = options_of({"kind": "sfq", "perturb": "10 s", "headdrop": True})
    # struct tc_sfq_qopt_v1: quantum, perturb_period, limit, divisor, flows, depth, headdrop, and no RED.
    assert (kind, len(options)) == ("sfq", 72)
    assert struct.unpack_from("=IiIIIII", options) == (0, 10, 127, 1024, 128, 127, 1)
    assert not any(options[28:])


def test_the_limit_of_a_token_bucket_is_what_waits_for_its_latency_and_a_burst() -> None:
    def limit(**given: Any) -> int | None:
        queue = {"kind": "tbf", "rate": "8 Mbit/s", "burst": "20 kB", **given}
        (one,) = Scenario(path={"queue": queue}).compile().transmitters
        return one.queue_bytes

    assert limit(latency="50 ms") == 50_000 + 20_000
    assert limit(limit="30 kB") == 30_000
    # The peak's bucket leaves less room.
    assert limit(latency="50 ms", peakrate="10 Mbit/s", minburst="2 kB") == 62_500 + 2_000
    assert limit(latency="50 ms", peakrate="80 Mbit/s") == 70_000


def test_a_token_bucket_shapes_after_a_burst_at_the_lines_rate() -> None:
    path = {"rate": "100 Mbit/s", "rtt": "20 ms", "queue": TBF}
    run = engines.get("sim").run(Scenario(duration="20 s", path=path))
    assert run.tables["intervals"].query("t_s > 5")["goodput_bps"].mean() == pytest.approx(5e6 * 1448 / 1514, rel=0.01)
    assert run.tables["queues"].query("t_s > 5")["delay_mean_s"].max() < 0.08 + 16384 * 8 / 5e6
    assert run.tables["queues"]["drops"].sum() > 0


def test_a_token_bucket_and_a_rate_that_varies_exclude_each_other() -> None:
    with expected_error(code="conflict", field="path.queue"):
        Scenario(path={"queue": TBF, "changes": [{"at": "1 s", "rate": "50 Mbit/s"}]}).compile()


def test_a_token_bucket_on_a_kernel_has_its_rates_and_buckets() -> None:
    kind, options = options_of({**TBF, "peakrate": "20 Mbit/s", "minburst": "3 kB"})
    assert kind == "tbf"
    # struct tc_tbf_qopt: two tc_ratespec of 12 bytes with bytes/s at the end, limit, buffer, mtu.
    length, of = struct.unpack_from("=HH", options)
    rate, peak, limit = struct.unpack_from("=8xI8xII", options, 4)
    assert (length, of, rate, peak, limit) == (40, 1, 625_000, 2_500_000, 50_000 + 16_384)
    # TCA_TBF_BURST, TCA_TBF_PBURST.
    assert numbers(options[40:]) == {6: 16_384, 7: 3_000}


COMPARED = {
    kind: Scenario(
        duration="15 s",
        traffic="native",
        path={"rate": "10 Mbit/s", "rtt": "40 ms", "queue": example(kind)},
        flows=[{"cc": "cubic", "count": 2}],
        probes=[{"interval": "20 ms"}],
    )
    for kind in KINDS
    if kind != "dualpi2"  # newer than the default kernel
}


@pytest.mark.parametrize("kind", COMPARED)
def test_the_kernel_and_the_simulator_agree_on_a_queue(kind: str, compared: dict[str, Run]) -> None:
    found, overlimits = {}, {}
    for engine, run in (("sim", engines.get("sim").run(COMPARED[kind])), ("kernel", compared[kind])):
        queue = run.tables["queues"].query("transmitter == 0")
        delay = run.tables["probes"]["rtt_s"].mean() - 0.04
        found[engine] = (run.tables["intervals"]["goodput_bps"].mean(), delay, queue["drops"].sum())
        assert (queue["early_drops"] <= queue["drops"]).all()
        assert queue["new_flows"].notna().all() == queue["old_flows"].notna().all() == (kind in ("fq_codel", "fq_pie"))
        overlimits[engine] = queue["overlimits"].sum()
        assert (overlimits[engine] > 0) == (kind in ("red", "tbf"))
    (goodput, delay, drops), (real_goodput, real_delay, real_drops) = found["sim"], found["kernel"]
    if kind == "tbf":
        assert overlimits["sim"] == pytest.approx(overlimits["kernel"], rel=0.02)
    assert goodput == pytest.approx(real_goodput, rel=0.05)
    assert delay == pytest.approx(real_delay, rel=0.3, abs=0.001)
    # With random drops, the first seconds of one run can decide a few dozen.
    assert drops == pytest.approx(real_drops, rel=0.35, abs=25 if kind in ("red", "pie", "fq_pie") else 8)
