"""Each mistake in a scenario file is one error with code, file, field and fix; nothing else is raised."""

import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from expected_error import expected_error
from sawtooth.errors import SawtoothError
from sawtooth.scenario import Scenario

BAD = [
    # Unknown fields.
    ("seeed = 3", "unknown-field", "seeed", '"seed"'),
    ("[path]\nrat = '1 Mbit/s'", "unknown-field", "path.rat", '"rate"'),
    ("[[flows]]\nform = 'sender'", "unknown-field", "flows.0.form", '"from"'),
    ("[hosts.sender]\nhx = 250", "unknown-field", "hosts.sender.hx", '"hz"'),
    ("[[flows]]\nreplace = { lifetimes = ['1 s', '2 s'] }", "unknown-field", "flows.0.replace.lifetimes", '"lifetime"'),
    # Missing units.
    ("[path]\nrtt = 20", "missing-unit", "path.rtt", '"20 ms"'),
    ("[path]\nrtt = '20'", "missing-unit", "path.rtt", '"20 ms"'),
    ("[path]\nloss = 0.01", "missing-unit", "path.loss", '"1%"'),
    ("duration = 60", "missing-unit", "duration", '"60 ms"'),
    ("[host]\nreceive_buffer = 65536", "missing-unit", "host.receive_buffer", '"65536 bytes"'),
    ("[[flows]]\nbytes = 5", "missing-unit", "flows.0.bytes", '"5 bytes"'),
    # Negative and absurd values, with their limits.
    ("[path]\nrtt = '-20 ms'", "out-of-range", "path.rtt", "20 ms"),
    ("[path]\nrtt = '2 h'", "out-of-range", "path.rtt", "3600 s"),
    ("[path]\nrate = '11 Tbit/s'", "out-of-range", "path.rate", "Mbit/s"),
    ("[path]\nloss = '101%'", "out-of-range", "path.loss", "1%"),
    ("duration = '31 d'", "out-of-range", "duration", "ms"),
    ("duration = '0 s'", "out-of-range", "duration", "30 d"),
    ("interval = '2 min'", "out-of-range", "interval", "at most"),
    ("interval = '10 ns'", "out-of-range", "interval", "1 ms"),
    ("duration = '30 d'\ninterval = '1 ms'", "out-of-range", "interval", "longer"),
    ("warmup = '60 s'", "out-of-range", "warmup", "shorter"),
    ("seed = -1", "out-of-range", "seed", "0"),
    ("[host]\nmss = 47", "out-of-range", "host.mss", "48"),
    ("[host]\nmss = 65401", "out-of-range", "host.mss", "65400"),
    ("[host]\nhz = 123", "out-of-range", "host.hz", "100, 250, 300 or 1000"),
    ("[host]\nsend_buffer = '1 byte'", "out-of-range", "host.send_buffer", "4 KiB"),
    ("[[flows]]\ncount = 0", "out-of-range", "flows.0.count", "1"),
    ("[[flows]]\ncount = 100000\n[[flows]]", "out-of-range", "flows", "lower"),
    ("[[flows]]\nstart = '60 s'", "out-of-range", "flows.0.start", "before"),
    ("[[flows]]\nreplace = { lifetime = ['5 s', '1 s'] }", "out-of-range", "flows.0.replace.lifetime", "swap"),
    ("[[probes]]\nstart = '60 s'", "out-of-range", "probes.0.start", "before"),
    ("duration = '30 d'\n[[probes]]\ninterval = '1 ms'", "out-of-range", "probes.0.interval", "count"),
    ("[path]\nrate = '10 Tbit/s'\nrtt = '3600 s'", "out-of-range", "path.queue", "at most"),
    ("date = '2026-02-30'", "bad-quantity", "date", "2026-11-26 12:00:00"),
    ("date = 1969-12-31", "bad-quantity", "date", "2026-11-26"),
    ("date = 2026-11-26T12:00:00+01:00", "bad-quantity", "date", "in UTC"),
    ("date = 2026", "bad-quantity", "date", "2026-11-26"),
    # Queues of zero.
    ("[path]\nqueue = '0 packets'", "zero-queue", "path.queue", "1 packet"),
    ("[path]\nqueue = '0 ms'", "zero-queue", "path.queue", "1 packet"),
    ("[path]\nqueue = '1500 bytes'", "zero-queue", "path.queue", "1514 bytes"),
    # Losses that are tables.
    ("[path.loss]\nevry = 3", "unknown-field", "path.loss.evry", '"every"'),
    ("[path.loss]\nevery = 0", "out-of-range", "path.loss.every", "at least 1"),
    ("[path.loss]\nevery = '1000'", "wrong-type", "path.loss.every", "without quotes"),
    ("[path]\nack_loss = {}", "missing-field", "path.ack_loss", "every = 1000"),
    ("[path.loss]\ngilbert_elliott = '1%'", "wrong-type", "path.loss.gilbert_elliott", "gilbert_elliott = {"),
    ("[path.loss.gilbert_elliott]\np = '1%'", "missing-field", "path.loss.gilbert_elliott.r", '"r"'),
    ("[path.loss.gilbert_elliott]\np = 1\nr = '30%'", "missing-unit", "path.loss.gilbert_elliott.p", '"1%"'),
    ("[path.loss.gilbert_elliott]\np = '1%'\nr = '101%'", "out-of-range", "path.loss.gilbert_elliott.r", "1%"),
    (
        "[path.loss.gilbert_elliott]\np = '1%'\nr = '1%'\nh = '1%'",
        "unknown-field",
        "path.loss.gilbert_elliott.h",
        "bad",
    ),
    # Unknown names, with the nearest known one.
    ("[[flows]]\ncc = 'cubik'", "unknown-name", "flows.0.cc", '"cubic"'),
    ("[[flows]]\ncc = 'bbr2'", "unknown-name", "flows.0.cc", '"bbr"'),
    ("topology = 'dumbel'", "unknown-name", "topology", '"dumbbell"'),
    ("topology = 'ring'", "unknown-name", "topology", "choose one of: path, chain, chain-asymmetric, dumbbell,"),
    ("[[flows]]\nfrom = 'sendr'", "unknown-name", "flows.0.from", '"sender"'),
    ("[hosts.reciever]\nhz = 100", "unknown-name", "hosts.reciever", '"receiver"'),
    # Names.
    ("[[flows]]\nname = 'a.b'", "bad-name", "flows.0.name", "letters"),
    ("[[flows]]\nname = '12'", "bad-name", "flows.0.name", "letter"),
    ("[host]\nkernel = '.6'", "bad-name", "host.kernel", 'no "." first'),
    ("[hosts.sender]\nkernel = '6..1'", "bad-name", "hosts.sender.kernel", 'no ".."'),
    ("[host]\nkernel = '6'", "bad-name", "host.kernel", "begin it with a letter"),
    ("[host]\nkernel = 6.1", "wrong-type", "host.kernel", "quotes"),
    ("[[flows]]\nname = 'x'\n[[flows]]\nname = 'x'", "duplicate-name", "flows.0.name", '"x-2"'),
    # Fields that exclude each other, or would be ignored.
    ("[chain]\nloss = '1%'", "conflict", "chain", "topology"),
    ("topology = 'chain'\n[path]\nloss = '1%'", "conflict", "path", "topology"),
    ("[[links]]\nfrom = 'a'\nto = 'b'", "conflict", "links", "custom"),
    ("[cards.a]\nrate = '1gbit'", "conflict", "cards", "custom"),
    ("[[flows]]\nbytes = '1 MB'\nduration = '1 s'", "conflict", "flows.0.bytes", "bytes or duration"),
    (
        "[[flows]]\nbytes = '1 MB'\nreplace = {lifetime=['1 s', '2 s']}",
        "conflict",
        "flows.0.replace",
        "replace or bytes",
    ),
    (
        "[[flows]]\nbytes = '1 MB'\nsource = {kind='rate', rate='1mbit'}",
        "conflict",
        "flows.0.source",
        "source or bytes",
    ),
    ("[path.loss]\nevery = 3\ngilbert_elliott = {p='1%', r='1%'}", "conflict", "path.loss", "every"),
    ("[path.loss]\nevery = 3\nmean = '1%'\nburst = '2 packets'", "conflict", "path.loss", "every"),
    ("[path.loss]\ngilbert_elliott = {p='1%', r='1%'}\nburst = '2 packets'", "conflict", "path.loss", "gilbert"),
    ("[path.loss]\nmean = '1%'", "missing-field", "path.loss", 'burst = "5 packets"'),
    ("[path.loss]\nburst = '5 packets'", "missing-field", "path.loss", 'mean = "1%"'),
    ("[path.loss]\nmean = '1%'\nburst = '0.5 packets'", "out-of-range", "path.loss.burst", "5 packets"),
    ("[path.loss]\nmean = '1%'\nburst = '0.0001 packets'", "bad-quantity", "path.loss.burst", "round"),
    ("[path.loss]\nmean = '1%'\nburst = 5", "missing-unit", "path.loss.burst", '"5 packets"'),
    ("[path.loss]\nmean = '1%'\nburst = '5 ms'", "unknown-unit", "path.loss.burst", "packets"),
    ("[path.loss]\nmean = '-1%'\nburst = '5 packets'", "out-of-range", "path.loss.mean", "1%"),
    ("[path.loss]\nmean = '101%'\nburst = '5 packets'", "out-of-range", "path.loss.mean", "1%"),
    ("[path.loss]\nmean = '100%'\nburst = '5 packets'", "out-of-range", "path.loss", '"83.3333333%" or less'),
    ("[path.loss]\nmean = '90%'\nburst = '5 packets'", "out-of-range", "path.loss", '"83.3333333%" or less'),
    ("[path.loss]\nmean = '60%'\nburst = '1 packet'", "out-of-range", "path.loss", '"50%" or less'),
    ("[path.loss]\nmean = '1e-6%'\nburst = '5 packets'", "out-of-range", "path.loss", "or more"),
    # Values of other types.
    ("seed = '1'", "wrong-type", "seed", "without quotes"),
    ("seed = true", "wrong-type", "seed", "without quotes"),
    ("seed = 1.0", "wrong-type", "seed", "without"),
    ("name = 3", "wrong-type", "name", "quotes"),
    ("path = 'x'", "wrong-type", "path", "path = {"),
    ("flows = 'x'", "wrong-type", "flows", "[[flows]]"),
    ("[flows]\ncc = 'bbr'", "wrong-type", "flows", "[[flows]]"),
    ("hosts = 3", "wrong-type", "hosts", "[hosts.NAME]"),
    ("[host]\nsack = 1", "wrong-type", "host.sack", "true"),
    ("duration = 2020-01-01", "wrong-type", "duration", "20 ms"),
    ("[[flows]]\nreplace = { lifetime = '1 s' }", "wrong-type", "flows.0.replace.lifetime", '["1 s", "5 s"]'),
    ("[[flows]]\nbytes = '1 MB'\nreader = {rate='1mbit'}", "conflict", "flows.0.reader", "duration"),
    (
        "[[flows]]\nreplace = {lifetime=['1 s', '2 s']}\nreader = {rate='1mbit'}",
        "conflict",
        "flows.0.reader",
        "replace",
    ),
    ("[[flows]]\nreader = {read='1 kB'}", "missing-field", "flows.0.reader.rate", "rate"),
    ("[[flows]]\nreader = {rate='1mbit', on='1 s'}", "missing-field", "flows.0.reader.on", "off"),
    ("[[flows]]\nreader = {rate='1mbit', on='1 s', off='1 s', whole=false}", "conflict", "flows.0.reader.whole", "on"),
    ("[[flows]]\nreader = {rate='1gbit', read='1 byte'}", "out-of-range", "flows.0.reader.read", "larger"),
    ("[[flows]]\nreader = {rate='1mbit', write='1 kB'}", "unknown-field", "flows.0.reader.write", "rate"),
    ("[[flows]]\nsource = '1 Mbit/s'", "wrong-type", "flows.0.source", 'kind = "rate"'),
    # Sources.
    ("[[flows]]\nsource = {rate='1mbit'}", "missing-field", "flows.0.source.kind", "on-off"),
    ("[[flows]]\nsource = {kind='onoff', rate='1mbit'}", "unknown-name", "flows.0.source.kind", '"on-off"'),
    ("[[flows]]\nsource = {kind='rate', rate='1mbit', on='1 s'}", "unknown-field", "flows.0.source.on", "fields here"),
    ("[[flows]]\nsource = {kind='on-off', rate='1mbit', on='1 s'}", "missing-field", "flows.0.source.off", "off"),
    (
        "[[flows]]\nsource = {kind='on-off', rate='1mbit', on='1 s', off='0 s'}",
        "out-of-range",
        "flows.0.source.off",
        "choose 1 us … 3600 s",
    ),
    (
        "[[flows]]\nsource = {kind='rate', rate='1gbit', write='1 byte'}",
        "out-of-range",
        "flows.0.source.write",
        "larger",
    ),
    (
        "[[flows]]\nsource = {kind='rate', rate='1mbit', write='2 GB'}",
        "out-of-range",
        "flows.0.source.write",
        "1 byte … 1 GB",
    ),
    ("[[flows]]\nsource = {kind='video', rates=[]}", "out-of-range", "flows.0.source.rates", "give at least 1"),
    # Missing fields.
    ("flows = []", "missing-field", "flows", "remove flows"),
    ("topology = 'custom'", "missing-field", "hosts", "[hosts.a]"),
    ("[[flows]]\nreplace = {}", "missing-field", "flows.0.replace.lifetime", "lifetime"),
    # Not TOML.
    ("rtt = 20 ms", "not-toml", None, "quoted"),
    ("[path\n", "not-toml", None, "quoted"),
    ("seed = 1\nseed = 2", "not-toml", None, "keep one of them"),
    ("[path]\nrate = '1 Mbit/s'\n[path]", "not-toml", None, "keep one of them"),
    ("[flows]\n[flows]", "not-toml", None, "[[flows]]"),
    ("path = {rtt = '1 s', rtt = '2 s'}", "not-toml", None, "keep one of them"),
    ("seed = 1\n[seed]", "not-toml", None, "keep one of them"),
    ("a = " + "[" * 100_000, "not-toml", None, "tables"),
    ("seed = " + "9" * 5000, "not-toml", None, "in quotes"),
]


@pytest.mark.parametrize(("text", "code", "field", "in_fix"), BAD, ids=[f"{code}-{field}" for _, code, field, _ in BAD])
def test_bad_input_is_one_error_with_file_field_and_fix(
    tmp_path: Path, text: str, code: str, field: str | None, in_fix: str
) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(text)
    with pytest.raises(SawtoothError) as caught:
        Scenario.load(path)
    error = caught.value
    assert (error.code, error.field, error.file) == (code, field, str(path))
    assert in_fix in (error.fix or "")
    assert error.exit_status == 2


def test_a_file_that_is_not_there_is_reported_with_the_nearest_name(tmp_path: Path) -> None:
    (tmp_path / "scenario.toml").write_text("")
    with expected_error(code="file-not-found") as caught:
        Scenario.load(tmp_path / "scenari.toml")
    assert "scenario.toml" in (caught.value.fix or "")


def test_a_directory_and_a_file_of_other_bytes_are_refused(tmp_path: Path) -> None:
    with expected_error(code="file-unreadable"):
        Scenario.load(tmp_path)
    picture = tmp_path / "picture.toml"
    picture.write_bytes(b"\x89PNG\xff")
    with expected_error(code="not-toml"):
        Scenario.load(picture)
    with expected_error(code="file-unreadable"):
        Scenario.load("a\0b")


def test_an_endless_file_is_refused() -> None:
    with expected_error(code="file-unreadable"):
        Scenario.load("/dev/zero")


@pytest.mark.parametrize("tables", [None, [], "x", 3, {1: 2}])
def test_what_is_no_table_is_refused(tables: Any) -> None:
    with expected_error(code="wrong-type"):
        Scenario.from_dict(tables)


WORDS = [
    "every",
    "gilbert_elliott",
    "p",
    "r",
    "from",
    "via",
    "lifetime",
    "hz",
    "mss",
    "ack_loss",
    "a",
    "b",
    "s1",
    "h1",
    "sender",
]
SCHEMA = Scenario.json_schema()
TABLES_OF = [SCHEMA, *(SCHEMA["$defs"][name] for name in ("Link", "Flow", "Dumbbell"))]
FIELDS = st.sampled_from([*(field for table in TABLES_OF for field in table["properties"]), *WORDS])
SCALARS = st.sampled_from(
    [
        "chain",
        "custom",
        "dumbbell",
        "50 Mbit/s",
        "20 ms",
        "1%",
        "1 bdp",
        "0 packets",
        "cubic",
        "a",
        "b",
        "s*",
        "-1 s",
        "",
    ]
) | st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=10),
    st.just(datetime.date(2020, 1, 1)),
    st.just(datetime.time(1, 2)),
)
TABLES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(FIELDS | st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=500, deadline=None)
@given(st.dictionaries(FIELDS, TABLES, max_size=5))
@example({"hosts": {"a": {}}, "links": [{"from": "a", "to": "a"}], "topology": "custom"})
@example({"name": "\ud800"})
@example({"seed": 10**5000})
@pytest.mark.usefixtures("patience")
def test_any_tables_make_a_scenario_or_one_clear_error(tables: dict[str, Any]) -> None:
    try:
        scenario = Scenario.from_dict(tables, source="fuzz.toml")
    except SawtoothError as error:
        assert error.exit_status == 2
        assert error.file == "fuzz.toml"
        assert error.fix
    else:
        assert Scenario.from_dict(scenario.to_dict()) == scenario


LINES = st.lists(
    st.sampled_from([line for text, *_ in BAD for line in text.split("\n") if len(line) < 200])
    | st.sampled_from(
        ["topology = 'custom'", "[hosts.a]", "[hosts.b]", "[[links]]", "from = 'a'", "to = 'b'", "[[routes]]"]
    )
    | st.text(max_size=20),
    max_size=12,
)


@settings(max_examples=300, deadline=None)
@given(lines=LINES)
@pytest.mark.usefixtures("patience")
def test_any_file_is_a_scenario_or_one_clear_error(tmp_path_factory: pytest.TempPathFactory, lines: list[str]) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzz.toml"
    path.write_bytes("\n".join(lines).encode("utf-8", "surrogatepass"))
    try:
        Scenario.load(path).compile()
    except SawtoothError as error:
        assert error.file == str(path)
        assert error.fix


@settings(max_examples=200, deadline=None)
@given(data=st.binary(max_size=200))
@pytest.mark.usefixtures("patience")
def test_any_bytes_are_a_scenario_or_one_clear_error(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "bytes.toml"
    path.write_bytes(data)
    try:
        Scenario.load(path)
    except SawtoothError as error:
        assert error.file == str(path)
