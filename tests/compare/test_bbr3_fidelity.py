"""BBR version 3 against the kernel's record: one flow with losses and queues, and shares beside other controls."""

import statistics
from pathlib import Path

import pytest

from sawtooth import run
from sawtooth.compare.fidelity import Grid
from sawtooth.compare.fidelity.grid import Point
from sawtooth.compare.fidelity.measurements import Ledger, Row
from sawtooth.compare.fidelity.measures import measure

pytestmark = pytest.mark.usefixtures("patience")

GRID = Path(__file__).resolve().parents[2] / "fidelity" / "bbr3.toml"
RECORD = Ledger.load(GRID.with_name("bbr3.csv"))
SEEDS = (1, 2, 3)
WITHIN, SHARES_WITHIN = 0.05, 0.10
"""Relative to the kernel's mean and shares; the standard errors of both sides are added."""
NAMES = ("100M-20ms-1bdp-0%", "100M-20ms-1bdp-0.1%", "100M-20ms-1bdp-1%", "100M-20ms-1bdp-5%", "50M-40ms-0.1bdp-0%")


def chosen() -> list[Point]:
    points = [point for point in Grid.load(GRID).points() if RECORD.of(point.question)]
    alone = [point for point in points if point.name in {f"reference:{name}" for name in NAMES}]
    meeting = [point for point in points if len(point.scenario.flows) == 2 and point.scenario.duration.seconds <= 120]
    return alone + meeting[:3]


def means(rows: list[Row] | list[dict[str, float | str]]) -> tuple[float, float]:
    """The mean throughput in Mbit/s, and twice its standard error."""
    found = [float(row["mean_mbps"]) for row in rows]
    return statistics.fmean(found), 2 * statistics.stdev(found) / len(found) ** 0.5


def first_share(rows: list[Row] | list[dict[str, float | str]]) -> float:
    return statistics.fmean(float(str(row["shares"]).split()[0]) for row in rows)


def test_the_record_has_points_of_each_kind() -> None:
    assert len(chosen()) == len(NAMES) + 3


@pytest.mark.parametrize("point", chosen(), ids=lambda point: point.name)
def test_throughput_and_shares_are_the_kernels(point: Point) -> None:
    there = RECORD.of(point.question)
    here = [measure(run(point.scenario.set({"seed": seed}))) for seed in SEEDS]
    (kernel, kernel_error), (sim, sim_error) = means(there), means(here)
    assert abs(sim - kernel) <= WITHIN * kernel + kernel_error + sim_error
    assert first_share(here) == pytest.approx(first_share(there), rel=SHARES_WITHIN)
