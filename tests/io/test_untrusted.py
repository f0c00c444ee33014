"""Foreign text: numbers are finite and checked, files and nesting are bounded, errors come from the reader."""

import contextlib
import json
import math
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from expected_error import expected_error
from sawtooth.capture.csv import read_csv
from sawtooth.capture.identify import identify
from sawtooth.errors import SawtoothError
from sawtooth.io.atomic_io import read_json
from sawtooth.io.untrusted import DEEPEST, LARGEST, Record, decimal, json_value, read_bytes
from sawtooth.link_estimate import read_series
from sawtooth.study.published import load
from sawtooth.whatif import estimate, observe

MEASURED = Path(__file__).parents[1] / "measured"
CORPUS = Path(__file__).parents[2] / "fuzz" / "corpus"
SS = (MEASURED / "ss-cubic.txt").read_text()
NEVER = ["1e308", "1e999", "-1e308", "NaN", "Infinity", "-Infinity", "9" * 400, "1" + "0" * 22]


def iperf3(path: Path, change: Any) -> Path:
    """The measured report with a change, as a file; numbers may be any text."""
    report = json.loads((MEASURED / "iperf3.json").read_text())
    change(report)
    path.write_text(json.dumps(report).replace('"<', "").replace('>"', ""))
    return path


def setting(*where: str | int, to: str) -> Any:
    def change(report: Any) -> None:
        for step in where[:-1]:
            report = report[step]
        report[where[-1]] = f"<{to}>"

    return change


PLACES = [
    ("end", "sum_sent", "retransmits"),
    ("end", "sum_received", "bits_per_second"),
    ("end", "sum_received", "bytes"),
    ("end", "sum_received", "seconds"),
    ("intervals", 3, "sum", "bits_per_second"),
    ("intervals", 3, "sum", "seconds"),
    ("intervals", 3, "streams", 0, "rtt"),
    ("start", "test_start", "num_streams"),
    ("start", "tcp_mss_default"),
]


@pytest.mark.parametrize("number", [*NEVER, "-3", "-1e-3"])
@pytest.mark.parametrize("place", PLACES, ids=lambda place: ".".join(map(str, place)))
def test_a_number_that_nothing_has_is_no_report_of_iperf3(tmp_path: Path, place: tuple[Any, ...], number: str) -> None:
    with expected_error(code="not-a-measurement"):
        estimate(observe(iperf3(tmp_path / "x.json", setting(*place, to=number))))


@pytest.mark.parametrize("number", ["1e20", "1e-300", "0", "null", '""', "[]", "{}", "true", '"x"'])
@pytest.mark.parametrize("place", PLACES, ids=lambda place: ".".join(map(str, place)))
def test_an_odd_number_of_iperf3s_is_read_or_refused(tmp_path: Path, place: tuple[Any, ...], number: str) -> None:
    try:
        path = estimate(observe(iperf3(tmp_path / "x.json", setting(*place, to=number))))
    except SawtoothError as error:
        assert error.code in ("not-a-measurement", "too-short", "application-limited")
    else:
        assert all(math.isfinite(one.value) for one in path.quantities.values())


@pytest.mark.parametrize("name", ["rtt", "minrtt", "bytes_acked", "busy", "mss", "segs_out", "retrans", "cwnd"])
def test_a_number_of_400_digits_is_no_output_of_ss(tmp_path: Path, name: str) -> None:
    path = tmp_path / "ss.txt"
    path.write_text(SS.replace(f" {name}:", f" {name}:{'9' * 400}"))
    assert "9" * 400 in path.read_text() or name not in SS
    try:
        estimate(observe(path))
    except SawtoothError as error:
        assert error.code == "not-a-measurement"
        assert len(str(error)) < 500


def test_names_of_iperf3_and_ss_are_one_line_that_a_terminal_only_shows(tmp_path: Path) -> None:
    def change(report: Any) -> None:
        report["end"]["sender_tcp_congestion"] = "cubic\nself-test: agrees\x1b[31m\u202e"

    assert observe(iperf3(tmp_path / "x.json", change)).cc == "cubic\\u000aself-test: agrees\\u001b[31m\\u202e"
    path = tmp_path / "ss.txt"
    path.write_text(SS.replace("10.", "10\x1b[31m."))
    assert "\x1b" not in observe(path).what


@pytest.mark.parametrize("number", NEVER)
@pytest.mark.parametrize(
    "text",
    ["sent_s,rtt_ms\n0,{0}\n1,2\n", "sent_s,rtt_ms\n{0},2\n1,2\n", '{{"type":"ping","ttl":{0}}}', '[{{"msm_id":{0}}}]'],
)
def test_a_number_that_nothing_has_is_no_series(tmp_path: Path, text: str, number: str) -> None:
    path = tmp_path / "series"
    path.write_text(text.format(number))
    try:
        found = read_series(path)
    except SawtoothError as error:
        assert error.code == "not-a-series"
    else:
        # "nan" in a CSV is a lost probe.
        assert number == "NaN"
        assert math.isnan(found[0].rtt_s[0])


@pytest.mark.parametrize("number", [*NEVER, "-1"])
@pytest.mark.parametrize("column", range(6))
def test_a_row_with_a_number_that_no_packet_has_is_none_of_tsharks(tmp_path: Path, column: int, number: str) -> None:
    rows = [["0.1", "40000", "80", "1", "1", "1448"], ["0.2", "40000", "80", "1449", "1", "1448"]]
    rows[0][column] = number
    path = tmp_path / "x.csv"
    head = "frame.time_relative,tcp.srcport,tcp.dstport,tcp.seq,tcp.ack,tcp.len"
    path.write_text("\n".join([head, *(",".join(row) for row in rows)]) + "\n")
    # An acknowledgement that is not a number counts as missing, as in the first SYN.
    assert len(read_csv(path).seq) == (2 if column == 4 else 1)


def test_rows_of_tsharks_are_put_in_order_of_time(tmp_path: Path) -> None:
    head, *rows = (CORPUS / "tshark" / "transfer.csv").read_text().splitlines()
    whole, merged = tmp_path / "whole.csv", tmp_path / "merged.csv"
    whole.write_text("\n".join([head, *rows]))
    merged.write_text("\n".join([head, *rows[:1], *rows[400:], *rows[1:400]]))
    assert (read_csv(merged).t_s == read_csv(whole).t_s).all()
    assert identify(read_csv(merged)).text() == identify(read_csv(whole)).text()


@pytest.mark.parametrize("number", ["1e308", "inf", "-inf", "9" * 400])
def test_a_published_figure_that_nothing_has_is_refused(tmp_path: Path, number: str) -> None:
    (tmp_path / "x.csv").write_text(f"loss,mean_mbps\n1,2\n2,{number}\n")
    with expected_error(code="bad-published"):
        load("x.csv", beside=tmp_path)


def test_published_figures_with_more_values_than_names_are_refused(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("loss,mean_mbps\n1,2,3\n2,3,4\n")
    with expected_error(code="bad-published"):
        load("x.csv", beside=tmp_path)


def test_published_figures_with_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text(f"mean_mbps,{'a' * 300}b{'a' * 300},{'a' * 300}c{'a' * 300}\n1,2,3\n")
    with expected_error(code="bad-published"):
        load("x.csv", beside=tmp_path)


@pytest.mark.parametrize("number", NEVER)
def test_a_number_that_nothing_has_is_no_result(tmp_path: Path, number: str) -> None:
    path = tmp_path / "run.json"
    path.write_text(f'{{"format": 1, "x": {number}}}')
    with expected_error(code="not-a-result"):
        read_json(path)


@given(st.recursive(st.none() | st.booleans() | st.integers(-(2**63), 2**64) | st.text(), lambda one: st.lists(one)))
@pytest.mark.usefixtures("patience")
def test_json_of_measurements_is_read_as_it_is(value: Any) -> None:
    if len(str(value)) < 50:
        assert json_value(json.dumps(value)) == value


@given(st.floats(-LARGEST, LARGEST))
def test_a_finite_number_is_read_as_it_is(number: float) -> None:
    assert decimal(repr(number)) == number
    assert json_value(repr(number)) == number


@pytest.mark.parametrize("text", [*NEVER, "1_000", "0x10", "", "x", "--1", "1e", "٣" * 200])
def test_what_is_no_number_that_something_has_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        decimal(text)


@pytest.mark.parametrize("text", ["[" * 100_000, "[" * 500 + "]" * 500, '{"a":' * 80 + "1" + "}" * 80])
def test_json_that_is_nested_deeper_than_anything_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"nested|JSON|Expecting"):
        json_value(text)


def test_json_as_deep_as_allowed_is_read() -> None:
    assert json_value("[" * DEEPEST + "]" * DEEPEST)


def test_json_of_many_parts_is_refused_before_it_is_read() -> None:
    start = time.process_time()
    with pytest.raises(ValueError, match="more than"):
        json_value("[" + "[]," * 4_000_000 + "[]]")
    assert time.process_time() - start < 2


def test_a_file_is_read_up_to_a_byte_more_than_allowed(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"x" * 100)
    assert read_bytes(path, 100) == b"x" * 100
    assert read_bytes(path, 10) == b"x" * 11


@pytest.mark.parametrize("line", ["9" * 300_000, "64 bytes from " * 30_000, "PING " + "x" * 300_000, "[1" * 100_000])
def test_a_line_longer_than_any_program_prints_takes_no_time(tmp_path: Path, line: str) -> None:
    path = tmp_path / "ping"
    path.write_text("PING x (x) 56(84) bytes of data.\n" + line + "\n64 bytes from x: icmp_seq=1 ttl=1 time=1 ms\n")
    start = time.process_time()
    assert len(read_series(path)[0]) == 1
    path.write_text(line)
    with pytest.raises(SawtoothError):
        read_series(path)
    assert time.process_time() - start < 2


@pytest.mark.parametrize("line", ["a" * 300_000, "a:1(" * 80_000, "rtt:1 cwnd:1 " + "a" * 300_000, "1:" * 150_000])
def test_a_long_line_of_ss_takes_no_time(tmp_path: Path, line: str) -> None:
    path = tmp_path / "ss.txt"
    start = time.process_time()
    for text in (
        line,
        "\n".join(line[at : at + 3900] for at in range(0, len(line), 3900)),
        SS.replace(" rtt:", f" {line} rtt:"),
    ):
        path.write_text(text)
        with contextlib.suppress(SawtoothError):
            observe(path)
    assert time.process_time() - start < 3


class Object(Record):
    def wrong(self, message: str) -> Any:
        return SawtoothError("not-a-result", message)


@pytest.mark.parametrize("value", [True, "1", [], {}, 1e22, math.nan, math.inf, -math.inf])
def test_a_field_that_is_no_number_is_named(value: Any) -> None:
    with pytest.raises(SawtoothError, match='"x" is no'):
        Object({"x": value}).number("x")


def test_fields_have_their_kinds_and_defaults() -> None:
    one = Object({"a": None, "b": 2, "c": [{"d": 1}], "e": {"f": "x\ny"}})
    assert (one.number("a", 5), one.number("b"), one.count("b"), one.text("a")) == (5, 2, 2, "")
    assert [inner.number("d") for inner in one.records("c")] == [1]
    inner = one.record("e")
    assert inner is not None
    assert inner.text("f") == "x\\u000ay"
    for wrong in (lambda: one.count("e"), lambda: one.records("b"), lambda: one.record("b"), lambda: one.text("c")):
        with pytest.raises(SawtoothError):
            wrong()
    with pytest.raises(SawtoothError, match="below 0"):
        Object({"x": -1}).count("x")
    with pytest.raises(SawtoothError, match="no whole number"):
        Object({"x": 1.5}).count("x")
