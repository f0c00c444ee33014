"""The page asks the core what a scenario means: it reads, compiles and refuses as the package does."""

import json
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest

from sawtooth import Scenario, _core
from sawtooth.engines import get
from sawtooth.engines.sim import controls
from sawtooth.errors import InputError
from sawtooth.scenario import CONTROLS
from sawtooth.scenario.units import Loss, Queue, Rate, Size, Span

HARNESS = Path(__file__).parents[1] / "lab_in_node.mjs"
KINDS = {"rate": Rate, "span": Span, "size": Size, "loss": Loss, "queue": Queue}


def ask(built: Path, verb: str, questions: Any) -> Any:
    """The answer of the page's code in node."""
    command = ["node", HARNESS, built, verb]
    answered = subprocess.run(command, input=json.dumps(questions), capture_output=True, text=True, check=True)
    return json.loads(answered.stdout)


def _told(error: InputError) -> dict[str, Any]:
    return {"code": error.code, "message": error.message, "fix": error.fix, "field": error.field}


def _amount(value: Any) -> dict[str, Any]:
    """As in the page: a JavaScript number."""
    if isinstance(value, Queue):
        return {"amount": float(value.amount * 10**9 if value.unit == "bdp" else value.amount), "unit": value.unit}
    return {"amount": float(next(iter(vars(value).values())))}


def _number(random: random.Random) -> str:
    return random.choice(
        [
            str(random.randrange(1, 2000)),
            f"{random.uniform(0, 50):.{random.randrange(1, 5)}f}",
            f"{random.randrange(1, 99)}e{random.randrange(-3, 4)}",
            *("0", "-1", "+2", ".5", "7.", "1e400", "50,5", "1_000", "", "many", "1e99", "9" * 31, "0.0000000001"),
        ]
    )


UNITS = [
    *("bit/s", "kbit/s", "Mbit/s", "Gbit/s", "mbit", "gbit", "Mbps", "kbps", "bps"),
    *("ns", "us", "µs", "ms", "msec", "s", "seconds", "min", "h", "d"),
    *(
        "bytes",
        "byte",
        "B",
        "kB",
        "MB",
        "KiB",
        "MiB",
        "TiB",
        "packets",
        "p",
        "packet",
        "bdp",
        "%",
        "percent",
        "",
        "parsec",
    ),
]


def test_units_are_read_and_refused_as_in_scenario_files(lab: Path) -> None:
    drawn = random.Random(1)
    asked = [
        (kind, f"{_number(drawn)}{drawn.choice(['', ' ', '  '])}{drawn.choice(UNITS)}{drawn.choice(['', '', ' '])}")
        for kind in KINDS
        for _ in range(1000)
    ]
    read = 0
    for (kind, text), answer in zip(asked, ask(lab, "units", asked), strict=True):
        try:
            value = KINDS[kind].parse(text)
        except InputError as error:
            assert answer == _told(error), (kind, text)
        else:
            read += 1
            assert answer == _amount(value), (kind, text)
    assert read > 400


QUEUES: list[Any] = [
    *("1 bdp", "0.3 bdp", "8 bdp", "100 packets", "1 packet", "64 KiB", "50 ms", "2 MB", "1 us", "1514 bytes"),
    *(
        {"kind": kind}
        for kind in ("pfifo", "bfifo", "codel", "fq_codel", "pie", "fq_pie", "fq", "sfq", "cake", "dualpi2")
    ),
    {"kind": "pfifo", "limit": "2 bdp"},
    {"kind": "bfifo", "limit": "20 ms"},
    {"kind": "codel", "target": "1 ms", "interval": "20 ms", "ecn": True, "ce_threshold": "2 ms"},
    {"kind": "fq_codel", "flows": 64, "quantum": "300 bytes", "ecn": False},
    {"kind": "red", "limit": "400 kB"},
    {"kind": "red", "limit": "50 ms", "min": "5 ms", "max": "20 ms", "adaptive": True, "ecn": True, "harddrop": True},
    {"kind": "red", "limit": "200 kB", "avpkt": "1500 bytes", "burst": 60, "probability": "10%"},
    {"kind": "pie", "target": "20 ms", "alpha": 4, "beta": 30, "bytemode": True, "ecn": True},
    {"kind": "fq_pie", "limit": "1 bdp", "flows": 16, "quantum": "1 KiB"},
    {"kind": "fq", "flow_limit": 20, "initial_quantum": "4 kB", "refill_delay": "10 ms", "orphan_mask": 7},
    {"kind": "sfq", "perturb": "10 s", "divisor": 2048, "depth": 50, "headdrop": True},
    {"kind": "tbf", "rate": "1 Mbit/s", "burst": "20 kB", "latency": "50 ms"},
    {"kind": "tbf", "rate": "1 Mbit/s", "burst": "20 kB", "limit": "100 kB", "peakrate": "2 Mbit/s"},
    {
        "kind": "tbf",
        "rate": "1 Mbit/s",
        "burst": "20 kB",
        "latency": "9 ms",
        "peakrate": "2 Mbit/s",
        "minburst": "3 kB",
    },
    {"kind": "cake", "bandwidth": "2 Mbit/s", "rtt": "metro", "isolation": "flows"},
    {"kind": "cake", "bandwidth": "900 Mbit/s", "rtt": "300 ms"},
    {"kind": "cake", "memlimit": "1 MiB"},
    {"kind": "dualpi2", "step_thresh": "5 packets", "alpha": 0.25, "beta": 2.5, "coupling_factor": 3},
    {"kind": "dualpi2", "classic_protection": "25%", "drop_on_overload": False, "any_ect": True, "min_qlen_step": 1},
]
WRONG_QUEUES: list[Any] = [
    *("0 packets", "1000", "3 parsec", "9 bytes", "2 h", "1e9 bdp"),
    {"kind": "codel", "target": "0 s"},
    {"kind": "codel", "limit": "20 ms"},
    {"kind": "red", "limit": "1 MB", "probability": "0%"},
    {"kind": "red", "limit": "1 MB", "min": "2 MB"},
    {"kind": "red", "limit": "1 MB", "min": "5 ms"},
    {"kind": "red", "limit": "1 MB", "burst": 2},
    {"kind": "sfq", "perturb": "1.5 s"},
    {"kind": "sfq", "divisor": 1000},
    {"kind": "sfq", "limit": "1 packet"},
    {"kind": "tbf", "rate": "1 Mbit/s", "burst": "20 kB"},
    {"kind": "tbf", "rate": "10 Tbit/s", "burst": "20 kB", "latency": "1 s"},
    {"kind": "tbf", "rate": "1 Mbit/s", "burst": "1000 bytes", "latency": "1 s"},
    {"kind": "tbf", "rate": "1 Mbit/s", "burst": "20 kB", "latency": "1 s", "minburst": "3 kB"},
    {"kind": "tbf", "rate": "1 Mbit/s", "burst": "20 kB", "latency": "1 s", "peakrate": "1 kbit/s"},
    {"kind": "cake", "rtt": "1 ns"},
    {"kind": "dualpi2", "classic_protection": "2.5%"},
    {"kind": "dualpi2", "step_thresh": "1 bdp"},
]


VARIANTS = [{"name": one.name, "variant": name} for one in CONTROLS.values() for name in one.simulated if name]
HOSTS: list[dict[str, Any]] = [
    *({"ecn": ecn} for ecn in (True, False, 0, 1, 2)),
    {"receive_buffer": "1 MiB"},
    {"ecn": 1, "receive_buffer": "12 MiB"},
    {"ecn": 1, "ecn_fallback": False},
    {"ecn_fallback": True},
]


def _flow(drawn: random.Random, known: tuple[str, ...]) -> dict[str, Any]:
    variant = drawn.random() < 0.2
    flow: dict[str, Any] = {"cc": drawn.choice(VARIANTS if variant else known)}
    if drawn.random() < 0.3:
        flow["count"] = drawn.randrange(1, 40)
    if drawn.random() < 0.3:
        flow["start"] = f"{drawn.randrange(0, 2000)} ms"
    if drawn.random() < 0.4:
        flow |= drawn.choice([{"duration": "3 s"}, {"bytes": "10 MB"}, {"bytes": "1 byte"}, {"duration": "1 h"}])
    return flow


def _scenario(drawn: random.Random, known: tuple[str, ...], queue: Any) -> dict[str, Any]:
    path = {
        "rate": f"{drawn.choice([0.512, 2.5, 10, 100, 333, 1000, 40_000])} {drawn.choice(['Mbit/s', 'Mbit'])}",
        "rtt": drawn.choice(["0.4 ms", "7 ms", "30ms", "123.456789 ms", "1 s", "13 ns", "0 s"]),
        "queue": queue,
        "loss": f"{drawn.choice([0, 0.5, 1, 12.3456789])}%",
        "ack_loss": drawn.choice(["0%", "2 percent"]),
    }
    if drawn.random() < 0.4:
        path["reverse_rate"] = drawn.choice(["5 Mbit/s", "1 Gbit/s", "64 kbit/s"])
    asked: dict[str, Any] = {"path": path, "flows": [_flow(drawn, known) for _ in range(drawn.randrange(1, 5))]}
    asked["seed"] = drawn.randrange(2**53)
    asked["duration"] = drawn.choice(["10 s", "3 min", "2500 ms"])
    asked["interval"] = drawn.choice(["1 s", "100 ms", "7 ms"])
    if drawn.random() < 0.3:
        asked["host"] = drawn.choice(HOSTS)
    return asked


def test_a_scenario_compiles_to_what_the_package_makes(lab: Path) -> None:
    drawn, known = random.Random(2), controls()
    asked: list[dict[str, Any]] = [{}]
    asked += [_scenario(drawn, known, queue) for queue in (*QUEUES, *WRONG_QUEUES) for _ in range(8)]
    answers = ask(lab, "compile", {"scenarios": asked})
    compiled, fields = 0, set()
    for scenario, answer in zip(asked, answers, strict=True):
        try:
            expected = Scenario.from_dict(scenario).compile().to_json()
        except InputError as error:
            fields.add(error.field)
            assert answer == _told(error), scenario
        else:
            if "code" in answer and answer["code"] == "unsupported":
                assert answer["field"] == "path.rtt"
                continue
            compiled += 1
            assert _core.describe_compiled(answer["json"]) == _core.describe_compiled(expected), scenario
    assert compiled > 250
    assert {"path.queue", "path.queue.target", "path.queue.burst", "path.queue.latency"} <= fields


def test_what_a_queue_field_shows_where_it_is_empty_is_the_kind_s_default(lab: Path) -> None:
    told = ask(lab, "queues", None)
    needed = {one["kind"]: one["needs"] for one in told}
    path = {"rate": "10 Mbit/s", "rtt": "10 ms"}

    def compiled(kind: str, **fields: Any) -> str:
        queue = {"kind": kind} | needed.get(kind, {}) | fields
        return Scenario.from_dict({"path": path | {"queue": queue}}).compile().to_json()

    assert {one["kind"] for one in told} == {queue["kind"] for queue in QUEUES if isinstance(queue, dict)}
    for one in told:
        kind = one["kind"]
        for name, otherwise in one["fields"].items():
            if otherwise is not None:
                assert compiled(kind, **{name: otherwise}) == compiled(kind), (kind, name)
        if one["marks_above"] is not None:
            assert compiled(kind, **{one["marks_above"]: "7 ms"}) != compiled(kind)


def test_a_toml_file_is_read_and_what_is_wrong_with_it_has_a_line_and_a_column(lab: Path) -> None:
    texts = ['[path]\nrtt = "7 ms"\n\n[[flows]]\ncount = 3', "a = 1\n[path]\nrtt = 20 ms", "a = 1\na = 2"]
    read, broken, twice = ask(lab, "toml", texts)
    assert read == {"path": {"rtt": "7 ms"}, "flows": [{"count": 3}]}
    assert broken["code"] == twice["code"] == "not-toml"
    assert broken["message"].endswith("(at line 3, column 7)")
    assert twice["message"] == "it is not TOML: a key or table is given twice (at line 2, column 1)"


def test_a_control_that_gets_no_marks_is_warned_of_in_the_words_of_the_command_line(lab: Path) -> None:
    flows = [{"cc": cc} for cc in (*controls(), *VARIANTS)]
    asked = [
        {"duration": "1 s", "flows": flows, **host} for host in ({}, {"host": {"ecn": 2}}, {"host": {"ecn": True}})
    ]
    questions = [{"scenario": scenario, "alone": False} for scenario in asked]
    answers = ask(lab, "warnings", questions)
    for scenario, answer in zip(asked, answers, strict=True):
        said = get("sim").run(Scenario.from_dict(scenario)).meta["warnings"]
        assert answer == [one for one in said if "without ECN" in one]
    assert [len(one) for one in answers] == [4, 0, 0], "dctcp, both of prague, and bbr3 with marks"


def test_what_the_simulator_lacks_is_refused_in_the_words_of_the_command_line(lab: Path) -> None:
    asked = [
        {"flows": [{"cc": "vegas"}]},
        {"flows": [{}, {"cc": "mine"}], "host": {"kernel": "patched"}},
        {"path": {"rate": "10 Tbit/s", "rtt": "0 s", "queue": "9 packets"}},
    ]
    for scenario, answer in zip(asked, ask(lab, "compile", {"scenarios": asked}), strict=True):
        with pytest.raises(InputError) as refused:
            get("sim").check(Scenario.from_dict(scenario))
        assert answer == _told(refused.value)


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"duration": "0 s"}, "duration"),
        ({"interval": "2 min"}, "interval"),
        ({"path": {"rate": "100"}}, "path.rate"),
        ({"path": {"rtt": "2 h"}}, "path.rtt"),
        ({"path": {"loss": "120%"}}, "path.loss"),
        ({"flows": [{"start": "60 s"}]}, "flows.0.start"),
        ({"flows": [{"bytes": "1 MB", "duration": "1 s"}]}, "flows.0.bytes"),
        ({"flows": [{"name": "a"}, {"name": "a"}]}, "flows.0.name"),
        ({"flows": [{"name": "7"}]}, "flows.0.name"),
        ({"flows": [{"count": 0}]}, "flows.0.count"),
        ({"flows": [{"cc": {"name": "bbr", "variant": "ecn"}}]}, "flows.0.cc.variant"),
        ({"flows": [{"cc": {"name": "bbr3", "variant": "xyz"}}]}, "flows.0.cc.variant"),
        ({"flows": [{"cc": {"name": "none", "variant": "abe"}}]}, "flows.0.cc.variant"),
        ({"flows": [{"cc": {"name": "reno", "variant": 7}}]}, "flows.0.cc.variant"),
        ({"flows": [{"cc": {"name": "reno", "variant": "abe", "parameters": {}}}]}, "flows.0.cc.parameters"),
        ({"flows": [{"cc": {"variant": "abe"}}]}, "flows.0.cc.name"),
        ({"host": {"ecn": 3}}, "host.ecn"),
        ({"host": {"ecn_fallback": 1}}, "host.ecn_fallback"),
        ({"host": {"receive_buffer": "1 KiB"}}, "host.receive_buffer"),
        ({"host": {"receive_buffer": "4 KiB"}}, "host.receive_buffer"),
        ({"flows": [{"count": 60_000}, {"count": 60_000}]}, "flows"),
    ],
)
def test_what_the_package_refuses_the_page_refuses_in_the_same_words(
    lab: Path, wrong: dict[str, Any], field: str
) -> None:
    with pytest.raises(InputError) as refused:
        Scenario.from_dict(wrong)
    (answer,) = ask(lab, "compile", {"scenarios": [wrong]})
    assert answer == _told(refused.value)
    assert answer["field"] == field


def test_what_the_page_does_not_have_is_reported_by_its_field(lab: Path) -> None:
    asked = [
        {"topology": "chain"},
        {"path": {"jitter": "1 ms"}},
        {"flows": [{"replace": {"lifetime": ["1 s", "2 s"]}}]},
    ]
    answers = ask(lab, "compile", {"scenarios": asked, "asked": True})
    assert [one["code"] for one in answers] == ["unsupported"] * 3
    assert [one["field"] for one in answers] == ["topology", "path.jitter", "flows.0.replace"]
