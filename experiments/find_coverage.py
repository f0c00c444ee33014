"""How often the intervals of ``sawtooth find`` with two unknowns hold: made-up frontiers, whose truth is known.

.venv/bin/python experiments/find_coverage.py [--draws 100]       # the table of docs/explanation/find.md, in Markdown
"""

from __future__ import annotations

import argparse
import math
import random
from collections.abc import Callable, Sequence
from statistics import fmean

from sawtooth.search.frontier_search import TracedFrontier, Tracing
from sawtooth.search.space import Space, Values

SPACE = Space.parse(["path.queue=0.1..4 bdp", "path.loss=0.0001%..1%"])
NOISE, MOST = 0.03, 2000
FRONTIERS: dict[str, Callable[[float], float]] = {
    "a power of the queue": lambda queue: queue**0.7,
    "with a kink": lambda queue: min(1, queue) ** 1.2,
    "with waves": lambda queue: math.exp(0.5 * math.sin(6 * math.log(queue / 0.1) / math.log(40))),
    "a power, where margins jump": lambda queue: queue**0.7,
}
"""The true frontier: the loss as a function of the queue, as a multiple."""


def root(times: float) -> float:
    """A rate that falls with the square root of the loss, minus 0.9."""
    return min(1, 0.9 / math.sqrt(times)) - 0.9


def jump(times: float) -> float:
    return 0.05 if times < 1 else -0.1


def traced(frontier: Callable[[float], float], margin: Callable[[float], float], seed: int) -> tuple[list[bool], int]:
    """Whether the interval of each row contains the true value, and the number of runs."""
    rng = random.Random(seed)
    scale = math.exp(rng.uniform(math.log(0.002), math.log(0.05)))

    def ask(tasks: Sequence[tuple[Values, int]]) -> list[float]:
        margins = []
        for (queue, loss), _ in tasks:
            times = loss / (scale * frontier(queue))
            margins.append(margin(times) + NOISE * rng.gauss(0, 1) * min(2, math.sqrt(times)))
        return margins

    tracing = Tracing(SPACE, ask, within=0.1, most=MOST)
    found: TracedFrontier = tracing.run()
    truths = [math.log(scale * frontier(row.given[0])) for row in found.rows]
    held = [
        row.verdict == "found" and row.low <= truth <= row.high for row, truth in zip(found.rows, truths, strict=True)
    ]
    return held, tracing.sampled


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=100)
    draws = parser.parse_args().draws
    heads = ["frontier", "rows that hold the truth", "all nine rows together", "runs, on average and at most"]
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}", flush=True)
    for name, frontier in FRONTIERS.items():
        found = [traced(frontier, jump if "jump" in name else root, seed) for seed in range(draws)]
        rows, runs = [row for held, _ in found for row in held], [asked for _, asked in found]
        together = sum(all(held) for held, _ in found)
        print(f"| {name} | {fmean(rows):.1%} | {together} of {draws} | {fmean(runs):.0f}, {max(runs)} |", flush=True)


if __name__ == "__main__":
    main()
