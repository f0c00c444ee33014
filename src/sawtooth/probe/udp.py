"""UDP to a port where nothing listens, like traceroute, always with the same two ports: no privilege is needed.

Routers must quote eight bytes of the packet that they drop (RFC 792), and the kernel then delivers none of its payload.
Such an answer belongs to the only probe under way, or cannot be attributed. ICMP has no such ambiguity.
"""

from __future__ import annotations

import socket

from sawtooth.probe import transport, wire
from sawtooth.probe.transport import Answer, Target

PORT = 33434
"""Traceroute's first port, the same for all probes, so that load-balancing routers keep them on one path."""


class Udp:
    """An ordinary socket whose error queue has the answers."""

    kind = "udp"

    def __init__(self, target: Target, nonce: int) -> None:
        sock = socket.socket(target.family, socket.SOCK_DGRAM)
        self._socket = transport.prepared(sock, target)
        self._target, self._nonce = target, nonce
        self._sockaddr = (target.sockaddr[0], PORT, *target.sockaddr[2:])

    def send(self, sequence: int, ttl: int) -> None:
        """Raises OSError."""
        transport.set_ttl(self._socket, self._target.version, ttl)
        transport.send(self._socket, wire.payload(sequence, self._nonce), self._sockaddr)

    def receive(self, timeout_s: float) -> list[Answer]:
        """Errors from routers or the target; answers from a program on that port are discarded."""
        transport.wait(self._socket, timeout_s)
        transport.datagrams(self._socket)
        found = []
        for one in transport.errors(self._socket, self._target.version):
            if one.kind is not None:
                sequence = wire.sequence_of(one.data, self._nonce)
                found.append(Answer(sequence, one.kind, one.address, one.monotonic_ns, one.unix_ns))
        return found

    def close(self) -> None:
        """Closes the socket."""
        self._socket.close()
