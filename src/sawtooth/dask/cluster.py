"""Cluster: connects to a running scheduler of Dask's distributed, or starts a temporary one."""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import logging
import os
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from sawtooth.dask.local import LocalCluster
from sawtooth.dask.scheduler import Flight
from sawtooth.dask.secure import Files
from sawtooth.dask.workers import Crew
from sawtooth.errors import InputError, SawtoothError, install_extra
from sawtooth.io.closing import Closing
from sawtooth.io.parallel import cores
from sawtooth.sanitize import plain

CONNECT_S = 15.0
"""Seconds until a scheduler must answer."""

_LOCAL = re.compile(r"local(?::([0-9]{1,4}))?")
_ADDRESS = re.compile(r"(tcp|tls|ucx|ws|wss)://[A-Za-z0-9_.%:\[\]-]+:[0-9]{1,5}/?")
_ENCRYPTED = ("tls://", "wss://")
_MOST_WORKERS = 1024
"""Most local workers."""

_log = logging.getLogger(__name__)

Task = TypeVar("Task")
Result = TypeVar("Result")


class Cluster(Closing):
    """The workers of a Dask scheduler, for the argument ``executor``. Use it as a context manager.

    ``where`` selects the workers:

    - ``tcp://HOST:PORT`` (or ``tls://``) of a scheduler, or the JSON file that a scheduler wrote about itself;
    - ``local`` or ``local:N``: a temporary scheduler with N worker processes (default: one per core), which end with
      the block;
    - a ``distributed.Client``, which stays open.

    ``ca``, ``certificate`` and ``key`` are PEM files for ``tls://``: of the authority that signed the scheduler's
    certificate, your certificate, and its key (default: in the same file). Without them Dask's own configuration
    applies. ``local`` makes its own certificate. Without TLS anybody who reaches the scheduler can run programs; a
    warning says so.

    Raises SawtoothError: ``tool-missing`` without the extra ``cluster``, ``bad-usage`` for another text or for files
    that are not certificates, ``file-not-found``, ``cluster-unreachable`` if no scheduler answers.
    """

    def __init__(
        self,
        where: Any,
        *,
        ca: str | os.PathLike[str] | None = None,
        certificate: str | os.PathLike[str] | None = None,
        key: str | os.PathLike[str] | None = None,
    ) -> None:
        self._own = contextlib.ExitStack()
        self._local: LocalCluster | None = None
        distributed = needed("distributed")
        security = Files(ca, certificate, key).security()
        try:
            if isinstance(where, distributed.Client):
                self.client = where
                return
            given = str(where)
            found = _LOCAL.fullmatch(given)
            self._own.enter_context(_silent())
            if found is not None and security is not None:
                fix = "remove the certificates, or give tls://HOST:PORT of your scheduler"
                raise InputError("bad-usage", "local makes its own certificate", field="cluster", fix=fix)
            if found is not None:
                count = int(found[1]) if found[1] else cores()
                if not 1 <= count <= _MOST_WORKERS:
                    fix = f"write local, or local:N with N from 1 to {_MOST_WORKERS}"
                    raise InputError(
                        "bad-usage", f"local:{count} is not a possible number of workers", field="cluster", fix=fix
                    )
                self._local = self._own.enter_context(LocalCluster(count))
                given, security = self._local.address, self._local.security
            self.client = self._own.enter_context(self._connected(distributed, given, security))
        except BaseException:
            self._own.close()
            raise

    def close(self) -> None:
        """Disconnects from the scheduler and ends local workers."""
        self._own.close()

    def fan_out(
        self,
        function: Callable[[Task], Result],
        tasks: Sequence[Task],
        *,
        done: Callable[[int, Result], None],
        poll: Callable[[], None],
        stop: Callable[[], None],
    ) -> None:
        """Like ``sawtooth.io.parallel.fan_out``, which calls this: ``function``, tasks and results are pickled.

        Each result is delivered exactly once; tasks of a worker that died are repeated on another. Raises
        SawtoothError: ``cluster-lost`` if the scheduler disappears, ``worker-died`` if a task kills one worker after
        the other, ``no-workers`` if all workers have other versions.
        """
        renew = self._local.renew if self._local is not None else lambda: None
        Flight(self.client, Crew(self.client), function, tasks).run(done=done, poll=poll, stop=stop, renew=renew)

    @contextlib.contextmanager
    def _connected(self, distributed: Any, given: str, security: Any) -> Iterator[Any]:
        if not _ADDRESS.fullmatch(given):
            given = _of_file(given)
        if not given.startswith(_ENCRYPTED):
            if security is not None:
                fix = f"start the scheduler with TLS, and give tls://{given.partition('://')[2]}"
                raise InputError("bad-usage", "certificates are for tls:// only", field=plain(given, 100), fix=fix)
            _log.warning("%s has no TLS: anybody who reaches it can run programs as you and as its workers", given)
        # A client that could not connect is closed when it is collected. Inside the start of the next one, which holds
        # distributed's lock, that would never end.
        gc.collect()
        try:
            with warnings.catch_warnings():
                # Differences in packages are checked and reported per worker.
                warnings.simplefilter("ignore")
                client = distributed.Client(
                    given, timeout=CONNECT_S, set_as_default=False, heartbeat_interval="5s", security=security
                )
        except Exception as error:
            # Anything may be listening there; distributed has no single exception for it.
            message = f"no Dask scheduler answers: {type(error).__name__}: {plain(str(error), 200)}"
            fix = "start one (dask scheduler), and give the address that it prints; or use --cluster local"
            if security is not None:
                fix = "give the address that the scheduler prints, and a certificate that its authority signed"
            raise SawtoothError("cluster-unreachable", message, field=plain(given, 100), fix=fix) from error
        try:
            yield client
        finally:
            client.close(timeout=5)


def needed(module: str) -> Any:
    """Imports a module of the extra ``cluster``. Raises SawtoothError ``tool-missing`` if it is not installed."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        message = f"{module} is not installed, and --cluster needs it"
        fix = install_extra("cluster")
        raise SawtoothError("tool-missing", message, fix=fix) from error


def _of_file(given: str) -> str:
    """The address in the file that ``dask scheduler --scheduler-file`` writes."""
    fix = "give tcp://HOST:PORT, the scheduler's JSON file, local, or local:N"
    if not given.endswith(".json"):
        raise InputError(
            "bad-usage", f'"{plain(given, 60)}" is not the address of a scheduler', field="cluster", fix=fix
        )
    try:
        address = json.loads(Path(given).read_text(encoding="utf-8"))["address"]
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise InputError(
            "bad-usage", "this is not a file of a Dask scheduler", file=given, field="cluster", fix=fix
        ) from error
    if not isinstance(address, str) or not _ADDRESS.fullmatch(address):
        raise InputError("bad-usage", "this file has no valid address", file=given, field="cluster", fix=fix)
    return address


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    """Hides distributed's log about workers that die; Sawtooth's errors report it where it matters."""
    before = {}
    names = [name for name in logging.root.manager.loggerDict if name.split(".")[0] == "distributed"]
    for name in ["distributed", *names]:
        logger = logging.getLogger(name)
        before[logger] = logger.level
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in before.items():
            logger.setLevel(level)
