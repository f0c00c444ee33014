"""Question: a question about one scenario, parsed and checked; shared by one unknown and several."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

from sawtooth.engines import Engine
from sawtooth.errors import InputError, SawtoothError
from sawtooth.io.parallel import Workers
from sawtooth.io.progress_bar import Bar
from sawtooth.sanitize import plain
from sawtooth.scenario import Loss, Scenario
from sawtooth.scenario.expressions import Comparison, parse
from sawtooth.search.answering import Check
from sawtooth.search.measuring import Measuring
from sawtooth.search.remarks import MOST_WITHIN
from sawtooth.search.samples import SampledPoint
from sawtooth.search.space import Space
from sawtooth.search.unknown import Unknown
from sawtooth.stats.interval import independent

WITHIN = "10%"
CHECK_SEEDS = 4
AGAIN = "give the same command again, with a wider --within or fewer values if it takes too long"
HOLDS = {1: "yes", 0: "unclear", -1: "no"}


@dataclass(frozen=True)
class Question:
    """``most`` is the budget of runs (None: the usual one); ``minimize`` exists for several unknowns only."""

    name: str
    scenario: Scenario
    vary: tuple[str, ...]
    want: Comparison
    scale: str | None
    within: float
    most: int | None
    minimize: str | None
    engine: Engine
    checking: Engine | None
    jobs: int | None
    executor: Executor | Workers | None
    quiet: bool

    @classmethod
    def of(cls, name: str, scenario: Scenario, given: Mapping[str, Any], **how: Any) -> Question:
        """Parses the texts. Raises SawtoothError with the option as field."""
        want = at("want", lambda: parse(given["want"]))
        within = at("within", lambda: _share(given.get("within", WITHIN)))
        if not 0.001 <= within <= MOST_WITHIN:
            raise InputError("out-of-range", "is not between 0.1% and 50%", field="within", fix="write --within 10%")
        vary = given["vary"]
        texts = (vary,) if isinstance(vary, str) else tuple(vary)
        minimize = given.get("minimize")
        if minimize is not None and len(texts) == 1:
            message = "with one --vary there is one answer, and nothing to minimize"
            raise InputError("bad-usage", message, field="minimize", fix="remove --minimize, or give --vary twice")
        return cls(name, scenario, texts, want, given.get("scale"), within, given.get("most"), minimize, **how)

    @property
    def variants(self) -> int:
        """Runs per value and seed: one for each set of changes that a measure makes."""
        return max(1, len({one.settings for one in self.want.measures if "." not in one.name}))

    def measuring(self, unknown: Unknown | Space, bar: Bar, usual: int) -> Measuring:
        """A checked ``Measuring``. The number of runs is unknown, so the bar goes to nine tenths and waits there."""
        runs = usual * self.variants
        measuring = Measuring(
            self.scenario,
            unknown,
            self.want,
            self.engine,
            self.jobs,
            self.executor,
            lambda made: bar.show(usual * min(0.9, made / runs)),
        )
        at("want", measuring.check)
        return measuring

    def budget(self, usual: int, least: int) -> int:
        """Number of margins that may be requested."""
        most = usual if self.most is None else self.most
        if most < least:
            message = f"{most} runs are too few to begin the search"
            raise InputError("out-of-range", message, field="runs", fix=f"write --runs {least} or more")
        return most // self.variants

    def checked(self, unknown: Unknown | Space, values: Sequence[Any]) -> tuple[Check, ...]:
        """Evaluates the goal on another engine at some values."""
        if self.checking is None:
            return ()
        there = Measuring(self.scenario, unknown, self.want, self.checking, self.jobs, self.executor)
        there.check()
        values = list(dict.fromkeys(values))
        seeds = range(1, CHECK_SEEDS + 1)
        tasks = [(value, seed) for value in values for seed in seeds]
        margins = dict(zip(tasks, there.margins(tasks), strict=True))
        checks = []
        for value in values:
            sides = [there.sides[value, seed] for seed in seeds]
            left, right = (math.fsum(one[side] for one in sides) / CHECK_SEEDS for side in (0, 1))
            sign = SampledPoint(0.0, 0.0, margins=[margins[value, seed] for seed in seeds]).sign
            checks.append(Check(self.checking.name, value, left, right, CHECK_SEEDS, HOLDS[sign]))
        return tuple(checks)


def _share(written: object) -> float:
    try:
        return Loss.parse(written).probability
    except SawtoothError as error:
        message = f'"{plain(str(written), 40)}" is not a precision'
        raise InputError(error.code, message, fix="write a percentage above 0, like 10%") from None


def at(field: str, what: Callable[[], Any]) -> Any:
    """Calls ``what``; its errors name ``field``."""
    try:
        return what()
    except SawtoothError as error:
        raise error.at(field=field) from None


def sample_tables(points: Sequence[SampledPoint[Any]], measuring: Measuring, names: Sequence[str]) -> tuple[Any, Any]:
    """The points tried, one row each, and one row per seed; values under ``names``."""
    import pandas as pd

    rows, samples = [], []
    for point in points:
        values = point.value if isinstance(point.value, tuple) else (point.value,)
        named = dict(zip(names, values, strict=True))
        sides = [measuring.sides[point.value, seed] for seed in range(point.first, point.first + point.n)]
        left, right = (independent([one[side] for one in sides]) for side in (0, 1))
        rows.append(
            {
                **named,
                "seeds": point.n,
                "left": left.mean,
                "left_low": left.low,
                "left_high": left.high,
                "right": right.mean,
                "holds": HOLDS[point.sign],
            }
        )
        samples += [
            {**named, "seed": seed, "left": one[0], "right": one[1]} for seed, one in enumerate(sides, point.first)
        ]
    return pd.DataFrame(rows), pd.DataFrame(samples)
