"""Figures of lines (``figures.lines``) as figures that pages and files show."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from sawtooth.figures.lines import Line, LineFigure
from sawtooth.figures.palette import MUTED
from sawtooth.figures.web_figure import DASHES, SYMBOLS, Axis, Figure, Panel, Series

_BUDGET = 16_000
"""Maximum number of points of all lines over time in a figure."""
_LEAST = 200
"""Least number of points per line."""
TIME = "time"
"""The group of figures that have time as x."""


def of_lines(figure: LineFigure) -> Figure:
    of_time = all(panel.x_title == "time, s" for panel in figure.panels)
    most = most_points(len(figure.lines))
    panels = []
    for at, panel in enumerate(figure.panels):
        x = _axis(panel.x_title, panel.log_x, panel.bend_x)
        if panel.names:
            x = Axis(panel.x_title, scale="category", names=panel.names)
        y = _axis(panel.y_title, panel.log_y, panel.bend_y, zero=panel.from_zero)
        own = [line for line in figure.lines if line.panel == at]
        series = [_line(line, most) for line in own]
        ends = [value for line in own for value in line.x if value == value]
        if panel.same is not None and ends:
            same = [panel.same(value) for value in (min(ends), max(ends))]
            series.append(Series("the same", MUTED, [min(ends), max(ends)], same, width=1))
        if of_time:
            # The axis title is below the lowest panel.
            last = at + figure.across >= len(figure.panels)
            x = seconds([line.x for line in own], "time" if last else "")
        panels.append(Panel(x, y, series, panel.title))
    group = TIME if of_time else None
    alike = figure.alike and len(panels) > 1
    low = 170 if len(panels) > 3 and figure.across < len(panels) else None
    words = f"{figure.title}. {figure.caption}".strip()
    return Figure(figure.name, figure.title, words, panels, figure.across, alike, group, low if of_time else None)


def _axis(title: str, logarithmic: bool, bend: float, zero: bool = False) -> Axis:
    if bend:
        return Axis.of(title, scale="asinh", bend=bend)
    return Axis.of(title, scale="log" if logarithmic else "linear", zero=zero and not logarithmic)


def _line(line: Line, most: int) -> Series:
    style: dict[str, Any] = {
        "kind": "line" if line.joined else "points",
        "dash": DASHES[line.look % len(DASHES)] if line.joined else "solid",
        "symbol": SYMBOLS[line.look % len(SYMBOLS)] if line.marked else None,
        "width": 1.6 if line.marked else 1.2,
    }
    if line.low is None or line.high is None:
        x, y = extremes(line.x, line.y, most) if line.joined else (line.x, line.y)
        return Series(line.name, line.tint, x, y, **style)
    return Series(line.name, line.tint, line.x, line.y, low=line.low, high=line.high, band=line.band, **style)


def seconds(columns: Sequence[Any], label: str = "time") -> Axis:
    """A time axis. It starts at the run's start, unless that is far before the data."""
    firsts = [column[0] for column in columns if len(column)]
    lasts = [column[-1] for column in columns if len(column)]
    early = bool(firsts) and 0 <= min(firsts) <= 0.1 * max(lasts)
    return Axis(label, "s", low=0.0 if early else None)


def most_points(lines: int) -> int:
    return max(_LEAST, _BUDGET // max(1, lines))


def extremes(x: Any, y: Any, most: int) -> tuple[Any, Any]:
    """Reduce a line to at most ``most`` points that look the same: the minimum and the maximum of each section."""
    import numpy as np

    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if len(x) <= most:
        return x, y
    edges = np.linspace(0, len(x), most // 2 + 1).astype(int)
    kept: list[int] = []
    for start, end in itertools.pairwise(edges.tolist()):
        part = y[start:end]
        known = np.isfinite(part)
        if not known.any():
            kept.append(start)
            continue
        low, high = np.nanargmin(part), np.nanargmax(part)
        kept += sorted({start + int(low), start + int(high)})
    return x[kept], y[kept]
