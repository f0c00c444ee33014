"""Runs: one scenario run with several seeds, in memory, with their combined statistics."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from sawtooth.engines import Engine
from sawtooth.errors import InputError
from sawtooth.io.displayable import Drawn
from sawtooth.io.parallel import fan_out
from sawtooth.io.progress_bar import Bar
from sawtooth.run import Run
from sawtooth.scenario import Scenario
from sawtooth.study.interval_text import unchanging
from sawtooth.study.measures import ordered
from sawtooth.study.result import rows_of
from sawtooth.study.shares import ALL

if TYPE_CHECKING:
    from pandas import DataFrame, Series

MOST_SEEDS = 10_000


@dataclass(frozen=True, repr=False)
class Runs(Drawn):
    """Runs of one scenario that differ only in their seeds, in the order of ``seeds``. A sequence of ``Run``."""

    scenario: Scenario
    engine: str
    seeds: tuple[int, ...]
    runs: tuple[Run, ...]

    def __len__(self) -> int:
        return len(self.runs)

    def __iter__(self) -> Iterator[Run]:
        return iter(self.runs)

    def __getitem__(self, at: int) -> Run:
        return self.runs[at]

    @cached_property
    def table(self) -> DataFrame:
        """One row per seed, and one with seed "all": the columns of a study's ``table.csv`` (docs/reference/tables.md)
        without comparisons."""
        import pandas as pd

        frame = pd.DataFrame(rows_of(self.engine, list(zip(self.seeds, self.runs, strict=True))))
        return frame[ordered(list(frame.columns))]

    def mean(self) -> Series[Any]:
        """The row over all seeds: means over the runs, counts per run, and the 95% interval of the mean."""
        table = self.table
        return table[table["seed"] == ALL].iloc[0].rename("mean")

    @property
    def warnings(self) -> list[str]:
        """Warning sentences, each once."""
        said = dict.fromkeys(warning for run in self.runs for warning in run.warnings)
        return [*said, *unchanging([dict(self.mean())], len(self.scenario.flows) > 1, [])]


def run_seeds(
    scenario: Scenario, seeds: Sequence[int], engine: Engine, *, jobs: int | None = None, quiet: bool = True
) -> Runs:
    """Runs a scenario once for each seed, in ``jobs`` threads (default: one per core).

    Raises SawtoothError: as the engine does; ``out-of-range`` for no seed or too many, ``conflict`` for a repeated one,
    ``bad-usage`` for ``jobs`` below 1.
    """
    chosen = tuple(seeds)
    if not 1 <= len(chosen) <= MOST_SEEDS:
        raise InputError(
            "out-of-range",
            f"a run takes 1 … 10000 seeds, not {len(chosen)}",
            field="seeds",
            fix="give 1 … 10000 of them: [1, 2, 3]",
        )
    if len(set(chosen)) < len(chosen):
        raise InputError("conflict", "a seed is listed twice", field="seeds", fix="give each once: [1, 2, 3]")
    if jobs is not None and jobs < 1:
        raise InputError("bad-usage", f"a run needs at least 1 thread, not {jobs}", field="jobs", fix="give 1 or more")
    scenarios = [scenario.set({"seed": seed}) for seed in chosen]
    for one in scenarios:
        engine.check(one)
    found: dict[int, Run] = {}
    stop = threading.Event()
    with Bar(scenario.name, len(chosen), quiet=quiet) as bar:

        def done(number: int, run: Run) -> None:
            found[number] = run
            bar.show(float(len(found)))

        fan_out(
            partial(_run, engine, stop.is_set),
            scenarios,
            done=done,
            poll=lambda: bar.show(float(len(found))),
            stop=stop.set,
            jobs=jobs,
            threads=True,
        )
    return Runs(scenario, engine.name, chosen, tuple(found[number] for number in range(len(chosen))))


def _run(engine: Engine, stop: Callable[[], bool], scenario: Scenario) -> Run:
    return engine.run(scenario, stop=stop)


def mean_of(row: Mapping[str, Any]) -> str:
    """A row's mean goodput in words, with its interval if it has one."""
    from sawtooth.study.interval_text import interval

    interval_words = interval(row)
    return f"{row['mean_mbps']:.2f} Mbit/s" + ("" if interval_words == "-" else f" (95% interval {interval_words})")
