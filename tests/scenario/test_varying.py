"""Links that change at given times, with jitter, reordering, duplicates: in a file, and on the engines."""

import struct
from pathlib import Path
from typing import Any

import pytest

from expected_error import expected_error
from sawtooth.cli.scenario_text import describe
from sawtooth.engines import get
from sawtooth.run import Run
from sawtooth.scenario import Scenario
from sawtooth.scenario.compiled import Compiled
from sawtooth.scenario.compiled_form import Jitter, RateSchedule, Slots
from sawtooth.testbed import qdisc
from sawtooth.testbed.plan import build
from sawtooth.testbed.target_kernel import Place
from sawtooth.testbed.unsupported import check


def path(**given: Any) -> Compiled:
    return Scenario(duration="10 s", path=given).compile()


def custom(forward: dict[str, Any], **link: Any) -> Scenario:
    links = [{"from": "a", "to": "r"}, {"from": "r", "to": "b", "forward": forward, "delay": "5 ms"} | link]
    flows = [{"from": "a", "to": "b"}]
    hosts: dict[str, Any] = {"a": {}, "r": {}, "b": {}}
    return Scenario(duration="4 s", topology="custom", hosts=hosts, links=links, flows=flows, traffic="native")


def refused(code: str, field: str, **given: Any) -> None:
    with expected_error(code=code, field=field):
        path(**given)


def test_changes_of_a_path_go_to_the_links_that_have_rate_loss_and_delay() -> None:
    change = {"at": "2 s", "rate": "5 Mbit/s", "delay": "40 ms", "loss": "1%"}
    made = path(changes=[change])
    assert made.transmitters[0].pace == RateSchedule(steps=((2 * 10**9, 5_000_000),))
    assert {link.name: link.losses for link in made.links if link.losses} == {"loss>delay": ((2 * 10**9, 10_000_000),)}
    assert {link.name: link.delays for link in made.links if link.delays} == {
        "delay>receiver": ((2 * 10**9, 40_000_000),)
    }


@pytest.mark.parametrize("engine", ["sim", "model"])
def test_a_change_when_the_run_is_over_is_warned_of(engine: str) -> None:
    late = [{"at": "2 s", "rate": "1 Mbit/s"}, {"at": "1 min", "every": "1 s", "loss": "1%"}]
    scenario = Scenario(duration="2 s", path={"changes": late})
    found = [one for one in get(engine).run(scenario).warnings if "changes" in one]
    assert found == [
        f'path.changes.{number} is at "{at}" and has no effect: the run ends at "2 s"'
        for number, at in enumerate(["2 s", "60 s"])
    ]
    in_time = Scenario(duration="2 s", path={"changes": [{"at": "1999 ms", "rate": "1 Mbit/s"}]})
    assert get("sim").run(in_time).warnings == []


@pytest.mark.usefixtures("patience")
def test_a_late_change_of_one_direction_names_its_field() -> None:
    found = get("sim").run(custom({"changes": [{"at": "4 s", "delay": "1 ms"}]}, changes=[{"at": "9 s", "loss": "1%"}]))
    assert [one.partition(" ")[0] for one in found.warnings if "ends at" in one] == [
        "links.1.changes.0",
        "links.1.forward.changes.0",
    ]


def test_what_varies_in_a_scenario_is_reported() -> None:
    given = {"jitter": "2 ms", "reorder": "1%", "duplicate": "2%", "corrupt": "3%"}
    changes = [{"at": "5 s", "rate": "1 Mbit/s", "delay": "40 ms", "loss": "4%"}]
    told = describe(Scenario(duration="10 s", path={**given, "rtt": "20 ms", "changes": changes}))
    assert "loss –[loss 4% from 5 s]→ delay –[delay 40 ms from 5 s, jitter 2 ms, reorder 1%, duplicate 2%, " in told
    assert "corrupt 3%]→ receiver" in told
    assert ", rate 1 Mbit/s from 5 s, queue of" in told
    often = [{"every": "1 s", "rate": "1 Mbit/s"}, {"at": "500 ms", "every": "1 s", "rate": "2 Mbit/s"}]
    assert ", rate changes 20 times, 1 Mbit/s to 2 Mbit/s, queue" in describe(
        Scenario(duration="10 s", path={"changes": often})
    )


def test_a_trace_in_a_scenario_is_reported_by_its_name() -> None:
    told = describe(Scenario(path={"trace": "lte-like.down"}))
    assert "\npath: rate from the trace lte-like.down\n" in told
    assert "router>loss: 4.726909 Mbit/s on average, queue of" in told
    assert "\nlinks.1.forward: rate from the trace lte-like.up\n" in describe(custom({"trace": "lte-like.up"}))


def test_reordering_without_a_delay_is_warned_of() -> None:
    def told(**given: Any) -> list[str]:
        about = {"rate": "10 Mbit/s", "rtt": "0 s", "reorder": "5%"} | given
        return [one for one in get("sim").run(Scenario(duration="1 s", path=about)).warnings if "reorder" in one]

    assert told() == [
        'reorder has no effect on the link "delay>receiver": a packet can only be overtaken on a link with a delay'
    ]
    assert told(rtt="2 ms") == told(jitter="1 ms") == told(changes=[{"at": "500 ms", "delay": "1 ms"}]) == []


def test_a_change_that_comes_every_so_often_comes_to_the_end() -> None:
    made = path(
        changes=[{"at": "1 s", "every": "4 s", "rate": "1 Mbit/s"}, {"at": "3 s", "every": "4 s", "rate": "2 Mbit/s"}]
    )
    steps = [(1, 1), (3, 2), (5, 1), (7, 2), (9, 1)]
    assert made.transmitters[0].pace == RateSchedule(steps=tuple((at * 10**9, bps * 10**6) for at, bps in steps))


def test_of_two_values_one_between_is_drawn_again_by_the_seed() -> None:
    def drawn(seed: int) -> tuple[tuple[int, int], ...]:
        changes = [{"every": "1 s", "rate": ["1 Mbit/s", "9 Mbit/s"]}]
        pace = Scenario(duration="10 s", seed=seed, path={"changes": changes}).compile().transmitters[0].pace
        assert pace is not None
        assert pace.steps is not None
        return pace.steps

    rates = [bps for _, bps in drawn(1)]
    assert len(set(rates)) == 10
    assert all(10**6 <= bps <= 9 * 10**6 for bps in rates)
    assert drawn(1) == drawn(1) != drawn(2)


def test_what_changes_at_once_is_what_holds_at_the_beginning() -> None:
    made = path(changes=[{"delay": "40 ms", "loss": "1%"}])
    assert {link.name: link.delay_ns for link in made.links}["delay>receiver"] == 40_000_000
    assert not any(link.delays or link.losses for link in made.links)


def test_changes_that_say_nothing_or_have_no_rate_to_change_are_refused() -> None:
    refused("missing-field", "path.changes.0", changes=[{"at": "1 s"}])
    refused("out-of-range", "path.changes.0.rate", changes=[{"rate": ["9 Mbit/s", "1 Mbit/s"]}])
    refused("out-of-range", "path.changes.0.every", changes=[{"every": "1 us", "rate": "1 Mbit/s"}])
    refused("conflict", "path.loss", loss={"every": 9}, changes=[{"at": "1 s", "loss": "1%"}])
    with expected_error(code="conflict", field="links.1.changes"):
        custom({"changes": [{"at": "1 s", "rate": "1 Mbit/s"}]})
    with expected_error(code="conflict"):
        custom({"rate": "9 Mbit/s", "opportunity": "3 kB", "changes": [{"at": "1 s", "rate": "1 Mbit/s"}]})


def test_a_rate_that_changes_is_what_arrives() -> None:
    changes = [{"at": "4 s", "rate": "5 Mbit/s"}, {"at": "7 s", "rate": "0 bit/s"}]
    run = get("sim").run(
        Scenario(duration="10 s", path={"rate": "20 Mbit/s", "queue": "50 packets", "changes": changes})
    )
    goodput = run.tables["intervals"]["goodput_bps"] / 1e6
    share = 1448 / 1514
    assert goodput[3] == pytest.approx(20 * share, rel=0.01)
    assert goodput[6] == pytest.approx(5 * share, rel=0.01)
    assert goodput[9] == 0


def test_the_same_seed_gives_the_same_tables_and_another_gives_others() -> None:
    given = {
        "rate": "10 Mbit/s",
        "jitter": {"deviation": "3 ms", "distribution": "paretonormal", "correlation": "25%", "ordered": False},
        "reorder": {"share": "1%", "gap": 3, "correlation": "10%"},
        "duplicate": "0.5%",
        "corrupt": "0.1%",
        "changes": [{"every": "700 ms", "rate": ["5 Mbit/s", "20 Mbit/s"], "delay": ["10 ms", "30 ms"]}],
    }

    def run(seed: int) -> Any:
        return get("sim").run(Scenario(duration="5 s", seed=seed, path=given)).tables["tcp_info"]

    assert run(1).equals(run(1))
    assert not run(1).equals(run(2))


def test_the_core_s_json_has_what_varies_and_comes_back_whole() -> None:
    given = {
        "jitter": {"deviation": "1 ms", "distribution": "normal"},
        "reorder": "1%",
        "duplicate": "1%",
        "corrupt": "1%",
    }
    changes = [{"at": "1 s", "rate": "1 Mbit/s", "delay": "1 ms", "loss": "1%"}]
    for made in (
        path(**given, changes=changes),
        path(trace="lte-like.up"),
        custom({"rate": "1 Mbit/s", "opportunity": "3 kB"}).compile(),
    ):
        assert Compiled.from_dict(made.to_dict()) == made


def test_a_scenario_without_any_of_it_is_compiled_as_before() -> None:
    link = Scenario().compile().to_dict()["links"][0]
    assert set(link) == {"name", "from", "to", "transmitter", "delay_ns", "loss_ppb", "loss_pattern", "overhead_bytes"}


@pytest.mark.parametrize("distribution", ["normal", "pareto", "paretonormal"])
def test_a_table_of_deviations_is_standard_but_for_what_is_cut_off(distribution: str) -> None:
    compiled = path(jitter={"deviation": "1 ms", "distribution": distribution})
    (jitter,) = (link.jitter for link in compiled.links if link.jitter is not None)
    values = [value / 8192 for value in jitter.table]
    mean = sum(values) / len(values)
    assert len(values) == 4096
    assert abs(mean) < 0.05
    assert (sum(value**2 for value in values) / len(values)) ** 0.5 == pytest.approx(
        {"normal": 1, "pareto": 0.77, "paretonormal": 0.85}[distribution], rel=0.01
    )


def table_of(directory: Path, text: str) -> dict[str, Any]:
    (directory / "measured.dist").write_text(text)
    return {"deviation": "1 ms", "distribution": "table", "table": str(directory / "measured.dist")}


def test_deviations_come_from_a_file_as_netem_s_tables_are(tmp_path: Path) -> None:
    given = table_of(tmp_path, "# mu 0 sigma 1\n-8192 -4096 # two\n\n 0\t8192\n32767\n")
    (link,) = (link for link in path(jitter=given).links if link.jitter is not None)
    assert link.jitter is not None
    assert link.jitter.table == (-8192, -4096, 0, 8192, 32767)
    assert struct.pack("=5h", *link.jitter.table) in qdisc.netem(delay_ns=10**6, jitter=link.jitter)


def test_on_the_simulator_delays_are_those_of_the_file(tmp_path: Path) -> None:
    given = table_of(tmp_path, "16384")

    def rtts(jitter: Any) -> Any:
        asked = {"jitter": jitter, "queue": "9 packets"}
        run = get("sim").run(Scenario(duration="2 s", path=asked, flows=[], probes=[{"interval": "100 ms"}]))
        return run.tables["probes"]["rtt_s"]

    assert (rtts(given) - rtts("0 s")).round(9).tolist() == [0.002] * len(rtts("0 s"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no numbers"),
        ("# nothing", "no numbers"),
        ("1 2\n3.5", "line 2: 3.5"),
        ("32768", "line 1: 32768"),
        ("-32769", "line 1: -32769"),
        ("--1", "line 1: --1"),
        ("1 nan", "line 1: nan"),
        ("0 " * 16_385, "more than 16384"),
    ],
)
def test_a_bad_table_is_refused_with_its_line(tmp_path: Path, text: str, words: str) -> None:
    with expected_error(code="bad-table") as caught:
        path(jitter=table_of(tmp_path, text))
    assert words in str(caught.value)


def test_a_table_and_its_distribution_are_given_together(tmp_path: Path) -> None:
    given = table_of(tmp_path, "0")
    for without, code in (("table", "missing-field"), ("distribution", "conflict")):
        with expected_error(code=code):
            path(jitter={name: value for name, value in given.items() if name != without})


def test_a_table_is_beside_the_scenario_and_counts_by_what_it_says(tmp_path: Path) -> None:
    table_of(tmp_path, "0 1")
    file = tmp_path / "one.toml"
    file.write_text('[path]\njitter = { deviation = "1 ms", distribution = "table", table = "measured.dist" }\n')
    before = Scenario.load(file).digest()
    assert Scenario.load(file).digest() == before
    table_of(tmp_path, "0 12")
    assert Scenario.load(file).digest() != before


def test_a_short_form_is_written_as_it_was_read() -> None:
    tables = Scenario(
        path={"jitter": "2 ms", "reorder": "1%", "duplicate": {"share": "1%", "correlation": "5%"}}
    ).to_dict()
    assert tables["path"]["jitter"] == "2 ms"
    assert tables["path"]["duplicate"] == {"share": "1%", "correlation": "5%"}
    assert Scenario.from_dict(tables).to_dict() == tables


def test_opportunities_at_a_rate_are_slots() -> None:
    made = custom({"rate": "12 Mbit/s", "opportunity": "3000 bytes"}).compile()
    assert made.transmitters[0].pace == RateSchedule(slots=Slots(every_ns=2_000_000, bytes=3000))


def test_on_linux_a_varying_rate_is_a_line_and_the_rest_netem_s() -> None:
    changes = [{"at": "1 s", "rate": "1 Mbit/s", "delay": "1 ms", "loss": "1%"}]
    plan = build(path(changes=changes, jitter="1 ms"), Place(), "st-")
    [line] = plan.ports.lines
    assert {rule.device for rule in plan.ports.qdiscs} >= {"x2", "x3"}
    assert (line.come, line.leave) == ("i1", "w1")
    delay = next(change for change in plan.ports.changes if change.device == "x3")
    seedless = qdisc.netem(delay_ns=10**6, jitter=Jitter(ns=10**6, ordered=True), rate_bps=qdisc.KEEPS_ORDER_BPS)
    assert (delay.at_ns, delay.options) == (10**9, seedless)


def qdiscs(given: Compiled) -> dict[str, list[str]]:
    """Kinds of the queues below a line, or before it, by device."""
    plan = build(given, Place(), "st-")
    near = {valve.device for line in plan.ports.lines if (valve := line.valve)}
    return {device: [one.kind for one in plan.ports.qdiscs if one.device == device] for device in near}


def test_a_queue_of_a_kind_of_its_own_gives_a_line_one_frame_at_a_time() -> None:
    made = path(changes=[{"at": "1 s", "rate": "1 Mbit/s"}], queue={"kind": "fq_codel"})
    check(made, "native", Place(), where="here")
    assert qdiscs(made) == {"x1": ["prio", "tbf", "fq_codel"]}
    [line] = build(made, Place(), "st-").ports.lines
    assert line.valve is not None
    # A bucket with room for one frame, each of which takes more than half of it.
    assert line.valve.options == qdisc.valve(1514, 0)


def direct(**forward: Any) -> Scenario:
    """From host to host, so that TCP itself sends into the queue."""
    links = [
        {"from": "a", "to": "b", "delay": "5 ms", "forward": {"rate": "8 Mbit/s", "queue": "60 packets"} | forward}
    ]
    flows = [{"from": "a", "to": "b"}]
    return Scenario(
        duration="4 s", topology="custom", hosts={"a": {}, "b": {}}, links=links, flows=flows, traffic="native"
    )


def test_where_tcp_sends_the_queue_reports_drops_to_it_and_losses_take_single_frames() -> None:
    changes = [{"at": "1 s", "rate": "1 Mbit/s"}]
    assert qdiscs(direct(changes=changes).compile()) == {"x0": ["prio", "tbf", "pfifo"]}
    lossy = direct(changes=changes, loss="1%").compile()
    check(lossy, "native", Place(), where="here")
    assert qdiscs(lossy) == {"x0": ["prio", "tbf", "netem", "tbf", "pfifo"]}


def test_jitter_behind_a_short_queue_is_a_line_at_one_rate() -> None:
    for queue in ("64 KiB", "8 packets", {"kind": "codel"}):
        made = custom({"rate": "9 Mbit/s", "queue": queue, "jitter": "1 ms"}).compile()
        check(made, "native", Place(), where="here")
        [line] = build(made, Place(), "st-").ports.lines
        assert (line.valve is None) == isinstance(queue, str)


def test_exact_times_are_refused_in_real_time() -> None:
    with expected_error(code="unsupported", field="links.changes"):
        check(path(changes=[{"at": "1 s", "delay": "1 ms"}]), "native", Place(virtual=False), where="this host")


def test_with_ip_6_every_frame_is_20_bytes_longer() -> None:
    scenario = Scenario(ip=6, duration="5 s", path={"rate": "10 Mbit/s", "queue": "50 packets"})
    assert {link.overhead_bytes for link in scenario.compile().links} == {20}
    goodput = get("sim").run(scenario).tables["intervals"]["goodput_bps"][4]
    assert goodput == pytest.approx(10e6 * 1448 / 1534, rel=0.01)


VARIED: dict[str, dict[str, Any]] = {
    "changes": {"changes": [{"at": "3 s", "rate": "4 Mbit/s"}, {"at": "6 s", "rate": "12 Mbit/s", "delay": "30 ms"}]},
    "jitter": {"jitter": {"deviation": "1 ms", "ordered": False}},
    "reorder": {"reorder": "0.5%", "duplicate": "0.5%"},
    "changes-fq_codel": {"changes": [{"at": "3 s", "rate": "4 Mbit/s"}], "queue": {"kind": "fq_codel"}},
    "jitter-short": {"jitter": {"deviation": "1 ms", "ordered": False}, "queue": "8 packets"},
}
PATH = {"rate": "10 Mbit/s", "rtt": "20 ms", "queue": "60 packets"}
COMPARED = {name: Scenario(duration="10 s", traffic="native", path=PATH | given) for name, given in VARIED.items()} | {
    "direct": direct(changes=[{"at": "2 s", "rate": "4 Mbit/s"}])
}


def test_where_tcp_sends_at_a_rate_that_varies_the_kernel_s_own_queue_is_as_short(compared: dict[str, Run]) -> None:
    ours, theirs = get("sim").run(COMPARED["direct"]).tables, compared["direct"].tables
    for table, column in (("intervals", "goodput_bps"), ("queues", "mean_packets")):
        assert ours[table][column].mean() == pytest.approx(theirs[table][column].mean(), rel=0.05)


@pytest.mark.parametrize("name", VARIED)
def test_the_kernel_and_the_simulator_agree_on_what_varies(name: str, compared: dict[str, Run]) -> None:
    runs = (get("sim").run(COMPARED[name]), compared[name])
    ours, theirs = (run.tables["intervals"]["goodput_bps"].mean() for run in runs)
    assert ours == pytest.approx(theirs, rel=0.03)
