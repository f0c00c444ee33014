"""Workers: processes that do the server's work. Their number and resources are limited, and each ends when its client
disconnects."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

from sawtooth.errors import SawtoothError
from sawtooth.io.parallel import cores

LARGEST_FRAME = 256 << 20
_POLL_S = 0.2


class ClientGone(Exception):
    """The client has disconnected or sent a newer request."""


class Workers:
    """At most ``most`` workers at a time. A page has one run at a time, the latest one. ``close`` ends all workers."""

    def __init__(self, most: int | None = None) -> None:
        self._slots = threading.BoundedSemaphore(most or max(2, cores()))
        self._lock = threading.Lock()
        self._open: set[_Worker] = set()
        self._closed = False

    @contextlib.contextmanager
    def start(
        self, question: dict[str, Any], client: socket.socket, limit_s: float, page: str | None = None
    ) -> Iterator[_Worker]:
        """Start a worker with a request, and end it at the end of the block. Raises ClientGone if the client
        disconnects while waiting for a free place."""
        worker = _Worker(client, page, limit_s)
        with self._lock:
            if self._closed:
                raise ClientGone
            for other in self._open:
                if page is not None and other.page == page:
                    other.end()
            self._open.add(worker)
        try:
            while not self._slots.acquire(timeout=_POLL_S):
                worker.check_client()
            try:
                worker.begin(question)
                yield worker
            finally:
                worker.close()
                self._slots.release()
        finally:
            with self._lock:
                self._open.discard(worker)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            for worker in self._open:
                worker.end()


class _Worker:
    def __init__(self, client: socket.socket, page: str | None, limit_s: float) -> None:
        self.page = page
        self._client = client
        self._gone = select.poll()
        # Data from the client is not read meanwhile. Only a closed connection matters.
        self._gone.register(client, select.POLLRDHUP)
        self._limit_s = limit_s
        self._until = float("inf")
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def begin(self, question: dict[str, Any]) -> None:
        with self._lock:
            self.check_client()
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "sawtooth.lab"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                # Ctrl-C goes to the server, which then ends the worker.
                start_new_session=True,
            )
        self._until = time.monotonic() + self._limit_s
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(question).encode() + b"\n")
            self._process.stdin.flush()

    def check_client(self) -> None:
        """Raises ClientGone if the client has disconnected."""
        if self._ended.is_set() or self._gone.poll(0):
            raise ClientGone

    def frame(self) -> tuple[dict[str, Any], bytes, bytes] | None:
        """The next frame: its head, its body, and the whole frame as bytes. None after the last one.

        Raises ClientGone, and SawtoothError ``interrupted`` at the time limit or ``worker-died``.
        """
        lengths = self._read(8, may_end=True)
        if not lengths:
            return None
        head_bytes, body_bytes = struct.unpack("<II", lengths)
        if head_bytes + body_bytes > LARGEST_FRAME:
            self.end()
            raise SawtoothError("unsupported", "the answer is too large for a page", fix="use the command line")
        head = self._read(head_bytes)
        body = self._read(body_bytes)
        return json.loads(head), body, lengths + head + body

    def _read(self, count: int, *, may_end: bool = False) -> bytes:
        assert self._process is not None
        assert self._process.stdout is not None
        found = bytearray()
        pipe = self._process.stdout.fileno()
        poll = select.poll()
        poll.register(pipe, select.POLLIN)
        poll.register(self._client, select.POLLRDHUP)
        while len(found) < count:
            if time.monotonic() > self._until:
                fix = "ask for less, or use the command line, which has no limit"
                raise SawtoothError("interrupted", f"it took more than {self._limit_s:g} s", fix=fix)
            ready = [opened for opened, _ in poll.poll(1000 * _POLL_S)]
            self.check_client()
            if pipe not in ready:
                continue
            part = os.read(pipe, min(1 << 20, count - len(found)))
            if not part:
                if may_end and not found:
                    return b""
                raise self._died()
            found += part
        return bytes(found)

    def _died(self) -> SawtoothError:
        assert self._process is not None
        status = self._process.wait()
        why = signal.Signals(-status).name if status < 0 else f"status {status}"
        message = f"the process that worked for the page ended early ({why})"
        return SawtoothError("worker-died", message, fix="try the same on the command line")

    def end(self) -> None:
        """End the process in any state."""
        self._ended.set()
        with self._lock:
            if self._process is not None and self._process.poll() is None:
                os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait()

    def close(self) -> None:
        """End the worker and stop reading from it."""
        self.end()
        if self._process is not None:
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
            self._process.stdout.close()
