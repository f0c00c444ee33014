"""Congestion control as a learning problem: Gymnasium environments in which a flow's window or rate is the action.

``gymnasium.make("sawtooth/Path-v0", scenario=…)`` and ``gymnasium.make_vec`` work after ``import sawtooth.gym``.
"""

from __future__ import annotations

from typing import Any

from sawtooth.engines.agents import Observations
from sawtooth.engines.policy import ACTIONS, OBSERVED, Policy
from sawtooth.errors import SawtoothError, install_extra
from sawtooth.gym.episodes import delivered
from sawtooth.gym.play import play

__all__ = ["ACTIONS", "OBSERVED", "Observations", "Policy", "SawtoothEnv", "SawtoothVectorEnv", "delivered", "play"]

_ENVIRONMENTS = ("SawtoothEnv", "SawtoothVectorEnv")


def __getattr__(name: str) -> Any:
    """The environments, which need Gymnasium. Raises SawtoothError ``tool-missing`` without it."""
    if name not in _ENVIRONMENTS:
        raise AttributeError(f"module 'sawtooth.gym' has no attribute {name!r}")
    try:
        from sawtooth.gym import environment
    except ModuleNotFoundError as error:
        if error.name != "gymnasium":
            raise
        fix = install_extra("gym")
        raise SawtoothError("tool-missing", "the environments need gymnasium", fix=fix) from None
    return getattr(environment, name)


def _register() -> None:
    """Nothing without Gymnasium."""
    try:
        import gymnasium
    except ModuleNotFoundError:
        return
    where = "sawtooth.gym.environment"
    gymnasium.register("sawtooth/Path-v0", f"{where}:SawtoothEnv", vector_entry_point=f"{where}:SawtoothVectorEnv")


_register()
