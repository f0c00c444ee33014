"""A comparison as a figure: runs by distribution and over time, studies by means and differences of points."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from sawtooth.compare.comparison import Comparison
from sawtooth.compare.subject import ALL_FLOWS
from sawtooth.figures.palette import GRID, MARKERS, MUTED, colour
from sawtooth.figures.saving import save, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NAME = "comparison"
_THROUGHPUT = "goodput, Mbit/s"


def draw(found: Comparison, directory: Path) -> list[Path]:
    """Writes comparison.png and comparison.svg. Raises SawtoothError ``unwritable-output`` or ``disk-full``."""
    with styled():
        from matplotlib.figure import Figure

        runs = found.subjects[0].kind == "run"
        height = 4.4 if runs else 1.2 + 0.2 * max(10, len(_points(found)))
        canvas = Figure(figsize=(10.5, height), layout="constrained")
        left, right = canvas.subplots(1, 2, sharey=not runs)
        if runs:
            _over_time(left, found)
            _distribution(right, found)
        else:
            _means(left, found)
            _differences(right, found)
        left.legend()
        return save(canvas, NAME, directory)


def _over_time(axes: Axes, found: Comparison) -> None:
    for at, (label, subject) in enumerate(zip(found.labels, found.subjects, strict=True)):
        for series in subject.cells[ALL_FLOWS].series:
            axes.plot(series.index, series.to_numpy(), color=colour(label, at), lw=1.2, label=label)
    axes.set_xlabel("time, s")
    axes.set_ylabel(_THROUGHPUT)
    axes.set_ylim(bottom=0)
    axes.set_title("over time")


def _distribution(axes: Axes, found: Comparison) -> None:
    for at, (label, subject) in enumerate(zip(found.labels, found.subjects, strict=True)):
        axes.ecdf(subject.cells[ALL_FLOWS].samples, color=colour(label, at), lw=1.6, label=label)
    axes.set_xlabel(_THROUGHPUT)
    axes.set_ylabel("share of intervals at or below")
    axes.set_title("distribution of the intervals")


def _means(axes: Axes, found: Comparison) -> None:
    points = _points(found)
    for at, (label, subject) in enumerate(zip(found.labels, found.subjects, strict=True)):
        cells = [(place, subject.cells[name]) for place, name in enumerate(points) if name in subject.cells]
        means = [float(cell.samples.mean()) for _, cell in cells]
        mark = MARKERS[at % len(MARKERS)]
        axes.plot(means, [place for place, _ in cells], ls="", marker=mark, ms=5, color=colour(label, at), label=label)
    axes.set_xlabel(f"mean {_THROUGHPUT}")
    axes.set_xlim(left=0)
    axes.set_yticks(range(len(points)), points)
    axes.invert_yaxis()
    axes.grid(axis="x")


def _differences(axes: Axes, found: Comparison) -> None:
    places = {name: place for place, name in enumerate(_points(found))}
    limit = found.within * 100
    axes.axvspan(-limit, limit, color=GRID, zorder=0)
    axes.axvline(0, color=MUTED, lw=0.8)
    for at, label in enumerate(found.labels[1:], 1):
        rows = found.table[found.table["against"] == label]
        percent = 100 / rows["reference_mbps"]
        low = (rows["difference_mbps"] - rows["difference_low_mbps"]).fillna(0) * percent
        high = (rows["difference_high_mbps"] - rows["difference_mbps"]).fillna(0) * percent
        height: Any = [places[name] for name in rows["point"]]
        mark = MARKERS[at % len(MARKERS)]
        axes.errorbar(
            rows["difference_percent"], height, xerr=[low, high], ls="", marker=mark, ms=5, color=colour(label, at)
        )
    # Linear within the tolerance, which thus stays visible beside differences of any size.
    axes.set_xscale("symlog", linthresh=max(limit, 1.0))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:+g}" if value else "0")
    axes.set_xlabel(f"difference from {found.labels[0]}, % (shaded: within {limit:g}%)")
    axes.grid(axis="x")


def _points(found: Comparison) -> list[str]:
    """The names of the reference's cells that are compared, in order."""
    compared = set(found.table["point"])
    return [name for name in found.subjects[0].cells if name in compared]
