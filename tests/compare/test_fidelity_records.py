"""The records of BBR version 3 and of Linux's other controls: complete, for the current questions, and as the kernel
answers.
"""

import csv
import statistics
from pathlib import Path

import pytest

from sawtooth import run
from sawtooth.compare.fidelity import Grid
from sawtooth.compare.fidelity.grid import Point
from sawtooth.compare.fidelity.measurements import Ledger
from sawtooth.compare.fidelity.measures import measure
from sawtooth.kernel import Kernel
from sawtooth.scenario import LINUX_CONTROLS
from sawtooth.scenario.units import Loss, Queue, Rate, Span

FOLDER = Path(__file__).resolve().parents[2] / "fidelity"
REFERENCE = Path(__file__).resolve().parents[3] / "shared" / "reference" / "kernel-6.12-bbr3-hz250.csv"
LIVE = 2
"""Number of points measured again: the cheapest for the kernel."""


def read(name: str) -> tuple[list[Point], Ledger]:
    grid = Grid.load(FOLDER / f"{name}.toml")
    return grid.points(), Ledger.load(FOLDER / grid.record)


@pytest.mark.parametrize(
    "name", ["bbr3", "dualpi2", "ecn", "gro", "modules", "queues", "reader", "readers", "small-queues"]
)
def test_each_point_is_on_record_more_than_once_and_nothing_else_is(name: str) -> None:
    points, record = read(name)
    assert {point.question for point in points} == set(record.rows)
    assert min(len(rows) for rows in record.rows.values()) >= 2
    assert {row["engine"] for rows in record.rows.values() for row in rows} == set(record.about)


def test_the_record_of_version_3_says_of_which_kernel_it_is() -> None:
    for about in read("bbr3")[1].about.values():
        assert about["names"] == {"bbr": "bbr1", "bbr3": "bbr"}
        assert [len(file["sha256"]) for file in (*about["patches"], *about["modules"])] == [64, 64]


def test_the_others_are_all_that_the_simulator_had_not_with_six_points_each() -> None:
    points, _ = read("modules")
    found = [point.scenario.flows[0].cc for point in points]
    assert set(found) == set(LINUX_CONTROLS) - {"reno", "cubic", "bbr"}
    assert {found.count(cc) for cc in found} == {6}


def test_version_3_gives_up_where_version_1_does_not() -> None:
    points, record = read("bbr3")
    means = {
        str(point.scenario.path_table.loss): statistics.fmean(row["mean_mbps"] for row in record.of(point.question))
        for point in points
        if point.name.startswith("reference:100M-20ms-1bdp")
    }
    assert means["0%"] > means["0.1%"] > 85
    assert means["1%"] > 60
    assert means["2%"] < 40
    assert means["5%"] < 8


def test_what_another_program_measured_of_version_3_is_what_the_record_says() -> None:
    if not REFERENCE.exists():
        pytest.skip("../shared has no reference")
    points, record = read("bbr3")
    compared = 0
    with REFERENCE.open() as file:
        for row in csv.DictReader(file):
            if "+" in row["flows"] or not row["flows"].startswith("1 "):
                continue
            path = (Rate.parse(row["rate"]), Span.parse(row["rtt"]), Queue.parse(row["queue"]), Loss.parse(row["loss"]))
            for point in points:
                table = point.scenario.path_table
                if point.block == "reference" and (table.rate, table.rtt, table.queue, table.loss) == path:
                    means = [one["mean_mbps"] for one in record.of(point.question)]
                    error = (statistics.variance(means) / len(means) + float(row["sd_of_runs"]) ** 2 / 3) ** 0.5
                    theirs = float(row["mean_mbps"])
                    # With three runs each, the deviation is uncertain, so four standard errors are not much.
                    assert statistics.fmean(means) == pytest.approx(theirs, rel=0.05, abs=4 * error), point.name
                    compared += 1
    assert compared == 20


def cheapest() -> list[Point]:
    points, record = read("modules")
    return sorted(points, key=lambda point: record.of(point.question)[0]["cpu_s"])[:LIVE]


@pytest.mark.parametrize("point", cheapest(), ids=lambda point: point.name)
def test_the_kernel_here_says_what_is_on_record(kernel: Kernel, point: Point) -> None:
    rows = read("modules")[1].of(point.question)
    here = measure(run(point.scenario.set({"seed": rows[0]["seed"]}), engine="kernel"))
    assert here["mean_mbps"] == pytest.approx(rows[0]["mean_mbps"], rel=0.05)
