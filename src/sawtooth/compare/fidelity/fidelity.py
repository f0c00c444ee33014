"""Fidelity: runs the simulator on a grid now and compares it with the kernel's record."""

from __future__ import annotations

import math
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sawtooth.compare.fidelity import record as records
from sawtooth.compare.fidelity.campaign import Campaign
from sawtooth.compare.fidelity.differences import REFERENCE, TRIED, answers, by_engine, compare, summary
from sawtooth.compare.fidelity.grid import Grid, Point
from sawtooth.compare.fidelity.measurements import Ledger, Row, unmeasured
from sawtooth.io.atomic_io import write_bytes, write_json
from sawtooth.io.csv import csv_text
from sawtooth.io.parallel import Workers, cores

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True)
class Fidelity:
    """The result of a comparison. ``unmeasured``: points missing in the record. ``builds``: what each digest stands
    for."""

    grid: Path
    points: tuple[Point, ...]
    table: DataFrame
    differences: DataFrame
    summary: DataFrame
    unmeasured: tuple[str, ...]
    builds: dict[str, Any]

    def describe(self) -> dict[str, Any]:
        """The result as JSON values. Unknown and infinite values are null."""
        return {
            "grid": str(self.grid),
            "points": [point.name for point in self.points],
            "unmeasured": list(self.unmeasured),
            "summary": _values(self.summary),
            "differences": _values(self.differences),
            "builds": self.builds,
        }

    def save(self, directory: Path) -> None:
        """Write engines.csv (one row per point and engine), differences.csv, fidelity.json, .md, .png and .svg.

        Raises SawtoothError ``unwritable-output`` or ``disk-full``.
        """
        from sawtooth.compare.fidelity.figure import draw
        from sawtooth.compare.fidelity.text import page

        write_bytes(directory / "engines.csv", csv_text(self.table).encode())
        write_bytes(directory / "differences.csv", csv_text(self.differences).encode())
        write_json(directory / "fidelity.json", self.describe())
        write_bytes(directory / "fidelity.md", page(self).encode())
        draw(self, directory)


def compare_on(
    grid_file: Path,
    *,
    tag: str | None = None,
    record_file: Path | None = None,
    measure: records.Measuring | None = None,
    jobs: int | None = None,
    executor: Executor | Workers | None = None,
    quiet: bool = False,
) -> Fidelity:
    """Run the simulator on the points of a grid file, or those with ``tag``, and compare it with the record.

    ``measure``: first measure points on the real kernel, see ``record.measure``. ``jobs``: number of points in
    parallel, by default one per core; or as many as ``executor`` (a ``sawtooth.dask.Cluster``) takes. Raises
    SawtoothError: as ``Grid.load`` and ``Campaign.run``; ``not-a-result`` for a damaged record or one without any of
    the points.
    """
    grid = Grid.load(grid_file)
    points = grid.points(tag)
    at_once = jobs or cores()
    path = record_file or grid_file.with_name(grid.record)
    if measure is None:
        record = Ledger.load(path)
    else:
        record = records.measure(grid, points, path, which=measure, jobs=at_once, executor=executor, quiet=quiet)
    known = [point for point in points if record.of(point.question)]
    missing = tuple(point.name for point in points if not record.of(point.question))
    if not known:
        raise unmeasured(path, missing)
    tried: dict[str, list[Row]] = {}
    campaign = Campaign(TRIED, at_once, lambda point, rows: tried.update({point.question: rows}), quiet, executor)
    campaign.run(known)
    sides = (
        answers(known, REFERENCE, {point.question: record.of(point.question) for point in known}),
        answers(known, TRIED, tried),
    )
    differences = compare(*sides)
    builds = {digest: record.about[digest] for digest in _builds(sides[0].values()) if digest in record.about}
    builds |= {digest: campaign.about(digest) for digest in _builds(sides[1].values())}
    return Fidelity(grid_file, tuple(known), by_engine(sides), differences, summary(differences), missing, builds)


def _values(table: DataFrame) -> list[dict[Any, Any]]:
    return [
        {name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in row.items()}
        for row in table.to_dict("records")
    ]


def _builds(side: Any) -> list[str]:
    return sorted({row["engine"] for answer in side for row in answer.rows})
