"""A comparison as a figure: runs by distribution and over time, studies by means and differences of points."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sawtooth.compare.comparison import Comparison
from sawtooth.compare.subject import ALL_FLOWS
from sawtooth.figures import Axis, Figure, Mark, Panel, Series, static
from sawtooth.figures.figure import SYMBOLS
from sawtooth.figures.lines import extremes
from sawtooth.figures.palette import colour

NAME = "comparison"
_THROUGHPUT = "goodput, Mbit/s"
_MOST = 4000
"""Maximum number of points of a line."""


def figure(found: Comparison) -> Figure:
    """For a page and for files."""
    return _runs(found) if found.subjects[0].kind == "run" else _studies(found)


def draw(found: Comparison, directory: Path) -> list[Path]:
    """Writes comparison.png and comparison.svg. Raises SawtoothError ``unwritable-output`` or ``disk-full``."""
    return static.draw(figure(found), directory)


def _runs(found: Comparison) -> Figure:
    import numpy as np

    over_time, distribution = [], []
    for at, (label, subject) in enumerate(zip(found.labels, found.subjects, strict=True)):
        cell, tint = subject.cells[ALL_FLOWS], colour(label, at)
        for one in cell.series:
            x, y = extremes(one.index.to_numpy(), one.to_numpy(), _MOST)
            over_time.append(Series(label, tint, x, y, width=1.2))
        samples = np.sort(cell.samples)
        share = np.arange(1, len(samples) + 1) / max(1, len(samples)) * 100
        kept = np.unique(np.linspace(0, len(samples) - 1, min(len(samples), _MOST)).astype(int))
        distribution.append(Series(label, tint, samples[kept], share[kept], "line"))
    panels = [
        Panel(Axis("time", "s"), Axis.of(_THROUGHPUT, zero=True), over_time, "Over time"),
        Panel(Axis.of(_THROUGHPUT), Axis("at or below", "%", zero=True), distribution, "Distribution of the intervals"),
    ]
    sentence = "goodput of all flows together, over time, and the share of intervals at or below each value"
    return Figure(NAME, "Goodput of all flows", sentence, panels, across=2)


def _studies(found: Comparison) -> Figure:
    points = list(dict.fromkeys(name for one in found.subjects for name in one.cells))
    places = {name: float(at) for at, name in enumerate(points)}
    axis = Axis("point", scale="category", names=tuple(points))
    means, apart = [], []
    for at, (label, subject) in enumerate(zip(found.labels, found.subjects, strict=True)):
        look: dict[str, Any] = {"kind": "points", "symbol": SYMBOLS[at % len(SYMBOLS)]}
        cells = [
            (places[name], float(cell.samples.mean())) for name, cell in subject.cells.items() if cell.samples.size
        ]
        x, y = [one for one, _ in cells], [mean for _, mean in cells]
        means.append(Series(label, colour(label, at), x, y, **look))
        rows = found.table[found.table["against"] == label]
        if at and len(rows):
            percent = (100 / rows["reference_mbps"]).to_numpy()
            middle, low, high = (
                rows[name].to_numpy(dtype=float) * percent
                for name in ("difference_mbps", "difference_low_mbps", "difference_high_mbps")
            )
            x = [places[name] for name in rows["point"]]
            apart.append(Series(label, colour(label, at), x, middle, low=low, high=high, **look))
    limit = found.within * 100
    marks = [Mark("y", 0.0, ""), *(Mark("y", end, f"{end:+g}%") for end in (-limit, limit))]
    panels = [
        Panel(axis, Axis.of(f"mean {_THROUGHPUT}", zero=True), means, "Means"),
        Panel(axis, Axis("difference", "%"), apart, f"Difference from {found.labels[0]}, 95% intervals", marks=marks),
    ]
    sentence = "mean goodput of each point, and its difference from the reference with its confidence interval"
    return Figure(NAME, "Means and their differences", sentence, panels, across=2)
