"""The workers of ``--cluster local``: forks of this process, which has loaded the modules they need; one thread each.

    python -m sawtooth.dask tls://127.0.0.1:PORT DIRECTORY

The first line of standard input is JSON: where modules are found, which ones to load, and the certificate with its key.
Each further line starts a worker. Output is ``+PID`` when a worker starts and ``-PID STATUS`` when it ends. All end
when standard input does, or when this process is killed.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import importlib
import io
import json
import os
import selectors
import signal
import sys
import warnings
from typing import Any

from sawtooth.dask.secure import Pair

_PR_SET_PDEATHSIG = 1
"""prctl(2)"""


def main() -> None:
    if len(sys.argv) != 3 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Exactly one line, not a byte more.
    line = io.FileIO(0, closefd=False).readline()
    if not line:
        return
    found = json.loads(line)
    sys.path[:] = found["path"]
    for name in found["modules"]:
        importlib.import_module(name)
    # Keeps shared memory from being scanned, and thereby copied, in each fork.
    gc.collect()
    gc.freeze()
    address, place = sys.argv[1:]
    _Workers(address, place, Pair(*found["pair"])).serve()


class _Workers:
    def __init__(self, address: str, place: str, pair: Pair) -> None:
        self._address, self._place, self._pair = address, place, pair
        self._alive: set[int] = set()
        self._me = os.getpid()
        self._woken, self._wake = os.pipe()
        for end in (self._woken, self._wake):
            os.set_blocking(end, False)

    def serve(self) -> None:
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        with selectors.DefaultSelector() as selector:
            for source in (0, self._woken):
                selector.register(source, selectors.EVENT_READ)
            while True:
                for key, _ in selector.select():
                    lines = os.read(key.fd, 4096)
                    if key.fd == 0 and not lines:
                        for worker in self._alive:
                            _kill(worker)
                        for worker in self._alive:
                            os.waitpid(worker, 0)
                        return
                    if key.fd == 0:
                        for _ in range(lines.count(b"\n")):
                            self._start()
                self._bury()

    def _start(self) -> None:
        with warnings.catch_warnings():
            # There are no Python threads, and those of numpy and pyarrow survive forks.
            warnings.simplefilter("ignore", DeprecationWarning)
            worker = os.fork()
        if not worker:
            try:
                self._become()
            except BaseException:
                sys.excepthook(*sys.exc_info())
            finally:
                os._exit(1)
        self._alive.add(worker)
        _say(f"+{worker}")

    def _become(self) -> None:
        """In the fork: becomes a worker in a separate session, which ignores a terminal's Ctrl-C."""
        os.setsid()
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        nothing = os.open(os.devnull, os.O_RDWR)
        for end in (0, 1):
            os.dup2(nothing, end)
        for end in (nothing, self._woken, self._wake):
            os.close(end)
        # A stopped worker also ends with its parent.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == self._me:
            asyncio.run(_work(self._address, self._place, self._pair))
        os._exit(0)

    def _bury(self) -> None:
        """Ends what a dead worker had started, before its process id is reused. A stopped worker answers nobody and
        counts as dead."""
        for worker in list(self._alive):
            if os.waitid(os.P_PID, worker, os.WEXITED | os.WSTOPPED | os.WNOHANG | os.WNOWAIT) is None:
                continue
            _kill(worker)
            _, status = os.waitpid(worker, 0)
            self._alive.remove(worker)
            _say(f"-{worker} {os.waitstatus_to_exitcode(status)}")


async def _work(address: str, place: str, pair: Pair) -> None:
    import distributed

    class Worker(distributed.Worker):
        def start_http_server(self, *_: Any, **__: Any) -> None:
            """Disables the worker's web server, which nobody needs."""

    with pair.held() as security:
        async with Worker(
            address,
            host="127.0.0.1",
            protocol="tls://",
            security=security,
            nthreads=1,
            local_directory=place,
            memory_limit=0,
            dashboard=False,
        ) as worker:
            await worker.finished()


def _kill(worker: int) -> None:
    """Kills a worker and everything that it started."""
    for kill in (os.kill, os.killpg):
        # Before it has its own session there is no such process group.
        with contextlib.suppress(ProcessLookupError):
            kill(worker, signal.SIGKILL)


def _say(what: str) -> None:
    os.write(1, f"{what}\n".encode())


if __name__ == "__main__":
    main()
