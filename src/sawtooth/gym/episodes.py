"""Episodes: simulations side by side, each with one flow whose window or rate someone else decides."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from sawtooth import _core
from sawtooth.engines.policy import ACTIONS, OBSERVED, checked_action, interval
from sawtooth.errors import InputError, suggestion
from sawtooth.scenario import Scenario

if TYPE_CHECKING:
    from numpy.typing import NDArray

Given = Scenario | Mapping[str, Any] | str | PathLike[str]
"""A scenario, its tables, or a file."""
Floats = "NDArray[np.float64]"


class Seen(Mapping[str, Any]):
    """Observations by name: numbers, or arrays with one number for each environment."""

    def __init__(self, seen: NDArray[np.float64]) -> None:
        self._seen = seen

    def __getitem__(self, name: str) -> Any:
        return self._seen[..., _PLACES[name]]

    def __iter__(self) -> Any:
        return iter(_PLACES)

    def __len__(self) -> int:
        return len(_PLACES)


_PLACES = {name: place for place, name in enumerate(OBSERVED)}
Reward = Callable[[Seen], Any]
"""From an observation to a number, or from many to an array."""


def delivered(seen: Seen) -> Any:
    """Packets delivered since the last decision."""
    return seen["acked"]


def scenario_of(given: Given) -> Scenario:
    """Raises SawtoothError as reading a scenario does."""
    if isinstance(given, Scenario):
        return given
    return Scenario.from_dict(given) if isinstance(given, Mapping) else Scenario.load(given)


def flow_of(scenario: Scenario, flow: str | int | None, *, several: bool = False) -> int:
    """The place of the flow that decides among the compiled ones; the first one if it is not named. ``several``: it may
    have more than one connection.

    Raises InputError ``unknown-name``; ``unsupported`` for a flow without one lasting connection.
    """
    flows = scenario.compile().flows
    names = [one.name for one in flows]
    if flow is None:
        place = 0
    elif isinstance(flow, str):
        if flow not in names:
            raise InputError("unknown-name", f"no flow is named {flow!r}", field="flow", fix=suggestion(flow, names))
        place = names.index(flow)
    else:
        place = flow
    if not 0 <= place < len(flows):
        raise InputError("out-of-range", f"there is no flow {place}", field="flow", fix="write flow = 0 for the first")
    one, at = flows[place], f"flows.{place}"
    if one.datagrams is not None or one.arrivals is not None or one.asks is not None:
        fix = f"remove {at}.source, or name another flow"
        raise InputError("unsupported", "only flows that send all the time can be decided", field=at, fix=fix)
    if one.count > 1 and not several:
        message = f"an environment has one connection, this flow has {one.count}"
        raise InputError("unsupported", message, field=f"{at}.count", fix="write count = 1")
    return place


class Episodes:
    """``count`` simulations. Those of ``scenarios`` are used in turn."""

    def __init__(
        self, scenarios: Sequence[Given], count: int, flow: str | int | None, every: str, action: str, *, several: bool
    ) -> None:
        self.scenarios = [scenario_of(one) for one in scenarios]
        for one in self.scenarios:
            one.check_simulated()
        self.flows = [flow_of(one, flow, several=several) for one in self.scenarios]
        self.action = checked_action(action)
        self._core = _core.Environments(count, *interval(every), action)
        self.count = count

    def scenario(self, index: int) -> Scenario:
        return self.scenarios[index % len(self.scenarios)]

    def begin(self, index: int, seed: int | None) -> None:
        """A new episode at this place. ``seed`` None: the scenario's own."""
        scenario = self.scenario(index)
        scenario = scenario if seed is None else scenario.with_seed(seed)
        self._core.begin(index, scenario.compile().to_json(), self.flows[index % len(self.flows)])

    def advance(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Runs each to its next decision or its end: observations by place, and which connection decides, -1 at the
        end."""
        seen, who = self._core.advance()
        return seen.reshape(self.count, len(OBSERVED)), who

    def choose(self, actions: NDArray[np.float64]) -> None:
        self._core.choose(actions)

    def tables(self, index: int) -> dict[str, dict[str, NDArray[Any]]]:
        """The rows of the tables since the last call (docs/reference/tables.md)."""
        return self._core.take(index)

    @property
    def bounds(self) -> tuple[float, float]:
        return ACTIONS[self.action]
