"""tshark as a witness: every TCP segment of a capture with tshark's analysis of it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

AGAIN = ("retransmission", "fast_retransmission", "spurious_retransmission")
FLAGS = (*AGAIN, "out_of_order")
_FIELDS = (
    "frame.number",
    "frame.time_relative",
    "tcp.stream",
    "ip.src",
    "ip.dst",
    "ipv6.src",
    "ipv6.dst",
    "tcp.srcport",
    "tcp.dstport",
    "tcp.seq_raw",
    "tcp.ack_raw",
    "tcp.len",
    "tcp.flags",
    "ip.id",
    "ip.ttl",
    "vlan.id",
    "vxlan.vni",
    "tcp.window_size_value",
    "tcp.options.timestamp.tsval",
    *(f"tcp.analysis.{flag}" for flag in FLAGS),
)
_SYN = 2


@dataclass(frozen=True)
class Seen:
    """A TCP segment as tshark shows it; for a packet in a tunnel, the inner one. Numbers are as on the wire."""

    frame: int
    t_s: float
    stream: int
    source: tuple[str, int]
    target: tuple[str, int]
    seq: int
    ack: int
    length: int | None
    """Payload bytes; None for a fragment."""
    flags: int
    ip_id: int | None
    tsval: int | None
    window: int
    way: str
    """Time to live, VLAN, VXLAN network: what differs between two places that the same packet passes."""
    said: frozenset[str]
    """Of ``FLAGS``."""

    @property
    def syn(self) -> bool:
        return bool(self.flags & _SYN)

    @property
    def again(self) -> bool:
        """Whether tshark calls it a retransmission of any kind."""
        return bool(self.said.intersection(AGAIN))


def version() -> str | None:
    """Such as "4.0.17"; None if tshark is not installed."""
    try:
        told = subprocess.run(["tshark", "--version"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    return told.split("(Wireshark) ")[-1].split()[0].rstrip(".")


def segments(path: Path) -> Iterator[Seen]:
    """All TCP segments in the file's order. Reassembly is off, because it moves the analysis of a segment to later
    ones. Raises subprocess.CalledProcessError if tshark reads nothing at all.
    """
    # For packets in tunnels, the last headers, which are the innermost.
    command = ["tshark", "-r", str(path), "-Y", "tcp", "-o", "tcp.desegment_tcp_streams:FALSE"]
    command += ["-T", "fields", "-E", "occurrence=l", *(word for name in _FIELDS for word in ("-e", name))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    # A truncated file is read as far as it goes.
    if done.returncode and not done.stdout:
        done.check_returncode()
    for line in done.stdout.splitlines():
        cells = line.split("\t")
        if len(cells) == len(_FIELDS) and cells[2]:
            yield _seen(dict(zip(_FIELDS, cells, strict=True)))


def _seen(told: dict[str, str]) -> Seen:
    def number(name: str) -> int | None:
        return int(told[name], 0) if told[name] else None

    def end(which: str, port: str) -> tuple[str, int]:
        return told[f"ip.{which}"] or told[f"ipv6.{which}"], int(told[port])

    return Seen(
        frame=int(told["frame.number"]),
        t_s=float(told["frame.time_relative"]),
        stream=int(told["tcp.stream"]),
        source=end("src", "tcp.srcport"),
        target=end("dst", "tcp.dstport"),
        seq=number("tcp.seq_raw") or 0,
        ack=number("tcp.ack_raw") or 0,
        length=number("tcp.len"),
        flags=number("tcp.flags") or 0,
        ip_id=number("ip.id"),
        tsval=number("tcp.options.timestamp.tsval"),
        window=number("tcp.window_size_value") or 0,
        way=" ".join(told[name] for name in ("ip.ttl", "vlan.id", "vxlan.vni")),
        said=frozenset(flag for flag in FLAGS if told[f"tcp.analysis.{flag}"]),
    )
