"""Writes src/sawtooth/data/controls.json: how far sim's throughput is from the kernel's, by congestion control.

    python experiments/controls.py [--jobs N] [GRID…]

Of the points of the shipped grids whose flows all have one control, and only of those that the simulator has;
with as many runs as a comparison with these grids has.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from sawtooth.compare.fidelity import Grid
from sawtooth.compare.fidelity.campaign import Campaign
from sawtooth.compare.fidelity.differences import answers, compare
from sawtooth.compare.fidelity.measurements import Ledger, Row
from sawtooth.engines import sim
from sawtooth.io.atomic_io import write_json
from sawtooth.io.parallel import cores

ROOT = Path(__file__).resolve().parents[1]
TO = ROOT / "src" / "sawtooth" / "data" / "controls.json"
GRIDS = ("grid", "bbr3", "modules")


def distances(grid: Path, jobs: int) -> dict[str, dict[str, Any]]:
    """Distances by congestion control, as ``sawtooth.congestion_control.Distance``."""
    read = Grid.load(grid)
    record = Ledger.load(grid.with_name(read.record))
    points, controls = [], {}
    for point in read.points():
        ccs = {flow.cc for flow in point.scenario.compile().flows}
        if len(ccs) == 1 and ccs <= set(sim.controls()) and record.of(point.question):
            points.append(point)
            controls[point.name] = ccs.pop()
    tried: dict[str, list[Row]] = {}
    Campaign("sim", jobs, lambda point, rows: tried.update({point.question: rows})).run(points)
    kernel = answers(points, "kernel", {point.question: record.of(point.question) for point in points})
    found = compare(kernel, answers(points, "sim", tried)).query("measure == 'mean_mbps'")
    sizes = np.expm1(found.set_index("point")["ln_ratio"].abs())
    told = {}
    for control in sorted(set(controls.values())):
        of = sizes[[name for name in sizes.index if controls.get(name) == control]]
        p90 = float(np.quantile(of, 0.9, method="higher"))
        numbers = {"median": float(of.median()), "p90": p90, "worst": float(of.max())}
        told[control] = {
            "grid": grid.name,
            "points": len(of),
            **{name: round(number, 4) for name, number in numbers.items()},
            "worst_point": str(of.idxmax()),
        }
    return told


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("grids", nargs="*", type=Path, default=[ROOT / "fidelity" / f"{name}.toml" for name in GRIDS])
    parser.add_argument("--jobs", type=int, default=cores())
    given = parser.parse_args()
    found: dict[str, dict[str, Any]] = {}
    for grid in given.grids:
        found |= distances(grid, given.jobs)
    write_json(TO, found)


if __name__ == "__main__":
    main()
