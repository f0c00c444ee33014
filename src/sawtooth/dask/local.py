"""A scheduler in this process with temporary worker processes."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Self

from sawtooth.dask.secure import Pair
from sawtooth.errors import SawtoothError
from sawtooth.io.tempdirs import directory as temporary

_YOUNG_S = 10.0
"""A worker that dies sooner than this did not work at all."""
_YOUNG = 5
# Disables logs that duplicate Sawtooth's errors, and an unused profiler. By default a worker's event loop wakes fifty
# times a second and takes the GIL from the working thread: a seventh of the processor time.
_SELDOM = {"distributed.admin.tick.interval": "1s", "distributed.admin.system-monitor.interval": "5s"}
_QUIET = {"logging.distributed": "critical", "distributed.worker.profile.enabled": "False", **_SELDOM}
# The largest part of what a first run loads that the parent itself may not have loaded.
_NEEDED = (
    "distributed",
    "pandas",
    "pyarrow.parquet",
    "pyarrow.pandas_compat",
    "pandas.core.arrays.arrow.extension_types",
)


class LocalCluster:
    """``count`` workers with one thread each. One that dies is replaced; none remains at the end, however it comes.

    Scheduler and workers listen on the loopback address and use TLS with a certificate made for this run.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._stack = contextlib.ExitStack()
        self._begun: dict[int, float] = {}
        self._died_young = 0
        self.address = ""

    def __enter__(self) -> Self:
        import distributed

        import dask

        try:
            self._place = self._stack.enter_context(temporary())
            self._pair = Pair.made()
            self.security = self._stack.enter_context(self._pair.held())
            options = {"host": "127.0.0.1", "port": 0, "protocol": "tls://", "security": self.security}
            make: Any = distributed.SpecCluster
            with dask.config.set(_SELDOM):
                scheduler = make(
                    scheduler={"cls": _scheduler(distributed), "options": {**options, "dashboard": False}},
                    security=self.security,
                )
            self._stack.callback(scheduler.close, timeout=5)
            self.address = scheduler.scheduler_address
            self._begin()
            self._stack.callback(self._end)
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stack.close()

    @property
    def processes(self) -> list[int]:
        """The process ids of the workers that have started."""
        self.renew()
        return list(self._begun)

    def renew(self) -> None:
        """Replaces workers that died. Raises SawtoothError ``no-workers`` if they die too soon to work."""
        for sign, worker, status in self._heard():
            if sign == "+":
                self._begun[worker] = time.monotonic()
            else:
                self._mourn(self._begun.pop(worker), 1, status)
                self._start()
        if self._parent.poll() is not None:
            self._mourn(self._since, self._count, self._parent.returncode)
            self._end()
            self._begin()

    def _mourn(self, begun: float, workers: int, status: int) -> None:
        self._died_young = self._died_young + workers if time.monotonic() - begun < _YOUNG_S else 0
        if self._died_young > _YOUNG * self._count:
            fix = f"try one by hand: {sys.executable} -m sawtooth.dask --help"
            message = f"the workers of --cluster local end at once (exit status {status})"
            raise SawtoothError("no-workers", message, fix=fix)

    def _begin(self) -> None:
        """Starts the parent of all workers in a separate session, which ignores a terminal's Ctrl-C. It ends, with the
        workers, when its standard input closes."""
        self._since = time.monotonic()
        self._unread = ""
        self._parent = subprocess.Popen(
            [sys.executable, "-P", "-m", "sawtooth.dask", self.address, str(self._place)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            env={**os.environ, **{_variable(name): value for name, value in _QUIET.items()}},
        )
        assert self._parent.stdout is not None
        os.set_blocking(self._parent.stdout.fileno(), False)
        # Modules loaded here will be needed by the tasks; loading them once there is enough.
        ours = [name for name in sys.modules if name.partition(".")[0] == "sawtooth"]
        # Other users cannot read this pipe or the memory of its two ends, unlike command lines and files.
        self._send(json.dumps({"path": sys.path, "modules": [*_NEEDED, *ours], "pair": self._pair}))
        for _ in range(self._count):
            self._start()

    def _start(self) -> None:
        self._send("")

    def _send(self, line: str) -> None:
        assert self._parent.stdin is not None
        with contextlib.suppress(OSError):
            self._parent.stdin.write(f"{line}\n".encode())
            self._parent.stdin.flush()

    def _heard(self) -> Iterator[tuple[str, int, int]]:
        """Events of workers: sign, process, and the exit status of one that ended."""
        assert self._parent.stdout is not None
        *lines, self._unread = (self._unread + (self._parent.stdout.read() or b"").decode()).split("\n")
        for line in lines:
            worker, _, status = line[1:].partition(" ")
            yield line[0], int(worker), int(status or 0)

    def _end(self) -> None:
        assert self._parent.stdin is not None
        assert self._parent.stdout is not None
        with contextlib.suppress(OSError):
            self._parent.stdin.close()
        try:
            self._parent.wait(5)
        except subprocess.TimeoutExpired:
            self._parent.kill()
            self._parent.wait()
        self._parent.stdout.close()
        self._begun = {}


def _scheduler(distributed: Any) -> Any:
    """A scheduler without distributed's web pages, which anyone could open."""

    class Scheduler(distributed.Scheduler):  # type: ignore[misc]
        def start_http_server(self, *_: Any, **__: Any) -> None:
            pass

    return Scheduler


def _variable(name: str) -> str:
    """The environment variable from which Dask reads a setting."""
    return "DASK_" + name.replace(".", "__").replace("-", "_").upper()
