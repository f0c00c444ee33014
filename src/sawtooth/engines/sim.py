"""Engine ``sim``: the packet-level simulator of the Rust core, driven in slices so that progress and Ctrl-C work."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from sawtooth import meta
from sawtooth.errors import SawtoothError
from sawtooth.run import Run

if TYPE_CHECKING:
    import numpy as np

    from sawtooth.engines import Progress, Stop
    from sawtooth.scenario import Scenario

EVENTS_A_SLICE = 200_000
"""Events between two looks at progress and stop: some tens of milliseconds."""
_BATCHES = 256
"""So many are joined: in three hours of simulated time there are tens of thousands, most of them nearly empty."""


class Sim:
    """Answers every scenario that the scenario format can express, within a working memory that its duration does not
    change; only the tables grow.
    """

    name = "sim"

    def check(self, scenario: Scenario) -> None:
        """The simulator does all that a scenario can ask; this only makes sure that its core is there.

        Raises SawtoothError ``core-missing``.
        """
        _core()

    def run(self, scenario: Scenario, *, progress: Progress | None = None, stop: Stop | None = None) -> Run:
        """Simulates to the end. The tables depend on the scenario and its seed only.

        Raises SawtoothError: ``core-missing``, ``core-failed``, ``interrupted`` (``stop`` answered true).
        """
        core = _core()
        compiled = scenario.compile()
        begun = time.perf_counter()
        batches: list[dict[str, dict[str, np.ndarray]]] = []
        try:
            simulation = core.Simulation(json.dumps(compiled))
            finished = False
            while not finished:
                if stop is not None and stop():
                    fix = "run it again"
                    raise SawtoothError("interrupted", "stopped before the end of the scenario", fix=fix)
                finished = simulation.advance(compiled["duration_ns"], EVENTS_A_SLICE)
                batches.append(simulation.take())
                if len(batches) == _BATCHES:
                    batches = [_joined(batches)]
                if progress is not None:
                    progress(min(1.0, simulation.now_ns / compiled["duration_ns"]))
        except ValueError as error:
            raise SawtoothError("core-failed", f"the core refused the scenario: {error}", fix=_REPORT_IT) from error
        except BaseException as error:
            # PyO3 raises a panic of the core as a BaseException, so that nobody swallows it by accident.
            if type(error).__name__ != "PanicException":
                raise
            raise SawtoothError("core-failed", f"the core failed: {error}", fix=_REPORT_IT) from error
        import pandas as pd

        tables = {table: pd.DataFrame(columns) for table, columns in _joined(batches).items()}
        described: dict[str, Any] = {
            "names": meta.names(compiled),
            "events": simulation.events,
            "delivered_packets": simulation.delivered_packets,
            "warnings": meta.warnings(compiled, tables),
            # Differs from run to run, unlike everything else.
            "wall_s": time.perf_counter() - begun,
        }
        return Run(scenario=scenario, engine=self.name, tables=tables, meta=described)


ENGINE = Sim()

_REPORT_IT = "this is a defect of sawtooth: please report it with the scenario"


def _core() -> Any:
    try:
        from sawtooth import _core
    except ImportError as error:
        message = f"the simulator's core cannot be loaded: {error}"
        raise SawtoothError("core-missing", message, fix="build it: make demo, or maturin develop --release") from error
    return _core


def _joined(batches: list[dict[str, dict[str, np.ndarray]]]) -> dict[str, dict[str, np.ndarray]]:
    """One array a table and column from the batches that ``take`` gave, in order."""
    import numpy as np

    return {
        table: {column: np.concatenate([batch[table][column] for batch in batches]) for column in batches[0][table]}
        for table in batches[0]
    }
