"""Local: a scheduler in this process and worker processes of our own, for as long as they are needed."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from types import TracebackType
from typing import Any, Self

from sawtooth.errors import SawtoothError
from sawtooth.temporary import directory as temporary

_YOUNG_S = 10.0
"""Who dies before did not work at all."""
_YOUNG = 5
# Neither logs that our errors tell, nor a profile that nobody sees, at a hundredth of a second.
_QUIET = {"DASK_LOGGING__DISTRIBUTED": "critical", "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False"}


class Local:
    """``count`` workers of a thread each. One that dies is started anew; at the end, however it comes, none is left."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._stack = contextlib.ExitStack()
        self._workers: dict[subprocess.Popen[bytes], float] = {}
        self._died_young = 0
        self.address = ""

    def __enter__(self) -> Self:
        import distributed

        try:
            self._place = self._stack.enter_context(temporary())
            make: Any = distributed.LocalCluster
            scheduler = make(
                n_workers=0,
                processes=True,
                protocol="tcp://",
                host="127.0.0.1",
                scheduler_port=0,
                dashboard_address="127.0.0.1:0",
            )
            self._stack.callback(scheduler.close, timeout=5)
            self.address = scheduler.scheduler_address
            self._stack.callback(self._end)
            for _ in range(self._count):
                self._start()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stack.close()

    @property
    def processes(self) -> list[int]:
        """Of the workers, by their ids."""
        return [worker.pid for worker in self._workers]

    def renew(self) -> None:
        """Starts workers in the place of those that died. Raises SawtoothError ``no-workers`` where they live too
        short to work.
        """
        for worker, begun in list(self._workers.items()):
            if worker.poll() is None:
                continue
            self._bury(worker)
            self._died_young = self._died_young + 1 if time.monotonic() - begun < _YOUNG_S else 0
            if self._died_young > _YOUNG * self._count:
                fix = f"try one by hand: {sys.executable} -m sawtooth.cluster --help"
                message = f"the workers of --cluster local end at once (exit status {worker.returncode})"
                raise SawtoothError("no-workers", message, fix=fix)
            self._start()

    def _start(self) -> None:
        # Deaf to a terminal's Ctrl-C, in a session of its own; its standard input ends with us, and it with that.
        worker = subprocess.Popen(
            [sys.executable, "-P", "-m", "sawtooth.cluster", self.address, str(self._place)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
            env={**os.environ, **_QUIET},
        )
        self._workers[worker] = time.monotonic()
        assert worker.stdin is not None
        with contextlib.suppress(OSError):
            worker.stdin.write(json.dumps(sys.path).encode() + b"\n")
            worker.stdin.flush()

    def _bury(self, worker: subprocess.Popen[bytes]) -> None:
        """What a dead worker started ends with it."""
        del self._workers[worker]
        with contextlib.suppress(OSError):
            os.killpg(worker.pid, signal.SIGKILL)
        assert worker.stdin is not None
        with contextlib.suppress(OSError):
            worker.stdin.close()

    def _end(self) -> None:
        workers = list(self._workers)
        for worker in workers:
            assert worker.stdin is not None
            with contextlib.suppress(OSError):
                worker.stdin.close()
        for worker in workers:
            try:
                worker.wait(5)
            except subprocess.TimeoutExpired:
                worker.kill()
                worker.wait()
            self._bury(worker)
