"""Local: a scheduler in this process and worker processes of our own, for as long as they are needed."""

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

from sawtooth.cluster.secure import Pair
from sawtooth.errors import SawtoothError
from sawtooth.temporary import directory as temporary

_YOUNG_S = 10.0
"""Who dies before did not work at all."""
_YOUNG = 5
# Neither logs that our errors tell, nor a profile that nobody sees. By default a worker's loop looks at itself fifty
# times a second, and takes Python's lock from the thread that works for it: a seventh of the processor time.
_SELDOM = {"distributed.admin.tick.interval": "1s", "distributed.admin.system-monitor.interval": "5s"}
_QUIET = {"logging.distributed": "critical", "distributed.worker.profile.enabled": "False", **_SELDOM}
# Of what a first run loads, the largest part that a parent need not have loaded to ask for it.
_NEEDED = (
    "distributed",
    "pandas",
    "pyarrow.parquet",
    "pyarrow.pandas_compat",
    "pandas.core.arrays.arrow.extension_types",
)


class Local:
    """``count`` workers of a thread each. One that dies is started anew; at the end, however it comes, none is left.

    They and the scheduler listen on the loopback address, and take TLS by a certificate of this run alone.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._stack = contextlib.ExitStack()
        self._begun: dict[int, float] = {}
        self._died_young = 0
        self.address = ""

    def __enter__(self) -> Self:
        import dask
        import distributed

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
        """Of the workers, by their ids, as far as they have begun."""
        self.renew()
        return list(self._begun)

    def renew(self) -> None:
        """Starts workers in the place of those that died. Raises SawtoothError ``no-workers`` where they live too
        short to work.
        """
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
            fix = f"try one by hand: {sys.executable} -m sawtooth.cluster --help"
            message = f"the workers of --cluster local end at once (exit status {status})"
            raise SawtoothError("no-workers", message, fix=fix)

    def _begin(self) -> None:
        """The parent of all workers: deaf to a terminal's Ctrl-C, in a session of its own; its standard input ends
        with us, and they with it.
        """
        self._since = time.monotonic()
        self._unread = ""
        self._parent = subprocess.Popen(
            [sys.executable, "-P", "-m", "sawtooth.cluster", self.address, str(self._place)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            env={**os.environ, **{_variable(name): value for name, value in _QUIET.items()}},
        )
        assert self._parent.stdout is not None
        os.set_blocking(self._parent.stdout.fileno(), False)
        # What is loaded here its tasks will need there, and once is enough.
        ours = [name for name in sys.modules if name.partition(".")[0] == "sawtooth"]
        # Others can read neither this pipe nor the memory of its two ends; command lines and files they could.
        self._tell(json.dumps({"path": sys.path, "modules": [*_NEEDED, *ours], "pair": self._pair}))
        for _ in range(self._count):
            self._start()

    def _start(self) -> None:
        self._tell("")

    def _tell(self, line: str) -> None:
        assert self._parent.stdin is not None
        with contextlib.suppress(OSError):
            self._parent.stdin.write(f"{line}\n".encode())
            self._parent.stdin.flush()

    def _heard(self) -> Iterator[tuple[str, int, int]]:
        """What became of workers: sign, process, and exit status of one that ended."""
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
    """Without the pages that distributed's own one serves to whoever asks."""

    class Scheduler(distributed.Scheduler):  # type: ignore[misc]
        def start_http_server(self, *_: Any, **__: Any) -> None:
            pass

    return Scheduler


def _variable(name: str) -> str:
    """What Dask reads a setting from."""
    return "DASK_" + name.replace(".", "__").replace("-", "_").upper()
