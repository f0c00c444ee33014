"""The record of Linux's other controls: whole, of these questions, and what the kernel says."""

from __future__ import annotations

from pathlib import Path

import pytest

from sawtooth import run
from sawtooth.fidelity import Grid
from sawtooth.fidelity.grid import Point
from sawtooth.fidelity.ledger import Ledger
from sawtooth.fidelity.measures import measure
from sawtooth.kernel import Kernel
from sawtooth.scenario import LINUX_CONTROLS

FOLDER = Path(__file__).resolve().parents[1] / "fidelity"
LIVE = 2
"""So many points are measured again: those that cost the kernel least."""


def read(name: str) -> tuple[list[Point], Ledger]:
    grid = Grid.load(FOLDER / f"{name}.toml")
    return grid.points(), Ledger.load(FOLDER / grid.record)


@pytest.mark.parametrize("name", ["modules"])
def test_each_point_is_on_record_more_than_once_and_nothing_else_is(name: str) -> None:
    points, record = read(name)
    assert {point.question for point in points} == set(record.rows)
    assert min(len(rows) for rows in record.rows.values()) >= 2
    assert {row["engine"] for rows in record.rows.values() for row in rows} == set(record.about)


def test_the_others_are_all_that_the_simulator_had_not_with_six_points_each() -> None:
    points, _ = read("modules")
    found = [point.scenario.flows[0].cc for point in points]
    assert set(found) == set(LINUX_CONTROLS) - {"reno", "cubic", "bbr"}
    assert {found.count(cc) for cc in found} == {6}


def cheapest() -> list[Point]:
    points, record = read("modules")
    return sorted(points, key=lambda point: record.of(point.question)[0]["cpu_s"])[:LIVE]


@pytest.mark.parametrize("point", cheapest(), ids=lambda point: point.name)
def test_the_kernel_here_says_what_is_on_record(kernel: Kernel, point: Point) -> None:
    rows = read("modules")[1].of(point.question)
    here = measure(run(point.scenario.set({"seed": rows[0]["seed"]}), engine="kernel"))
    assert here["mean_mbps"] == pytest.approx(rows[0]["mean_mbps"], rel=0.05)
