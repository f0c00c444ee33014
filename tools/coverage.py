"""Measures how often a 95% interval over seeds holds the mean: Student's t, and the one of ``sawtooth.stats``.

    python tools/coverage.py [--runs 400] [--draws 4000]

Each scenario is run on ``sim`` with many seeds; the mean of all of them is taken for the truth. Samples of n are drawn
from them with replacement. Prints the table of docs/explanation/measures.md.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

import sawtooth
from sawtooth.stats.interval import Mean

BURSTS = {"gilbert_elliott": {"p": "0.1%", "r": "20%"}}
COUNTS = (3, 5, 10, 20)


def scenario(cc: str, loss: Any, duration: str, rtt: str = "40 ms", flows: tuple[str, ...] = ()) -> dict[str, Any]:
    """One whose first flow is measured."""
    path = {"rate": "50 Mbit/s", "rtt": rtt, "queue": "1 bdp", "loss": loss}
    named = [{"name": f"f{at}", "cc": one} for at, one in enumerate((cc, *flows))]
    return {"duration": duration, "path": path, "flows": named}


SCENARIOS = {
    "CUBIC, 0.01% loss, 30 s": scenario("cubic", "0.01%", "30 s"),
    "BBR, 1% loss, 30 s": scenario("bbr", "1%", "30 s"),
    "CUBIC, 0.1% loss, 5 s": scenario("cubic", "0.1%", "5 s"),
    "one of three flows, 0.05% loss, 30 s": scenario("cubic", "0.05%", "30 s", flows=("cubic", "bbr")),
    "Reno, 0.001% loss, 100 ms, 30 s": scenario("reno", "0.001%", "30 s", rtt="100 ms"),
    "BBR, loss in bursts, 60 s": scenario("bbr", BURSTS, "60 s"),
}


def means(asked: dict[str, Any], runs: int) -> list[float]:
    """The first flow's goodput in Mbit/s, by seeds from 1 on."""
    found = []
    for seed in range(1, runs + 1):
        intervals = sawtooth.run(sawtooth.Scenario.from_dict({**asked, "seed": seed})).tables["intervals"]
        found.append(float(intervals[intervals["flow"] == 0]["goodput_bps"].mean()) / 1e6)
    return found


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--draws", type=int, default=4000)
    given = parser.parse_args()
    chance = np.random.default_rng(7)
    print("| runs |" + "".join(f" n = {n} |" for n in COUNTS))
    print("|---|" + "---|" * len(COUNTS))
    for name, asked in SCENARIOS.items():
        population = np.array(means(asked, given.runs))
        truth, cells = float(population.mean()), []
        for n in COUNTS:
            samples = [Mean.of(chance.choice(population, n).tolist()) for _ in range(given.draws)]
            student = np.mean([abs(one.value - truth) <= one.half() for one in samples])
            bounds = [one.bounds() for one in samples]
            ours = np.mean([low <= truth <= high for low, high in bounds])
            cells.append(f" {100 * student:.0f}, {100 * ours:.0f} |")
        print(f"| {name} |" + "".join(cells), flush=True)


if __name__ == "__main__":
    main()
