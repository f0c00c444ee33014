"""The figures as files: PNG and SVG by matplotlib. The same table gives the same bytes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sawtooth.canvas import settle
from sawtooth.report.figures import SHARE, THROUGHPUT, Figure, Layout
from sawtooth.report.fonts import OURS, accepted, families
from sawtooth.report.lines import DASHES, LineFigure
from sawtooth.report.palette import GRID, INK, MARKERS, MUTED, PUBLISHED, colour, shown
from sawtooth.storage import writing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

_PNG_DPI = 150

STYLE: dict[Any, Any] = {
    "figure.facecolor": "white",
    "axes.facecolor": "white",
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.titlesize": 10.5,
    "axes.titleweight": "normal",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "xtick.color": INK,
    "ytick.color": INK,
    "text.color": INK,
    "text.parse_math": False,
    "font.family": OURS,
    "font.size": 9.5,
    "legend.frameon": False,
    "svg.hashsalt": "sawtooth",
    "svg.fonttype": "path",
}


def draw(figure: Figure, directory: Path) -> list[Path]:
    """Writes NAME.png and NAME.svg. Raises SawtoothError ``unwritable-output`` or ``disk-full``."""
    settle()
    import matplotlib as mpl

    names, _ = families(figure.words)
    with accepted(), mpl.rc_context(STYLE | {"font.family": list(names)}):
        canvas = _lines(figure) if isinstance(figure, LineFigure) else _DRAWERS[figure.name](figure)
        return save(canvas, figure.name, directory)


def save(canvas: Canvas, name: str, directory: Path) -> list[Path]:
    """Writes NAME.png and NAME.svg without date and version; call it where ``STYLE`` holds. Raises as ``draw``."""
    written = []
    for ending, metadata in (("png", {"Software": None}), ("svg", {"Date": None})):
        path = directory / f"{name}.{ending}"
        with writing(path):
            canvas.savefig(path, dpi=_PNG_DPI, metadata=metadata)
        written.append(path)
    return written


def _canvas(figure: Figure, rows: int, columns: int, *, height: float, **shared: Any) -> tuple[Canvas, Any]:
    # The object interface: pyplot would keep every figure in memory and ask for a display.
    from matplotlib.figure import Figure as Canvas

    canvas = Canvas(figsize=(max(7.0, 5.2 * columns), height * rows + 0.7), layout="constrained")
    axes = canvas.subplots(rows, columns, squeeze=False, **shared)
    canvas.suptitle(figure.title, x=0.01, ha="left", fontsize=13, fontweight="bold")
    return canvas, axes


def _panels(figure: Figure) -> tuple[Canvas, Any]:
    """A canvas with one row of axes, one for each panel."""
    canvas, grid = _canvas(figure, 1, len(figure.layout.panel_values), height=4.2, sharey=True)
    return canvas, grid[0]


def _finish(canvas: Canvas, panels: Any, layout: Layout, label: str) -> Canvas:
    """What all panels get when everything is drawn."""
    for axes, title in zip(panels, layout.panel_titles, strict=True):
        axes.set_title(title)
        _x_axis(axes, layout)
    panels[0].set_ylabel(label)
    _legend(canvas, max(panels, key=lambda axes: len(axes.get_legend_handles_labels()[0])))
    return canvas


def _from_zero(axes: Axes) -> None:
    """The scale that all axes share. When everything is drawn: it keeps the upper end that it finds."""
    axes.set_ylim(bottom=0)


def _error(part: Any) -> list[Any]:
    """How far the interval of the mean reaches below and above it."""
    low = (part["mean_mbps"] - part["ci_low_mbps"]).fillna(0).clip(lower=0)
    high = (part["ci_high_mbps"] - part["mean_mbps"]).fillna(0).clip(lower=0)
    return [low, high]


def _rank(label: str) -> int:
    return 2 if label == "misprint" else 1 if label.endswith("published") else 0


def _legend(canvas: Canvas, axes: Axes) -> None:
    handles, labels = axes.get_legend_handles_labels()
    if handles:
        # Ours first, then what is set beside it.
        ranked = sorted(zip(labels, handles, strict=True), key=lambda one: _rank(one[0]))
        labels, handles = [label for label, _ in ranked], [handle for _, handle in ranked]
        canvas.legend(handles, labels, loc="outside lower left", ncols=6, fontsize=9.5)


def _time(figure: Figure) -> Canvas:
    layout = figure.layout
    panels, series = layout.panel_values, layout.series_values
    canvas, grid = _canvas(figure, len(series), len(panels), height=2.5, sharex=True, sharey=True)
    for row, one in enumerate(series):
        for column, panel in enumerate(panels):
            axes = grid[row][column]
            part = layout.part(figure.table, one, panel)
            for value, tint in layout.contrast(colour(one, row)):
                line = part[part[layout.x] == value]
                if not line.empty:
                    width = 1.2 if len(line) < 1000 else 0.4
                    axes.plot(line["t_s"], line["mbps"], color=tint, lw=width, label=layout.x_text(value))
            axes.set_title(" · ".join(text for text in (layout.name(one, ""), layout.panel_titles[column]) if text))
            axes.legend(loc="upper right", fontsize=8.5, ncols=2, bbox_to_anchor=(1, 1.16), borderaxespad=0)
            if column == 0:
                axes.set_ylabel(THROUGHPUT)
            if row == len(series) - 1:
                axes.set_xlabel("time, s")
    _from_zero(grid[0][0])
    return canvas


def _positions(layout: Layout) -> dict[Any, float]:
    if layout.geometric:
        return {value: math.log10(value) for value in layout.x_values}
    return {value: float(value) if layout.numeric else float(at) for at, value in enumerate(layout.x_values)}


def _x_axis(axes: Axes, layout: Layout) -> None:
    places = _positions(layout)
    if len(places) <= 15 or layout.geometric:
        axes.set_xticks(list(places.values()), [shown(value) for value in places])
    axes.set_xlabel(layout.x_title)


def _spacing(layout: Layout) -> float:
    at = sorted(_positions(layout).values())
    return min((b - a for a, b in itertools.pairwise(at)), default=1.0)


def _distribution(figure: Figure) -> Canvas:
    layout = figure.layout
    canvas, panels = _panels(figure)
    count = len(layout.series_values)
    step = _spacing(layout) * 0.8 / count
    places = _positions(layout)
    for column, row, one, part in figure.parts():
        boxes = [
            {
                "whislo": line["min_mbps"],
                "q1": line["q25_mbps"],
                "med": line["q50_mbps"],
                "q3": line["q75_mbps"],
                "whishi": line["max_mbps"],
            }
            for line in part.to_dict("records")
        ]
        tint = colour(one, row)
        edge = {"color": tint, "lw": 1}
        panels[column].bxp(
            boxes,
            positions=[places[value] + (row - (count - 1) / 2) * step for value in part[layout.x]],
            widths=step * 0.8,
            showfliers=False,
            patch_artist=True,
            boxprops={"facecolor": tint, "alpha": 0.35, "edgecolor": tint},
            medianprops={"color": tint, "lw": 2},
            whiskerprops=edge,
            capprops=edge,
            manage_ticks=False,
        )
        panels[column].plot([], [], color=tint, lw=6, alpha=0.6, label=layout.name(one, "all"))
    _from_zero(panels[0])
    return _finish(canvas, panels, layout, THROUGHPUT)


def _mean(figure: Figure) -> Canvas:
    logarithmic = figure.name.endswith("-log")
    layout = figure.layout
    canvas, panels = _panels(figure)
    places = _positions(layout)
    for column, row, one, part in figure.parts():
        axes = panels[column]
        part = part[part["mean_mbps"] > 0] if logarithmic else part
        at = [places[value] for value in part[layout.x]]
        name, tint, mark = layout.name(one), colour(one, row), MARKERS[row % len(MARKERS)]
        low, high = _error(part)
        if logarithmic:
            low = low.clip(upper=part["mean_mbps"] * 0.999)
        axes.errorbar(
            at, part["mean_mbps"], [low, high], color=tint, marker=mark, ms=5, lw=1.6, capsize=2.5, label=name
        )
        axes.plot(
            *_pairs(at, part["published_mean_mbps"]),
            ls="",
            marker=mark,
            ms=9,
            mfc="none",
            mec=PUBLISHED,
            mew=1.1,
            label=f"{name}, published" if part["published_mean_mbps"].notna().any() else None,
        )
        if "misprint_mbps" in part and part["misprint_mbps"].notna().any():
            axes.plot(*_pairs(at, part["misprint_mbps"]), ls="", marker="x", ms=7, color=MUTED, label="misprint")
    if logarithmic:
        panels[0].set_yscale("log")
        panels[0].yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    else:
        _from_zero(panels[0])
    return _finish(canvas, panels, layout, THROUGHPUT)


def _pairs(at: list[float], values: Any) -> tuple[list[float], list[float]]:
    kept = [(x, y) for x, y in zip(at, values, strict=True) if y == y]
    return [x for x, _ in kept], [y for _, y in kept]


def _side_by_side(figure: Figure) -> Canvas:
    layout = figure.layout
    canvas, panels = _panels(figure)
    count = len(layout.series_values)
    step = _spacing(layout) * 0.84 / count
    places = _positions(layout)
    for column, row, one, part in figure.parts():
        panels[column].bar(
            [places[value] + (row - (count - 1) / 2) * step for value in part[layout.x]],
            part["mean_mbps"],
            width=step * 0.94,
            color=colour(one, row),
            alpha=0.85,
            label=layout.name(one),
            yerr=_error(part),
            error_kw={"ecolor": INK, "elinewidth": 0.9, "capsize": 2},
        )
    return _finish(canvas, panels, layout, THROUGHPUT)


def _share(figure: Figure) -> Canvas:
    layout = figure.layout
    canvas, panels = _panels(figure)
    places = _positions(layout)
    for column, row, one, part in figure.parts():
        panels[column].errorbar(
            [places[value] for value in part[layout.x]],
            part["share_percent"],
            [
                (part["share_percent"] - part["share_low_percent"]).fillna(0),
                (part["share_high_percent"] - part["share_percent"]).fillna(0),
            ],
            color=colour(one, row),
            marker=MARKERS[row % len(MARKERS)],
            ms=5,
            lw=1.6,
            capsize=2.5,
            label=layout.name(one),
        )
    panels[0].set_ylim(0, 100)
    return _finish(canvas, panels, layout, SHARE)


def _lines(figure: LineFigure) -> Canvas:
    height = 4.2 if figure.rows == 1 else 2.6
    canvas, grid = _canvas(figure, figure.rows, figure.across, height=height)
    panels = list(grid.flat)
    for line in figure.lines:
        axes, mark = panels[line.panel], MARKERS[line.look % len(MARKERS)]
        style = {
            "color": line.tint,
            "ls": DASHES[line.look % len(DASHES)] if line.joined else "",
            "lw": 1.4 if line.marked else 0.8,
            "marker": mark if line.marked else "",
            "ms": 4.5,
        }
        if line.low is None or line.high is None:
            axes.plot(line.x, line.y, label=line.name, **style)
        else:
            below = [y - low for y, low in zip(line.y, line.low, strict=True)]
            above = [high - y for y, high in zip(line.y, line.high, strict=True)]
            axes.errorbar(line.x, line.y, [below, above], label=line.name, elinewidth=0.9, **style)
    for axes, panel in zip(panels, figure.panels, strict=False):
        axes.set_title(panel.title)
        axes.set_xlabel(panel.x_title)
        axes.set_ylabel(panel.y_title)
        if panel.log_x:
            axes.set_xscale("log")
            _log_ticks(axes.xaxis, *axes.get_xlim())
        if panel.log_y:
            axes.set_yscale("log")
            _log_ticks(axes.yaxis, *axes.get_ylim())
        if panel.same is not None:
            ends = axes.get_xlim()
            axes.plot(ends, [panel.same(x) for x in ends], color=MUTED, lw=0.9)
            axes.set_xlim(ends)
    for axes in panels[len(figure.panels) :]:
        axes.set_visible(False)
    found: dict[str, Any] = {}
    for axes in panels:
        handles, labels = axes.get_legend_handles_labels()
        found |= {label: handle for label, handle in zip(labels, handles, strict=True) if label not in found}
    if len(found) > 1:
        # About eleven characters an inch, and the sample of the line.
        columns = max(1, int(11 * canvas.get_figwidth() / (max(map(len, found)) + 8)))
        canvas.legend(found.values(), found.keys(), loc="outside lower left", ncols=columns, fontsize=9.5)
    return canvas


def _log_ticks(axis: Any, low: float, high: float) -> None:
    """Plain numbers, more of them below a decade."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    if high < 10 * low:
        axis.set_major_locator(LogLocator(subs=(1, 1.2, 1.5, 2, 3, 4, 5, 6, 7, 8, 9)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


_DRAWERS: dict[str, Callable[[Figure], Canvas]] = {
    "throughput-over-time": _time,
    "distribution": _distribution,
    "mean": _mean,
    "mean-log": _mean,
    "side-by-side": _side_by_side,
    "share": _share,
}
