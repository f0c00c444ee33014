"""ICMP echo requests, with a ping socket that needs no privilege (icmp(7)) or with a raw one."""

from __future__ import annotations

import os
import socket

from sawtooth.probe import transport, wire
from sawtooth.probe.transport import Answer, Target

_PROTOCOL = {4: socket.IPPROTO_ICMP, 6: socket.IPPROTO_ICMPV6}
_ICMP6_FILTER = 1


class _Echo:
    """Sends echo requests over a socket of ``type``; what comes back depends on it."""

    def __init__(self, type: socket.SocketKind, target: Target, nonce: int, identifier: int) -> None:
        self._socket = socket.socket(target.family, type, _PROTOCOL[target.version])
        self._target, self._nonce, self._identifier = target, nonce, identifier

    def send(self, sequence: int, ttl: int) -> None:
        """Raises OSError."""
        transport.set_ttl(self._socket, self._target.version, ttl)
        request = wire.echo_request(self._target.version, self._identifier, sequence, self._nonce)
        transport.send(self._socket, request, self._target.sockaddr)

    def close(self) -> None:
        """Closes the socket."""
        self._socket.close()


class Ping(_Echo):
    """A ping socket: the kernel chooses the identifier, computes the checksum, and delivers only this socket's
    answers."""

    kind = "ping"

    def __init__(self, target: Target, nonce: int) -> None:
        super().__init__(socket.SOCK_DGRAM, target, nonce, identifier=0)
        transport.prepared(self._socket, target)

    def receive(self, timeout_s: float) -> list[Answer]:
        """Echo replies, and errors that routers sent."""
        version = self._target.version
        transport.wait(self._socket, timeout_s)
        found = []
        for one in transport.datagrams(self._socket):
            heard = wire.heard_reply(version, one.data, self._nonce)
            if heard is not None:
                found.append(Answer(heard.sequence, heard.kind, one.address, one.monotonic_ns, one.unix_ns))
        for one in transport.errors(self._socket, version):
            # The kernel delivers the quoted ICMP header and what follows it.
            if len(one.data) >= 8 and one.kind is not None:
                sequence = int.from_bytes(one.data[6:8], "big")
                found.append(Answer(sequence, one.kind, one.address, one.monotonic_ns, one.unix_ns))
        return found


class Raw(_Echo):
    """A raw socket: all ICMP of the machine arrives; identifier, target and nonce select the answers."""

    kind = "raw"

    def __init__(self, target: Target, nonce: int) -> None:
        super().__init__(socket.SOCK_RAW, target, nonce, identifier=(os.getpid() ^ nonce) & 0xFFFF)
        self._socket.setblocking(False)
        self._socket.setsockopt(socket.SOL_SOCKET, transport.SO_TIMESTAMPNS, 1)
        if target.version == 6:
            # A set bit blocks its type; on a busy host neighbor discovery would fill the buffer.
            blocked = bytearray(b"\xff" * 32)
            for kind in (wire.ECHO_REPLY[6], wire.TIME_EXCEEDED[6], wire.UNREACHABLE[6]):
                word, bit = divmod(kind, 32)
                value = int.from_bytes(blocked[4 * word : 4 * word + 4], "little") & ~(1 << bit)
                blocked[4 * word : 4 * word + 4] = value.to_bytes(4, "little")
            self._socket.setsockopt(socket.IPPROTO_ICMPV6, _ICMP6_FILTER, bytes(blocked))

    def receive(self, timeout_s: float) -> list[Answer]:
        """Echo replies, and errors that quote our requests."""
        version = self._target.version
        transport.wait(self._socket, timeout_s)
        found = []
        for one in transport.datagrams(self._socket):
            # IPv4 packets include their header, IPv6 ones do not (raw(7), RFC 3542).
            message = one.data[(one.data[0] & 15) * 4 :] if version == 4 and one.data else one.data
            heard = wire.heard_reply(version, message, self._nonce, self._identifier) or wire.heard_error(
                version, message, self._identifier, self._target.packed
            )
            if heard is not None:
                found.append(Answer(heard.sequence, heard.kind, one.address, one.monotonic_ns, one.unix_ns))
        return found
