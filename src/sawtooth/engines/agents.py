"""Congestion controls that the engine ``sim`` takes from a policy's file or from a Python file."""

from __future__ import annotations

import math
import sys
import types
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sawtooth import _core
from sawtooth.engines.policy import OBSERVED, Policy, checked_action, interval
from sawtooth.errors import InputError, SawtoothError
from sawtooth.io.untrusted import read_bytes
from sawtooth.sanitize import plain
from sawtooth.scenario.compiled import Compiled

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LARGEST = 1 << 20
_PLACES = {name: place for place, name in enumerate(OBSERVED)}
DECISIONS_A_SLICE = 2_000
"""Decisions in Python between two checks of progress and stop."""


class Observations(Mapping[str, Any]):
    """Observations by name: numbers, or arrays with one number for each environment."""

    def __init__(self, seen: NDArray[np.float64]) -> None:
        self._seen = seen

    def __getitem__(self, name: str) -> Any:
        return self._seen[..., _PLACES[name]]

    def __iter__(self) -> Iterator[str]:
        return iter(_PLACES)

    def __len__(self) -> int:
        return len(_PLACES)


Decide = Callable[[Observations], float]
"""From what a connection's sender sees to the action."""


@dataclass(frozen=True)
class Control:
    """A congestion control as Python functions: ``connect`` is called once for each connection and returns the function
    of its decisions. ``file``: where it is from."""

    connect: Callable[[], Decide]
    every: str = "ack"
    action: str = "cwnd"
    file: str | None = None

    @classmethod
    def load(cls, path: str) -> Control:
        """Runs a Python file that defines ``connect``, and ``every`` and ``action`` if they differ from the default.

        Raises InputError ``file-not-found``, ``file-unreadable``, ``bad-policy``, ``unknown-name``.
        """
        source = read_bytes(path, _LARGEST)
        module = types.ModuleType(f"sawtooth_control_{Path(path).stem}")
        module.__file__ = path
        # Data classes and pickles look for their module there.
        sys.modules[module.__name__] = module
        names = module.__dict__
        try:
            exec(compile(source, path, "exec", dont_inherit=True), names)
        except (Exception, SystemExit) as error:
            line = f" in line {error.lineno}" if isinstance(error, SyntaxError) else ""
            message = f"this Python file does not run: {_describe(error)}{line}"
            raise InputError("bad-policy", message, file=path, fix=f"run it: python {path}") from None
        if not callable(names.get("connect")):
            fix = "write def connect(): and let it return a function of what the sender sees"
            raise InputError("bad-policy", "it defines no function connect", file=path, fix=fix)
        every, action = str(names.get("every", cls.every)), str(names.get("action", cls.action))
        try:
            interval(every)
            return cls(names["connect"], every, checked_action(action), path)
        except InputError as error:
            raise error.at(file=path) from None


def _describe(error: BaseException) -> str:
    return plain(f"{type(error).__name__}: {error}", 200)


def policies(compiled: Compiled) -> dict[int, Policy]:
    """By flow. Raises InputError as ``Policy.load``, and ``conflict`` as ``_only``."""
    found = {}
    for index, source in _only(compiled, ".npz").items():
        try:
            found[index] = Policy.load(source)
        except SawtoothError as error:
            raise error.at(field=f"flows.{index}.cc.source") from None
    return found


def controls(compiled: Compiled) -> dict[int, Control]:
    """By flow. Raises InputError as ``Control.load``, and ``conflict`` if two Python files are named."""
    files = _only(compiled, ".py")
    loaded: dict[str, Control] = {}
    for index, source in files.items():
        if source not in loaded:
            if loaded:
                fix = "write both controls in one file, or run them one at a time"
                at = f"flows.{index}.cc.source"
                raise InputError("conflict", "a scenario has one Python file that decides", field=at, fix=fix)
            try:
                loaded[source] = Control.load(source)
            except SawtoothError as error:
                raise error.at(field=f"flows.{index}.cc.source") from None
    return {index: loaded[source] for index, source in files.items()}


def check_alone(compiled: Compiled, played: Collection[int]) -> None:
    """Raises InputError ``unsupported`` for files of congestion controls beside the flows that Python decides."""
    for index, flow in enumerate(compiled.flows):
        if flow.module is not None and (index not in played or not flow.module.is_agent):
            message = "beside a flow decided from Python, other flows have controls by name"
            if index in played:
                message = "a flow decided from Python has no control in C"
            raise InputError("unsupported", message, field=f"flows.{index}.cc", fix='write cc = "reno"')


def _only(compiled: Compiled, suffix: str) -> dict[int, str]:
    """The file of each flow whose control is one of this kind. Raises InputError ``conflict`` where it is not given
    alone, or where the scenario has files of several kinds."""
    found: dict[int, str] = {}
    kinds: dict[str, int] = {}
    for index, flow in enumerate(compiled.flows):
        module = flow.module
        if module is None:
            continue
        kinds[Path(module.sources[0]).suffix if module.is_agent else ".c"] = index
        if not module.is_agent or not module.sources[0].endswith(suffix):
            continue
        if len(module.sources) > 1 or module.parameters or module.name:
            fix = f'write cc = {{ source = "{Path(module.sources[0]).name}" }}'
            message = f"a {suffix} file has no parameters, no name, and no other files beside it"
            raise InputError("conflict", message, field=f"flows.{index}.cc", fix=fix)
        found[index] = module.sources[0]
    if found and len(kinds) > 1:
        message = f"a scenario has congestion controls from one kind of file, this one has {', '.join(sorted(kinds))}"
        fix = "run them one at a time"
        raise InputError("conflict", message, field=f"flows.{max(kinds.values())}.cc", fix=fix)
    return found


class AgentSimulation:
    """A simulation with flows whose decisions Python functions make. Its interface is that of ``_core.Simulation``."""

    def __init__(self, scenario: str, controls: Mapping[int, Control]) -> None:
        control = next(iter(controls.values()))
        self._control = control
        self._decides: dict[int, Decide] = {}
        self._core = _core.Environments(1, *interval(control.every), control.action)
        self._core.begin(0, scenario, list(controls))
        self.decisions = 0

    def advance(self, until_ns: int, max_events: int) -> bool:
        """Runs for ``DECISIONS_A_SLICE`` decisions, whatever time and events they take; true at the end.

        Raises SawtoothError ``policy-failed``.
        """
        for _ in range(DECISIONS_A_SLICE):
            seen, who = self._core.advance()
            connection = int(who[0])
            if connection < 0:
                return True
            self._core.choose(np.array([self._decide(connection, Observations(seen))], dtype=np.float64))
            self.decisions += 1
        return False

    def _decide(self, connection: int, seen: Observations) -> float:
        try:
            decide = self._decides.get(connection)
            if decide is None:
                decide = self._decides[connection] = self._control.connect()
            value = float(decide(seen))
            if math.isnan(value):
                raise ValueError("the decision is not a number")
            return value
        except (Exception, SystemExit) as error:
            message = f"the congestion control raised {_describe(error)}{_place(error, self._control.file)}"
            fix = "correct the function that connect returns"
            raise SawtoothError("policy-failed", message, file=self._control.file, fix=fix) from error

    def take(self) -> dict[str, dict[str, NDArray[Any]]]:
        return self._core.take(0)

    @property
    def now_ns(self) -> int:
        return self._core.counts(0)[0]

    @property
    def events(self) -> int:
        return self._core.counts(0)[1]

    @property
    def delivered_packets(self) -> int:
        return self._core.counts(0)[2]


def _place(error: BaseException, file: str | None) -> str:
    """Which line of the file raised it, in words."""
    line, at = None, error.__traceback__
    while at is not None:
        if at.tb_frame.f_code.co_filename == file:
            line = at.tb_lineno
        at = at.tb_next
    return "" if line is None else f" in line {line}"
