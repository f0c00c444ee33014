"""Transport: the prober's interface to sockets, and code that all kinds share."""

from __future__ import annotations

import errno
import ipaddress
import select
import socket
import struct
import sys
import time
from dataclasses import dataclass
from typing import Any, Protocol

from sawtooth.errors import InputError, SawtoothError
from sawtooth.probe.wire import kind_of

# From <linux/in.h>, <linux/in6.h>, <asm-generic/socket.h>, <linux/errqueue.h>; Python's socket lacks some of them.
IP_RECVERR, IPV6_RECVERR = 11, 25
SO_TIMESTAMPNS = 35
MSG_ERRQUEUE = 0x2000
_ERROR = struct.Struct("=IBBBBII")
_ORIGINS = {4: 2, 6: 3}

_LEFT_BY_EARLIER = (errno.ECONNREFUSED, errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EPROTO)
_AT_ONCE = 256
"""Messages read before the schedule is checked again."""


@dataclass(frozen=True)
class Target:
    """The probed target: its given name, its address, and its socket address. ``version`` is 4 or 6."""

    name: str
    address: str
    version: int
    sockaddr: tuple[Any, ...]

    @property
    def family(self) -> socket.AddressFamily:
        """The address family of its sockets."""
        return socket.AF_INET if self.version == 4 else socket.AF_INET6

    @property
    def packed(self) -> bytes:
        """The address as in a header."""
        return socket.inet_pton(self.family, self.address.split("%")[0])


@dataclass(frozen=True)
class Answer:
    """``sequence`` is the probe's number in 16 bits, None if the answer does not contain it. ``monotonic_ns`` is when
    the program read it, ``unix_ns`` when the kernel received it (None: unknown)."""

    sequence: int | None
    kind: str
    address: str
    monotonic_ns: int
    unix_ns: int | None


class Transport(Protocol):
    """A socket, or a test's replacement."""

    kind: str

    def send(self, sequence: int, ttl: int) -> None:
        """Raises OSError."""

    def receive(self, timeout_s: float) -> list[Answer]:
        """What arrives within the time; returns at once when something does."""

    def close(self) -> None:
        """Closes the socket."""


def resolve(name: str, version: int | None = None) -> Target:
    """The first address of a name; ``version`` 4 or 6 selects. Raises SawtoothError ``bad-target``."""
    family = {4: socket.AF_INET, 6: socket.AF_INET6, None: socket.AF_UNSPEC}[version]
    try:
        found = socket.getaddrinfo(name, None, family, socket.SOCK_DGRAM)
    except (OSError, UnicodeError) as error:
        fix = "give a host's name or address; -4 and -6 choose the kind of address"
        why = getattr(error, "strerror", None) or str(error)
        raise InputError("bad-target", f"{name[:100]!r} has no address: {why}", field="TARGET", fix=fix) from None
    kind, _, _, _, sockaddr = found[0]
    address = ipaddress.ip_address(str(sockaddr[0]).split("%")[0])
    if address.is_multicast or address.is_unspecified or str(address) == "255.255.255.255":
        fix = "give the address of one host"
        raise InputError("bad-target", f"{address} is not the address of one host", field="TARGET", fix=fix)
    return Target(name, str(sockaddr[0]), 4 if kind == socket.AF_INET else 6, tuple(sockaddr))


def failed(error: OSError, target: Target) -> SawtoothError:
    """The error for a probe that could not be sent at all."""
    fix = f"check the route: ip route get {target.address}"
    message = f"cannot send to {target.address}: {error.strerror or error}"
    return SawtoothError("probe-failed", message, field="TARGET", fix=fix)


def prepared(sock: socket.socket, target: Target) -> socket.socket:
    """Enables arrival timestamps, and the queue of returned errors with their senders' addresses."""
    sock.setblocking(False)
    sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    level, option = (socket.IPPROTO_IP, IP_RECVERR) if target.version == 4 else (socket.IPPROTO_IPV6, IPV6_RECVERR)
    sock.setsockopt(level, option, 1)
    return sock


def set_ttl(sock: socket.socket, version: int, ttl: int) -> None:
    """Time to live, or hop limit."""
    if version == 4:
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, ttl)
    else:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_UNICAST_HOPS, ttl)


def send(sock: socket.socket, data: bytes, sockaddr: tuple[Any, ...]) -> None:
    """Ignores errors left by earlier probes: the kernel returns each with the next call (ip(7), IP_RECVERR)."""
    for _ in range(8):
        sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        try:
            sock.sendto(data, sockaddr)
            return
        except OSError as error:
            last = error
            if error.errno not in _LEFT_BY_EARLIER:
                raise
    raise last


def wait(sock: socket.socket, timeout_s: float) -> None:
    """Waits until something can be read; errors count."""
    select.select([sock], [], [], max(0.0, timeout_s))


@dataclass(frozen=True)
class Datagram:
    """A received datagram with the kernel's time; ``kind`` is that of an error from the network, else None."""

    data: bytes
    address: str
    monotonic_ns: int
    unix_ns: int | None
    kind: str | None = None


def datagrams(sock: socket.socket) -> list[Datagram]:
    """The datagrams waiting in the socket."""
    found = []
    for _ in range(_AT_ONCE):
        try:
            data, ancillary, _, sender = sock.recvmsg(2048, 512)
        except BlockingIOError:
            break
        except OSError:
            # An error met by an earlier probe, which is in the error queue too.
            continue
        found.append(Datagram(data, str(sender[0]), time.monotonic_ns(), _stamp(ancillary)))
    return found


def errors(sock: socket.socket, version: int) -> list[Datagram]:
    """The socket's error queue: quoted packets, and who sent each error (ip(7), ``sock_extended_err``)."""
    datagrams: list[Datagram] = []
    for _ in range(_AT_ONCE):
        try:
            data, ancillary, _, _ = sock.recvmsg(2048, 512, MSG_ERRQUEUE)
        except OSError:
            break
        now_ns, stamp_ns = time.monotonic_ns(), _stamp(ancillary)
        for level, kind, value in ancillary:
            if (level, kind) not in ((socket.IPPROTO_IP, IP_RECVERR), (socket.IPPROTO_IPV6, IPV6_RECVERR)):
                continue
            if len(value) < _ERROR.size:
                continue
            _, origin, icmp_type, icmp_code, _, _, _ = _ERROR.unpack_from(value)
            kind_of_error = kind_of(version, icmp_type, icmp_code) if origin == _ORIGINS[version] else None
            if kind_of_error is not None:
                datagrams.append(Datagram(data, _offender(value[_ERROR.size :]), now_ns, stamp_ns, kind_of_error))
    return datagrams


def _offender(sockaddr: bytes) -> str:
    if len(sockaddr) < 8:
        return ""
    family = int.from_bytes(sockaddr[:2], sys.byteorder)
    if family == socket.AF_INET:
        return socket.inet_ntop(socket.AF_INET, sockaddr[4:8])
    if family == socket.AF_INET6 and len(sockaddr) >= 24:
        return socket.inet_ntop(socket.AF_INET6, sockaddr[8:24])
    return ""


def _stamp(ancillary: list[tuple[int, int, bytes]]) -> int | None:
    """The kernel's time of arrival (``struct timespec`` of a 64-bit system)."""
    for level, kind, value in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, SO_TIMESTAMPNS) and len(value) >= 16:
            seconds, nanoseconds = struct.unpack("=qq", value[:16])
            return int(seconds * 10**9 + nanoseconds)
    return None
