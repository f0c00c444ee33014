"""The trial of probe series: estimates against known values, the thresholds, and the folder in the repository."""

import csv
from pathlib import Path

import pytest
from click.testing import CliRunner

from fidelity.field.probes import ANSWERED, HELD, Judged, Truth, judge, probes, reached, table, truths
from sawtooth.link_estimate.estimate import Estimate
from sawtooth.link_estimate.model import CongestionModel

SHIPPED = Path(__file__).resolve().parents[2] / "fidelity" / "field" / "kernel-probes"


def judged(
    truth_bps: float | None, said_bps: float | None, state: str | None = "congested", factor: float = 2.0
) -> Judged:
    truth = Truth("one.csv", "congested" if truth_bps else "busy", 1e9, truth_bps)
    ends = {"low_bps": said_bps / factor**0.5, "high_bps": said_bps * factor**0.5} if said_bps else {}
    reason = None if state else "unlike-training"
    return Judged(truth, Estimate("one", 0.0, 100.0, 1000, state, said_bps, reason=reason, **ends))


def test_links_with_right_answers_reach_the_thresholds() -> None:
    assert reached([judged(5e6, 5.2e6)] * 9 + [judged(5e6, None, None)])


@pytest.mark.parametrize(
    "found",
    [
        [judged(5e6, 6e6)] * 10,
        [judged(5e6, 5.2e6)] * 8 + [judged(5e6, 20e6)] * 2,
        [judged(5e6, 5.2e6, factor=4.0)] * 10,
        [judged(5e6, 5.2e6)] * 7 + [judged(5e6, None, None)] * 3,
        [judged(5e6, 5.2e6)] * 9 + [judged(None, 5e6)],
        [],
    ],
    ids=["far off", "outside", "wide", "silent", "wrong state", "nothing"],
)
def test_each_bar_can_be_missed(found: list[Judged]) -> None:
    assert not reached(found)


def test_what_is_wrong_has_a_row_and_the_sums_are_beside_the_thresholds() -> None:
    told = table([judged(5e6, 5.2e6), judged(5e6, 20e6), judged(None, 5e6), judged(5e6, None, None)])
    rows = [line for line in told.splitlines() if line.startswith("| one.csv")]
    assert len(rows) == 3
    assert "300%, outside" in rows[0]
    assert "inconclusive (unlike-training)" in rows[2]
    assert "| wrong states | 1 of 4 | none |" in told
    assert "| congested links that are answered | 2 of 3 | 80% |" in told


def test_the_shipped_folder_is_whole() -> None:
    found = truths(SHIPPED)
    assert {one.file for one in found} == {file.name for file in SHIPPED.glob("*.csv")} - {"truth.csv"}
    assert {one.state for one in found} == {"congested", "busy"}
    assert all(one.flow_bps and one.rate_bps for one in found if one.state == "congested")


@pytest.mark.usefixtures("patience")
def test_the_command_reads_a_folder_and_prints_its_table(tmp_path: Path) -> None:
    chosen = [row for row in csv.DictReader((SHIPPED / "truth.csv").open()) if row["state"] == "congested"][:2]
    for row in chosen:
        (tmp_path / row["file"]).write_bytes((SHIPPED / row["file"]).read_bytes())
    with (tmp_path / "truth.csv").open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(chosen[0]))
        writer.writeheader()
        writer.writerows(chosen)
    done = CliRunner().invoke(probes, [str(tmp_path), "--all"])
    assert done.exit_code in (0, 1)
    assert "of 2 | none |" in done.output
    assert all(row["file"] in done.output for row in chosen)


@pytest.mark.usefixtures("patience")
def test_of_the_kernels_series_no_state_is_wrong_and_as_many_are_answered_and_held_as_documented() -> None:
    found = list(judge(SHIPPED, CongestionModel.default()))
    told = [one for one in found if one.error is not None]
    assert not [one.truth.file for one in found if one.right is False]
    assert len(told) >= ANSWERED * sum(one.truth.state == "congested" for one in found)
    assert sum(one.holds for one in told) >= HELD * len(told)
