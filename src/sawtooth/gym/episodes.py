"""Episodes: simulations side by side, each with one flow whose window or rate someone else decides."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

from sawtooth import _core
from sawtooth.engines.agents import Observations, check_alone
from sawtooth.engines.policy import ACTIONS, OBSERVED, checked_action, interval
from sawtooth.errors import InputError, suggestion
from sawtooth.sanitize import plain
from sawtooth.scenario import Scenario

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Given = Scenario | Mapping[str, Any] | str | PathLike[str]
"""A scenario, its tables, or a file."""

Reward = Callable[[Observations], Any]
"""From an observation to a number, or from many to an array."""


def delivered(seen: Observations) -> Any:
    """Packets delivered since the last decision."""
    return seen["acked"]


def scenario_of(given: Given) -> Scenario:
    """Raises SawtoothError as reading a scenario does."""
    if isinstance(given, Scenario):
        return given
    return Scenario.from_dict(given) if isinstance(given, Mapping) else Scenario.load(given)


def flow_of(scenario: Scenario, flow: str | int | None) -> int:
    """The index of the flow to control among the compiled ones; None is the first.

    Raises InputError ``unknown-name``, ``out-of-range``.
    """
    flows = scenario.compile().flows
    names = [one.name for one in flows]
    if isinstance(flow, str):
        if flow not in names:
            message = f"no flow is named {plain(flow, 60)}"
            raise InputError("unknown-name", message, field="flow", fix=suggestion(flow, names))
        place = names.index(flow)
    else:
        place = flow or 0
    if not 0 <= place < len(flows):
        raise InputError("out-of-range", f"there is no flow {place}", field="flow", fix="write flow = 0 for the first")
    return place


def _check_lasting(scenario: Scenario, place: int) -> None:
    """Raises InputError ``unsupported`` for a flow without one lasting connection."""
    one, at = scenario.compile().flows[place], f"flows.{place}"
    if one.datagrams is not None or one.arrivals is not None:
        fix = f"remove {at}.source, or name another flow"
        raise InputError("unsupported", "an environment needs a flow with a lasting connection", field=at, fix=fix)
    if one.count > 1:
        message = f"an environment has one connection, this flow has {one.count}"
        fix = "write count = 1; for pages, source.connections = 1"
        raise InputError("unsupported", message, field=f"{at}.count", fix=fix)


class Episodes:
    """``count`` simulations. Those of ``scenarios`` are used in turn."""

    def __init__(self, scenarios: Sequence[Given], count: int, flow: str | int | None, every: str, action: str) -> None:
        self.scenarios = [scenario_of(one) for one in scenarios]
        if not self.scenarios:
            raise InputError("missing-field", "no scenario is given", field="scenarios", fix="give one")
        for one in self.scenarios:
            one.check_simulated()
        self.flows = [flow_of(one, flow) for one in self.scenarios]
        for one, place in zip(self.scenarios, self.flows, strict=True):
            _check_lasting(one, place)
            check_alone(one.compile(), [place])
        self.action = checked_action(action)
        self._core = _core.Environments(count, *interval(every), action)
        self.count = count

    def scenario(self, index: int) -> Scenario:
        return self.scenarios[index % len(self.scenarios)]

    def begin(self, index: int, seed: int | None) -> None:
        """A new episode at this place. ``seed`` None: the scenario's own."""
        scenario = self.scenario(index)
        scenario = scenario if seed is None else scenario.with_seed(seed)
        self._core.begin(index, scenario.compile().to_json(), [self.flows[index % len(self.flows)]])

    def advance(self) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Runs each to its next decision or its end: observations by place, and whether it is over."""
        seen, who = self._core.advance()
        return seen.reshape(self.count, len(OBSERVED)), who < 0

    def choose(self, actions: NDArray[np.float64]) -> None:
        self._core.choose(actions)

    def tables(self, index: int) -> dict[str, dict[str, NDArray[Any]]]:
        """The rows of the tables since the last call (docs/reference/tables.md)."""
        return self._core.take(index)

    @property
    def bounds(self) -> tuple[float, float]:
        return ACTIONS[self.action]
