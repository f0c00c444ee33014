"""The packets: echo requests and UDP payloads of one flow, and what answers quote of them.

A load-balancing router hashes the first bytes of the transport header: addresses and ports, for ICMP type, code and
checksum (Augustin et al., "Avoiding traceroute anomalies with Paris traceroute", IMC 2006). So the payload contains the
sequence number and its complement: their sum, and hence the checksum, is the same in each probe.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

PAYLOAD = 56
"""Bytes, as ping's: a probe has 84 bytes with IPv4, 104 with IPv6."""
SEQUENCES = 1 << 16

ECHO_REQUEST = {4: 8, 6: 128}
ECHO_REPLY = {4: 0, 6: 129}
TIME_EXCEEDED = {4: 11, 6: 3}
UNREACHABLE = {4: 3, 6: 1}
PORT_UNREACHABLE = {4: 3, 6: 4}
"""ICMP types, and the code of the last (RFC 792, RFC 4443)."""

_ECHO = struct.Struct("!BBHHH")
_QUOTED = {4: 20, 6: 40}
_ICMP = {4: 1, 6: 58}


@dataclass(frozen=True)
class ProbeReply:
    """Sequence number of the probe that an ICMP message answers (None: unknown), and ``kind``: "echo-reply",
    "time-exceeded", "port-unreachable" or "unreachable"."""

    sequence: int | None
    kind: str


def payload(sequence: int, nonce: int) -> bytes:
    """The payload of a probe: the nonce distinguishes this flow from others, the rest is zero."""
    return struct.pack("!HHI", sequence, sequence ^ 0xFFFF, nonce).ljust(PAYLOAD, b"\0")


def echo_request(version: int, identifier: int, sequence: int, nonce: int) -> bytes:
    """ICMP header and payload. The kernel fills in the checksum of ICMPv6, and every checksum on ping sockets.

    The complement of the header's sequence number is in the payload, so the payload's own field is 0.
    """
    body = struct.pack("!HHI", sequence ^ 0xFFFF, 0, nonce).ljust(PAYLOAD, b"\0")
    kind = ECHO_REQUEST[version]
    check = checksum(_ECHO.pack(kind, 0, 0, identifier, sequence) + body)
    return _ECHO.pack(kind, 0, check, identifier, sequence) + body


def checksum(data: bytes) -> int:
    """The Internet checksum (RFC 1071)."""
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data[: len(data) // 2 * 2]))
    if len(data) % 2:
        total += data[-1] << 8
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def kind_of(version: int, kind: int, code: int) -> str | None:
    """The kind in words; None for messages that answer no probe."""
    if kind == ECHO_REPLY[version]:
        return "echo-reply"
    if kind == TIME_EXCEEDED[version] and code == 0:
        return "time-exceeded"
    if kind == UNREACHABLE[version]:
        return "port-unreachable" if code == PORT_UNREACHABLE[version] else "unreachable"
    return None


def heard_reply(version: int, message: bytes, nonce: int, identifier: int | None = None) -> ProbeReply | None:
    """From an ICMP message that is a reply to this prober; ``identifier`` None: a ping socket receives only its own."""
    if len(message) < 16 or message[0] != ECHO_REPLY[version]:
        return None
    _, _, _, theirs, sequence = _ECHO.unpack_from(message)
    if (identifier is not None and theirs != identifier) or message[12:16] != nonce.to_bytes(4, "big"):
        return None
    return ProbeReply(sequence, "echo-reply")


def heard_error(version: int, message: bytes, identifier: int, target: bytes) -> ProbeReply | None:
    """From an ICMP error that quotes this prober's echo request to the packed address ``target``: header and eight
    bytes."""
    if len(message) < 8 + _QUOTED[version] + 8:
        return None
    kind = kind_of(version, message[0], message[1])
    quoted = message[8:]
    if version == 4:
        start, protocol, to = (quoted[0] & 15) * 4, quoted[9], quoted[16:20]
    else:
        start, protocol, to = 40, quoted[6], quoted[24:40]
    if kind in (None, "echo-reply") or protocol != _ICMP[version] or to != target or len(quoted) < start + 8:
        return None
    sent, _, _, theirs, sequence = _ECHO.unpack_from(quoted, start)
    if sent != ECHO_REQUEST[version] or theirs != identifier:
        return None
    return ProbeReply(sequence, str(kind))


def sequence_of(quoted: bytes, nonce: int) -> int | None:
    """From the quoted payload of a UDP probe; None if the router did not quote enough."""
    if len(quoted) < 8:
        return None
    sequence, complement, theirs = struct.unpack_from("!HHI", quoted)
    return int(sequence) if theirs == nonce and sequence ^ complement == 0xFFFF else None
