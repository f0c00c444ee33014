"""Prints the engine kernel's record beside another measurement of that kernel: mean throughput, as Markdown.

    python experiments/records.py KERNEL.csv

KERNEL.csv is the table of runs that tools/validate.py takes, the record is fidelity/kernel.csv. They are compared where
hosts, path and flows are the same; durations may differ.
"""

from __future__ import annotations

import argparse
import csv
import json
from pathlib import Path
from statistics import fmean, median

from validate import scenario

from sawtooth import Scenario
from sawtooth.compare.fidelity.grid import Grid
from sawtooth.compare.fidelity.measurements import Ledger
from sawtooth.compare.fidelity.record import beside

GRID = Path(__file__).resolve().parents[1] / "fidelity" / "grid.toml"


def asked(given: Scenario) -> str:
    """The properties that compared scenarios must have in common."""
    compiled = given.compile().to_dict()
    flows = [{name: value for name, value in flow.items() if name != "name"} for flow in compiled["flows"]]
    kept = {name: compiled[name] for name in ("hosts", "transmitters", "links")}
    return json.dumps({**kept, "flows": flows}, sort_keys=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("reference", type=Path, help="CSV of the real kernel's runs")
    options = parser.parse_args()
    record = Ledger.load(beside(GRID))
    points = {asked(point.scenario): point for point in Grid.load(GRID).points()}
    others: dict[str, list[dict[str, str]]] = {}
    with options.reference.open() as file:
        for row in csv.DictReader(file):
            others.setdefault(row["name"], []).append(row)
    print("| scenario | reference, Mbit/s | engine kernel, Mbit/s | difference |\n|---|---|---|---|")
    sizes = []
    for name, rows in others.items():
        point = points.get(asked(scenario(rows[-1], 1)))
        runs = record.of(point.question) if point is not None else []
        if point is None or not runs:
            continue
        theirs, ours = fmean(float(row["mean_mbps"]) for row in rows), fmean(row["mean_mbps"] for row in runs)
        difference = 100 * (ours / theirs - 1)
        sizes.append(abs(difference))
        print(
            f"| {name} | {theirs:.2f} ({len(rows)} × {rows[-1]['seconds']} s) "
            f"| {ours:.2f} ({len(runs)} × {point.scenario.duration}) | {difference:+.1f}% |"
        )
    if not sizes:
        parser.error("none of its scenarios is on the record")
    print(f"\n{len(sizes)} scenarios; size of the difference: median {median(sizes):.1f}%, worst {max(sizes):.1f}%")


if __name__ == "__main__":
    main()
