"""The workers of ``--cluster local``: forks of this process, which has loaded what they need; a thread each.

    python -m sawtooth.cluster tls://127.0.0.1:PORT DIRECTORY

The first line of its standard input says where modules are found, which to load, and the certificate with its key, as
JSON; for each further line it starts a worker. It says ``+PID`` of one that began and ``-PID STATUS`` of one that
ended. All end when its standard input does, and when it is killed.
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

from sawtooth.cluster.secure import Pair

_PR_SET_PDEATHSIG = 1
"""prctl(2)"""


def main() -> None:
    if len(sys.argv) != 3 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Not a byte more than the line.
    line = io.FileIO(0, closefd=False).readline()
    if not line:
        return
    found = json.loads(line)
    sys.path[:] = found["path"]
    for name in found["modules"]:
        importlib.import_module(name)
    # What is shared is not to be looked through, and copied, by each.
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
                    asked = os.read(key.fd, 4096)
                    if key.fd == 0 and not asked:
                        for worker in self._alive:
                            _kill(worker)
                        for worker in self._alive:
                            os.waitpid(worker, 0)
                        return
                    if key.fd == 0:
                        for _ in range(asked.count(b"\n")):
                            self._start()
                self._bury()

    def _start(self) -> None:
        with warnings.catch_warnings():
            # Threads there are none of Python's, and those of numpy and pyarrow know of forks.
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
        """In the fork: a worker, deaf to a terminal's Ctrl-C, in a session of its own."""
        os.setsid()
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        nothing = os.open(os.devnull, os.O_RDWR)
        for end in (0, 1):
            os.dup2(nothing, end)
        for end in (nothing, self._woken, self._wake):
            os.close(end)
        # Also one that is stopped ends with its parent.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == self._me:
            asyncio.run(_work(self._address, self._place, self._pair))
        os._exit(0)

    def _bury(self) -> None:
        """What a dead worker started ends with it, before its number can be another's. One that was stopped answers
        nobody: it is as good as dead.
        """
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
            """What it would serve, to whoever asks, nobody needs."""

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
    """And all that it started."""
    for kill in (os.kill, os.killpg):
        # Before it has its own session it is no group.
        with contextlib.suppress(ProcessLookupError):
            kill(worker, signal.SIGKILL)


def _say(what: str) -> None:
    os.write(1, f"{what}\n".encode())


if __name__ == "__main__":
    main()
