"""Parallel: the single place that distributes tasks over processes or threads.

Worker processes do not import the calling script; none remains at the end, however it comes.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import (
    BrokenExecutor,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    wait,
)
from multiprocessing import connection, parent_process
from multiprocessing.context import SpawnContext, SpawnProcess
from types import ModuleType
from typing import Protocol, TypeVar

from sawtooth.errors import SawtoothError

POLL_S = 0.25
GRACE_S = 5.0
"""Seconds for running tasks to stop on their own."""

_SAFE_PATH = "PYTHONSAFEPATH"
_starting = threading.Lock()

Task = TypeVar("Task")
Result = TypeVar("Result")


class Misfit(Exception):
    """Raised by ``done`` of ``fan_out`` if a result does not fit its task. ``Workers`` repeat the task."""


class Workers(Protocol):
    """Another way to distribute work: ``sawtooth.dask.Cluster``."""

    def fan_out(
        self,
        function: Callable[[Task], Result],
        tasks: Sequence[Task],
        *,
        done: Callable[[int, Result], None],
        poll: Callable[[], None],
        stop: Callable[[], None],
    ) -> None: ...


_on_this_thread = threading.local()


@contextlib.contextmanager
def listening(requested: Callable[[], bool]) -> Iterator[None]:
    """Within the block ``stop_requested`` returns what ``requested`` does: for ``Workers``, in this thread."""
    _on_this_thread.stop_requested = requested
    try:
        yield
    finally:
        del _on_this_thread.stop_requested


def stop_requested() -> bool:
    """Called by a task: whether it should end early, if no file or event can say so, as on a cluster."""
    requested: Callable[[], bool] | None = getattr(_on_this_thread, "stop_requested", None)
    return requested is not None and requested()


def cores() -> int:
    """Number of cores that this process may use."""
    return len(os.sched_getaffinity(0))


def fan_out(
    function: Callable[[Task], Result],
    tasks: Sequence[Task],
    *,
    done: Callable[[int, Result], None],
    poll: Callable[[], None] = lambda: None,
    stop: Callable[[], None] = lambda: None,
    jobs: int | None = None,
    threads: bool = False,
    executor: Executor | Workers | None = None,
) -> None:
    """Calls ``function`` with every task: in ``jobs`` worker processes (default: one per core), in as many ``threads``
    if the work releases the GIL, or with ``executor``, an object with the interface of ``concurrent.futures``, or
    ``Workers`` (a cluster, which raises what its own ``fan_out`` documents).

    ``done`` gets each task's number and result, in order among those that are ready; ``poll`` is called several times a
    second. If anything raises (a task, these two, Ctrl-C, a dying worker), ``stop`` is called, which passes the request
    on to the tasks. Worker processes that do not end within ``GRACE_S`` are killed. Then the error is raised:
    ``concurrent.futures.BrokenExecutor`` if a worker died; SawtoothError ``no-workers`` if this system gives Python
    none.

    For worker processes, ``function``, tasks and results are pickled and must come from importable modules: definitions
    in a script are unknown there.
    """
    if not tasks:
        return
    if executor is not None and not isinstance(executor, Executor):
        executor.fan_out(function, tasks, done=done, poll=poll, stop=stop)
        return
    if threads:
        with ThreadPoolExecutor(min(jobs or cores(), len(tasks))) as pool:
            fan_out(function, tasks, done=done, poll=poll, stop=stop, executor=pool)
        return
    own = None
    if executor is None:
        context, safe = _Context(), os.environ.get(_SAFE_PATH)
        count = min(jobs or cores(), len(tasks))
        try:
            own = executor = ProcessPoolExecutor(count, mp_context=context, initializer=_prepare, initargs=(safe,))
        except (NotImplementedError, ImportError, OSError) as error:
            # Python's pools need named semaphores: a directory /dev/shm, and a build that supports it.
            fix = "mount /dev/shm (in a container: give it shared memory), and use a Python that was built where it is"
            raise SawtoothError("no-workers", f"no worker process can be had here: {error}", fix=fix) from error
    numbers: dict[Future[Result], int] = {}
    # ``concurrent.futures.wait`` would examine all waiting futures each time: with 10,000 that takes minutes.
    landed: queue.SimpleQueue[Future[Result]] = queue.SimpleQueue()
    try:
        with contextlib.nullcontext() if own is None else _deaf_to_signals():
            for number, task in enumerate(tasks):
                numbers[executor.submit(function, task)] = number
        for future in numbers:
            future.add_done_callback(landed.put)
        waiting, ended = len(numbers), False
        while waiting:
            finished = _landed(landed)
            waiting -= len(finished)
            if waiting and not finished and ended:
                raise BrokenExecutor("a worker process died")
            ended = own is not None and bool(_ended(own))
            for future in sorted(finished, key=numbers.__getitem__):
                done(numbers[future], future.result())
            poll()
    except BaseException:
        try:
            stop()
        finally:
            _end(set(numbers), own)
        raise
    finally:
        if own is not None:
            own.shutdown(wait=True, cancel_futures=True)


def results(
    function: Callable[[Task], Result],
    tasks: Sequence[Task],
    *,
    jobs: int | None = None,
    threads: bool = False,
    executor: Executor | Workers | None = None,
) -> list[Result]:
    """The results of ``fan_out`` in the order of the tasks."""
    found: dict[int, Result] = {}
    fan_out(function, tasks, done=found.__setitem__, jobs=jobs, threads=threads, executor=executor)
    return [found[number] for number in range(len(tasks))]


def _landed(queued: queue.SimpleQueue[Future[Result]]) -> list[Future[Result]]:
    """The futures that finish within ``POLL_S``."""
    found = []
    with contextlib.suppress(queue.Empty):
        found.append(queued.get(timeout=POLL_S))
        while True:
            found.append(queued.get_nowait())
    return found


def _ended(own: ProcessPoolExecutor) -> list[object]:
    """Processes of the pool that have ended: none before the end, unless one died.

    The pool does not watch a process that started slowly (CPython's ``submit`` wakes its manager before it starts one):
    if that one dies, the pool waits forever.
    """
    return list(connection.wait([process.sentinel for process in list((own._processes or {}).values())], 0))


def _end(futures: set[Future[Result]], own: ProcessPoolExecutor | None) -> None:
    """Waits for running tasks; worker processes that take too long are killed."""
    if own is None:
        for future in futures:
            future.cancel()
    # After ``stop`` the workers skip the remaining tasks. They are not cancelled: a process pool that breaks while it
    # has cancelled futures never ends (CPython's ``_ExecutorManagerThread.terminate_broken`` fails on them).
    processes = list((own._processes or {}).values()) if own is not None else []
    running = [process.sentinel for process in processes]
    limit = time.monotonic() + GRACE_S
    all_end = False
    # Interrupted twice: stop waiting.
    with contextlib.suppress(KeyboardInterrupt):
        all_end = not wait(futures, GRACE_S).not_done
        # A broken pool declares every future done while its other workers still run, and waits for them.
        broken = bool(connection.wait(running, 0))
        while broken and running and (left := limit - time.monotonic()) > 0:
            ended = connection.wait(running, left)
            running = [sentinel for sentinel in running if sentinel not in ended]
        all_end = all_end and not (broken and running)
    if not all_end:
        for process in processes:
            process.kill()


@contextlib.contextmanager
def _deaf_to_signals() -> Iterator[None]:
    """Ctrl-C goes to every process of a terminal, SIGTERM to every one of a service. Workers inherit that they ignore
    both, from their first instant until ``_prepare``."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Process(SpawnProcess):
    """A process that imports what it must call, but neither the started script nor, while starting, anything in the
    working directory."""

    def start(self) -> None:
        with _starting:
            script, safe = sys.modules["__main__"], os.environ.get(_SAFE_PATH)
            # multiprocessing has a new process run this module's file, guarded or not; this one has none.
            sys.modules["__main__"] = ModuleType("__main__")
            os.environ[_SAFE_PATH] = "1"
            try:
                super().start()
            finally:
                sys.modules["__main__"] = script
                _set_safe_path(safe)


class _Context(SpawnContext):
    Process = _Process


def _set_safe_path(value: str | None) -> None:
    if value is None:
        os.environ.pop(_SAFE_PATH, None)
    else:
        os.environ[_SAFE_PATH] = value


def _prepare(safe_path: str | None) -> None:
    """Leaves Ctrl-C and SIGTERM to the parent, and ends with it: otherwise a worker would wait forever."""
    _set_safe_path(safe_path)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Caught, not ignored: the programs that an engine starts must not inherit it, or nobody could end them.
    signal.signal(signal.SIGTERM, lambda *_: None)
    parent = parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()


def _end_with(sentinel: int) -> None:
    connection.wait([sentinel])
    os._exit(1)
