"""The trial of probe series: estimates of ``sawtooth congestion estimate`` beside what the links' flows got."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np

from sawtooth.errors import SawtoothError
from sawtooth.link_estimate import read_series
from sawtooth.link_estimate.estimate import Estimate, estimate
from sawtooth.link_estimate.model import CongestionModel

TRUTH = "truth.csv"
MEDIAN, HELD, FACTOR, ANSWERED = 0.10, 0.85, 2.5, 0.80
"""The thresholds: median error, share of intervals that hold, median factor from lower to upper end, share answered."""
_ANY_BPS = 1e12


@dataclass(frozen=True)
class Truth:
    """For a file: the link's state, and if it is congested what a flow got; its rate, if known."""

    file: str
    state: str
    rate_bps: float | None
    flow_bps: float | None
    about: str = ""


@dataclass(frozen=True)
class Judged:
    """One window of a series with its truth and its estimate."""

    truth: Truth
    said: Estimate

    @property
    def right(self) -> bool | None:
        """Whether the state is right; None if no state was given. A link whose truth is ``none`` must get none."""
        return None if self.said.state is None else self.said.state == self.truth.state

    @property
    def error(self) -> float | None:
        if self.truth.flow_bps is None or self.said.throughput_bps is None:
            return None
        return abs(self.said.throughput_bps / self.truth.flow_bps - 1)

    @property
    def holds(self) -> bool:
        low, high = self.said.low_bps, self.said.high_bps
        return low is not None and low <= (self.truth.flow_bps or 0) <= (_ANY_BPS if high is None else high)

    @property
    def factor(self) -> float:
        """The factor from the lower to the upper end of the interval; infinite if it is one-sided."""
        low, high = self.said.low_bps, self.said.high_bps
        return high / low if low and high else float("inf")


@click.command()
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--no-rate", is_flag=True, help="As if no link's rate were known.")
@click.option("--model", "model_file", type=click.Path(exists=True, path_type=Path), help="Instead of the shipped one.")
@click.option("--all", "every", is_flag=True, help="A row for every series, not only for those that are off.")
def probes(directory: Path, no_rate: bool, model_file: Path | None, every: bool) -> None:
    """Compare estimates for the series of probes in DIRECTORY with what is known of their links.

    DIRECTORY has truth.csv, with the columns file, state (idle, busy, congested; none: not a queue's), rate_mbps and
    flow_mbps (each may be empty) and about (any words), and the files, of any kind that "sawtooth congestion estimate"
    reads. Ends with status 1 if a threshold is not reached.
    """
    model = CongestionModel.default() if model_file is None else CongestionModel.load(model_file)
    judged = list(judge(directory, model, rates=not no_rate))
    click.echo(table(judged, every=every))
    sys.exit(0 if reached(judged) else 1)


def truths(directory: Path) -> list[Truth]:
    """The rows of ``truth.csv``."""

    def number(cell: str | None) -> float | None:
        return float(cell) * 1e6 if cell else None

    with (directory / TRUTH).open(newline="", encoding="utf-8") as stream:
        return [
            Truth(row["file"], row["state"], number(row["rate_mbps"]), number(row["flow_mbps"]), row.get("about") or "")
            for row in csv.DictReader(stream)
        ]


def judge(directory: Path, model: CongestionModel, *, rates: bool = True) -> Iterator[Judged]:
    """Every window of every series. Rates outside the model's range are omitted."""
    for truth in truths(directory):
        for series in read_series(directory / truth.file):
            try:
                found = estimate(series, model, rate_bps=truth.rate_bps if rates else None)
            except SawtoothError:
                found = estimate(series, model)
            yield from (Judged(truth, one) for one in found)


def reached(judged: Sequence[Judged]) -> bool:
    """Whether all thresholds are reached."""
    told = _told(judged)
    congested = [one for one in judged if one.truth.state == "congested"]
    if any(one.right is False for one in judged) or not congested:
        return False
    return bool(
        np.median([one.error for one in told if one.error is not None]) <= MEDIAN
        and np.mean([one.holds for one in told]) >= HELD
        and np.median([one.factor for one in told]) <= FACTOR
        and len(told) >= ANSWERED * len(congested)
    )


def table(judged: Sequence[Judged], *, every: bool = False) -> str:
    """Markdown: a row for each series that is wrong, or for each; then the sums beside the thresholds."""
    lines = ["| series | link | truth | said | error |", "|---|---|---|---|---|"]
    for one in judged:
        off = one.right is False or one.said.reason or (one.error is not None and not one.holds)
        if every or off:
            error = "" if one.error is None else f"{one.error:.0%}{'' if one.holds else ', outside'}"
            lines.append(f"| {one.truth.file} | {one.truth.about} | {_truth(one)} | {_said(one)} | {error} |")
    told = _told(judged)
    errors = [one.error for one in told if one.error is not None]
    congested = sum(one.truth.state == "congested" for one in judged)
    wrong = sum(one.right is False for one in judged)
    lines += ["", "| | found | bar |", "|---|---|---|"]
    lines.append(f"| wrong states | {wrong} of {len(judged)} | none |")
    lines.append(f"| congested links that are answered | {len(told)} of {congested} | {ANSWERED:.0%} |")
    if errors:
        lines.append(f"| median error | {np.median(errors):.1%} | {MEDIAN:.0%} |")
        lines.append(f"| 90th percentile | {np.quantile(errors, 0.9):.1%} | |")
        lines.append(f"| intervals that hold | {np.mean([one.holds for one in told]):.0%} | {HELD:.0%} |")
        lines.append(f"| median factor of an interval | {np.median([one.factor for one in told]):.2f} | {FACTOR:g} |")
    return "\n".join(lines)


def _told(judged: Sequence[Judged]) -> list[Judged]:
    return [one for one in judged if one.error is not None]


def _truth(one: Judged) -> str:
    flow = "" if one.truth.flow_bps is None else f", {one.truth.flow_bps / 1e6:.3g} Mbit/s"
    return f"{one.truth.state}{flow}"


def _said(one: Judged) -> str:
    if one.said.state is None:
        return f"inconclusive ({one.said.reason})"
    return f"{one.said.state}, {one.said.gets} ({one.said.within})" if one.said.gets else one.said.state
