"""The figures as files: PNG and SVG by matplotlib. The same table gives the same bytes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sawtooth.report.figures import SHARE, THROUGHPUT, Figure, Layout
from sawtooth.report.fonts import OURS, accepted, families
from sawtooth.report.palette import GRID, INK, MARKERS, MUTED, PUBLISHED, colour, shown
from sawtooth.storage import writing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

PNG_DPI = 150

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
    import matplotlib as mpl

    written = []
    names, _ = families(figure.words)
    with accepted(), mpl.rc_context(STYLE | {"font.family": list(names)}):
        canvas = _DRAWERS[figure.name](figure)
        for ending, metadata in (("png", {"Software": None}), ("svg", {"Date": None})):
            path = directory / f"{figure.name}.{ending}"
            with writing(path):
                canvas.savefig(path, dpi=PNG_DPI, metadata=metadata)
            written.append(path)
    return written


def _canvas(figure: Figure, rows: int, columns: int, *, height: float = 3.6, **shared: Any) -> tuple[Canvas, Any]:
    # The object interface: pyplot would keep every figure in memory and ask for a display.
    from matplotlib.figure import Figure as Canvas

    canvas = Canvas(figsize=(max(7.0, 5.2 * columns), height * rows + 0.7), layout="constrained")
    axes = canvas.subplots(rows, columns, squeeze=False, **shared)
    canvas.suptitle(figure.title, x=0.01, ha="left", fontsize=13, fontweight="bold")
    return canvas, axes


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
            name = layout.series_text(one) if layout.series else ""
            axes.set_title(" · ".join(text for text in (name, layout.panel_titles[column]) if text))
            axes.set_ylim(bottom=0)
            axes.legend(loc="upper right", fontsize=8.5, ncols=2, bbox_to_anchor=(1, 1.16), borderaxespad=0)
            if column == 0:
                axes.set_ylabel(THROUGHPUT)
            if row == len(series) - 1:
                axes.set_xlabel("time, s")
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
    canvas, grid = _canvas(figure, 1, len(layout.panel_values), height=4.2, sharey=True)
    count = len(layout.series_values)
    step = _spacing(layout) * 0.8 / count
    places = _positions(layout)
    for column, panel in enumerate(layout.panel_values):
        axes = grid[0][column]
        for row, one in enumerate(layout.series_values):
            part = layout.part(figure.table, one, panel)
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
            at = [places[value] + (row - (count - 1) / 2) * step for value in part[layout.x]]
            tint = colour(one, row)
            edge = {"color": tint, "lw": 1}
            axes.bxp(
                boxes,
                positions=at,
                widths=step * 0.8,
                showfliers=False,
                patch_artist=True,
                boxprops={"facecolor": tint, "alpha": 0.35, "edgecolor": tint},
                medianprops={"color": tint, "lw": 2},
                whiskerprops=edge,
                capprops=edge,
                manage_ticks=False,
            )
            axes.plot([], [], color=tint, lw=6, alpha=0.6, label=layout.series_text(one) if layout.series else "all")
        axes.set_title(layout.panel_titles[column])
        axes.set_ylim(bottom=0)
        _x_axis(axes, layout)
    grid[0][0].set_ylabel(THROUGHPUT)
    _legend(canvas, grid[0][0])
    return canvas


def _mean(figure: Figure) -> Canvas:
    logarithmic = figure.name.endswith("-log")
    layout = figure.layout
    canvas, grid = _canvas(figure, 1, len(layout.panel_values), height=4.2, sharey=True)
    places = _positions(layout)
    for column, panel in enumerate(layout.panel_values):
        axes = grid[0][column]
        for row, one in enumerate(layout.series_values):
            part = layout.part(figure.table, one, panel)
            part = part[part["mean_mbps"] > 0] if logarithmic else part
            at = [places[value] for value in part[layout.x]]
            name, tint, mark = (
                (layout.series_text(one) if layout.series else "mean"),
                colour(one, row),
                MARKERS[row % len(MARKERS)],
            )
            low = (part["mean_mbps"] - part["ci_low_mbps"]).fillna(0).clip(lower=0)
            high = (part["ci_high_mbps"] - part["mean_mbps"]).fillna(0).clip(lower=0)
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
            axes.set_yscale("log")
            axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        else:
            axes.set_ylim(bottom=0)
        axes.set_title(layout.panel_titles[column])
        _x_axis(axes, layout)
    grid[0][0].set_ylabel(THROUGHPUT)
    _legend(canvas, max(grid[0], key=lambda axes: len(axes.get_legend_handles_labels()[0])))
    return canvas


def _pairs(at: list[float], values: Any) -> tuple[list[float], list[float]]:
    kept = [(x, y) for x, y in zip(at, values, strict=True) if y == y]
    return [x for x, _ in kept], [y for _, y in kept]


def _side_by_side(figure: Figure) -> Canvas:
    layout = figure.layout
    canvas, grid = _canvas(figure, 1, len(layout.panel_values), height=4.2, sharey=True)
    count = len(layout.series_values)
    step = _spacing(layout) * 0.84 / count
    places = _positions(layout)
    for column, panel in enumerate(layout.panel_values):
        axes = grid[0][column]
        for row, one in enumerate(layout.series_values):
            part = layout.part(figure.table, one, panel)
            at = [places[value] + (row - (count - 1) / 2) * step for value in part[layout.x]]
            low = (part["mean_mbps"] - part["ci_low_mbps"]).fillna(0).clip(lower=0)
            high = (part["ci_high_mbps"] - part["mean_mbps"]).fillna(0).clip(lower=0)
            name = layout.series_text(one) if layout.series else "mean"
            axes.bar(
                at,
                part["mean_mbps"],
                width=step * 0.94,
                color=colour(one, row),
                alpha=0.85,
                label=name,
                yerr=[low, high],
                error_kw={"ecolor": INK, "elinewidth": 0.9, "capsize": 2},
            )
        axes.set_title(layout.panel_titles[column])
        _x_axis(axes, layout)
    grid[0][0].set_ylabel(THROUGHPUT)
    _legend(canvas, grid[0][0])
    return canvas


def _share(figure: Figure) -> Canvas:
    layout = figure.layout
    canvas, grid = _canvas(figure, 1, len(layout.panel_values), height=4.2, sharey=True)
    places = _positions(layout)
    for column, panel in enumerate(layout.panel_values):
        axes = grid[0][column]
        for row, one in enumerate(layout.series_values):
            part = layout.part(figure.table, one, panel)
            axes.errorbar(
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
                label=layout.series_text(one),
            )
        axes.set_ylim(0, 100)
        axes.set_title(layout.panel_titles[column])
        _x_axis(axes, layout)
    grid[0][0].set_ylabel(SHARE)
    _legend(canvas, max(grid[0], key=lambda axes: len(axes.get_legend_handles_labels()[0])))
    return canvas


_DRAWERS: dict[str, Callable[[Figure], Canvas]] = {
    "throughput-over-time": _time,
    "distribution": _distribution,
    "mean": _mean,
    "mean-log": _mean,
    "side-by-side": _side_by_side,
    "share": _share,
}
