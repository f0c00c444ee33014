"""Compares the simulator's result at each point with the kernel's, with the noise of both."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sawtooth.compare.fidelity.grid import Point
from sawtooth.compare.fidelity.measurements import Row
from sawtooth.compare.fidelity.measures import FLOW, MEASURES, SHARE, Measure
from sawtooth.stats.interval import Mean

if TYPE_CHECKING:
    from pandas import DataFrame

REFERENCE, TRIED = "kernel", "sim"


@dataclass(frozen=True)
class Estimate:
    """The mean over runs, its standard error, and half of its 95% interval (NaN for fewer than two runs)."""

    mean: float
    error: float
    half: float
    runs: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Estimate:
        known = [value for value in values if not math.isnan(value)]
        if not known:
            return cls(math.nan, math.nan, math.nan, 0)
        mean = Mean.of(known)
        return cls(mean.value, mean.error, mean.half(), len(known))


@dataclass(frozen=True)
class Answer:
    """The runs of one engine at one point."""

    point: Point
    engine: str
    rows: tuple[Row, ...]

    def estimate(self, measure: Measure) -> Estimate:
        return Estimate.of([row[measure.name] for row in self.rows])

    def shares(self) -> dict[str, Estimate]:
        """Each congestion control's share of the throughput; empty if there is only one."""
        ccs = [flow.cc for flow in self.point.scenario.compile().flows]
        by_run = [[float(part) for part in row["shares"].split()] for row in self.rows]
        if len(set(ccs)) == 1:
            return {}
        return {
            cc: Estimate.of([math.fsum(part for part, of in zip(run, ccs, strict=True) if of == cc) for run in by_run])
            for cc in dict.fromkeys(ccs)
        }

    def flows(self) -> dict[str, Estimate]:
        """Each flow's throughput, by name."""
        runs = [[float(part) * row["mean_mbps"] for part in row["shares"].split()] for row in self.rows]
        names = [flow.name for flow in self.point.scenario.compile().flows]
        return {name: Estimate.of(values) for name, *values in zip(names, *runs, strict=True)}


def answers(points: Sequence[Point], engine: str, rows: dict[str, list[Row]]) -> dict[str, Answer]:
    """Answers by point name, for the points that have runs in ``rows`` (by question)."""
    found = ((point, rows.get(point.question)) for point in points)
    return {point.name: Answer(point, engine, tuple(runs)) for point, runs in found if runs}


def by_engine(sides: Sequence[dict[str, Answer]]) -> DataFrame:
    """One row per point and engine: build, number of runs, simulated seconds of each, and each measure with its
    standard error."""
    import pandas as pd

    rows = []
    for name in sides[0]:
        for answer in (side[name] for side in sides if name in side):
            row: dict[str, Any] = {
                "point": name,
                "engine": answer.engine,
                "build": answer.rows[0]["engine"],
                "runs": len(answer.rows),
                "seconds": answer.point.scenario.duration.seconds,
            }
            for measure in MEASURES:
                found = answer.estimate(measure)
                row |= {measure.name: found.mean, f"{measure.name}_error": found.error}
            shares = answer.shares()
            row["shares"] = " ".join(f"{cc}={share.mean:.4f}" for cc, share in shares.items())
            row["shares_error"] = " ".join(f"{cc}={share.error:.4f}" for cc, share in shares.items())
            rows.append(row)
    return pd.DataFrame(rows)


def compare(reference: dict[str, Answer], tried: dict[str, Answer]) -> DataFrame:
    """One row per point and measure: both values, ``ln_ratio`` of tried to reference, ``ln_noise``, and verdicts.

    ``ln_noise``: root of the sum of squares of the relative half-widths of the 95% intervals (twice the standard errors
    if there are many runs). ``enough``: the reference has enough events for a ratio. ``in_noise``: the ratio differs
    from 1 by no more than the noise.
    """
    import pandas as pd

    rows = []
    for name, here in reference.items():
        if name not in tried:
            continue
        throughput = here.estimate(MEASURES[0]).mean
        sides = [(measure, "", here.estimate(measure), tried[name].estimate(measure)) for measure in MEASURES]
        others = tried[name].shares()
        sides += [(SHARE, cc, one, others[cc]) for cc, one in here.shares().items()]
        sides += [(FLOW, *_most(here.flows(), tried[name].flows(), throughput))]
        for measure, cc, one, other in sides:
            if not one.runs or not other.runs:
                continue
            ratio, noise = _ratio(one, other)
            row = {
                "point": name,
                "measure": measure.name,
                "share_of": cc,
                REFERENCE: one.mean,
                f"{REFERENCE}_error": one.error,
                f"{REFERENCE}_runs": one.runs,
                TRIED: other.mean,
                f"{TRIED}_error": other.error,
                f"{TRIED}_runs": other.runs,
                "ln_ratio": ratio,
                "ln_noise": noise,
                "enough": measure.says_something(one.mean, one.runs, throughput),
                "in_noise": abs(ratio) <= noise,
            }
            rows.append(row)
    return pd.DataFrame(rows)


def summary(differences: DataFrame) -> DataFrame:
    """One row per measure, over the points with enough events: median, 90th percentile and largest difference.

    A difference is exp |ln(sim/kernel)| - 1: 0.25 if one value is 25% above the other. ``met``: whether the goals are
    met; None without goals.
    """
    import numpy as np
    import pandas as pd

    rows = []
    for measure in (*MEASURES, SHARE, FLOW):
        kept = differences[(differences["measure"] == measure.name) & differences["enough"]]
        if kept.empty:
            continue
        sizes = np.expm1(kept["ln_ratio"].abs())
        # Without interpolation: if something never happens in the simulator, the difference is infinite.
        found = {word: float(np.quantile(sizes, at, method="higher")) for word, at in (("median", 0.5), ("p90", 0.9))}
        found["worst"] = float(sizes.max())
        goals = {word: goal for word in found if (goal := getattr(measure.goal, word)) is not None}
        rows.append(
            {
                "measure": measure.name,
                "title": measure.title,
                "points": len(kept),
                **found,
                "worst_point": kept.loc[sizes.idxmax(), "point"],
                "in_noise": int(kept["in_noise"].sum()),
                "noise": float(np.expm1(kept["ln_noise"].median())),
                "goal": ", ".join(f"{word} {goal:.0%}" for word, goal in goals.items()),
                "met": all(found[word] <= goal for word, goal in goals.items()) if goals else None,
            }
        )
    return pd.DataFrame(rows)


def _most(here: dict[str, Estimate], tried: dict[str, Estimate], throughput: float) -> tuple[str, Estimate, Estimate]:
    """The flow whose throughput differs most, with both sides."""

    def size(name: str) -> tuple[bool, float]:
        one = here[name]
        return FLOW.says_something(one.mean, one.runs, throughput), abs(_ratio(one, tried[name])[0])

    name = max(here, key=size)
    return name, here[name], tried[name]


def outside(differences: DataFrame, within: float) -> DataFrame:
    """Points whose mean throughput differs from the kernel's by more than ``within``, as a fraction of the kernel's:
    0.1 is 10%."""
    import numpy as np

    throughput = differences[differences["measure"] == MEASURES[0].name]
    far: DataFrame = throughput[np.expm1(throughput["ln_ratio"]).abs() > within]
    return far


def _ratio(one: Estimate, other: Estimate) -> tuple[float, float]:
    if one.mean == other.mean:
        return 0.0, 0.0
    if one.mean <= 0 or other.mean <= 0:
        return math.inf if one.mean <= 0 else -math.inf, 0.0
    return math.log(other.mean / one.mean), math.hypot(one.half / one.mean, other.half / other.mean)
