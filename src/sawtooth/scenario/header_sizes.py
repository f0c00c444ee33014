"""Header sizes: header sizes around a TCP segment's payload, and the ports of flows, defined in one place."""

from __future__ import annotations

ETHERNET = 14
IPV4 = 20
IPV6_MORE = 20
"""Bytes by which the IPv6 header is longer than IPv4's."""
TCP = 20
UDP = 8
TIMESTAMPS = 12
"""The timestamp option with two bytes of padding."""
TCP_LONGEST = 60
"""The header with as many options as fit."""
PACKET_LARGEST = 65_535
"""Largest IPv4 packet."""
MSS = 1500 - IPV4 - TCP - TIMESTAMPS
"""Payload of a full segment in Ethernet's 1,500 bytes, with timestamps."""

FIRST_PORT = 5201
"""Port of the first flow's receiver (iperf3's server); each flow has its own."""
CLIENT_PORT = 20_000
"""Port of the first connection's sender (iperf3's client)."""
PORTS = 65_536


def packet_bytes(payload: int, *, timestamps: bool) -> int:
    """Size of a segment's IP packet."""
    return payload + IPV4 + TCP + (TIMESTAMPS if timestamps else 0)


def frame_bytes(payload: int, *, timestamps: bool) -> int:
    """Size of a segment's frame as Linux counts it: without preamble, checksum or gap."""
    return packet_bytes(payload, timestamps=timestamps) + ETHERNET


FULL_FRAME = frame_bytes(MSS, timestamps=True)
