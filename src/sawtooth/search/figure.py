"""The figure of an answer: both sides of the comparison over the unknown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sawtooth.figures.lines import Line, LineFigure, Panel
from sawtooth.figures.palette import MUTED, colour
from sawtooth.scenario.expressions import RATE, SIZE, TIME
from sawtooth.search.frontier import Frontier
from sawtooth.search.frontier_figure import contour

if TYPE_CHECKING:
    from sawtooth.search.result import Found

_SCALES = {RATE: (1e6, "Mbit/s"), TIME: (1e-3, "ms"), SIZE: (8e3, "kB")}


def figure(found: Found | Frontier) -> LineFigure:
    """The figure for one unknown or for several."""
    return contour(found) if isinstance(found, Frontier) else _sides(found)


def _sides(found: Found) -> LineFigure:
    """One panel: the left side with its interval, the right side, and the answer's interval as a vertical band."""
    scale, unit = _SCALES.get(found.dimension, (1.0, ""))
    rows = found.table
    x = rows["value"].tolist()
    columns = {name: (rows[name] / scale).tolist() for name in ("left", "left_low", "left_high", "right")}
    left, right = found.want.replace(">", "<").replace("=", "").split("<", 1)
    lines = [
        Line(0, left.strip(), colour(left, 0), x, columns["left"], columns["left_low"], columns["left_high"]),
        Line(0, right.strip(), colour(right, 1), x, columns["right"], look=1, marked=False),
    ]
    if found.verdict == "found":
        ends = [*columns["left"], *columns["right"]]
        between = [min(ends), max(ends)]
        name = "answer, 95% interval"
        lines += [Line(0, name, MUTED, [at, at], between, look=2, marked=False) for at in found.interval]
    title = f"{found.unknown.field}, {found.unit}" if found.unit else found.unknown.field
    panel = Panel("", title, unit, log_x=found.unknown.scale == "log", bend_x=found.unknown.bend)
    return LineFigure("find", f"{found.name}: {found.want}", found.answer, rows, (panel,), tuple(lines), across=1)
