"""Task: a group of tasks in the form in which a scheduler carries it, its execution on a worker, and the answer.

A scheduler unpickles what it passes on, down to ``pickle.loads`` and a byte string. Unpickling those bytes, on the
worker, is the call. So the scheduler needs none of Sawtooth's modules, and never sees the content of tasks.
"""

from __future__ import annotations

import math
import pickle
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from sawtooth.errors import SawtoothError
from sawtooth.io.parallel import listening
from sawtooth.run import versions
from sawtooth.sanitize import plain

_stopped_flights: dict[str, float] = {}
_MOST_STOPPED = 1000
_lock = threading.Lock()


@dataclass(frozen=True)
class Call:
    """Calls ``function`` for each of ``tasks``; ``flight`` names the tasks that end together. Unpickling it executes
    the call."""

    key: str
    """Unique to this call, also when its tasks are repeated; the answer repeats it."""
    flight: str
    versions: dict[str, str]
    """The caller's versions: others would give other results."""
    function: Callable[[Any], Any]
    tasks: Sequence[Any]

    def packed(self) -> bytes:
        return pickle.dumps(self, protocol=pickle.HIGHEST_PROTOCOL)

    def __reduce__(self) -> tuple[Any, ...]:
        return _called, (self.key, self.flight, self.versions, self.function, tuple(self.tasks))


@dataclass
class Answer:
    """A worker's answer for a group: the results of its first tasks, of all of them if nothing failed."""

    key: str
    results: list[Any] = field(default_factory=list)
    error: Exception | None = None
    """The exception of the next task."""
    refused: bool = False
    """The worker has other versions."""
    took_s: float = 0.0


class NoAnswer(Exception):
    """The reply is not an answer to the call; the message says why. Its tasks are repeated."""


def checked(said: object, key: str, function: Callable[[Any], Any], tasks: int) -> Answer:
    """Returns ``said`` if it answers the call with this key, with ``tasks`` results of ``function``. Raises NoAnswer.

    Unpickling runs code that the worker wrote. So this finds faults, but workers must be trusted
    (docs/how-to/cluster.md).
    """
    if not isinstance(said, bytes):
        raise NoAnswer(f"its answer is {type(said).__name__}, not bytes")
    try:
        answer = pickle.loads(said)
    except Exception as error:
        raise NoAnswer(f"its answer cannot be read: {type(error).__name__}: {plain(str(error), 100)}") from error
    if type(answer) is not Answer or set(vars(answer)) != set(Answer.__dataclass_fields__):
        raise NoAnswer("its answer is of another kind")
    if answer.key != key:
        raise NoAnswer("its answer belongs to another group of tasks")
    if answer.refused is not False:
        raise NoAnswer("it says that it has another version of sawtooth")
    if not isinstance(answer.results, list) or not isinstance(answer.took_s, float):
        raise NoAnswer("its answer is of another kind")
    if not 0 <= answer.took_s < math.inf:
        raise NoAnswer(f"its tasks took {answer.took_s} s")
    if answer.error is not None and not isinstance(answer.error, Exception):
        raise NoAnswer("its error is none")
    # If a task raised, the later ones were not started.
    count = len(answer.results)
    if count != tasks if answer.error is None else count >= tasks:
        raise NoAnswer(f"it has {count} results of {tasks} tasks")
    expected = _returned(function)
    for result in answer.results:
        if expected and not isinstance(result, expected):
            raise NoAnswer(f"one of its results is {type(result).__name__}")
    return answer


def _returned(function: Callable[[Any], Any]) -> tuple[type, ...]:
    """The classes in the return annotation of ``function``; empty without one."""
    while isinstance(function, partial):
        function = function.func
    try:
        said = get_type_hints(function).get("return", Any)
    except (TypeError, NameError):
        return ()
    said = type(None) if said is None else said
    kinds = [get_origin(one) or one for one in (get_args(said) if get_origin(said) in (Union, UnionType) else [said])]
    if float in kinds:
        # Type checkers accept an int as a float.
        kinds.append(int)
    try:
        isinstance(None, tuple(kinds))
    except TypeError:
        return ()
    return tuple(kinds)


def _called(
    key: str, flight: str, expected: dict[str, str], function: Callable[[Any], Any], tasks: Sequence[Any]
) -> bytes:
    answer = Answer(key)
    if versions() != expected:
        answer.refused = True
        return pickle.dumps(answer)
    begun = time.monotonic()
    with listening(lambda: flight in _stopped_flights):
        for task in tasks:
            if flight in _stopped_flights:
                break
            try:
                answer.results.append(function(task))
            except BaseException as error:
                answer.error = _pickled(error)
                break
    answer.took_s = time.monotonic() - begun
    try:
        return pickle.dumps(answer, protocol=pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        return pickle.dumps(Answer(key, error=_defect(error)), protocol=pickle.HIGHEST_PROTOCOL)


def _pickled(error: BaseException) -> Exception:
    """``error``, or one with the same message if it cannot be pickled."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return _defect(error)
    return error if isinstance(error, Exception) else _defect(error)


def _defect(error: BaseException) -> SawtoothError:
    fix = "this is a defect of sawtooth: please report it"
    return SawtoothError("internal", f"{type(error).__name__}: {error}", fix=fix)


async def request_stop(flight: str) -> None:
    """On a worker, in parallel with its tasks: asks the tasks of this flight to end early."""
    with _lock:
        _stopped_flights[flight] = time.monotonic()
        while len(_stopped_flights) > _MOST_STOPPED:
            _stopped_flights.pop(next(iter(_stopped_flights)))
