"""Play: a congestion control written as a Python function."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from sawtooth.gym.episodes import Episodes, Given, Seen
from sawtooth.io.table_store import Growing
from sawtooth.run import Run, metadata

if TYPE_CHECKING:
    from numpy.typing import NDArray

DECISIONS_A_TAKE = 10_000
"""Decisions between two readings of the tables, so that these are not all in memory."""

Decide = Callable[[Seen], float]
"""From what a connection's sender sees to the action."""


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
    what it needs. The rest is as in ``SawtoothEnv``. Raises SawtoothError as that.
    """
    episodes = Episodes([scenario], 1, flow, every, action, several=True)
    whole = episodes.scenario(0)
    compiled = whole.compile()
    growing, decides = Growing(), {}
    episodes.begin(0, None)
    decisions = 0
    while True:
        seen, who = episodes.advance()
        connection = int(who[0])
        if connection < 0:
            break
        decide = decides.get(connection)
        if decide is None:
            decide = decides[connection] = connect()
        episodes.choose(np.array([decide(Seen(seen[0]))], dtype=np.float64))
        decisions += 1
        if decisions % DECISIONS_A_TAKE == 0:
            growing.add(episodes.tables(0))
    growing.add(episodes.tables(0))
    tables = growing.finish()
    limited = metadata.limits(compiled, tables)
    described: dict[str, Any] = {
        "names": metadata.names(compiled),
        "decisions": decisions,
        "limits": limited,
        "warnings": metadata.warnings(whole, tables, limited),
    }
    return Run(scenario=whole, engine="sim", tables=tables, meta=described)
