"""Call: a group of tasks as a scheduler carries it, what a worker makes of it, and the answer.

A scheduler unpickles what it passes on, as far as ``pickle.loads`` and a text of bytes: unpickling the bytes, at the
worker, is the call. So the scheduler needs nothing of ours, and never sees what tasks hold.
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
from sawtooth.plain import plain
from sawtooth.run import versions
from sawtooth.work import listening

_told: dict[str, float] = {}
_MOST_TOLD = 1000
_lock = threading.Lock()


@dataclass(frozen=True)
class Call:
    """``function`` for each of ``tasks``; ``flight`` names those that end together. Its pickle is the call itself."""

    key: str
    """Of this call alone, also when its tasks are called again: the answer has it too."""
    flight: str
    asked: dict[str, str]
    """The versions of who asks: another one would give other results."""
    function: Callable[[Any], Any]
    tasks: Sequence[Any]

    def packed(self) -> bytes:
        return pickle.dumps(self, protocol=pickle.HIGHEST_PROTOCOL)

    def __reduce__(self) -> tuple[Any, ...]:
        return _called, (self.key, self.flight, self.asked, self.function, tuple(self.tasks))


@dataclass
class Answer:
    """What a worker says of a group: results of its first tasks, of all where nothing is the matter."""

    key: str
    results: list[Any] = field(default_factory=list)
    error: Exception | None = None
    """What the next task raised."""
    refused: bool = False
    """The worker is of other versions."""
    took_s: float = 0.0


class NoAnswer(Exception):
    """What came back is no answer to the call, and why: its tasks are to be done again."""


def checked(said: object, key: str, function: Callable[[Any], Any], tasks: int) -> Answer:
    """``said``, where it is an answer to the call of this key, of ``function`` and so many tasks. Raises NoAnswer.

    Unpickling runs what the worker wrote: this finds faults, and workers are trusted (docs/how-to/cluster.md).
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
    # Where a task raised, the later ones were not begun.
    told = len(answer.results)
    if told != tasks if answer.error is None else told >= tasks:
        raise NoAnswer(f"it has {told} results of {tasks} tasks")
    expected = _returned(function)
    for result in answer.results:
        if expected and not isinstance(result, expected):
            raise NoAnswer(f"one of its results is {type(result).__name__}")
    return answer


def _returned(function: Callable[[Any], Any]) -> tuple[type, ...]:
    """The classes of which ``function`` says that it returns one; none where it does not say so."""
    while isinstance(function, partial):
        function = function.func
    try:
        said = get_type_hints(function).get("return", Any)
    except (TypeError, NameError):
        return ()
    said = type(None) if said is None else said
    kinds = [get_origin(one) or one for one in (get_args(said) if get_origin(said) in (Union, UnionType) else [said])]
    if float in kinds:
        # As type checkers have it.
        kinds.append(int)
    try:
        isinstance(None, tuple(kinds))
    except TypeError:
        return ()
    return tuple(kinds)


def _called(
    key: str, flight: str, asked: dict[str, str], function: Callable[[Any], Any], tasks: Sequence[Any]
) -> bytes:
    answer = Answer(key)
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
    try:
        return pickle.dumps(answer, protocol=pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        return pickle.dumps(Answer(key, error=_defect(error)), protocol=pickle.HIGHEST_PROTOCOL)


def _pickled(error: BaseException) -> Exception:
    """``error``, or where it cannot travel one that says the same."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return _defect(error)
    return error if isinstance(error, Exception) else _defect(error)


def _defect(error: BaseException) -> SawtoothError:
    fix = "this is a defect of sawtooth: please report it"
    return SawtoothError("internal", f"{type(error).__name__}: {error}", fix=fix)


async def tell(flight: str) -> None:
    """At a worker, beside the tasks that it runs: this flight's tasks are to end early."""
    with _lock:
        _told[flight] = time.monotonic()
        while len(_told) > _MOST_TOLD:
            _told.pop(next(iter(_told)))
