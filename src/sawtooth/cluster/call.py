"""Call: a group of tasks as a scheduler carries it, what a worker makes of it, and the answer.

A scheduler unpickles what it passes on, as far as ``pickle.loads`` and a text of bytes: unpickling the bytes, at the
worker, is the call. So the scheduler needs nothing of ours, and never sees what tasks hold.
"""

from __future__ import annotations

import pickle
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from sawtooth.errors import SawtoothError
from sawtooth.run import versions
from sawtooth.work import listening

_told: dict[str, float] = {}
_MOST_TOLD = 1000
_lock = threading.Lock()


@dataclass(frozen=True)
class Call:
    """``function`` for each of ``tasks``; ``flight`` names those that end together. Its pickle is the call itself."""

    flight: str
    asked: dict[str, str]
    """The versions of who asks: another one would give other results."""
    function: Callable[[Any], Any]
    tasks: Sequence[Any]

    def packed(self) -> bytes:
        return pickle.dumps(self, protocol=pickle.HIGHEST_PROTOCOL)

    def __reduce__(self) -> tuple[Any, ...]:
        return _called, (self.flight, self.asked, self.function, tuple(self.tasks))


@dataclass
class Answer:
    """What a worker says of a group: results of its first tasks, of all where nothing is the matter."""

    results: list[Any] = field(default_factory=list)
    error: BaseException | None = None
    """What the next task raised."""
    refused: bool = False
    """The worker is of other versions."""
    took_s: float = 0.0


def _called(flight: str, asked: dict[str, str], function: Callable[[Any], Any], tasks: Sequence[Any]) -> bytes:
    answer = Answer()
    if versions() != asked:
        answer.refused = True
        return pickle.dumps(answer)
    begun = time.monotonic()
    with listening(lambda: flight in _told):
        for task in tasks:
            if flight in _told:
                break
            try:
                answer.results.append(function(task))
            except BaseException as error:
                answer.error = _pickled(error)
                break
    answer.took_s = time.monotonic() - begun
    return pickle.dumps(answer, protocol=pickle.HIGHEST_PROTOCOL)


def _pickled(error: BaseException) -> BaseException:
    """``error``, or where it cannot travel one that says the same."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        fix = "this is a defect of sawtooth: please report it"
        return SawtoothError("internal", f"{type(error).__name__}: {error}", fix=fix)
    return error


async def tell(flight: str) -> None:
    """At a worker, beside the tasks that it runs: this flight's tasks are to end early."""
    with _lock:
        _told[flight] = time.monotonic()
        while len(_told) > _MOST_TOLD:
            _told.pop(next(iter(_told)))
