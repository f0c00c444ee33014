"""Record: the kernel's measurements on a grid, stored beside it, so that only the simulator must run for a
comparison."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Literal

from sawtooth.compare.fidelity.campaign import Campaign, enough
from sawtooth.compare.fidelity.engine_build import build
from sawtooth.compare.fidelity.grid import Grid, Point
from sawtooth.compare.fidelity.measurements import Ledger, Row
from sawtooth.io.parallel import Workers

ENGINE = "kernel"
Measuring = Literal["missing", "all"]


def beside(grid: Path) -> Path:
    """Default path of a grid file's record: ``kernel.csv`` in the same directory."""
    return grid.with_name(f"{ENGINE}.csv")


def measure(
    grid: Grid,
    points: Sequence[Point],
    path: Path,
    *,
    which: Measuring,
    jobs: int,
    executor: Executor | Workers | None = None,
    quiet: bool = False,
) -> Ledger:
    """Measure on the real kernel and save the record after each point. Returns the record.

    ``which``: "missing" measures points with too few runs in the record; "all" also those measured with another kernel
    or testbed. Runs of the present ones in this user's cache are reused. Raises SawtoothError as ``Campaign``.
    """
    record = Ledger.load(path)
    order = [point.question for point in grid.points()]

    def lacks(point: Point) -> bool:
        here = build(ENGINE, point.scenario)[0] if which == "all" else None
        return not enough(record.of(point.question, here), point.budget.kernel)

    def keep(point: Point, rows: list[Row]) -> None:
        record.replace(point.question, rows)
        record.about |= {row["engine"]: campaign.about(row["engine"]) for row in rows}
        record.write(order)

    campaign = Campaign(ENGINE, jobs, keep, quiet, executor)
    campaign.run([point for point in points if lacks(point)])
    return record
