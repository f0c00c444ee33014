"""Writes the figures as PNG and SVG files with matplotlib. Equal tables give equal bytes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sawtooth.figures import lines
from sawtooth.figures.lines import LineFigure
from sawtooth.figures.palette import INK, MARKERS, MUTED, PUBLISHED, colour, shown
from sawtooth.figures.panels import Layout, PanelFigure
from sawtooth.figures.saving import save, styled
from sawtooth.report.figures import SHARE, THROUGHPUT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas


def draw(figure: PanelFigure | LineFigure, directory: Path) -> list[Path]:
    """Writes NAME.png and NAME.svg. Raises SawtoothError ``unwritable-output`` or ``disk-full``."""
    with styled(figure.words):
        return save(_drawn(figure), figure.name, directory)


def on_canvas(figure: PanelFigure | LineFigure) -> Canvas:
    """Draw a figure on a Matplotlib canvas."""
    with styled(figure.words):
        return _drawn(figure)


def _drawn(figure: PanelFigure | LineFigure) -> Canvas:
    return lines.draw(figure) if isinstance(figure, LineFigure) else _DRAWERS[figure.name](figure)


def _panels(figure: PanelFigure) -> tuple[Canvas, Any]:
    """A canvas with one row of axes, one per panel."""
    canvas, grid = figure.canvas(1, len(figure.layout.panel_values), height=4.2, sharey=True)
    return canvas, grid[0]


def _finish(canvas: Canvas, panels: Any, layout: Layout, label: str) -> Canvas:
    """Final steps for all panels, after everything is drawn."""
    for axes, title in zip(panels, layout.panel_titles, strict=True):
        axes.set_title(title)
        _x_axis(axes, layout)
    panels[0].set_ylabel(label)
    _legend(canvas, max(panels, key=lambda axes: len(axes.get_legend_handles_labels()[0])))
    return canvas


def _from_zero(axes: Axes) -> None:
    """Let the shared scale of all axes start at 0. Call it after everything is drawn, because it fixes the upper
    end."""
    axes.set_ylim(bottom=0)


def _error(part: Any) -> list[Any]:
    """Distances from the mean down and up to the ends of its interval."""
    low = (part["mean_mbps"] - part["ci_low_mbps"]).fillna(0).clip(lower=0)
    high = (part["ci_high_mbps"] - part["mean_mbps"]).fillna(0).clip(lower=0)
    return [low, high]


def _rank(label: str) -> int:
    return 2 if label == "misprint" else 1 if label.endswith("published") else 0


def _legend(canvas: Canvas, axes: Axes) -> None:
    handles, labels = axes.get_legend_handles_labels()
    if handles:
        # Our series first, then the comparison values.
        ranked = sorted(zip(labels, handles, strict=True), key=lambda one: _rank(one[0]))
        labels, handles = [label for label, _ in ranked], [handle for _, handle in ranked]
        canvas.legend(handles, labels, loc="outside lower left", ncols=6, fontsize=9.5)


def _time(figure: PanelFigure) -> Canvas:
    layout = figure.layout
    panels, series = layout.panel_values, layout.series_values
    rows, columns = layout.apart
    canvas, grid = figure.canvas(rows, columns, height=2.5, sharex=True, sharey=True)
    for axes in grid.flat[len(series) * len(panels) :]:
        axes.set_visible(False)
    for row, one in enumerate(series):
        for column, panel in enumerate(panels):
            axes = grid[layout.place(row, column)]
            part = layout.part(figure.table, one, panel)
            for value, tint in layout.contrast(colour(one, row)):
                line = part[part[layout.x] == value]
                if not line.empty:
                    width = 1.2 if len(line) < 1000 else 0.4
                    axes.plot(line["t_s"], line["mbps"], color=tint, lw=width, label=layout.x_text(value))
            axes.set_title(" · ".join(text for text in (layout.name(one, ""), layout.panel_titles[column]) if text))
            axes.legend(loc="upper right", fontsize=8.5, ncols=2, bbox_to_anchor=(1, 1.16), borderaxespad=0)
            if layout.place(row, column)[1] == 0:
                axes.set_ylabel(THROUGHPUT)
            if (row * len(panels) + column) + columns >= len(series) * len(panels):
                axes.set_xlabel("time, s")
                axes.tick_params(labelbottom=True)
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


def _distribution(figure: PanelFigure) -> Canvas:
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


def _mean(figure: PanelFigure) -> Canvas:
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
        lines.log_ticks(panels[0].yaxis, *panels[0].get_ylim())
    else:
        _from_zero(panels[0])
    return _finish(canvas, panels, layout, THROUGHPUT)


def _pairs(at: list[float], values: Any) -> tuple[list[float], list[float]]:
    kept = [(x, y) for x, y in zip(at, values, strict=True) if y == y]
    return [x for x, _ in kept], [y for _, y in kept]


def _side_by_side(figure: PanelFigure) -> Canvas:
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


def _share(figure: PanelFigure) -> Canvas:
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


_DRAWERS: dict[str, Callable[[PanelFigure], Canvas]] = {
    "throughput-over-time": _time,
    "distribution": _distribution,
    "mean": _mean,
    "mean-log": _mean,
    "side-by-side": _side_by_side,
    "share": _share,
}
