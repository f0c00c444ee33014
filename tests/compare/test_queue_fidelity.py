"""tc's kinds of queues against the kernel's record of them."""

import statistics
from pathlib import Path

import pytest

from sawtooth import run
from sawtooth.compare.fidelity import Grid
from sawtooth.compare.fidelity.grid import Point
from sawtooth.compare.fidelity.measurements import Ledger
from sawtooth.compare.fidelity.measures import measure

pytestmark = pytest.mark.usefixtures("patience")

GRID = Path(__file__).resolve().parents[2] / "fidelity" / "queues.toml"
RECORD = Ledger.load(GRID.with_name("queues.csv"))
POINTS = [point for point in Grid.load(GRID).points() if "100M" not in point.name]
SEEDS = (1, 2, 3)
OFF = {"pie:10M-10ms-cubic-count20": 0.30}
"""Points whose smoothed round trips differ by more than 25%: flows that stall at the start. The queue is 22 packets,
on the kernel 21.
"""


def mean(rows: list[dict[str, float | str]], name: str) -> float:
    return statistics.fmean(float(row[name]) for row in rows)


@pytest.mark.parametrize("point", POINTS, ids=lambda point: point.name)
def test_throughput_and_round_trips_are_the_kernels(point: Point) -> None:
    there = [dict(row) for row in RECORD.of(point.question)]
    here = [measure(run(point.scenario.set({"seed": seed}))) for seed in SEEDS]
    assert mean(here, "mean_mbps") == pytest.approx(mean(there, "mean_mbps"), rel=0.04)
    assert mean(here, "mean_rtt_ms") == pytest.approx(mean(there, "mean_rtt_ms"), rel=OFF.get(point.name, 0.25))
