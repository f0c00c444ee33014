"""Packet loss with nftables: forwarded packets by their numbers, or any share on kernels without netem.

Written to netlink (linux/netfilter/nf_tables.h). There is a rule per link on the forward hook, or per packet that it is
to lose: the route's next hop is the link's gateway, and a random or counted number decides the drop. This is before the
queue, as a link's loss must be, and a forwarded packet is a single frame.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from sawtooth.testbed.ports import LossRule

TABLE, CHAIN = "sawtooth", "loss"
PPB = 10**9
_UNBOUNDED = 2**32 - 1

_NETLINK_NETFILTER, _SUBSYSTEM = 12, 10
_BATCH_BEGIN, _BATCH_END = 0x10, 0x11
_NEWTABLE, _NEWCHAIN, _NEWRULE, _NEWOBJ = 0, 3, 6, 18
_REQUEST, _ACK, _CREATE, _APPEND = 0x1, 0x4, 0x400, 0x800
_FORWARD = 2
_REGISTER, _VERDICT = 1, 0
_NEXTHOP4, _COUNTED, _RANDOM, _HTON, _EQUAL, _LESS, _COUNTER, _DROP = 1, 0, 1, 1, 0, 2, 1, 0


def apply(rules: Sequence[LossRule]) -> None:
    """Adds the rules in this thread's namespace. Raises OSError."""
    table = _text(1, TABLE)
    hook = _number(1, _FORWARD) + _number(2, 0)
    messages = [
        _message(_BATCH_BEGIN, socket.htons(_SUBSYSTEM), b"", batch=True),
        _message(_NEWTABLE, 0, table),
        _message(_NEWCHAIN, 0, table + _text(3, CHAIN) + _nested(4, hook) + _text(7, "filter")),
    ]
    for rule in rules:
        messages.append(_message(_NEWOBJ, 0, table + _text(2, rule.counter) + _number(3, _COUNTER) + _nested(4, b"")))
        for number in _numbers(rule):
            expressions = b"".join(_expressions(rule, number))
            messages.append(_message(_NEWRULE, 0, table + _text(2, CHAIN) + _nested(4, expressions)))
    messages.append(_message(_BATCH_END, socket.htons(_SUBSYSTEM), b"", batch=True))
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_NETFILTER) as netlink:
        netlink.send(b"".join(messages))
        for _ in range(len(messages) - 2):
            answer = netlink.recv(1 << 16)
            (error,) = struct.unpack_from("=i", answer, 16)
            if error:
                raise OSError(-error, "nftables refused the loss of a link")


@dataclass(frozen=True)
class _Number:
    """A number below ``modulus`` for each packet, random or counted from 0, and those of lost packets."""

    modulus: int
    kind: int
    compared: int
    limit: int


def _numbers(rule: LossRule) -> list[_Number]:
    if rule.packets:
        # A rule does not count what earlier ones dropped.
        return [_Number(_UNBOUNDED, _COUNTED, _EQUAL, packet - 1 - at) for at, packet in enumerate(rule.packets)]
    if rule.every is None:
        return [_Number(PPB, _RANDOM, _LESS, rule.loss_ppb)]
    return [_Number(rule.every, _COUNTED, _EQUAL, rule.every - 1)]


def _expressions(rule: LossRule, number: _Number) -> list[bytes]:
    gateway = _nested(3, _attribute(1, socket.inet_aton(rule.gateway)))
    # Registers hold numbers in the machine's byte order, while comparisons are of bytes.
    swapped = _number(1, _REGISTER) + _number(2, _REGISTER) + _number(3, _HTON) + _number(4, 4) + _number(5, 4)
    drop = _nested(2, _nested(2, _number(1, _DROP)))
    return [
        _expression("rt", _number(1, _REGISTER) + _number(2, _NEXTHOP4)),
        _expression("cmp", _number(1, _REGISTER) + _number(2, _EQUAL) + gateway),
        _expression("numgen", _number(1, _REGISTER) + _number(2, number.modulus) + _number(3, number.kind)),
        _expression("byteorder", swapped),
        _expression("cmp", _number(1, _REGISTER) + _number(2, number.compared) + _nested(3, _number(1, number.limit))),
        _expression("objref", _number(1, _COUNTER) + _text(2, rule.counter)),
        _expression("immediate", _number(1, _VERDICT) + drop),
    ]


def _expression(name: str, data: bytes) -> bytes:
    return _nested(1, _text(1, name) + _nested(2, data))


def _message(kind: int, resource: int, attributes: bytes, *, batch: bool = False) -> bytes:
    family = socket.AF_UNSPEC if batch else socket.AF_INET
    body = struct.pack("=BBH", family, 0, resource) + attributes
    number = kind if batch else _SUBSYSTEM << 8 | kind
    flags = _REQUEST if batch else _REQUEST | _ACK | _CREATE | (_APPEND if kind == _NEWRULE else 0)
    return struct.pack("=IHHII", 16 + len(body), number, flags, 0, 0) + body


def _attribute(kind: int, value: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)


def _nested(kind: int, value: bytes) -> bytes:
    return _attribute(kind | 0x8000, value)


def _text(kind: int, value: str) -> bytes:
    return _attribute(kind, value.encode() + b"\0")


def _number(kind: int, value: int) -> bytes:
    return _attribute(kind, struct.pack(">I", value))
