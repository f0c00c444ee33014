"""Board: what each control gets on each network, with intervals over seeds, and how often it breaks."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Any

from sawtooth.scoreboard.measures import MEASURES, ControlRun, Measure
from sawtooth.scoreboard.networks import KEYS, RIVALS_ONLY, Control, Network, runs
from sawtooth.stats import Interval
from sawtooth.study import StudyResult
from sawtooth.study.shares import ALL

if TYPE_CHECKING:
    from pandas import DataFrame

BROKEN = 0.1
"""A run whose goodput is below this part of the best control's mean on the network is broken."""


@dataclass(frozen=True)
class Cell:
    """A control on a network. ``runs``: by seed. ``broken``: runs that stalled or got less than a tenth
    of the best control's goodput. ``of_best``: its mean goodput as a part of the best control's.
    ``point``: the directory of the first seed's run."""

    network: Network
    control: Control
    runs: Mapping[int, ControlRun]
    broken: int
    of_best: float
    point: str

    @property
    def own_mbps(self) -> float:
        """The mean over seeds."""
        return mean_mbps(self.runs)

    def interval(self, measure: Measure) -> Interval | None:
        """None: it does not apply, or no run has a value."""
        values = [measure.value(ran) for ran in self.runs.values()] if measure.applies(self.network) else []
        known = [value for value in values if not math.isnan(value)]
        return measure.interval(known) if known else None


@dataclass(frozen=True)
class Standing:
    """A control over several networks."""

    control: Control
    pooled: Mapping[str, Interval]
    broken: int
    runs: int


@dataclass(frozen=True)
class Board:
    """All cells of a finished study."""

    result: StudyResult
    networks: tuple[Network, ...]
    controls: tuple[Control, ...]
    cells: tuple[Cell, ...] = field(repr=False)

    @classmethod
    def of(cls, result: StudyResult, networks: Sequence[Network], controls: Sequence[Control]) -> Board:
        found = _ran(result)
        points = {tuple(place.key.values()): place.id for place in reversed(result.places)}
        cells: list[Cell] = []
        for network in networks:
            key = tuple(network.name.split("/"))
            alone = {seed: one["mean_mbps"] for seed, (one, _, _) in found.get((*key, RIVALS_ONLY), {}).items()}
            ran = {
                control: {
                    seed: ControlRun(
                        network, row, _by_flow(network, row, flows), alone.get(seed, math.nan), _jain(flows), idle
                    )
                    for seed, (row, flows, idle) in found[(*key, control.name)].items()
                }
                for control in controls
                if runs(control, network)
            }
            means = {one: mean_mbps(seeds) for one, seeds in ran.items()}
            best = max(means.values(), default=0.0)
            for control, seeds in ran.items():
                broken = sum(run.stalled or run.own_mbps < BROKEN * best for run in seeds.values())
                of_best = means[control] / best if best else math.nan
                cells.append(Cell(network, control, seeds, broken, of_best, points[(*key, control.name)]))
        return cls(result, tuple(networks), tuple(controls), tuple(cells))

    def standings(self, marks: bool) -> list[Standing]:
        """Each control over the networks with marks, or over those without. Controls that need marks are only in the
        first, so that all of a table ran on the same networks. Intervals are over seeds: of one seed's networks the
        mean, or for times the median."""
        found = []
        for control in self.controls:
            own = [cell for cell in self.cells if cell.control is control and cell.network.marks == marks]
            if own:
                pooled = {one.name: over for one in MEASURES if (over := _pooled(one, own)) is not None}
                count = sum(len(cell.runs) for cell in own)
                found.append(Standing(control, pooled, sum(cell.broken for cell in own), count))
        return found

    @cached_property
    def broken(self) -> list[Cell]:
        """Cells with broken runs, the worst first."""
        return sorted((cell for cell in self.cells if cell.broken), key=lambda cell: cell.of_best)

    def table(self) -> DataFrame:
        """One row per cell, as in scoreboard.csv."""
        import pandas as pd

        rows = []
        for cell in self.cells:
            key = dict(zip(KEYS, (*cell.network.name.split("/"), cell.control.name), strict=True))
            row: dict[str, Any] = {**key, "runs": len(cell.runs), "broken": cell.broken}
            row |= {"own_mbps": cell.own_mbps, "of_best": cell.of_best}
            for measure in MEASURES:
                over = cell.interval(measure)
                bounds = (math.nan,) * 3 if over is None else (over.mean, over.low, over.high)
                names = (measure.name, f"{measure.name}_low", f"{measure.name}_high")
                row |= dict(zip(names, bounds, strict=True))
            rows.append(row)
        return pd.DataFrame(rows)

    def describe(self) -> dict[str, Any]:
        """The board as JSON values; unknown values are null."""
        return {
            "name": self.result.study.name,
            "results": str(self.result.directory),
            "engine": self.result.engine,
            "networks": [
                {"network": one.name, "title": one.title, "marks": one.marks, "possible_mbps": one.possible_mbps}
                for one in self.networks
            ],
            "standings": [
                {"marks": marks, "cc": one.control.name, "runs": one.runs, "broken": one.broken}
                | {name: over.describe() for name, over in one.pooled.items()}
                for marks in (False, True)
                for one in self.standings(marks)
            ],
            "rows": json.loads(self.table().to_json(orient="records")),
        }


def mean_mbps(runs: Mapping[int, ControlRun]) -> float:
    """The goodput of the flows under test together, as a mean over seeds."""
    return math.fsum(ran.own_mbps for ran in runs.values()) / len(runs)


def _pooled(measure: Measure, cells: Sequence[Cell]) -> Interval | None:
    of_seeds: dict[int, list[float]] = {}
    for cell in cells:
        if measure.applies(cell.network):
            for seed, ran in cell.runs.items():
                value = measure.value(ran)
                if not math.isnan(value):
                    of_seeds.setdefault(seed, []).append(value)
    return measure.interval([measure.pooled(values) for values in of_seeds.values()]) if of_seeds else None


_Row = Mapping[Any, Any]


def _ran(result: StudyResult) -> dict[tuple[Any, ...], dict[int, tuple[_Row, list[_Row], float]]]:
    """By key and seed: the row of the study's table, its rows of flows, and the longest time without a delivery."""

    def place(row: _Row) -> tuple[Any, ...]:
        return *(row[name] for name in KEYS), row["seed"]

    flows: dict[tuple[Any, ...], list[_Row]] = {}
    for row in result.shares.to_dict("records"):
        flows.setdefault(place(row), []).append(row)
    names = [*KEYS, "seed"]
    idle = {
        key: _longest(part["mbps"].to_numpy(), part["t_s"].to_numpy())
        for key, part in result.samples.groupby(names, sort=False)
    }
    found: dict[tuple[Any, ...], dict[int, tuple[_Row, list[_Row], float]]] = {}
    for row in result.details.to_dict("records"):
        if row["seed"] != ALL:
            *key, seed = place(row)
            found.setdefault(tuple(key), {})[seed] = row, flows.get((*key, seed), []), idle[(*key, seed)]
    return found


def _longest(mbps: Any, t_s: Any) -> float:
    """The longest time without a delivery after the first one, in whole intervals. Without any, the whole time."""
    step = float(t_s[1] - t_s[0]) if len(t_s) > 1 else 0.0
    first = int((mbps > 0).argmax())
    return max((sum(1 for _ in part) * step for nothing, part in groupby(mbps[first:] == 0) if nothing), default=0.0)


def _by_flow(network: Network, row: Mapping[str, Any], flows: Sequence[_Row]) -> dict[str, float]:
    if not flows:
        return {network.flows[0]["name"]: float(row["mean_mbps"])}
    return {one["flow"]: float(one["mean_mbps"]) for one in flows}


def _jain(flows: Sequence[_Row]) -> float:
    return float(flows[0]["jain_all"]) if flows else math.nan
