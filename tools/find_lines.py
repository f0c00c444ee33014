"""How little loss common lines need, by ``sawtooth find``, and a sweep about each answer to compare it with.

    .venv/bin/python tools/find_lines.py            # the table of docs/explanation/find.md, in Markdown
    .venv/bin/python tools/find_lines.py --sweep    # beside it where a sweep finds the crossing

The sweep has nine losses a factor 1.1 apart about each answer, of eight other seeds; its crossing is that of a parabola
through the means over the logarithm of the loss. Of the whole range such a sweep would have ``WHOLE`` runs, which are
counted here and not made.
"""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np

import sawtooth
from sawtooth.engines import get
from sawtooth.finding import Found
from sawtooth.finding.finding import find
from sawtooth.stats import throughput
from sawtooth.study import Study
from sawtooth.study.study import Point
from sawtooth.work import results

STUDY = Path(__file__).parents[1] / "docs" / "explanation" / "find" / "lines.toml"
FACTOR, STEPS, SEEDS = 1.1, 4, 8
FIRST_SEED = 1_000_001
"""Seeds that no search takes."""


def main() -> None:
    parser = argparse.ArgumentParser(description="answers of find for common lines")
    parser.add_argument("--sweep", action="store_true", help="compare with a sweep about each answer")
    arguments = parser.parse_args()
    study = Study.load(STUDY)
    heads = ["line", "rate", "RTT", "control", "loss for 90%", "95% interval", "runs"]
    heads += ["a sweep says", "apart", "runs of a whole sweep"] * arguments.sweep
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}", flush=True)
    for point in study.points(seeds=[1]):
        print(f"| {' | '.join(row(study, point, arguments.sweep))} |", flush=True)


def row(study: Study, point: Point, swept: bool) -> list[str]:
    asked = study.find
    assert asked is not None
    found = find(point.scenario, vary=asked.vary, want=asked.want)
    assert isinstance(found, Found)
    path = point.scenario.path_table
    cells = [str(point.key["line"]), str(path.rate), str(path.rtt), str(point.key["control"])]
    if found.verdict != "found":
        return [*cells, found.answer, "", str(found.runs), *[""] * 3 * swept]
    ends = " … ".join(f"{one:.3g}%" for one in found.interval)
    cells += [f"{found.value:.3g}%", ends + " (too few runs)" * (not found.enough), str(found.runs)]
    if swept:
        crossing = sweep(point.scenario, found.value)
        whole = SEEDS * (1 + math.ceil(math.log(found.unknown.high / found.unknown.low) / math.log(FACTOR)))
        cells += [f"{crossing:.3g}%", f"{(found.value / crossing - 1) * 100:+.1f}%", str(whole)]
    return cells


def sweep(scenario: sawtooth.Scenario, about: float) -> float:
    """The loss in percent at which the mean goodput is 90% of the rate; NaN where the sweep does not hold it."""
    losses = [about * FACTOR**step for step in range(-STEPS, STEPS + 1)]
    tasks = [(loss, FIRST_SEED + seed) for loss in losses for seed in range(SEEDS)]
    engine = get("sim")

    def mean(task: tuple[float, int]) -> float:
        loss, seed = task
        run = engine.run(scenario.set({"path.loss": f"{loss:.7f}%", "seed": seed}))
        return float(throughput(run).mean()) * 1e6 / scenario.path_table.rate.bps - 0.9

    means = np.reshape(results(mean, tasks, threads=True), (len(losses), SEEDS)).mean(axis=1)
    places = np.log(np.asarray(losses) / about)
    roots: Any = np.roots(np.polyfit(places, means, 2))
    inside = [float(root.real) for root in roots if abs(root.imag) < 1e-9 and abs(root.real) < 0.6]
    return about * math.exp(min(inside, key=abs)) if inside else math.nan


if __name__ == "__main__":
    sys.exit(main())
