"""Draws figures with matplotlib, for files and notebooks. ``web/draw`` draws the same values on pages."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sawtooth.figures.figure import Axis, Figure, Mark, Panel, Series, Span
from sawtooth.figures.palette import INK, MUTED
from sawtooth.figures.saving import save, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

_MARKERS = {"none": "", "circle": "o", "square": "s", "diamond": "D", "up": "^", "down": "v"}
_MARKERS |= {"plus": "P", "cross": "X", "tick": "|"}
_BAND = 0.22
_UPRIGHT = 40
"""Maximum total length in characters of x names that stand side by side below a panel. Longer ones are turned."""
_LEANING = 15
"""Maximum number of names that are turned a little. More of them are upright, and widen the panel."""
_A_NAME = 0.12
"""Inches that each of those takes."""
_MOST_NAMES = 100
"""Most names written on an axis. With more, only every second, third, … is: each costs time, and all are unreadable."""


def draw(figure: Figure, directory: Path) -> list[Path]:
    """Writes NAME.png and NAME.svg. Raises SawtoothError ``unwritable-output`` or ``disk-full``."""
    with styled(figure.words):
        return save(_canvas(figure), figure.name, directory)


def canvas(figure: Figure) -> Canvas:
    """The figure on a matplotlib canvas."""
    with styled(figure.words):
        return _canvas(figure)


def _canvas(figure: Figure) -> Canvas:
    # Use the object interface: pyplot would keep every figure in memory and need a display.
    from matplotlib.figure import Figure as Canvas

    count = len(figure.panels)
    across = figure.across or min(3, count)
    rows = -(-count // across)
    height = 4.2 if rows == 1 else 2.6
    names = min(_MOST_NAMES, max(len(panel.x.names) for panel in figure.panels))
    width = max(7.0, max(5.2, _A_NAME * names) * across)
    canvas = Canvas(figsize=(width, height * rows + 0.7), layout="constrained")
    grid = list(canvas.subplots(rows, across, squeeze=False, sharex=figure.alike, sharey=figure.alike).flat)
    canvas.suptitle(figure.title, x=0.01, ha="left", fontsize=13, fontweight="bold")
    for axes, panel in zip(grid, figure.panels, strict=False):
        _series(axes, panel)
    for at, (axes, panel) in enumerate(zip(grid, figure.panels, strict=False)):
        axes.set_title(panel.title)
        if not figure.alike or at + across >= count:
            axes.set_xlabel(_title(panel.x))
            axes.tick_params(labelbottom=True)
        if not figure.alike or at % across == 0:
            axes.set_ylabel(_title(panel.y))
        _scale(axes, panel.x, "x")
        if at == 0 or not figure.alike:
            _scale(axes, panel.y, "y")
    for axes in grid[count:]:
        axes.set_visible(False)
    _legend(canvas, figure, grid)
    return canvas


def _title(axis: Axis) -> str:
    return ", ".join(part for part in (axis.label, axis.unit) if part) if axis.label else ""


def _series(axes: Axes, panel: Panel) -> None:
    for (name, tint), spans in _alike(panel.spans).items():
        ranges = [(one.start, one.end - one.start) for one in spans]
        look: dict[str, Any] = {"color": tint, "alpha": _BAND, "lw": 0, "label": name}
        axes.broken_barh(ranges, (0, 1), transform=axes.get_xaxis_transform(), **look)
    for mark in panel.marks:
        _mark(axes, mark)
    for one in panel.series:
        {"bars": _bars, "boxes": _boxes}.get(one.kind, _line)(axes, panel, one)


def _alike(spans: Sequence[Span]) -> dict[tuple[str, str], list[Span]]:
    """Spans of the same name and colour, which become one object: a long series has thousands."""
    found: dict[tuple[str, str], list[Span]] = {}
    for one in spans:
        found.setdefault((one.name, one.colour), []).append(one)
    return found


def _mark(axes: Axes, mark: Mark) -> None:
    """A line with its text at the panel's edge."""
    tint = mark.colour or MUTED
    text: dict[str, Any] = {"color": tint, "fontsize": 8.5}
    if mark.along == "x":
        axes.axvline(mark.at, color=tint, lw=0.9, ls="dashed", label="_")
        axes.text(
            mark.at,
            1,
            f" {mark.words} ",
            rotation=90,
            ha="right",
            va="top",
            transform=axes.get_xaxis_transform(),
            **text,
        )
    else:
        axes.axhline(mark.at, color=tint, lw=0.9, ls="dashed", label="_")
        axes.text(1, mark.at, mark.words, ha="right", va="bottom", transform=axes.get_yaxis_transform(), **text)


def _line(axes: Axes, panel: Panel, one: Series) -> None:
    x, y = _numbers(one.x), _numbers(one.y)
    points = one.kind == "points"
    look: dict[str, Any] = {
        "color": one.colour,
        "ls": "" if points else one.dash,
        "lw": one.width or 1.6,
        "marker": _MARKERS[one.symbol or ("circle" if points else "none")],
        "ms": 9 if one.open else 5,
        "label": _label(one),
    }
    look |= {"mfc": "none", "mec": one.colour, "mew": 1.1} if one.open else {}
    look |= {"drawstyle": "steps-post"} if one.kind == "steps" else {}
    if one.low is None or one.high is None:
        axes.plot(x, y, **look)
    elif one.band:
        axes.fill_between(x, _numbers(one.low), _numbers(one.high), color=one.colour, alpha=_BAND, lw=0)
        axes.plot(x, y, **look)
    else:
        axes.errorbar(x, y, _error(one, panel.y.scale == "log"), elinewidth=1, capsize=2.5, **look)


def _bars(axes: Axes, _: Panel, one: Series) -> None:
    width, x = _slot(one, 0.84)
    error = None if one.low is None else _error(one, False)
    look: dict[str, Any] = {"ecolor": INK, "elinewidth": 0.9, "capsize": 2}
    axes.bar(x, _numbers(one.y), width * 0.92, color=one.colour, label=_label(one), yerr=error, error_kw=look)


def _boxes(axes: Axes, _: Panel, one: Series) -> None:
    width, x = _slot(one, 0.84)
    names = {"whislo": one.low, "q1": one.lower, "med": one.y, "q3": one.upper, "whishi": one.high}
    columns = {name: _numbers(values) for name, values in names.items()}
    edge = {"color": one.colour, "lw": 1}
    axes.bxp(
        [{name: values[at] for name, values in columns.items()} for at in range(len(x))],
        positions=x,
        widths=width * 0.8,
        showfliers=False,
        patch_artist=True,
        boxprops={"facecolor": one.colour, "alpha": 0.35, "edgecolor": one.colour},
        medianprops={"color": one.colour, "lw": 2},
        whiskerprops=edge,
        capprops=edge,
        manage_ticks=False,
    )
    axes.plot([], [], color=one.colour, lw=6, alpha=0.6, label=_label(one))


def _label(one: Series) -> str:
    """matplotlib's legend leaves out what begins with an underscore."""
    return "_" if one.quiet else one.name


def _slot(one: Series, share: float) -> tuple[float, Any]:
    """The width of a slot, and the middle of each."""
    x = _numbers(one.x)
    closest = min((b - a for a, b in itertools.pairwise(sorted(set(x.tolist())))), default=1.0)
    width = closest * share / one.slots
    return width, x + (one.slot - (one.slots - 1) / 2) * width


def _error(one: Series, logarithmic: bool) -> list[Any]:
    """Distances from each value down and up to the ends of its interval. Because of rounding, an end may lie on the
    wrong side; a logarithmic scale shows none at 0."""
    low, middle, high = (_numbers(column) for column in (one.low, one.y, one.high))
    below = np.nan_to_num(middle - low).clip(min=0)
    if logarithmic:
        below = below.clip(max=np.nan_to_num(middle) * 0.999)
    return [below, np.nan_to_num(high - middle).clip(min=0)]


def _numbers(column: Any) -> Any:
    return np.asarray(column, dtype=float)


def _scale(axes: Axes, axis: Axis, along: str) -> None:
    """The axis' scale, ends and ticks, after everything is drawn."""
    of: Any = axes.xaxis if along == "x" else axes.yaxis
    ends = axes.get_xlim if along == "x" else axes.get_ylim
    limit: Any = axes.set_xlim if along == "x" else axes.set_ylim
    if axis.scale == "category":
        turned: dict[str, Any] = {"rotation": 25, "ha": "right"} if sum(map(len, axis.names)) > _UPRIGHT else {}
        if len(axis.names) > _LEANING:
            turned = {"rotation": 90, "fontsize": 7}
        every = max(1, math.ceil(len(axis.names) / _MOST_NAMES))
        of.set_ticks(range(0, len(axis.names), every), axis.names[::every], **(turned if along == "x" else {}))
        limit(-0.5, len(axis.names) - 0.5)
        return
    # A logarithmic scale has no place for data that are nowhere above 0.
    scale = "linear" if axis.scale == "log" and not math.isfinite(of.get_minpos()) else axis.scale
    if scale != "linear":
        more = {"linear_width": axis.bend} if scale == "asinh" else {}
        (axes.set_xscale if along == "x" else axes.set_yscale)(scale, **more)
    if axis.ticks:
        from matplotlib.ticker import NullLocator

        of.set_ticks(axis.ticks, [f"{value:g}" for value in axis.ticks])
        of.set_minor_locator(NullLocator())
    elif scale == "asinh":
        _asinh_ticks(of, axis.bend or 1.0)
    elif scale == "log":
        _log_ticks(of, *ends())
    if axis.zero and scale == "linear":
        limit(0, 1.05 * ends()[1])
    if axis.low is not None or axis.high is not None:
        low, high = ends()
        limit(low if axis.low is None else axis.low, high if axis.high is None else axis.high)


def _asinh_ticks(axis: Any, bend: float) -> None:
    """Ticks at 0 and whole decades, for a scale that is linear up to about ``bend`` and logarithmic above."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    high = axis.get_data_interval()[1]
    powers = range(math.ceil(math.log10(bend)), math.floor(math.log10(max(high, bend))) + 1)
    axis.set_major_locator(FixedLocator([0.0, *(float(f"1e{power}") for power in powers)]))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def _log_ticks(axis: Any, low: float, high: float) -> None:
    """Ticks with plain numbers; more of them if the range is less than a decade."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    if high < 10 * low:
        axis.set_major_locator(LogLocator(subs=(1, 1.2, 1.5, 2, 3, 4, 5, 6, 7, 8, 9)))
    elif high < 200 * low:
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def _legend(canvas: Canvas, figure: Figure, grid: Sequence[Axes]) -> None:
    found: dict[str, Any] = {}
    for axes in grid:
        handles, labels = axes.get_legend_handles_labels()
        found |= {label: handle for label, handle in zip(labels, handles, strict=True) if label not in found}
    # Restore the drawing order: matplotlib lists lines with intervals after the others.
    names = dict.fromkeys(name for panel in figure.panels for name in panel.names)
    found = {name: found[name] for name in names if name in found}
    if len(found) > 1:
        # About eleven characters per inch, including the sample of the line.
        columns = max(1, int(11 * canvas.get_figwidth() / (max(map(len, found)) + 8)))
        canvas.legend(found.values(), found.keys(), loc="outside lower left", ncols=columns, fontsize=9.5)
