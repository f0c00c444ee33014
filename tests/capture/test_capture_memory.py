"""Memory while reading a capture: it grows with the connections, not with the file."""

import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

MSS = 1000
SECONDS = 40
READ = """
import sys
from sawtooth import _core
_core.read_capture(sys.argv[1])
print(*[line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")])
"""
"""Not ru_maxrss: a child process starts with its parent's value."""
RECORD = np.dtype(
    [(name, "<u4") for name in ("s", "us", "kept", "wire")]
    + [("version", "u1"), ("tos", "u1"), ("length", ">u2"), ("id", ">u2"), ("flags", ">u2"), ("ttl", "u1")]
    + [("protocol", "u1"), ("sum", ">u2"), ("source", ">u4"), ("target", ">u4"), ("sport", ">u2"), ("dport", ">u2")]
    + [("seq", ">u4"), ("ack", ">u4"), ("offset", "u1"), ("bits", "u1"), ("window", ">u2"), ("rest", ">u4")]
)


def capture(path: Path, connections: int, packets: int) -> Path:
    """This many packets per connection, in turn: segments and their acknowledgements, spread evenly over 40 s. Every
    hundredth segment is retransmitted.
    """
    number, which = np.divmod(np.arange(connections * packets), connections)
    ours = number % 2 == 0
    segment = (number // 2) - (number // 2 % 100 == 99)
    rows = np.zeros(len(number), RECORD)
    at_us = np.arange(len(number)) * (SECONDS * 10**6) // len(number)
    rows["s"], rows["us"] = at_us // 10**6, at_us % 10**6
    rows["kept"], rows["version"], rows["ttl"], rows["protocol"] = 40, 0x45, 64, 6
    rows["length"] = rows["wire"] = np.where(ours, 40 + MSS, 40)
    rows["id"], rows["window"], rows["offset"], rows["bits"] = number // 2, 60_000, 5 << 4, 0x10
    ends = np.array([0x0A000001, 0x0A000002], dtype=np.uint32)
    rows["source"], rows["target"] = np.where(ours, *ends), np.where(ours, *ends[::-1])
    ports = 10_000 + which, np.full(len(which), 80)
    rows["sport"], rows["dport"] = np.where(ours, *ports), np.where(ours, *ports[::-1])
    sent = (1 + segment * MSS).astype(np.uint32)
    rows["seq"], rows["ack"] = np.where(ours, sent, 1), np.where(ours, 1, sent + MSS)
    path.write_bytes(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101) + rows.tobytes())
    return path


def peak_mib(path: Path) -> float:
    """Peak memory of a process that does only this, in MiB."""
    done = subprocess.run([sys.executable, "-c", READ, path], capture_output=True, text=True, timeout=120, check=True)
    return int(done.stdout) / 2**10


@pytest.mark.usefixtures("patience")
def test_ten_times_the_packets_of_a_connection_take_no_more_memory(tmp_path: Path) -> None:
    short, long = (peak_mib(capture(tmp_path / f"{packets}.pcap", 1, packets)) for packets in (50_000, 500_000))
    # The file is 24 MiB larger.
    assert long - short < 2, (short, long)


@pytest.mark.usefixtures("patience")
def test_a_thousand_long_connections_take_what_the_reference_says_however_long_they_are(tmp_path: Path) -> None:
    one = peak_mib(capture(tmp_path / "one.pcap", 1, 50_000))
    short, long = (peak_mib(capture(tmp_path / f"{packets}.pcap", 1_000, packets)) for packets in (200, 600))
    assert long - short < 4, (short, long)
    # At most 262,144 intervals of about 60 bytes each, and one row of 55 bytes in the table.
    assert long - one < 100, (one, long)
