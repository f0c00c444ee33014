"""Scenario files: defaults, what they compile to, dictionaries and digests."""

import json
import pickle
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sawtooth
from expected_error import expected_error
from sawtooth.errors import InputError, SawtoothError
from sawtooth.scenario import LossPattern, Queue, Rate, Scenario, Size, Span, tables
from sawtooth.scenario import Path as PathTable
from sawtooth.scenario.tables import Jitter

COMPLETE = """
name = "a-path"
topology = "path"
duration = "60 s"
warmup = "5 s"
interval = "1 s"
seed = 7

[path]
rate = "100 Mbit/s"
rtt = "20 ms"
queue = "1 bdp"
loss = "0%"
ack_loss = "0%"

[host]
hz = 1000
mss = 1448
initial_window = 10
receive_buffer = "64 MiB"
send_buffer = "64 MiB"
delayed_ack = true
sack = true
timestamps = true
offload = false

[hosts.receiver]
delayed_ack = false

[[flows]]
name = "bulk"
from = "sender"
to = "receiver"
cc = "bbr"
count = 2
start = "1 s"
duration = "30 s"
replace = { lifetime = ["1 s", "5 s"] }

[[flows]]
bytes = "10 MB"

[[probes]]
from = "sender"
to = "receiver"
interval = "100 ms"
count = 600
start = "0 s"
"""


def write(directory: Path, text: str) -> Path:
    path = directory / "scenario.toml"
    path.write_text(text)
    return path


def test_a_file_that_sets_everything_compiles_to_the_contract(tmp_path: Path) -> None:
    compiled = Scenario.load(write(tmp_path, COMPLETE)).compile().to_dict()
    assert {key: compiled[key] for key in ("duration_ns", "interval_ns", "seed")} == {
        "duration_ns": 60 * 10**9,
        "interval_ns": 10**9,
        "seed": 7,
    }
    assert compiled["hosts"][0] == {
        "name": "sender",
        "hz": 1000,
        "mss": 1448,
        "initial_window": 10,
        "receive_buffer": 64 * 2**20,
        "send_buffer": 64 * 2**20,
        "delayed_ack": True,
        "sack": True,
        "timestamps": True,
        "offload": False,
    }
    assert [host["delayed_ack"] for host in compiled["hosts"]] == [True, True, True, True, False]
    assert compiled["flows"] == [
        {
            "name": "bulk",
            "cc": "bbr",
            "count": 2,
            "start_ns": 10**9,
            "duration_ns": 30 * 10**9,
            "bytes": None,
            "lifetime_ns": [10**9, 5 * 10**9],
            "forward": [0, 1, 2, 3],
            "backward": [4, 5, 6, 7],
        },
        {
            "name": "cubic",
            "cc": "cubic",
            "count": 1,
            "start_ns": 0,
            "duration_ns": None,
            "bytes": 10**7,
            "lifetime_ns": None,
            "forward": [0, 1, 2, 3],
            "backward": [4, 5, 6, 7],
        },
    ]
    assert compiled["probes"] == [
        {
            "name": "probe",
            "start_ns": 0,
            "interval_ns": 10**8,
            "count": 600,
            "forward": [0, 1, 2, 3],
            "backward": [4, 5, 6, 7],
        }
    ]


def test_an_empty_file_is_one_cubic_flow_over_a_path(tmp_path: Path) -> None:
    compiled = Scenario.load(write(tmp_path, "")).compile().to_dict()
    assert [(flow["name"], flow["cc"], flow["count"]) for flow in compiled["flows"]] == [("cubic", "cubic", 1)]
    # 100 Mbit/s x 20 ms in frames of 1514 bytes.
    assert compiled["transmitters"][0]["queue_packets"] == 165


def test_what_is_compiled_holds_integers_names_and_truths_only() -> None:
    def check(value: Any) -> None:
        if isinstance(value, (list, dict)):
            for one in value.values() if isinstance(value, dict) else value:
                check(one)
        else:
            assert value is None or type(value) in (int, str, bool)

    check(Scenario().compile().to_dict())


def test_a_flow_without_a_name_is_called_by_its_congestion_control() -> None:
    flows = [{}, {"cc": "bbr"}, {}, {"name": "cubic-3"}, {}]
    compiled = Scenario(flows=flows).compile().to_dict()
    assert [flow["name"] for flow in compiled["flows"]] == ["cubic", "bbr", "cubic-2", "cubic-3", "cubic-4"]


def test_probes_without_a_count_continue_to_the_end() -> None:
    probes = [{"interval": "100 ms"}, {"start": "59.95 s", "interval": "100 ms"}]
    compiled = Scenario(probes=probes).compile().to_dict()
    assert [(probe["name"], probe["count"]) for probe in compiled["probes"]] == [("probe", 600), ("probe-2", 1)]


def test_a_scenario_may_have_probes_and_no_flow() -> None:
    assert Scenario(flows=[], probes=[{}], path={"queue": "5 packets"}).compile().to_dict()["flows"] == []


def test_a_scenario_cannot_be_changed_in_place() -> None:
    with pytest.raises(AttributeError, match="frozen"):
        Scenario().seed = 2
    with pytest.raises(AttributeError, match="frozen"):
        Scenario().flows[0].count = 2


@pytest.mark.parametrize("date", ["2026-11-26", "'2026-11-26'", "2026-11-26T00:00:00", "'2026-11-26 00:00:00'"])
def test_a_date_has_one_form_however_it_is_written(tmp_path: Path, date: str) -> None:
    (tmp_path / "dated.toml").write_text(f"date = {date}\n")
    assert Scenario.load(tmp_path / "dated.toml").date == "2026-11-26 00:00:00"


def test_scenarios_that_ask_the_same_are_equal_and_have_one_digest() -> None:
    one = Scenario(path={"rate": "100 Mbit/s"}, duration="60s", flows=[{}])
    other = Scenario(path={"rate": "100000 kbit"}, flows=[{"cc": "cubic"}])
    assert one == other == Scenario()
    assert one.digest() == other.digest()
    assert hash(one) == hash(other)
    assert one != Scenario(seed=2)
    assert one.digest() != Scenario(seed=2).digest()


def test_the_digest_is_sixty_four_hexadecimal_digits() -> None:
    assert len(Scenario().digest()) == 64
    assert int(Scenario().digest(), 16) > 0


def test_a_scenario_survives_pickling() -> None:
    scenario = Scenario(topology="chain", chain={"loss": "1%"})
    assert pickle.loads(pickle.dumps(scenario)) == scenario


def test_a_scenario_remembers_its_file(tmp_path: Path) -> None:
    path = write(tmp_path, "")
    assert Scenario.load(path).source == str(path)
    with expected_error(file=str(path), kind=InputError):
        Scenario.load(path).set({"seed": -1})


def spans(low_ns: int, high_ns: int) -> st.SearchStrategy[str]:
    return st.integers(low_ns, high_ns).map(lambda ns: f"{ns} ns")


SCENARIOS = st.fixed_dictionaries(
    {"duration": spans(10**9, 10**12)},
    optional={
        "name": st.from_regex(r"[a-z][a-z -]{0,20}", fullmatch=True),
        "seed": st.integers(0, 2**63 - 1),
        "path": st.fixed_dictionaries(
            {},
            optional={
                "rate": st.integers(1, 10**13).map(lambda bps: f"{bps} bit/s"),
                "rtt": spans(0, 3600 * 10**9),
                "queue": st.sampled_from(["1 packet", "3000 bytes", "48 ms", "0.5 bdp"]),
                "loss": st.integers(0, 10**9).map(lambda ppb: f"{ppb}e-7%"),
            },
        ),
        "host": st.fixed_dictionaries(
            {},
            optional={
                "hz": st.sampled_from([100, 250, 300, 1000]),
                "mss": st.integers(48, 1460),
                "sack": st.booleans(),
            },
        ),
        "hosts": st.dictionaries(
            st.sampled_from(["sender", "receiver"]), st.fixed_dictionaries({}, optional={"delayed_ack": st.booleans()})
        ),
        "flows": st.lists(
            st.fixed_dictionaries(
                {},
                optional={
                    "cc": st.sampled_from(["reno", "cubic", "bbr"]),
                    "count": st.integers(1, 1000),
                    "start": spans(0, 10**9 - 1),
                    "replace": st.just({"lifetime": ["1 s", "5 s"]}),
                },
            ),
            min_size=1,
            max_size=4,
        ),
        "probes": st.lists(st.just({"count": 5}), max_size=2),
    },
)


@settings(deadline=None)
@given(SCENARIOS)
def test_the_dictionary_of_a_scenario_makes_the_same_scenario(tables: dict[str, Any]) -> None:
    try:
        scenario = Scenario.from_dict(tables)
    except InputError as error:
        # The only possible error in these tables: a bdp of absurdly many packets.
        assert (error.code, error.field) == ("out-of-range", "path.queue")
        return
    again = Scenario.from_dict(json.loads(json.dumps(scenario.to_dict())))
    assert again == scenario
    assert again.compile() == scenario.compile()
    assert again.to_dict() == scenario.to_dict()


SCHEMA = Scenario.json_schema()
# Not ``jsonschema.validate``, which checks the schema itself each time.
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def test_the_json_schema_is_valid() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@settings(deadline=None)
@given(SCENARIOS)
def test_what_is_read_fits_the_json_schema(tables: dict[str, Any]) -> None:
    VALIDATOR.validate(tables)


def test_the_defaults_of_the_json_schema_are_spelt_as_in_a_file() -> None:
    assert SCHEMA["properties"]["duration"]["default"] == "60 s"
    assert SCHEMA["$defs"]["Path"]["properties"]["queue"]["default"] == "1 bdp"
    assert SCHEMA["properties"]["flows"]["default"] == [{"cc": "cubic", "count": 1, "start": "0 s"}]


@pytest.mark.parametrize(
    "tables",
    [{"path": {"rate": 50}}, {"path": {"rat": "50 Mbit/s"}}, {"flows": [{"cc": "no control"}]}, {"host": {"hz": 123}}],
)
def test_what_is_refused_does_not_fit_the_json_schema(tables: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        VALIDATOR.validate(tables)


def test_the_reference_page_is_written_from_the_model() -> None:
    import reference

    assert reference.PAGE.read_text(encoding="utf-8") == reference.page(), "run tools/reference.py"


def test_each_example_of_the_reference_page_is_a_scenario(tmp_path: Path) -> None:
    import reference

    assert set(reference.EXAMPLES) <= {title for title, _, _ in reference.TABLES}
    (tmp_path / "transfers.cdf").write_text("1000 0.5\n100000 1\n", encoding="utf-8")
    for title, text in reference.EXAMPLES.items():
        file = tmp_path / "example.toml"
        file.write_text(text, encoding="utf-8")
        assert Scenario.load(file).compile(), title


def test_each_field_of_the_reference_page_has_an_example_that_fits() -> None:
    import reference

    # Errors about other fields or about files: the value itself was accepted.
    about_others = ("conflict", "missing-field", "file-not-found")
    checked = 0
    for title, name, _ in reference.TABLES:
        if name is None:
            continue
        table = Scenario if name == "Scenario" else getattr(tables, name)
        declared = reference.DECLARED[name]
        examples = {field: reference.example(name, field) for field in declared["properties"]}
        values = {
            field: tomllib.loads(f"value = {text}")["value"] for field, text in examples.items() if text is not None
        }
        needed = {field: values[field] for field in declared["required"]}
        for field, value in values.items():
            assert _problem(table, {**needed, field: value}) in (None, *about_others), (title, field, value)
            assert _problem(table, {**needed, field: [[]]}) not in (None, *about_others), (title, field)
            checked += 1
    assert checked > 200


def _problem(table: type, given: dict[str, Any]) -> str | None:
    """The code of the error that a table of these fields raises, if any."""
    try:
        table(**given)
    except SawtoothError as error:
        return error.code
    return None


def test_the_types_of_fields_are_written_from_what_the_core_declares() -> None:
    import scenario_tables

    for file, page in scenario_tables.PAGES.items():
        written = subprocess.run(
            [sys.executable, "-m", "ruff", "format", "-"], input=page(), capture_output=True, text=True
        )
        assert file.read_text(encoding="utf-8") == written.stdout, "run tools/scenario_tables.py"


def test_a_field_has_its_unit_and_a_table_its_fields() -> None:
    scenario = Scenario(path={"rate": "5 Mbit/s", "jitter": "2 ms"}, flows=[{"cc": "bbr", "bytes": "1 MB"}])
    (flow,) = scenario.flows
    assert (flow.cc, flow.bytes, flow.start, flow.source) == ("bbr", Size(10**6), Span(0), None)
    assert scenario.path is not None
    assert scenario.path.jitter == Jitter(deviation="2 ms")
    assert (scenario.path.rate, scenario.path.queue) == (Rate(5 * 10**6), Queue.parse("1 bdp"))
    assert repr(flow) == "Flow(cc='bbr', bytes=Size.parse('1 MB'))"
    with pytest.raises(AttributeError):
        _ = flow.control_of


def test_a_table_that_is_made_by_itself_goes_into_a_scenario() -> None:
    path = PathTable(rate=Rate(10**6), loss=LossPattern(every=7))
    assert Scenario(path=path) == Scenario(path={"rate": "1 Mbit/s", "loss": {"every": 7}})
    with expected_error(code="unknown-field", field="rat", fix='did you mean "rate"?'):
        PathTable(rat="1 Mbit/s")


def test_a_run_has_one_kernel() -> None:
    assert Scenario(host={"kernel": "mine"}).compile().kernel == "mine"
    assert Scenario().compile().kernel is None
    with expected_error(code="conflict", field="hosts.receiver.kernel", match="all hosts of a run share one kernel"):
        Scenario(host={"kernel": "mine"}, hosts={"receiver": {"kernel": "other"}})
    with pytest.raises(SawtoothError, match="sender asks for Linux without additions"):
        Scenario(hosts={"receiver": {"kernel": "mine"}})


def test_a_named_kernel_may_have_any_control_and_the_name_is_no_part_of_what_the_core_reads() -> None:
    scenario = Scenario(host={"kernel": "mine"}, flows=[{"cc": "mine"}])
    assert "kernel" not in json.loads(scenario.compile().to_json())
    assert Scenario.from_dict(scenario.to_dict()) == scenario
    with expected_error(code="unknown-name", field="flows.0.cc") as caught:
        Scenario(flows=[{"cc": "mine"}])
    assert "host.kernel" in str(caught.value.fix)


def test_a_scenario_shows_what_is_not_by_default() -> None:
    shown = repr(Scenario(path={"rate": "10 Mbit/s"}, duration="5 s"))
    assert shown == "Scenario(duration=Span.parse('5 s'), path=Path(rate=Rate.parse('10 Mbit/s')))"


def test_a_byte_order_mark_is_no_part_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "one.toml").write_text('[path]\nrate = "10 Mbit/s"\n', encoding="utf-8-sig")
    assert Scenario.load(tmp_path / "one.toml").path.rate.bps == 10_000_000


def test_a_number_in_quotes_where_one_of_some_numbers_is_needed_is_reported() -> None:
    with expected_error(fix="write it without quotes: ip = 6", kind=InputError):
        Scenario(ip="6")


@pytest.mark.parametrize("given", [None, {"path": {}}])
def test_run_says_what_it_takes(given: object) -> None:
    with expected_error(
        code="wrong-type", match="run takes a Scenario, a Study, a file or a study's name", kind=InputError
    ):
        sawtooth.run(given)


def test_a_file_without_a_name_has_its_own_and_paths_in_it_start_where_it_is(tmp_path: Path) -> None:
    file = tmp_path / "home line.toml"
    file.write_text('[[flows]]\ncc = { source = "tcp_mine.c" }\n', encoding="utf-8")
    for read in (Scenario.load, sawtooth.load):
        found = read(file)
        assert found.name == "home line"
        assert found.flows[0].cc.source == (str(tmp_path / "tcp_mine.c"),)
    file.write_text('name = "office"\n', encoding="utf-8")
    assert sawtooth.load(file).name == "office"
    bare = tmp_path / "without-ending"
    bare.write_text("", encoding="utf-8")
    assert sawtooth.load(bare).name == "scenario"
