"""Captures: the package's and the command line's report of one; the analysis itself is tested in crates/capture."""

import gzip
import json
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import sawtooth
from expected_error import expected_error
from sawtooth.capture.text import describe

ROOT = Path(__file__).parents[2]
SYN, ACK = 2, 16


def _packet(time_s: float, client: bool, seq: int, ack: int, flags: int, payload: int, *, window: int = 4096) -> bytes:
    """A record of a raw IP packet truncated to its headers; addresses 10.0.0.1 and 10.0.0.2."""
    options = b"\x02\x04\x03\xe8\x04\x02\x01\x01" if flags & SYN else b""
    ends = [(b"\x0a\x00\x00\x01", 40000), (b"\x0a\x00\x00\x02", 80)]
    (source, sport), (target, dport) = ends if client else ends[::-1]
    offset = (20 + len(options)) // 4
    tcp = struct.pack(">HHIIBBHHH", sport, dport, seq, ack, offset << 4, flags, window, 0, 0) + options
    length = 20 + len(tcp) + payload
    ip = struct.pack(">BBHHHBBH", 0x45, 0, length, 0, 0x4000, 64, 6, 0) + source + target
    kept = ip + tcp
    seconds, rest = divmod(round(time_s * 1e6), 1_000_000)
    return struct.pack("<IIII", seconds, rest, len(kept), length) + kept


@pytest.fixture
def transfer() -> bytes:
    """A handshake and 20 segments of 1000 bytes, one every 20 ms. One of them is retransmitted after 300 ms."""
    head = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 96, 101)
    packets = [
        _packet(1.0, True, 100, 0, SYN, 0),
        _packet(1.02, False, 500, 101, SYN | ACK, 0),
        _packet(1.02, True, 101, 501, ACK, 0),
    ]
    time_s = 1.02
    for number in range(20):
        packets.append(_packet(time_s, True, 101 + number * 1000, 501, ACK, 1000))
        if number == 10:
            time_s += 0.3
            packets.append(_packet(time_s, True, 101 + number * 1000, 501, ACK, 1000))
        time_s += 0.02
        packets.append(_packet(time_s, False, 501, 1101 + number * 1000, ACK, 0))
    return head + b"".join(packets)


@pytest.fixture
def file(transfer: bytes, tmp_path: Path) -> Path:
    path = tmp_path / "transfer.pcap"
    path.write_bytes(transfer)
    return path


def test_a_direction_that_carries_data_is_a_row(file: Path) -> None:
    rows = sawtooth.read_capture(file).connections
    assert rows[["connection", "client", "server", "from"]].values.tolist() == [
        [0, "10.0.0.1:40000", "10.0.0.2:80", "client"]
    ]
    row = rows.iloc[0]
    assert (row.acknowledged_bytes, row.retransmits, row.mss) == (20_000, 1, 1000)
    assert row.rtt_base_s == pytest.approx(0.02)
    assert row.goodput_bps == pytest.approx(20_000 * 8 / row.duration_s)


def test_neither_a_window_before_the_first_acknowledgement_nor_half_a_round_trip_is_reported(tmp_path: Path) -> None:
    head = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 96, 101)
    # The capture starts midway. The first acknowledgement comes 0.5 s later, the second acknowledges a retransmission.
    packets = [_packet(1.0, True, 101, 501, ACK, 1000), _packet(1.5, False, 501, 1101, ACK, 0)]
    packets += [_packet(1.52 + 0.3 * copy, True, 1101, 501, ACK, 1000) for copy in range(2)]
    packets.append(_packet(1.84, False, 501, 2101, ACK, 0))
    path = tmp_path / "midway.pcap"
    path.write_bytes(head + b"".join(packets))
    series = sawtooth.read_capture(path).series
    told = series[series["window_bytes"].notna()]
    assert len(told) == 4
    assert (told["t_s"] > 0.5).all()
    assert (told["window_bytes"] == 4096).all()
    assert (series["rtt_min_s"].isna() == series["rtt_s"].isna()).all()
    assert series["rtt_s"].notna().sum() == 1


def test_copies_of_several_devices_are_ignored_and_reported(transfer: bytes, tmp_path: Path) -> None:
    records, at = [], 24
    while at < len(transfer):
        kept = int.from_bytes(transfer[at + 8 : at + 12], "little")
        records.append((transfer[at : at + 8], transfer[at + 16 : at + 16 + kept]))
        at += 16 + kept
    file = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 96, 276)
    for time, packet in records:
        for device in (2, 3):
            cooked = struct.pack(">HHIHBB8x", 0x0800, 0, device, 1, 0, 6) + packet
            file += time + struct.pack("<II", len(cooked), len(cooked)) + cooked
    path = tmp_path / "any.pcap"
    path.write_bytes(file)
    (tmp_path / "one.pcap").write_bytes(transfer)
    found, one = sawtooth.read_capture(path), sawtooth.read_capture(tmp_path / "one.pcap")
    assert (found.facts["copies"], one.facts["copies"]) == (44, 0)
    assert found.connections["retransmits"].tolist() == one.connections["retransmits"].tolist() == [1]
    assert found.facts["connections"] == one.facts["connections"]
    assert "; 44 packets captured on several devices; the copies are ignored" in describe(found.facts)
    assert "set aside" not in describe(one.facts)


def test_segments_are_read_of_the_connection_asked_for(file: Path) -> None:
    assert sawtooth.read_capture(file).segments.empty
    segments = sawtooth.read_capture(file, connection=0).segments
    assert len(segments) == 44
    assert segments.seq.tolist()[:4] == [0, 0, 1, 1]
    assert segments.frame.tolist() == list(range(1, 45))


def test_the_series_adds_up_to_what_was_acknowledged(file: Path) -> None:
    series = sawtooth.read_capture(file).series
    length_s = series.t_s.diff().min()
    assert (series.goodput_bps * length_s / 8).sum() == pytest.approx(20_000)


def test_a_packed_capture_reports_the_same(file: Path, transfer: bytes, tmp_path: Path) -> None:
    packed = tmp_path / "transfer.pcap.gz"
    packed.write_bytes(gzip.compress(transfer))
    plain, unpacked = sawtooth.read_capture(file).facts, sawtooth.read_capture(packed).facts
    assert plain["connections"] == unpacked["connections"]


def test_a_capture_that_breaks_is_reported_as_far_as_it_goes(transfer: bytes, tmp_path: Path) -> None:
    path = tmp_path / "broken.pcap"
    path.write_bytes(transfer[:-20])
    capture = sawtooth.read_capture(path)
    assert len(capture.problems) == 1
    assert capture.connections.iloc[0].acknowledged_bytes == 19_000


def test_progress_is_reported_and_may_end_the_reading(file: Path, tmp_path: Path) -> None:
    content = file.read_bytes()
    big = tmp_path / "big.pcap"
    big.write_bytes(content[:24] + content[24:] * 4000)
    told: list[tuple[int, int]] = []
    sawtooth.read_capture(big, progress=lambda done, size: told.append((done, size)))
    assert told
    assert all(0 < done <= size == big.stat().st_size for done, size in told)

    def stop(done: int, size: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sawtooth.read_capture(big, progress=stop)


@pytest.mark.parametrize(
    ("name", "content", "code"),
    [("absent.pcap", None, "file-not-found"), ("text.pcap", b"no capture at all\n" * 9, "not-a-capture")],
)
def test_what_is_no_capture_is_refused(name: str, content: bytes | None, code: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with expected_error(code=code, file=str(tmp_path / name)):
        sawtooth.read_capture(tmp_path / name)


@pytest.mark.parametrize("connection", [1, -1, 2**40])
def test_a_connection_that_is_not_there_is_refused(file: Path, connection: int) -> None:
    with expected_error(code="no-such-connection"):
        sawtooth.read_capture(file, connection)


def test_what_is_saved_can_be_read(file: Path, tmp_path: Path) -> None:
    capture = sawtooth.read_capture(file, connection=0)
    directory = capture.save(tmp_path / "saved")
    assert json.loads((directory / "facts.json").read_text()) == capture.facts
    for name in ("connections", "series", "losses", "segments", "sacks"):
        pd.testing.assert_frame_equal(pd.read_parquet(directory / f"{name}.parquet"), getattr(capture, name))
    with pytest.raises(sawtooth.SawtoothError, match="never overwritten"):
        capture.save(directory)


def test_the_text_names_every_part_with_its_unit(file: Path) -> None:
    text = describe(sawtooth.read_capture(file).facts)
    for part in (
        "20 kB in",
        "kbit/s",
        "at least 20 ms",
        "at the client",
        "1 of 21 segments",
        "1 of 20 segments, 5.000%",
    ):
        assert part in text, text
    assert 'as a scenario loss = "5%"' in text


def test_a_connection_without_data_is_reported_as_such(tmp_path: Path) -> None:
    head = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 96, 101)
    packets = [_packet(time_s, True, 100, 0, SYN, 0) for time_s in (1.0, 2.0)]
    path = tmp_path / "silent.pcap"
    path.write_bytes(head + b"".join(packets))
    facts = sawtooth.read_capture(path).facts
    line = "connection 0: 10.0.0.1:40000 → 10.0.0.2:80, no data, 1 packet sent again, open"
    assert describe(facts).splitlines()[1:] == describe(facts, 0).splitlines()[1:] == ["", line]


def test_every_fact_is_in_the_reference(file: Path) -> None:
    reference = (ROOT / "docs" / "reference" / "capture.md").read_text(encoding="utf-8")
    told = sawtooth.read_capture(file).facts["connections"][0]["directions"][0]
    names = [*told, *told["loss"], *told["limits"], *told["rtt"], *told["rtt"]["sequence"]]
    missing = [name for name in names if f"`{name}`" not in reference and f".{name}`" not in reference]
    # The contents of tables are columns such as "rtt.base_s"; "from" is the row's own name.
    assert set(missing) <= {"from", "rtt", "limits", "loss"}


@pytest.mark.usefixtures("patience")
def test_the_command_prints_text_or_json(file: Path) -> None:
    shown = subprocess.run([*_program(), "capture", str(file)], capture_output=True, text=True, check=True)
    assert "1 TCP connection" in shown.stdout
    printed = subprocess.run([*_program(), "capture", str(file), "--json"], capture_output=True, text=True, check=True)
    assert json.loads(printed.stdout)["packets"] == 44


def _program() -> list[str]:
    return [sys.executable, "-c", "from sawtooth.cli import main; main()"]


@pytest.mark.usefixtures("patience")
@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed: its counts cannot be compared")
def test_tshark_counts_the_same(file: Path) -> None:
    script = [sys.executable, str(ROOT / "experiments" / "against_tshark.py"), str(file)]
    table = subprocess.run(script, capture_output=True, text=True, check=True).stdout
    rows = [line.split(" | ") for line in table.splitlines()[2:]]
    assert len(rows) == 5
    for _, kind, theirs, own, _ in rows:
        assert theirs == own, (kind, table)
