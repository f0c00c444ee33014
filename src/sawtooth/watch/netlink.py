"""Netlink: reads the connections of a network namespace from the kernel, by sock_diag. No privilege is needed.

It uses a socket of the standard library: pyroute2 creates an object for every attribute, which takes 5.5 s of processor
time for 20,000 sockets instead of 0.05 s (bench/watch.py).
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path

from sawtooth.errors import InputError, SawtoothError
from sawtooth.io.closing import Closing
from sawtooth.sanitize import plain
from sawtooth.watch import layout
from sawtooth.watch.sample import Sample, parse, parse_buffer

_SOCK_DIAG = 4
_REQUEST_DUMP = 0x1 | 0x300
_ADD_MEMBERSHIP, _SOL_NETLINK = 1, 270
_DESTROYED = (1, 3)
"""Multicast groups that report closed TCP sockets, for IPv4 and IPv6."""
_LARGEST = 1 << 18
_PATIENCE_S = 5
_END = 20
"""Bytes of the message that ends an answer."""
_EXTENSIONS = sum(1 << kind - 1 for kind in (layout.INFO, layout.VEGASINFO, layout.CONG, layout.SKMEMINFO))
"""Attributes to request. BBR's state is requested with the bit of Vegas."""
_NAMESPACES = Path("/run/netns")


class Connections(Closing):
    """The connections of one namespace, read by ``sample``. ``ended`` gives the connections closed since the last call,
    if the kernel reports them."""

    def __init__(self, namespace: str | None = None) -> None:
        """``namespace``: a name of ``ip netns``, or a process number; None for the current one.

        Raises SawtoothError ``unknown-name``, ``missing-capability``, ``unsupported``.
        """
        with _within(namespace):
            self._asking = _open()
            self._closing = _closings()
        self._sequence = 0
        # The buffer is reused: allocating memory each time would take as long as reading.
        self._buffer = bytearray()

    def close(self) -> None:
        """Close the sockets."""
        self._asking.close()
        if self._closing is not None:
            self._closing.close()

    @property
    def reports_ends(self) -> bool:
        """Whether connections that open and close between two samples are reported."""
        return self._closing is not None

    def sample(self) -> Sample:
        """All connections now. Raises SawtoothError ``unsupported`` if the kernel does not provide them."""
        at_s = time.monotonic()
        ends: list[int] = []
        for family in (socket.AF_INET, socket.AF_INET6):
            self._dump(family, ends)
        return parse_buffer(self._buffer, ends, at_s)

    def ended(self) -> tuple[Sample, bool]:
        """The connections that closed since the last call, as they were then; and whether some reports were dropped."""
        content: list[bytes] = []
        missed = False
        while self._closing is not None:
            try:
                content.append(self._closing.recv(_LARGEST))
            except BlockingIOError:
                break
            except OSError as error:
                if error.errno != errno.ENOBUFS:
                    raise
                missed = True
        return parse(content, time.monotonic()), missed

    def _dump(self, family: int, ends: list[int]) -> None:
        """Append the answer's datagrams to the buffer, and the position of each one's end to ``ends``."""
        self._sequence += 1
        request = struct.pack("=BBBxI", family, socket.IPPROTO_TCP, _EXTENSIONS, layout.ASKED) + bytes(48)
        length = layout.HEADER + len(request)
        header = struct.pack("=IHHII", length, layout.BY_FAMILY, _REQUEST_DUMP, self._sequence, 0)
        self._asking.send(header + request)
        while True:
            begin = ends[-1] if ends else 0
            if len(self._buffer) < begin + _LARGEST:
                self._buffer += bytes(_LARGEST + len(self._buffer) // 2)
            try:
                with memoryview(self._buffer) as whole, whole[begin:] as room:
                    size = self._asking.recv_into(room, _LARGEST)
            except TimeoutError:
                raise _unsupported("it did not answer") from None
            if size < layout.HEADER:
                continue
            _, kind, _, sequence, _ = struct.unpack_from("=IHHII", self._buffer, begin)
            if sequence != self._sequence:
                # The rest of an earlier answer that was abandoned.
                continue
            if kind == layout.ERROR:
                code = -struct.unpack_from("=i", self._buffer, begin + layout.HEADER)[0]
                if code == errno.ENOENT and family == socket.AF_INET6:
                    # A kernel without IPv6.
                    return
                raise _unsupported(os.strerror(code))
            ends.append(begin + size)
            if kind == layout.DONE or self._is_end(ends[-1]):
                return

    def _is_end(self, at: int) -> bool:
        """Whether the last message before ``at`` ends the answer: a header and an error number."""
        length, kind = struct.unpack_from("=IH", self._buffer, max(0, at - _END))
        return bool(length == _END and kind == layout.DONE)


def _unsupported(why: str) -> SawtoothError:
    fix = "use a Linux kernel with CONFIG_INET_TCP_DIAG (modprobe tcp_diag)"
    return SawtoothError("unsupported", f"the kernel does not report its connections: {why}", fix=fix)


def _open() -> socket.socket:
    try:
        opened = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _SOCK_DIAG)
    except OSError as error:
        raise _unsupported(error.strerror or str(error)) from error
    opened.settimeout(_PATIENCE_S)
    return opened


def _closings() -> socket.socket | None:
    opened = _open()
    try:
        # A socket that is not bound receives no multicast.
        opened.bind((0, 0))
        for group in _DESTROYED:
            opened.setsockopt(_SOL_NETLINK, _ADD_MEMBERSHIP, group)
        opened.setblocking(False)
        with contextlib.suppress(OSError):
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
    except OSError:
        opened.close()
        return None
    return opened


@contextlib.contextmanager
def _within(namespace: str | None) -> Iterator[None]:
    if namespace is None:
        yield
        return
    from sawtooth.testbed.apply import entered

    path = Path(f"/proc/{namespace}/ns/net") if namespace.isdecimal() else _NAMESPACES / namespace
    try:
        # For another user's process, even the existence of its namespace is hidden.
        if "/" in namespace or namespace in ("", ".", "..") or not path.exists():
            what = "process" if namespace.isdecimal() else "namespace"
            message = f'there is no {what} "{plain(namespace, 60)}"'
            raise InputError(
                "unknown-name",
                message,
                field="--netns",
                fix="list the names: ip netns; or give the number of a process",
            )
        with entered(str(path)):
            yield
    except PermissionError:
        message = "only root may look into another network namespace"
        fix = f"sudo sawtooth watch --netns {plain(namespace, 60)}"
        raise SawtoothError("missing-capability", message, field="--netns", fix=fix) from None
