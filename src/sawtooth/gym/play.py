"""Play: a congestion control written as a Python function."""

from __future__ import annotations

from collections.abc import Callable

from sawtooth.engines.agents import Control, Decide
from sawtooth.engines.sim import Sim
from sawtooth.gym.episodes import Given, flow_of, scenario_of
from sawtooth.run import Run


def play(
    scenario: Given,
    connect: Callable[[], Decide],
    *,
    flow: str | int | None = None,
    every: str = "ack",
    action: str = "cwnd",
) -> Run:
    """Runs the scenario with a flow whose congestion control is a Python function, and returns the run as ``sim`` does.

    ``connect`` is called once for each connection of the flow and returns the function of its decisions, which may keep
    what it needs. The rest is as in ``SawtoothEnv``. Raises SawtoothError as that; ``policy-failed``.
    """
    whole = scenario_of(scenario)
    return Sim(played={flow_of(whole, flow): Control(connect, every, action)}).run(whole)
