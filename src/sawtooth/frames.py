"""Frames: what is on the wire beside a TCP segment's payload, and the ports that flows have. Stated here only."""

from __future__ import annotations

ETHERNET = 14
IPV4 = 20
IPV6_MORE = 20
"""Bytes by which its header is longer than IPv4's."""
TCP = 20
UDP = 8
TIMESTAMPS = 12
"""The option with the two bytes that align it."""
TCP_LONGEST = 60
"""The header with all the options that fit."""
PACKET_LARGEST = 65_535
"""Of IPv4."""
MSS = 1500 - IPV4 - TCP - TIMESTAMPS
"""Payload of a full segment in Ethernet's 1,500 bytes, with timestamps."""

FIRST_PORT = 5201
"""Of the receiver (iperf3's server) of the first flow; each flow has its own."""
CLIENT_PORT = 20_000
"""Of the sender (iperf3's client) of the first connection."""
PORTS = 65_536


def packet_bytes(payload: int, *, timestamps: bool) -> int:
    """A segment as IP counts it."""
    return payload + IPV4 + TCP + (TIMESTAMPS if timestamps else 0)


def frame_bytes(payload: int, *, timestamps: bool) -> int:
    """A segment as a transmitter of Linux counts it: no preamble, checksum or gap."""
    return packet_bytes(payload, timestamps=timestamps) + ETHERNET


FULL_FRAME = frame_bytes(MSS, timestamps=True)
