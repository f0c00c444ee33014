"""SawtoothEnv and SawtoothVectorEnv: a flow's window or pacing rate as the action of a Gymnasium environment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from sawtooth.engines.agents import Observations
from sawtooth.engines.policy import OBSERVED
from sawtooth.gym.episodes import Episodes, Given, Reward, delivered
from sawtooth.scenario import Scenario

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MOST_SEED = 1 << 32
_RESET = "call reset before step"
PATH: dict[str, Any] = {
    "name": "gym-path",
    "duration": "20 s",
    "path": {"rate": "20 Mbit/s", "rtt": "40 ms", "queue": "1 bdp"},
    "flows": [{"name": "agent"}],
}
"""The default scenario: one flow on one path."""


def _spaces(bounds: tuple[float, float]) -> tuple[Any, Any]:
    observation = spaces.Box(0.0, np.inf, (len(OBSERVED),), np.float64)
    return observation, spaces.Box(bounds[0], bounds[1], (1,), np.float64)


class SawtoothEnv(gymnasium.Env["NDArray[np.float64]", "NDArray[np.float64]"]):
    """One connection of a scenario. Each step is one decision of its congestion control.

    ``scenario``: a scenario, its tables, or a file. ``flow``: the name or index of the flow to control (default: the
    first), which has one connection. ``every``: ``rtt``, ``ack``, or a time like ``10 ms``. ``action``: ``cwnd`` in
    packets, ``rate`` in bit/s, or ``change``, the power of two by which the window is multiplied. ``reward``: a
    function of the observation by name (default: packets delivered).

    Raises SawtoothError as reading a scenario does; ``unsupported``, ``unknown-name``.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012

    def __init__(
        self,
        scenario: Given = PATH,
        *,
        flow: str | int | None = None,
        every: str = "rtt",
        action: str = "cwnd",
        reward: Reward = delivered,
        render_mode: str | None = None,
    ) -> None:
        self._episodes = Episodes([scenario], 1, flow, every, action)
        self.observation_space, self.action_space = _spaces(self._episodes.bounds)
        self.reward = reward
        self.render_mode = render_mode
        self._begun = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float64], dict[str, Any]]:
        """Begins an episode and runs it to its first decision. ``seed``: the scenario's seed; without one, the first
        episode has the scenario's own seed, and others a random one that follows from it."""
        own = self._episodes.scenario(0).seed
        super().reset(seed=own if seed is None and not self._begun else seed)
        if seed is None:
            seed = int(self.np_random.integers(_MOST_SEED)) if self._begun else own
        self._begun = True
        self._episodes.begin(0, seed)
        seen, _ = self._episodes.advance()
        return seen[0], {"seed": seed}

    def step(self, action: NDArray[np.float64]) -> tuple[NDArray[np.float64], float, bool, bool, dict[str, Any]]:
        """Sets window or rate and runs to the next decision, or to the scenario's end, which truncates the episode."""
        if not self._begun:
            raise ResetNeeded(_RESET)
        self._episodes.choose(np.asarray(action, dtype=np.float64).reshape(1))
        seen, over = self._episodes.advance()
        return seen[0], float(self.reward(Observations(seen[0]))), False, bool(over[0]), {}

    def tables(self) -> dict[str, dict[str, NDArray[Any]]]:
        """The rows of the engine's tables since the last call, by table and column."""
        return self._episodes.tables(0)


class SawtoothVectorEnv(VectorEnv["NDArray[np.float64]", "NDArray[np.float64]", "NDArray[Any]"]):
    """Many such connections, which one call of the core moves. ``scenarios`` are used in turn; the rest is as in
    ``SawtoothEnv``, with a reward that takes and returns arrays.

    The step after an episode's end begins the next one (``AutoresetMode.NEXT_STEP``). Raises SawtoothError.
    """

    metadata: dict[str, Any] = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012

    def __init__(
        self,
        scenarios: Given | Sequence[Given] = PATH,
        num_envs: int = 1,
        *,
        flow: str | int | None = None,
        every: str = "rtt",
        action: str = "cwnd",
        reward: Reward = delivered,
        render_mode: str | None = None,
    ) -> None:
        given = [scenarios] if isinstance(scenarios, (Scenario, Mapping, str, PathLike)) else scenarios
        self._episodes = Episodes(given, num_envs, flow, every, action)
        self.num_envs = num_envs
        self.single_observation_space, self.single_action_space = _spaces(self._episodes.bounds)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.reward = reward
        self.render_mode = render_mode
        self._over = np.zeros(num_envs, dtype=bool)
        self._seeds: list[np.random.Generator] = []

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float64], dict[str, Any]]:
        """Begins an episode in each. ``seed``: of the first one; the others have the next ones. Without one, from the
        first scenario's seed on."""
        if seed is None or isinstance(seed, int):
            first = self._episodes.scenario(0).seed if seed is None else seed
            if seed is not None or not self._seeds:
                seeds = [first + index for index in range(self.num_envs)]
            else:
                seeds = [int(one.integers(_MOST_SEED)) for one in self._seeds]
        else:
            own = self._episodes.scenario(0).seed
            seeds = [own + index if one is None else one for index, one in enumerate(seed)]
        self._seeds = [np.random.default_rng(one) for one in seeds]
        for index, one in enumerate(seeds):
            self._episodes.begin(index, one)
        self._over = np.zeros(self.num_envs, dtype=bool)
        return self._episodes.advance()[0], {"seed": np.array(seeds)}

    def step(
        self, actions: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """As ``SawtoothEnv.step``, for all. Where an episode was over, a new one begins, with a reward of 0."""
        if not self._seeds:
            raise ResetNeeded(_RESET)
        begun = self._over
        for index in np.flatnonzero(begun):
            self._episodes.begin(int(index), int(self._seeds[index].integers(_MOST_SEED)))
        self._episodes.choose(np.ascontiguousarray(actions, dtype=np.float64).reshape(self.num_envs))
        seen, over = self._episodes.advance()
        rewards = np.asarray(self.reward(Observations(seen)), dtype=np.float64)
        if begun.any():
            rewards = np.where(begun, 0.0, rewards)
        self._over = over
        return seen, rewards, np.zeros(self.num_envs, dtype=bool), over.copy(), {}

    def tables(self, index: int) -> dict[str, dict[str, NDArray[Any]]]:
        """The rows of one environment's tables since the last call, by table and column."""
        return self._episodes.tables(index)
