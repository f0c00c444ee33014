"""Lines: figures of lines and marks in panels, from the few choices that most of them make."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sawtooth.figures.figure import DASHES, SYMBOLS, Axis, Panel, Series, TableFigure
from sawtooth.figures.palette import MUTED

if TYPE_CHECKING:
    from pandas import DataFrame

_BUDGET = 16_000
"""Maximum number of points of all lines over time in a figure."""
_LEAST = 200
"""Least number of points per line."""
TIME = "time"
"""The group of figures that have time as x."""


@dataclass(frozen=True)
class Axes:
    """A panel's axes. ``same``: where y would be if estimate and true value were equal, drawn as a thin line.
    ``names``: of x = 0, 1, …, if x is not numeric. ``from_zero``: a linear y axis starts at 0. ``bend_x`` and
    ``bend_y``: a logarithmic scale also shows 0 and is linear up to about this value.
    """

    title: str
    x_title: str
    y_title: str
    log_x: bool = False
    log_y: bool = False
    same: Callable[[float], float] | None = None
    names: tuple[str, ...] = ()
    from_zero: bool = False
    bend_x: float = 0.0
    bend_y: float = 0.0


@dataclass(frozen=True)
class Line:
    """A line in a panel. ``look`` selects dash and marker. ``joined``: a line through the points, otherwise only marks.
    ``marked``: marks in addition to the line.

    ``low`` and ``high``: ends of each point's interval, if any; with ``band`` they are drawn as an area. Lines with the
    same ``name`` share one legend entry.
    """

    panel: int
    name: str
    tint: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None
    look: int = 0
    joined: bool = True
    marked: bool = True
    band: bool = False


def line_figure(
    name: str,
    title: str,
    caption: str,
    table: DataFrame,
    axes: Sequence[Axes],
    lines: Sequence[Line],
    across: int = 3,
    alike: bool = False,
) -> TableFigure:
    """A figure of lines. ``across``: number of panels per row. ``alike``: all panels have the scales of the first."""
    of_time = all(panel.x_title == "time, s" for panel in axes)
    most = most_points(len(lines))
    panels = []
    for at, panel in enumerate(axes):
        x = _axis(panel.x_title, panel.log_x, panel.bend_x)
        if panel.names:
            x = Axis(panel.x_title, scale="category", names=panel.names)
        y = _axis(panel.y_title, panel.log_y, panel.bend_y, zero=panel.from_zero)
        own = [line for line in lines if line.panel == at]
        series = [_series(line, most) for line in own]
        ends = [value for line in own for value in line.x if value == value]
        if panel.same is not None and ends:
            same = [panel.same(value) for value in (min(ends), max(ends))]
            series.append(Series("the same", MUTED, [min(ends), max(ends)], same, width=1))
        if of_time:
            # The axis title is below the lowest panel.
            x = seconds([line.x for line in own], "time" if at + across >= len(axes) else "")
        panels.append(Panel(x, y, series, panel.title))
    more: dict[str, Any] = {"across": across, "alike": alike and len(panels) > 1}
    if of_time:
        more |= {"group": TIME, "height": 170 if len(panels) > 3 and across < len(panels) else None}
    return TableFigure.of(name, title, caption, table, panels, **more)


def _axis(title: str, logarithmic: bool, bend: float, zero: bool = False) -> Axis:
    if bend:
        return Axis.of(title, scale="asinh", bend=bend)
    return Axis.of(title, scale="log" if logarithmic else "linear", zero=zero and not logarithmic)


def _series(line: Line, most: int) -> Series:
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
