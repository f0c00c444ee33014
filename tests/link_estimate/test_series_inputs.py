"""Series from other programs' files: ping, scamper, RIPE Atlas, CSV, saved runs; and truncated or hostile files."""

import io
import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from expected_error import expected_error
from sawtooth.errors import SawtoothError
from sawtooth.link_estimate import RttSeries, read_series
from sawtooth.link_estimate.series import COLUMNS
from sawtooth.run import Run
from sawtooth.scenario import Scenario

IPUTILS = """PING 192.0.2.7 (192.0.2.7) 56(84) bytes of data.
64 bytes from 192.0.2.7: icmp_seq=1 ttl=57 time=12.1 ms
64 bytes from host.example (192.0.2.7): icmp_seq=2 ttl=57 time=0.950 ms
64 bytes from 192.0.2.7: icmp_seq=2 ttl=57 time=1.20 ms (DUP!)
64 bytes from 192.0.2.7: icmp_seq=5 ttl=57 time=14 ms
64 bytes from 192.0.2.7: icmp_seq=4 ttl=57 time=210 ms

--- 192.0.2.7 ping statistics ---
6 packets transmitted, 4 received, +1 duplicates, 33.3333% packet loss, time 500ms
rtt min/avg/max/mdev = 0.950/59.262/210.000/87.1 ms
"""
STAMPED = """PING ::1 (::1) 56 data bytes
[1700000000.020000] 64 bytes from ::1: icmp_seq=1 ttl=64 time=20.0 ms
[1700000000.130000] no answer yet for icmp_seq=2
[1700000000.230000] 64 bytes from ::1: icmp_seq=3 ttl=64 time=30.0 ms
[1700000000.325000] 64 bytes from ::1: icmp_seq=4 ttl=64 time=25.0 ms
[1700000000.525000] From fe80::1%eth0 icmp_seq=5 Destination unreachable: Address unreachable
"""
BUSYBOX = """PING 192.0.2.7 (192.0.2.7): 56 data bytes
64 bytes from 192.0.2.7: seq=1 ttl=57 time=12.345 ms
64 bytes from 192.0.2.7: seq=2 ttl=57 time=11.001 ms

--- 192.0.2.7 ping statistics ---
4 packets transmitted, 2 packets received, 50% packet loss
round-trip min/avg/max = 11.001/11.673/12.345 ms
"""
MACOS = """PING host.example (192.0.2.7): 56 data bytes
64 bytes from 192.0.2.7: icmp_seq=0 ttl=57 time=12.345 ms
Request timeout for icmp_seq 1
92 bytes from 192.0.2.1: Time to live exceeded
Vr HL TOS  Len   ID Flg  off TTL Pro  cks      Src      Dst
 4  5  00 5400 1a2b   0 0000  01  01 0000 192.0.2.9  192.0.2.7

64 bytes from 192.0.2.7: icmp_seq=2 ttl=57 time=13.000 ms

--- host.example ping statistics ---
3 packets transmitted, 2 packets received, 33.3% packet loss
round-trip min/avg/max/stddev = 12.345/12.672/13.000/0.328 ms
"""
MACOS6 = """PING6(56=40+8+8 bytes) 2001:db8::1 --> 2001:db8::2
16 bytes from 2001:db8::2, icmp_seq=0 hlim=64 time=0.345 ms
16 bytes from 2001:db8::2, icmp_seq=1 hlim=64 time=0.401 ms

--- 2001:db8::2 ping6 statistics ---
2 packets transmitted, 2 packets received, 0.0% packet loss
"""


def scamper_ping(**other: Any) -> dict[str, Any]:
    def at(ms: float) -> dict[str, int]:
        return {"sec": 1_700_000_000, "usec": round(ms * 1000)}

    answer = {"from": "192.0.2.1", "reply_size": 56, "reply_ttl": 254, "reply_proto": "icmp", "icmp_type": 11}
    return {
        **{"type": "ping", "version": "0.4", "method": "icmp-echo", "src": "198.51.100.1", "dst": "192.0.2.7"},
        **{"start": at(0), "ping_sent": 4, "probe_size": 84, "ttl": 3, "wait": 0, "wait_us": 100_000, "timeout": 1},
        "responses": [
            {**answer, "seq": 0, "tx": at(1), "rx": at(13.5), "rtt": 12.5, "icmp_code": 0},
            {**answer, "seq": 2, "tx": at(201), "rx": at(214), "rtt": 13.0, "icmp_code": 0},
            {**answer, "seq": 2, "tx": at(201), "rx": at(216), "rtt": 15.0, "icmp_code": 0},
        ],
        "no_responses": [{"seq": 1, "tx": at(101)}, {"seq": 3, "tx": at(301)}],
        "statistics": {"replies": 2, "loss": 0.5},
        **other,
    }


def atlas_ping(**other: Any) -> dict[str, Any]:
    return {
        **{"fw": 5080, "lts": 12, "dst_name": "192.0.2.7", "af": 4, "dst_addr": "192.0.2.7", "proto": "ICMP"},
        **{
            "type": "ping",
            "msm_id": 1001,
            "prb_id": 6001,
            "timestamp": 1_700_000_000,
            "sent": 3,
            "rcvd": 2,
            "size": 48,
        },
        "result": [{"rtt": 31.5}, {"x": "*"}, {"rtt": 32.25}, {"rtt": 33.0, "dup": 1}],
        **other,
    }


def read(tmp_path: Path, content: str | bytes, **given: Any) -> list[RttSeries]:
    path = tmp_path / "file"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_series(path, **given)


def codes(one: RttSeries) -> set[str]:
    return {remark.code for remark in one.remarks}


def refused(tmp_path: Path, content: str | bytes) -> SawtoothError:
    with expected_error(file=str(tmp_path / "file")) as caught:
        read(tmp_path, content)
    assert caught.value.fix
    return caught.value


def test_ping_of_iputils_is_read_with_losses_duplicates_and_reordering(tmp_path: Path) -> None:
    (one,) = read(tmp_path, IPUTILS)
    np.testing.assert_allclose(one.rtt_s * 1e3, [12.1, 0.95, math.nan, 210, 14, math.nan])
    assert one.duplicates.tolist() == [0, 1, 0, 0, 0, 0]
    assert (one.target, one.clock, one.pace_s) == ("192.0.2.7", "counted", 0.1)
    assert codes(one) == {"counted-times"}


def test_ping_with_times_says_when_each_probe_was_sent(tmp_path: Path) -> None:
    (one,) = read(tmp_path, STAMPED)
    np.testing.assert_allclose(one.sent_s - 1.7e9, [0, 0.1, 0.2, 0.3, 0.4], atol=1e-6)
    np.testing.assert_allclose(one.rtt_s, [0.02, math.nan, 0.03, 0.025, math.nan])
    assert one.pace_s == pytest.approx(0.1)
    assert one.clock == "unix"
    assert one.address.tolist() == ["::1", "", "::1", "::1", "fe80::1%eth0"]
    assert codes(one) == {"cut", "errors"}


def test_ping_of_busybox_counts_from_zero(tmp_path: Path) -> None:
    (one,) = read(tmp_path, BUSYBOX, pace_s=0.2)
    np.testing.assert_allclose(one.rtt_s * 1e3, [math.nan, 12.345, 11.001, math.nan])
    assert one.pace_s == 0.2
    assert one.remarks == ()


def test_ping_of_macos_is_read(tmp_path: Path) -> None:
    (one,) = read(tmp_path, MACOS)
    np.testing.assert_allclose(one.rtt_s * 1e3, [12.345, math.nan, 13.0])
    assert codes(one) == {"counted-times", "errors"}
    (six,) = read(tmp_path, MACOS6)
    np.testing.assert_allclose(six.rtt_s * 1e3, [0.345, 0.401])


def test_several_pings_in_one_file_are_several_series(tmp_path: Path) -> None:
    both = read(tmp_path, IPUTILS + BUSYBOX)
    assert [len(one) for one in both] == [6, 4]
    assert len({one.label for one in both}) == 2


def test_sequence_numbers_of_ping_continue_where_16_bits_end(tmp_path: Path) -> None:
    lines = [f"64 bytes from 192.0.2.7: icmp_seq={i % 65536} ttl=57 time={10 + i % 7} ms" for i in range(65530, 65560)]
    (one,) = read(tmp_path, "\n".join(lines))
    assert len(one) == 30
    assert one.answered.all()


def test_lines_of_ping_that_are_not_understood_are_reported(tmp_path: Path) -> None:
    (one,) = read(tmp_path, IPUTILS.replace("icmp_seq=5 ttl=57 time=14 ms", "icmp_seq=5 tt"))
    told = next(remark for remark in one.remarks if remark.code == "unknown-lines")
    assert told.text == "1 lines are not understood: 5"
    assert not one.answered[4]


def test_ping_in_another_unit_names_its_line(tmp_path: Path) -> None:
    assert 'line 2: an RTT in "furlongs"' in refused(tmp_path, IPUTILS.replace("12.1 ms", "12.1 furlongs")).message


def test_a_ping_that_says_nothing_is_refused(tmp_path: Path) -> None:
    assert refused(tmp_path, "PING 192.0.2.7 (192.0.2.7) 56(84) bytes of data.\n").code == "not-a-series"


def test_sequence_numbers_that_nobody_could_have_sent_are_refused(tmp_path: Path) -> None:
    line = "64 bytes from 192.0.2.7: icmp_seq={} ttl=57 time=10 ms\n"
    assert "sequence numbers" in refused(tmp_path, line.format(1) + line.format(999_999_999)).message


@pytest.mark.parametrize("text", [IPUTILS.replace("\n", "\r\n"), "\ufeff" + IPUTILS, IPUTILS.encode() + b"\xff\xfe"])
def test_line_ends_marks_and_bad_bytes_do_not_matter(tmp_path: Path, text: str | bytes) -> None:
    assert len(read(tmp_path, text)[0]) == 6


def test_scampers_pings_are_read_with_losses_and_duplicates(tmp_path: Path) -> None:
    cycle = json.dumps({"type": "cycle-start", "list_name": "default"})
    (one,) = read(tmp_path, f"{cycle}\n{json.dumps(scamper_ping())}\n")
    np.testing.assert_allclose(one.rtt_s * 1e3, [12.5, math.nan, 13, math.nan])
    np.testing.assert_allclose(one.sent_s - 1.7e9, [0.001, 0.101, 0.201, 0.301], atol=1e-6)
    assert (one.pace_s, one.hop, one.clock, one.target) == (0.1, 3, "unix", "192.0.2.7")
    assert one.duplicates.tolist() == [0, 0, 1, 0]
    assert one.reply.tolist() == ["time-exceeded", "", "time-exceeded", ""]


def test_older_scamper_says_no_times_of_lost_probes(tmp_path: Path) -> None:
    ping = scamper_ping()
    del ping["no_responses"]
    (one,) = read(tmp_path, json.dumps(ping))
    np.testing.assert_allclose(one.sent_s - 1.7e9, [0.001, 0.1, 0.201, 0.3], atol=1e-6)


def test_scampers_pings_of_one_hop_continue_and_those_of_another_are_another(tmp_path: Path) -> None:
    later = scamper_ping(start={"sec": 1_700_000_100, "usec": 0}, responses=[], no_responses=[])
    lines = [json.dumps(one) for one in (scamper_ping(), scamper_ping(ttl=4), later)]
    near, far = read(tmp_path, "\n".join(lines))
    assert (len(near), len(far)) == (8, 4)
    assert (near.label, far.label) == ("icmp-echo 192.0.2.7 ttl 3", "icmp-echo 192.0.2.7 ttl 4")


def test_scampers_rtt_that_contradicts_its_times_is_refused(tmp_path: Path) -> None:
    ping = scamper_ping()
    ping["responses"][0]["rtt"] = 0.0125
    assert '"rtt" is 0.0125 ms, but "rx" is 12.5 ms after "tx"' in refused(tmp_path, json.dumps(ping)).message


def test_an_unreachable_is_no_rtt(tmp_path: Path) -> None:
    ping = scamper_ping()
    ping["responses"] = [{**ping["responses"][0], "icmp_type": 3, "icmp_code": 1}]
    assert not read(tmp_path, json.dumps(ping))[0].answered.any()


@pytest.mark.parametrize("form", ["array", "lines", "pretty"])
def test_atlas_results_are_read_as_array_or_lines(tmp_path: Path, form: str) -> None:
    results = [atlas_ping(timestamp=1_700_000_240), atlas_ping(), atlas_ping(prb_id=6002)]
    text = (
        "\n".join(map(json.dumps, results))
        if form == "lines"
        else json.dumps(results, indent=2 * (form == "pretty") or None)
    )
    first, second = read(tmp_path, text)
    np.testing.assert_allclose(first.rtt_s * 1e3, [31.5, math.nan, 32.25] * 2)
    np.testing.assert_allclose(first.sent_s - 1.7e9, [0, 1, 2, 240, 241, 242])
    assert first.duplicates.tolist() == [0, 0, 1] * 2
    assert (first.label, second.label) == ("measurement 1001, probe 6001", "measurement 1001, probe 6002")
    assert codes(first) == {"assumed-times"}


def test_an_atlas_probe_that_is_unsure_of_its_clock_is_remarked_on(tmp_path: Path) -> None:
    assert "unsure-clock" in codes(read(tmp_path, json.dumps([atlas_ping(lts=-1)]))[0])


def test_other_results_of_atlas_are_left_out_with_a_remark(tmp_path: Path) -> None:
    trace = {"type": "traceroute", "msm_id": 5, "prb_id": 1, "result": []}
    assert codes(read(tmp_path, json.dumps([trace, atlas_ping()]))[0]) == {"other-results", "assumed-times"}
    assert refused(tmp_path, json.dumps([trace])).code == "not-a-series"


def test_an_array_that_was_cut_names_the_line_of_the_cut(tmp_path: Path) -> None:
    text = json.dumps([atlas_ping()] * 3, indent=1)
    lines = text[: len(text) * 2 // 3].split("\n")
    assert f"line {len(lines)}: not whole JSON" in refused(tmp_path, "\n".join(lines)).message


def test_lines_of_json_that_were_cut_name_the_last(tmp_path: Path) -> None:
    line = json.dumps(scamper_ping())
    assert "line 3: not whole JSON" in refused(tmp_path, f"{line}\n{line}\n{line[:200]}").message


@pytest.mark.parametrize(
    ("header", "rows", "rtt_ms"),
    [
        ("sent_s,rtt_ms", ["1700000000.0,20", "1700000000.1,", "1700000000.2,21"], [20, math.nan, 21]),
        ("time (ms);RTT [us]", ["0;20000", "100;*", "200;21000"], [20, math.nan, 21]),
        ("rtt_s\ttimestamp_ns", ["0.02\t0", "nan\t100000000", "0.021\t200000000"], [20, math.nan, 21]),
        ('"sent s","latency ms"', ['"0","20"', '"0.1","lost"', '"0.2","21"'], [20, math.nan, 21]),
    ],
)
def test_csv_is_read_by_the_units_in_its_header(
    tmp_path: Path, header: str, rows: list[str], rtt_ms: list[float]
) -> None:
    (one,) = read(tmp_path, "\n".join(["# a comment", header, *rows, ""]))
    np.testing.assert_allclose(one.rtt_s * 1e3, rtt_ms)
    assert one.pace_s == pytest.approx(0.1)
    assert one.clock == ("unix" if one.sent_s[0] > 1 else "start")


def test_csv_without_units_is_refused_with_the_fix(tmp_path: Path) -> None:
    error = refused(tmp_path, "sent_s,rtt\n0,20\n")
    assert (error.code, error.field) == ("missing-unit", "rtt")
    assert error.fix == 'rename it with its unit: "rtt_ms" or "rtt_s"'


def test_csv_without_times_needs_the_pace(tmp_path: Path) -> None:
    assert refused(tmp_path, "rtt_ms\n20\n21\n").code == "missing-field"
    (one,) = read(tmp_path, "rtt_ms\n20\n21\n", pace_s=0.1)
    assert (one.clock, one.sent_s.tolist()) == ("counted", [0, 0.1])


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("sent_s,rtt_ms\n0,20\n1,x\n", "line 3: 'x' is no number"),
        ("sent_s,rtt_ms\n0,20\n1\n", "line 3: 1 columns, the header has 2"),
        ("sent_s,rtt_ms\n,20\n", "line 2: '' is no number"),
        ("sent_s,rtt_ms\n0,inf\n", "line 2: 'inf' is no number"),
        ("sent_s,rtt_ms\n0,1e999\n", "line 2: '1e999' is no number"),
        ("sent_s,rtt_ms,rtt_s\n0,1,1\n", "line 1: two columns are rtt_s"),
        ("sent_s,rtt_ms\n", "a header, and no rows"),
        ("one,two\n1,2\n", "line 1: no column of RTTs"),
        ("# only\n", "comments only"),
        ("", "it is empty"),
        (b"\x7fELF\0\0", "it is not text"),
        (b"\xd4\xc3\xb2\xa1\x02\x00", "it is not text"),
        ("[]", "without an object"),
        ("[1]", "line 1: not an object"),
        ("[" * 100_000, "line 1"),
        ('{"type": "ping"}', '"ping_sent" is no number'),
        (json.dumps(scamper_ping(ping_sent=10**12)), "ping_sent"),
        (json.dumps(scamper_ping(ping_sent="many")), '"ping_sent" is no number'),
        (json.dumps(scamper_ping(responses=[1])), "no list of objects"),
        (json.dumps(scamper_ping(responses=[{"seq": 1e20, "rtt": 1}])), '"seq"'),
        (json.dumps([atlas_ping(timestamp=None)]), '"timestamp" is no number'),
        (json.dumps([atlas_ping(result=[{"rtt": "fast"}])]), '"rtt" is no number'),
        ('[{"msm_id": 1, "timestamp": 1e999, "result": [{"rtt": 1}]}]', "no number up to"),
    ],
)
def test_what_is_no_series_is_refused_and_says_where(tmp_path: Path, text: str | bytes, told: str) -> None:
    assert told in refused(tmp_path, text).message


def test_a_file_of_the_prober_that_was_cut_is_refused(tmp_path: Path) -> None:
    values = [
        "near",
        "192.0.2.1",
        "1",
        "unix",
        "0.1",
        "0",
        "1700000000.0",
        "0.02",
        "0.0",
        "192.0.2.1",
        "time-exceeded",
        "0",
    ]
    text = f"{','.join(COLUMNS)}\n{','.join(values)}\n"
    assert len(read(tmp_path, text)[0]) == 1
    assert "line 2: the file is cut" in refused(tmp_path, text[:-1]).message
    part = tmp_path / ".near.csv.17.part"
    part.write_text(text)
    with pytest.raises(SawtoothError, match="not finished"):
        read_series(part)


def test_files_that_cannot_be_read_are_reported(tmp_path: Path) -> None:
    for path, code in (
        (tmp_path / "absent", "file-not-found"),
        ("/dev/zero", "file-unreadable"),
        ("a\0b", "file-unreadable"),
    ):
        with expected_error(code=code):
            read_series(path)


def test_standard_input_is_a_file_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(IPUTILS.encode())))
    assert len(read_series("-")[0]) == 6


def test_a_saved_run_gives_a_series_for_each_of_its_probes(tmp_path: Path) -> None:
    probes = [{"name": "a", "interval": "100 ms"}, {"name": "b", "interval": "50 ms"}]
    scenario = Scenario(topology="path", path={"rate": "1 Mbit/s", "rtt": "20 ms"}, duration="1 s", probes=probes)
    tables = {
        "intervals": pd.DataFrame({"t_s": [1.0], "flow": [0], "goodput_bps": [0.0]}),
        "probes": pd.DataFrame(
            {"t_s": [0.0, 0.0, 0.05, 0.1], "probe": [0, 1, 1, 0], "rtt_s": [0.02, 0.021, np.nan, 0.03]}
        ),
    }
    path = Run(scenario, "sim", tables).save(tmp_path / "run")
    a, b = read_series(path)
    assert (a.label, a.pace_s, a.clock, a.rtt_s.tolist()) == ("a", 0.1, "start", [0.02, 0.03])
    assert (b.label, b.pace_s, b.sent_s.tolist()) == ("b", 0.05, [0.0, 0.05])
    for point in ("points/0", "points/1"):
        Run(scenario, "sim", tables).save(tmp_path / "study" / point)
    assert [one.label for one in read_series(tmp_path / "study")] == ["a", "b", "a", "b"]
    bare = Run(scenario, "sim", {"intervals": tables["intervals"]}).save(tmp_path / "bare")
    with pytest.raises(SawtoothError, match="no probes"):
        read_series(bare)
    with expected_error(code="not-a-result"):
        read_series(tmp_path)


SAMPLES = [
    *(text.encode() for text in (IPUTILS, STAMPED, BUSYBOX, MACOS, MACOS6)),
    json.dumps(scamper_ping()).encode(),
    json.dumps([atlas_ping()]).encode(),
    b"sent_s,rtt_ms,series\n0,20,a\n0.1,,a\n0.2,21,b\n",
]
JUNK = st.sampled_from(
    [b"", b"0", b"-1", b"1e999", b"null", b"\n", b",", b'"', b"{", b"]", b"NaN", b"\xff", b"65535", b"\0"]
)


@pytest.mark.usefixtures("patience")
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    sample=st.sampled_from(SAMPLES),
    edits=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 30), JUNK | st.binary(max_size=8)), max_size=6),
    end=st.floats(0.2, 1),
)
def test_damaged_files_give_series_or_the_packages_own_errors(
    tmp_path: Path, sample: bytes, edits: list[tuple[float, int, bytes]], end: float
) -> None:
    for place, length, put in edits:
        at = int(place * len(sample))
        sample = sample[:at] + put + sample[at + length :]
    _whole_or_refused(tmp_path, sample[: int(end * len(sample))])


@pytest.mark.usefixtures("patience")
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=300) | st.text(max_size=300).map(lambda text: text.encode(errors="replace")))
def test_any_bytes_give_series_or_the_packages_own_errors(tmp_path: Path, content: bytes) -> None:
    _whole_or_refused(tmp_path, content)


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), changed=st.lists(st.integers(0, 10**6), max_size=3))
@pytest.mark.usefixtures("patience")
def test_records_with_fields_of_any_kind_give_series_or_the_packages_own_errors(
    tmp_path: Path, data: st.DataObject, changed: list[int]
) -> None:
    record = data.draw(st.sampled_from([scamper_ping, atlas_ping]))()
    for number in changed:
        inside = [record, *(one for value in record.values() if isinstance(value, list) for one in value)]
        holders = [one for one in inside if isinstance(one, dict) and one]
        holder = holders[number % len(holders)]
        holder[sorted(holder)[number // 7 % len(holder)]] = data.draw(_VALUES)
    _whole_or_refused(tmp_path, json.dumps([record]).encode())


def _whole_or_refused(tmp_path: Path, content: bytes) -> None:
    try:
        found = read(tmp_path, content)
    except SawtoothError as error:
        assert error.fix
        return
    assert found
    assert all(len(one) > 0 for one in found)
