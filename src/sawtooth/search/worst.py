"""Worst: the network within given ranges on which a measure is smallest, and the simplest one that shows it.

The search is differential evolution (Storn and Price 1997, as in SciPy) over the positions of the unknowns on their
scales. It compares values of one seed. The best of what it tried then run with other seeds, since the smallest of many
noisy values is smaller than its mean. Last, each field goes back to its value in the file, one at a time, while the
measure stays low. A series loses as many values as can go (Zeller and Hildebrandt 2002). What remains is rounded.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from sawtooth import engines
from sawtooth.engines import Engine
from sawtooth.errors import InputError, SawtoothError
from sawtooth.io.parallel import Workers
from sawtooth.io.progress_bar import Bar
from sawtooth.scenario import Scenario
from sawtooth.scenario.expressions import NUMBER, Comparison, Dimension, parse_expression
from sawtooth.search.answering import known
from sawtooth.search.measuring import Measuring
from sawtooth.search.question import AGAIN, CHECK_SEEDS, at
from sawtooth.search.ranges import Ranges, Settings
from sawtooth.search.unknown import Unknown
from sawtooth.stats import Interval, independent

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pandas import DataFrame

MOST = 24
"""Numbers that the search may choose: one for a field, more for a series."""
MOST_RUNS = 600
POPULATION = 24
"""Candidates of a generation, at least; three per number that it chooses if that is more."""
BEST = 4
"""Candidates that are run with other seeds."""
SEEDS = tuple(range(2, 6))
"""The seeds that confirm."""


@dataclass(frozen=True)
class At:
    """The measure in one scenario, over ``SEEDS``. ``values``: the fields that differ from the file's scenario."""

    values: dict[str, Any]
    measured: Interval


@dataclass(frozen=True, kw_only=True, repr=False)
class Worst:
    """The answer of ``find`` with ``worst``.

    - ``own``: the measure in the file's scenario. ``worst``: where it is smallest. ``simplest``: with as few fields
      changed as possible and round values, where it is still below ``limit``.
    - ``scenario``: the simplest one, as in a file. ``checked``: the measure there on another engine.
    - ``table``: one row per candidate, with its value for seed 1.
    """

    name: str
    measure: str
    ranges: Ranges
    engine: str
    dimension: Dimension
    own: At
    worst: At
    simplest: At
    limit: float
    scenario: dict[str, Any]
    runs: int
    seconds: float
    table: DataFrame
    checking: str | None = None
    checked: Interval | None = None

    @property
    def enough(self) -> bool:
        """Whether there is a network on which the measure is lower than in the file's scenario."""
        return bool(self.simplest.values)

    def describe(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "name": self.name,
            "worst": self.measure,
            "ranges": {one.field: one.limits for one in self.ranges.unknowns},
            "engine": self.engine,
            "unit": str(self.dimension),
            "own": self._describe_place(self.own),
            "found": self._describe_place(self.worst),
            "simplest": self._describe_place(self.simplest),
            "limit": known(self.limit),
            "scenario": self.scenario,
            "check": None if self.checked is None else {"engine": self.checking, **self.checked.describe()},
            "runs": self.runs,
            "seconds": round(self.seconds, 3),
        }

    def _describe_place(self, one: At) -> dict[str, Any]:
        return {"set": self.ranges.settings(tuple(one.values.items())), **one.measured.describe()}


def _mean(values: Sequence[float]) -> Interval:
    if not all(map(math.isfinite, values)):
        return Interval(math.inf, math.nan, math.nan, len(values))
    return independent(values)


def worst(
    scenario: Scenario,
    measure: str,
    *,
    vary: str | Sequence[str],
    scale: str | None = None,
    most: int | None = None,
    engine: str | Engine = "sim",
    check: str | Engine | None = None,
    jobs: int | None = None,
    executor: Executor | Workers | None = None,
    quiet: bool = True,
) -> Worst:
    """The scenario with the smallest value of an expression of measures; see ``verbs.worst``."""
    ranges = at("vary", lambda: _ranges([vary] if isinstance(vary, str) else vary, scale, scenario))
    expression = at("worst", lambda: parse_expression(measure))
    budget = MOST_RUNS if most is None else most
    population = max(POPULATION, 3 * len(ranges.spans))
    chosen = engines.get(engine) if isinstance(engine, str) else engine
    with Bar(scenario.name, budget, quiet=quiet) as bar:

        def on(engine: Engine) -> Measuring:
            made = Measuring(
                scenario,
                ranges,
                Comparison(expression, ">", expression, measure, 1),
                engine,
                jobs,
                executor,
                lambda made: bar.show(min(made, budget)),
            )
            at("worst", made.check)
            return made

        measuring = on(chosen)
        there = None if check is None else on(engines.get(check) if isinstance(check, str) else check)
        variants = max(1, len({one.changes for one in measuring.resolved.values() if not one.place}))
        least = (2 * population + BEST * len(SEEDS)) * variants
        if budget < least:
            fix = f"write --runs {least} or more"
            raise InputError("out-of-range", f"{budget} runs are too few for this search", field="runs", fix=fix)
        try:
            return _Search(measuring, ranges, budget).answer(population, budget // variants, there)
        except KeyboardInterrupt:
            raise SawtoothError("interrupted", f"interrupted after {measuring.runs} runs", fix=AGAIN) from None


def _ranges(texts: Sequence[str], scale: str | None, scenario: Scenario) -> Ranges:
    found = Ranges.parse(texts, scale, scenario)
    if len(found.spans) > MOST:
        message = f"the search would choose {len(found.spans)} numbers; it can choose {MOST}"
        raise InputError("out-of-range", message, fix="vary fewer fields, or give a series fewer values")
    return found


class _Search:
    def __init__(self, measuring: Measuring, ranges: Ranges, budget: int) -> None:
        self.measuring, self.ranges, self.budget = measuring, ranges, budget
        self.dimension = NUMBER
        self.tried: dict[Settings, float] = {}
        """The value for seed 1 of each candidate."""

    def answer(self, population: int, most: int, there: Measuring | None) -> Worst:
        """``most``: budget of candidates. ``there`` measures on the engine that checks."""
        self.evolved(population, most)
        [own] = self.confirmed([{}])
        best = sorted(self.tried, key=self.tried.__getitem__)[:BEST]
        found = min(self.confirmed([dict(values) for values in best]), key=lambda one: one.measured.mean)
        low = found.measured.mean
        limit = (own.measured.mean + low) / 2 if math.isfinite(own.measured.mean) else low
        simplest = self.rounded(self.simplified(found, limit), limit) if low < own.measured.mean else own
        key = tuple(simplest.values.items())
        return Worst(
            name=self.measuring.scenario.name,
            measure=self.measuring.want.text,
            ranges=self.ranges,
            engine=self.measuring.engine.name,
            dimension=self.dimension,
            own=own,
            worst=min(found, simplest, key=lambda one: one.measured.mean),
            simplest=simplest,
            limit=limit,
            scenario=self.measuring.scenario.set(self.ranges.settings(key)).to_dict(),
            runs=self.measuring.runs,
            seconds=self.measuring.seconds,
            table=self.table(),
            checking=None if there is None else there.engine.name,
            checked=None
            if there is None
            else _mean(self.values([(key, seed) for seed in range(1, CHECK_SEEDS + 1)], there)),
        )

    def evolved(self, population: int, most: int) -> None:
        """Fills ``tried``."""
        from scipy.optimize import differential_evolution

        ends = self.ranges.spans
        generations = max(1, (most - BEST * len(SEEDS)) // population - 1)

        def values(candidates: NDArray[Any]) -> list[float]:
            chosen = [self.ranges.values(candidate) for candidate in candidates.T]
            found = self.values([(one, 1) for one in chosen])
            self.tried |= dict(zip(chosen, found, strict=True))
            return found

        differential_evolution(
            values,
            ends,
            init=self.first(population, ends),
            maxiter=generations,
            # It never ends early: where nothing differs yet, there may be a corner that does.
            atol=-1.0,
            tol=0.0,
            polish=False,
            vectorized=True,
            updating="deferred",
            seed=1,
        )

    def first(self, population: int, ends: Sequence[tuple[float, float]]) -> NDArray[Any]:
        """The first generation: evenly over the ranges (Sobol's sequence)."""
        import numpy as np
        from scipy.stats import qmc

        low, high = np.array(ends).T
        spread = qmc.Sobol(len(ends), seed=1).random_base2(math.ceil(math.log2(population)))[:population]
        return np.asarray(low + (high - low) * spread)

    def confirmed(self, candidates: Sequence[dict[str, float]]) -> list[At]:
        """Each with ``SEEDS``."""
        keys = [tuple(one.items()) for one in candidates]
        values = iter(self.values([(key, seed) for key in keys for seed in SEEDS]))
        return [At(one, _mean([next(values) for _ in SEEDS])) for one in candidates]

    def simplified(self, found: At, limit: float) -> At:
        """Sets back one field at a time, the least important one first."""
        while len(found.values) > 1:
            fewer = [{name: value for name, value in found.values.items() if name != field} for field in found.values]
            best = min(self.confirmed(fewer), key=lambda one: one.measured.mean)
            if not best.measured.mean <= limit:
                break
            found = best
        for field in found.values:
            found = self.thinned(found, field, limit)
        return found

    def thinned(self, found: At, field: str, limit: float) -> At:
        """Takes values out of a series: half of them, a quarter, at last one at a time, until none can go, or as many
        runs are made as twice the budget."""
        if not isinstance(found.values[field], tuple):
            return found
        step = max(1, len(found.values[field]) // 2)
        while True:
            start, before = 0, found
            while start < len(series := found.values[field]) and self.measuring.runs < 2 * self.budget:
                fewer = series[:start] + series[start + step :]
                if fewer and (there := self.confirmed([{**found.values, field: fewer}])[0]).measured.mean <= limit:
                    found = there
                else:
                    start += step
            if step == 1 and found is before:
                return found
            step = max(1, step // 2)

    def rounded(self, found: At, limit: float) -> At:
        """Rounds each field as far as possible."""
        for one in self.ranges.unknowns:
            rounder: Iterable[Any] = one.rounded(found.values[one.field]) if one.field in found.values else ()
            for value in rounder:
                [there] = self.confirmed([{**found.values, one.field: value}])
                if there.measured.mean <= limit:
                    found = there
                    break
        return found

    def values(self, tasks: Sequence[tuple[Settings, int]], measuring: Measuring | None = None) -> list[float]:
        """The measure for settings and seeds; infinite where it is unknown, as where it divides by nothing."""
        measuring = measuring or self.measuring
        measuring.measure(tasks)
        return [self.value(measuring, values, seed) for values, seed in tasks]

    def value(self, measuring: Measuring, values: Settings, seed: int) -> float:
        try:
            amount = measuring.want.left.amount_of(partial(measuring.amount, values, seed))
        except InputError as error:
            if error.code != "bad-expression":
                raise
            return math.inf
        self.dimension = amount.dimension
        return math.inf if math.isnan(float(amount.value)) else float(amount.value)

    def table(self) -> DataFrame:
        import pandas as pd

        rows = []
        for values, value in self.tried.items():
            fields = zip(self.ranges.unknowns, values, strict=True)
            cells = {field: of if isinstance(one, Unknown) else one.text(of) for one, (field, of) in fields}
            rows.append({**cells, "value": value})
        return pd.DataFrame(rows)
