"""How little loss common lines need, by ``sawtooth find``, and a sweep about each answer to compare it with.

    .venv/bin/python experiments/find_lines.py            # the table of docs/explanation/find.md, in Markdown
    .venv/bin/python experiments/find_lines.py --sweep    # beside it where a sweep finds the crossing

The sweep has nine losses a factor 1.1 apart about each answer, and as many seeds of each, all different, as it takes to
know its crossing to ``WITHIN``, or ``MOST``. The crossing is that of a parabola through the means over the logarithm of
the loss, its interval that of a bootstrap over the seeds. Of the whole range such a sweep would have many more runs,
which are counted here and not made: with ``SEEDS`` seeds, and with those that know the crossing to ``ASKED``, as find
does.
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
from sawtooth.io.parallel import results
from sawtooth.search import Threshold
from sawtooth.search.find import find
from sawtooth.stats import throughput
from sawtooth.study import Study
from sawtooth.study.study import Point

STUDY = Path(__file__).parents[1] / "docs" / "explanation" / "find" / "lines.toml"
FACTOR, STEPS, SEEDS = 1.1, 4, 8
WITHIN, MOST, ASKED = 0.05, 256, 0.1
RESAMPLED = 1000
WHOLE = (f"runs of a whole sweep of {SEEDS} seeds", f"of as many as know it to {ASKED:.0%}")
FIRST_SEED = 1_000_001
"""Seeds that no search uses."""


def main() -> None:
    parser = argparse.ArgumentParser(description="answers of find for common lines")
    parser.add_argument("--sweep", action="store_true", help="compare with a sweep about each answer")
    arguments = parser.parse_args()
    study = Study.load(STUDY)
    heads = ["line", "rate", "RTT", "control", "loss for 90%", "95% interval", "runs"]
    heads += ["a sweep says", "its 95% interval", "its runs", "apart", *WHOLE] * arguments.sweep
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}", flush=True)
    for point in study.points(seeds=[1]):
        print(f"| {' | '.join(row(study, point, arguments.sweep))} |", flush=True)


def row(study: Study, point: Point, swept: bool) -> list[str]:
    asked = study.find
    assert asked is not None
    found = find(point.scenario, vary=asked.vary, want=asked.want)
    assert isinstance(found, Threshold)
    path = point.scenario.path_table
    cells = [str(point.key["line"]), str(path.rate), str(path.rtt), str(point.key["control"])]
    if found.verdict != "found":
        return [*cells, found.answer, "", str(found.runs), *[""] * 6 * swept]
    ends = " … ".join(f"{one:.3g}%" for one in found.interval)
    cells += [f"{found.value:.3g}%", ends + " (too few runs)" * (not found.enough), str(found.runs)]
    if swept:
        crossing, low, high, seeds = sweep(point.scenario, found.value)
        losses = 1 + math.ceil(math.log(found.unknown.high / found.unknown.low) / math.log(FACTOR))
        half = math.log(high / low) / 2
        precise = losses * max(SEEDS, math.ceil(seeds * (half / ASKED) ** 2))
        cells += [f"{crossing:.3g}%", f"{low:.3g}% … {high:.3g}%", str((2 * STEPS + 1) * seeds)]
        cells += [f"{(found.value / crossing - 1) * 100:+.1f}%", str(losses * SEEDS), str(precise)]
    return cells


def sweep(scenario: sawtooth.Scenario, about: float, share: float = 0.9) -> tuple[float, float, float, int]:
    """The loss in percent at which the mean goodput is this share of the rate, its 95% interval, and the number of
    seeds per loss."""
    losses = [about * FACTOR**step for step in range(-STEPS, STEPS + 1)]
    places = np.log(np.asarray(losses) / about)
    engine = get("sim")

    def margin(task: tuple[int, int]) -> float:
        number, seed = task
        seeded = FIRST_SEED + MOST * number + seed
        run = engine.run(scenario.set({"path.loss": f"{losses[number]:.7f}%", "seed": seeded}))
        return float(throughput(run).mean()) * 1e6 / scenario.path_table.rate.bps - share

    margins = np.empty((len(losses), 0))
    while True:
        first, last = margins.shape[1], max(SEEDS, 2 * margins.shape[1])
        tasks = [(number, seed) for number in range(len(losses)) for seed in range(first, last)]
        more = np.reshape(results(margin, tasks, threads=True), (len(losses), last - first))
        margins = np.concatenate([margins, more], axis=1)
        rng = np.random.default_rng(1)
        drawn = rng.integers(last, size=(RESAMPLED, len(losses), last))
        means = np.take_along_axis(margins[None], drawn, axis=2).mean(axis=2)
        low, high = np.nanquantile([_root(places, one) for one in means], [0.025, 0.975])
        if (high - low) / 2 <= WITHIN or 2 * last > MOST:
            root = _root(places, margins.mean(axis=1))
            return about * math.exp(root), about * math.exp(low), about * math.exp(high), last


def _root(places: Any, means: Any) -> float:
    """The root of the parabola nearest to the middle; the sweep's edge if there is none inside."""
    edge = float(places[-1])
    roots = np.roots(np.polyfit(places, means, 2))
    inside = [float(root.real) for root in roots if abs(root.imag) < 1e-9 and abs(root.real) <= edge]
    return min(inside, key=abs) if inside else math.copysign(edge, float(means.mean()))


if __name__ == "__main__":
    sys.exit(main())
