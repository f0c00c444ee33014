"""Runs scenarios on the core of ``sim`` in parallel and passes on rows as they are produced, as the page's worker does
in the browser."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from sawtooth.io.parallel import cores
from sawtooth.scenario import Scenario

_FIRST_SHARE = 1e-3
_MOST_EVENTS = 50_000_000
"""Maximum number of events in one step."""


def run(scenarios: Sequence[Scenario], every_ms: float, send: Callable[[dict[str, Any], bytes], None]) -> None:
    """Run all scenarios to their ends, all at the same fraction of their duration, and pass their rows to ``tell``
    about every ``every_ms``.

    Pauses between steps do not change a simulation. Raises ValueError if the core refuses a scenario.
    """
    from sawtooth import _core

    compiled = [scenario.compile() for scenario in scenarios]
    simulations = [_core.Simulation(one.to_json(), None) for one in compiled]
    finished = [False] * len(simulations)
    reached, step, worked_s = 0.0, _FIRST_SHARE, 0.0

    def advance(which: int) -> None:
        until_ns = round(min(1.0, reached) * compiled[which].duration_ns)
        if not finished[which]:
            finished[which] = simulations[which].advance(until_ns, _MOST_EVENTS)

    # The core runs without holding Python's global lock.
    with ThreadPoolExecutor(min(cores(), len(simulations))) as threads:
        while not all(finished):
            reached += step
            before = time.perf_counter()
            list(threads.map(advance, range(len(simulations))))
            took_s = time.perf_counter() - before
            worked_s += took_s
            step *= min(4.0, max(0.25, every_ms / 1e3 / max(took_s, 1e-4)))
            runs: list[dict[str, Any]] = []
            columns: list[bytes] = []
            for which, simulation in enumerate(simulations):
                tables = _described(simulation.take(), columns)
                runs.append({"nowNs": simulation.now_ns, "finished": finished[which], "tables": tables})
            events = sum(simulation.events for simulation in simulations)
            send({"kind": "rows", "runs": runs, "events": events, "workedMs": worked_s * 1e3}, b"".join(columns))


def _described(tables: dict[str, dict[str, Any]], columns: list[bytes]) -> list[Any]:
    """Describe tables: for each column its name, type and number of rows. The column's bytes are appended to
    ``columns``."""
    descriptions = []
    for table, columns_by_name in tables.items():
        names = []
        for name, values in columns_by_name.items():
            kind = "u1" if values.dtype == bool else values.dtype.str[1:]
            names.append([name, kind, len(values)])
            columns.append(values.tobytes())
        descriptions.append([table, names])
    return descriptions
