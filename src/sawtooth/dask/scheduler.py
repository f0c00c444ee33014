"""Scheduler: sends tasks to a cluster in groups that take some seconds, with a limited number of groups at a time."""

from __future__ import annotations

import asyncio
import contextlib
import math
import pickle
import queue
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sawtooth.dask.task import Answer, Call, NoAnswer, checked, request_stop
from sawtooth.dask.workers import Crew
from sawtooth.errors import InputError, SawtoothError
from sawtooth.io.parallel import GRACE_S, POLL_S, Misfit
from sawtooth.run import versions
from sawtooth.sanitize import plain

GROUP_S = 4.0
"""Target seconds per group: few groups for the scheduler, and little is lost if a worker dies."""
A_SECOND = 50
"""Groups per second that caller and scheduler carry easily; with many workers, groups are longer."""
MOST_IN_GROUP = 500
AHEAD = 2
"""Groups per thread of the workers: one runs, the next is waiting when it ends."""
_NAP_S = 0.1
_FETCH_S = 60.0
_UNDONE = 100
"""Limit on how many more groups may return undone than done."""


@dataclass(frozen=True)
class _Group:
    key: str
    numbers: tuple[int, ...]
    only: frozenset[str] | None
    """The workers that may receive it."""
    alone: bool
    """It killed workers, so its tasks go one by one."""


class Flight:
    """The tasks of one ``fan_out``. Raises SawtoothError ``unsupported`` for a function that workers cannot import."""

    def __init__(self, client: Any, crew: Crew, function: Callable[[Any], Any], tasks: Sequence[Any]) -> None:
        import distributed

        if getattr(function, "__module__", "") == "__main__":
            fix = "put it into a separate module, which workers can import"
            message = "workers can't find the function: the script itself defines it"
            raise InputError("unsupported", message, field="function", fix=fix)

        self._client, self._crew, self._function, self._tasks = client, crew, function, tasks
        self._killed = distributed.KilledWorker
        self._name = f"sawtooth-{secrets.token_hex(8)}"
        self._waiting = deque(range(len(tasks)))
        self._alone: deque[int] = deque()
        self._under_way: dict[Any, _Group] = {}
        self._landed: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._submitted = 0
        self._each_s = math.nan
        """Recent seconds per task."""
        self._undone = 0

    def run(
        self,
        *,
        done: Callable[[int, Any], None],
        poll: Callable[[], None],
        stop: Callable[[], None],
        renew: Callable[[], None],
    ) -> None:
        polled = -math.inf
        try:
            while self._waiting or self._alone or self._under_way:
                now = time.monotonic()
                if now - polled > POLL_S:
                    polled = now
                    renew()
                    self._check_workers()
                    poll()
                self._refill()
                with contextlib.suppress(queue.Empty):
                    self._land(self._landed.get(timeout=POLL_S), done)
        except BaseException as error:
            lost = isinstance(error, Exception) and not isinstance(error, SawtoothError) and not self._is_there()
            self._end(stop)
            if lost:
                raise self._lost() from error
            raise

    def _is_there(self) -> bool:
        return bool(self._client.status == "running")

    def _lost(self) -> SawtoothError:
        fix = "start the scheduler and its workers again, then give the same command"
        return SawtoothError("cluster-lost", "the scheduler went away", fix=fix)

    def _check_workers(self) -> None:
        if not self._is_there():
            raise self._lost()
        self._crew.refresh()
        alive = self._crew.alive.keys()
        for future, group in list(self._under_way.items()):
            if group.only is not None and not group.only & alive:
                self._again(future)

    def _refill(self) -> None:
        most = AHEAD * self._crew.threads
        while len(self._under_way) < most and (self._waiting or self._alone):
            if self._alone:
                self._submit((self._alone.popleft(),), alone=True)
            else:
                size = min(self._size(), len(self._waiting))
                self._submit(tuple(self._waiting.popleft() for _ in range(size)))

    def _size(self) -> int:
        """Tasks of the next group: fewer at the end, so that all workers end at about the same time."""
        if math.isnan(self._each_s):
            return 1
        threads = self._crew.threads
        even = math.ceil(len(self._waiting) / (AHEAD * threads))
        wanted_s = max(GROUP_S, threads / A_SECOND)
        return max(1, min(MOST_IN_GROUP, even, int(wanted_s / max(self._each_s, 1e-6))))

    def _submit(self, numbers: tuple[int, ...], *, alone: bool = False) -> None:
        only = self._crew.only
        self._submitted += 1
        key = f"{self._name}-{self._submitted}"
        call = Call(key, self._name, versions(), self._function, [self._tasks[number] for number in numbers])
        future = self._client.submit(pickle.loads, call.packed(), key=key, workers=only, pure=False)
        self._under_way[future] = _Group(key, numbers, frozenset(only) if only is not None else None, alone)
        future.add_done_callback(self._landed.put)

    def _again(self, future: Any, done: int = 0) -> None:
        """Requeues its tasks except the first ``done``; a later answer is ignored."""
        group = self._under_way.pop(future)
        (self._alone if group.alone else self._waiting).extendleft(reversed(group.numbers[done:]))
        future.cancel()

    def _land(self, future: Any, done: Callable[[int, Any], None]) -> None:
        group = self._under_way.get(future)
        if group is None:
            return
        handed = 0
        try:
            answer = self._answer(future, group)
            if answer is None:
                return
            for number, result in zip(group.numbers, answer.results, strict=False):
                done(number, result)
                handed += 1
        except (NoAnswer, Misfit) as error:
            sender = self._sender(future)
            self._again(future, handed)
            self._count_undone(str(error))
            if sender is not None:
                self._crew.blame(sender, str(error))
            return
        self._undone = max(0, self._undone - 1)
        del self._under_way[future]
        future.release()
        if answer.results:
            each_s = answer.took_s / len(answer.results)
            self._each_s = each_s if math.isnan(self._each_s) else 0.8 * self._each_s + 0.2 * each_s
        if answer.error is not None:
            raise answer.error

    def _count_undone(self, why: str) -> None:
        self._undone += 1
        if self._undone > _UNDONE:
            message = f"{_UNDONE} groups of tasks more came back undone than done; the last: {why}"
            fix = "look at the logs of the workers; the same command continues"
            raise SawtoothError("worker-died", message, fix=fix)
        self._crew.refresh(at_once=True)

    def _sender(self, future: Any) -> str | None:
        """The worker that gave the answer, according to the scheduler."""
        try:
            holders = self._client.who_has([future]).get(future.key, ())
        except Exception:
            return None
        return next(iter(holders), None)

    def _answer(self, future: Any, group: _Group) -> Answer | None:
        """The answer; None if its tasks were taken back. Raises NoAnswer."""
        if future.status in ("cancelled", "lost"):
            if not self._is_there():
                raise self._lost()
            raise NoAnswer("it was lost on the way")
        try:
            said = future.result(timeout=_FETCH_S)
        except self._killed as error:
            if len(group.numbers) > 1:
                del self._under_way[future]
                self._alone.extend(group.numbers)
                return None
            task = getattr(self._tasks[group.numbers[0]], "point", f"task {group.numbers[0]}")
            message = f"{task}: workers that ran it died, one after the other: {plain(str(error), 200)}"
            fix = "give workers more memory, or look at their logs; the same command continues"
            raise SawtoothError("worker-died", message, fix=fix) from error
        except (Exception, asyncio.CancelledError) as error:
            # The call itself raises nothing, so it was not executed, for example on a worker with other modules.
            if not self._is_there():
                raise self._lost() from error
            raise NoAnswer(f"{type(error).__name__}: {plain(str(error), 100)}") from error
        return checked(said, group.key, self._function, len(group.numbers))

    def _end(self, stop: Callable[[], None]) -> None:
        """Forwards the request to stop, waits briefly for running tasks, and takes back the rest."""
        try:
            stop()
        finally:
            futures, self._under_way = list(self._under_way), {}
            if any(future.status == "pending" for future in futures) and self._is_there():
                # In a thread, because a worker that has just died and is still listed gives no answer for 30 s.
                threading.Thread(target=self._forward, daemon=True).start()
                limit = time.monotonic() + GRACE_S
                # Interrupted twice: stop waiting.
                with contextlib.suppress(KeyboardInterrupt):
                    while time.monotonic() < limit and any(future.status == "pending" for future in futures):
                        time.sleep(_NAP_S)
            with contextlib.suppress(Exception):
                self._client.cancel(futures)

    def _forward(self) -> None:
        """Tells the workers to stop."""
        with contextlib.suppress(Exception):
            self._client.run(request_stop, self._name, workers=list(self._crew.alive), on_error="ignore", wait=False)
