"""The figures of a link as PNG and SVG files, in the style of all reports. The same table gives the same bytes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sawtooth.figures.palette import BASELINE, INK, MUTED, colour, shown
from sawtooth.figures.saving import save, styled
from sawtooth.link_estimate.report.figures import CALIBRATION, STATES, LinkFigure
from sawtooth.link_estimate.series import span

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas
    from pandas import DataFrame

TINT = "#0072b2"
LOST = "#d55e00"
PALE = "#cfd6dd"
STATE_TINTS = {"congested": "#d55e00", "busy": "#e69f00", "idle": "#009e73", "inconclusive": BASELINE}
_WIDTH = 10.0
_BARS = 120
"""Windows up to which each has a mark with caps; more get a line each."""


def draw(figure: LinkFigure, name: str, directory: Path) -> list[Path]:
    """Writes NAME.png and NAME.svg. Raises SawtoothError ``unwritable-output`` or ``disk-full``."""
    with styled(figure.words):
        return save(_DRAWERS[figure.name](figure), name, directory)


def _canvas(
    figure: LinkFigure, heights: tuple[float, ...], columns: int = 1, *, sharex: bool = True, top: float = 0.62
) -> tuple[Canvas, Any]:
    """Rows of axes with those heights in inches. Margins are fixed, since a solver's last digits differ from run to
    run."""
    from matplotlib.figure import Figure as Canvas

    bottom, between = 0.62, 0.32 if sharex else 0.75
    height = sum(heights) + between * (len(heights) - 1) + bottom + top
    canvas = Canvas(figsize=(_WIDTH, height))
    axes = canvas.subplots(len(heights), columns, squeeze=False, sharex=sharex, height_ratios=heights)
    canvas.subplots_adjust(
        left=0.115,
        right=0.985,
        bottom=bottom / height,
        top=1 - top / height,
        hspace=between / (sum(heights) / len(heights)),
        wspace=0.26,
    )
    canvas.suptitle(figure.title, x=0.01, y=1 - 0.12 / height, ha="left", va="top", fontsize=13, fontweight="bold")
    return canvas, axes


def _legend(canvas: Canvas, axes: Axes) -> None:
    handles, labels = axes.get_legend_handles_labels()
    if handles:
        canvas.legend(handles, labels, loc="upper right", ncols=6, fontsize=9, borderaxespad=0.3)


def _rtt(figure: LinkFigure) -> Canvas:
    table, link = figure.table, figure.link
    duration_s = link.series.duration_s
    factor, unit = span(duration_s)
    lost = int(table["lost"].sum())
    canvas, grid = _canvas(figure, (3.2, 0.8) if lost else (3.2,))
    axes = grid[0][0]
    t = table["t_s"].to_numpy() / factor
    # Nothing is drawn across a gap.
    steps = np.diff(t)
    breaks = np.flatnonzero(steps > 5 * (np.median(steps) if len(steps) else 0.0)) + 1
    lines = {
        name: np.insert(table[name].to_numpy(), breaks, np.nan) for name in ("least_ms", "median_ms", "largest_ms")
    }
    at = np.insert(t, breaks, t[breaks])
    many = int(table["probes"].max()) > 1
    if many:
        look: dict[str, Any] = {"color": TINT, "alpha": 0.25, "lw": 0, "label": "smallest to largest"}
        axes.fill_between(at, lines["least_ms"], lines["largest_ms"], **look)
    name = "median" if many else "RTT"
    axes.plot(at, lines["median_ms"], color=TINT, lw=0.7, marker="." if len(t) <= 300 else "", ms=3, label=name)
    codes: dict[str, list[float]] = {}
    for row in table[table["remarks"] != ""].to_dict("records"):
        for code in str(row["remarks"]).split("; "):
            codes.setdefault(code, []).append(float(row["t_s"]) / factor)
    for number, (code, places) in enumerate(codes.items()):
        for place in places:
            label = code if place == places[0] else None
            axes.axvline(place, color=INK, lw=1, ls=("--", ":", "-.")[number % 3], label=label)
    axes.set_ylabel("far − near, ms" if link.series.difference else "RTT, ms")
    _legend(canvas, axes)
    if lost:
        below = grid[1][0]
        share = 100 * table["lost"] / table["probes"]
        if many:
            below.fill_between(t, share, step="post", color=LOST, lw=0)
            below.set_ylabel("lost, %")
            below.set_ylim(bottom=0)
        else:
            below.vlines(t[table["lost"] > 0], 0, 1, color=LOST, lw=0.8)
            below.set_yticks([])
            below.set_ylabel("lost")
    last = grid[-1][0]
    last.set_xlim(0, duration_s / factor)
    last.set_xlabel(f"time since {link.begins}, {unit}")
    return canvas


def _distribution(figure: LinkFigure) -> Canvas:
    table = figure.table
    canvas, grid = _canvas(figure, (3.4,), 2)
    left, right = grid[0]
    # The last row may contain everything far above.
    width = float(table["to_ms"].iloc[0] - table["from_ms"].iloc[0])
    drawn = table[np.isclose(table["to_ms"] - table["from_ms"], width)] if len(table) > 1 else table
    left.bar(drawn["from_ms"], drawn["share_percent"], width=width, align="edge", color=TINT, lw=0)
    left.set_ylabel("share of probes, %")
    right.plot([0, *drawn["to_ms"]], [0, *drawn["cumulative_percent"]], color=TINT, lw=1.8)
    right.set_ylabel("share of probes with at most that delay, %")
    right.set_ylim(0, 101)
    delay_ms = figure.link.delay_ms
    for percent, style in ((50, "--"), (90, ":")):
        value = float(np.nanpercentile(delay_ms, percent))
        right.axvline(value, color=MUTED, lw=1, ls=style, label=f"{percent}th percentile: {value:.3g} ms")
    right.legend(loc="lower right", fontsize=9, frameon=True, framealpha=0.9)
    for axes in (left, right):
        axes.set_xlabel("queueing delay above the smallest, ms")
        axes.set_xlim(0, float(drawn["to_ms"].iloc[-1]))
    return canvas


def _hours(figure: LinkFigure) -> Canvas:
    table = figure.table
    told = bool(figure.link.windows)
    canvas, grid = _canvas(figure, (2.5, 2.0, 1.1) if told else (2.5,))
    middle = table["hour"] + 0.5
    axes = grid[0][0]
    axes.fill_between(middle, table["delay_p10_ms"], table["delay_p90_ms"], color=TINT, alpha=0.25, lw=0)
    axes.plot(middle, table["delay_p50_ms"], color=TINT, lw=1.8, marker="o", ms=4)
    axes.plot(middle, table["delay_p95_ms"], color=TINT, lw=1, ls=":")
    axes.plot(middle, table["delay_p99_ms"], color=TINT, lw=1, ls="--")
    axes.set_ylabel("queueing delay, ms")
    axes.set_ylim(bottom=0)
    if told:
        flows = grid[1][0]
        _intervals(flows, middle.to_numpy(), table, ("flow_p10_mbps", "flow_p50_mbps", "flow_p90_mbps"))
        windows = table[[f"{state} windows" for state in STATES]]
        share = 100 * windows.div(windows.sum(axis=1).replace(0, np.nan), axis=0).fillna(0)
        bottom = np.zeros(len(table))
        for state in STATES:
            part = share[f"{state} windows"].to_numpy()
            grid[2][0].bar(middle, part, bottom=bottom, width=0.92, color=STATE_TINTS[state], label=state)
            bottom = bottom + part
        grid[2][0].set_ylabel("windows, %")
        grid[2][0].set_ylim(0, 100)
        _legend(canvas, grid[2][0])
    last = grid[-1][0]
    last.set_xlim(0, 24)
    last.set_xticks(range(0, 25, 2))
    unix = figure.link.series.clock == "unix"
    last.set_xlabel("hour of the day, UTC" if unix else "hours since the start, those after 24 h begin anew")
    return canvas


def _intervals(axes: Axes, at: Any, table: DataFrame, names: tuple[str, str, str], scale: float = 1.0) -> None:
    """Throughput with its interval on a logarithmic scale; a note if there is none."""
    low, middle, high = (table[name].to_numpy(dtype=float) * scale for name in names)
    axes.set_ylabel("a flow, Mbit/s")
    if np.isnan(middle).all():
        axes.set_yticks([])
        axes.text(0.5, 0.5, "no number: nothing congested", transform=axes.transAxes, ha="center", color=MUTED)
        return
    # Wide enough to contain some of 1, 2, 5, 10 …
    least, most = limits_of(low, middle, high)
    low, high = closed(low, middle, high, (least / 2, most * 2))
    few = len(middle) <= _BARS
    width: dict[str, Any] = {"lw": 1.2, "capsize": 2.5} if few else {"lw": 0.7, "capsize": 0}
    look: dict[str, Any] = {"color": INK, "ecolor": MUTED if few else BASELINE, "ls": ""}
    axes.errorbar(at, middle, [middle - low, high - middle], marker="o", ms=4.5 if few else 2, **look, **width)
    axes.set_yscale("log")
    axes.set_ylim(least / 2, most * 2)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.yaxis.set_minor_formatter(lambda value, _: f"{value:g}" if f"{value:e}"[0] in "25" else "")
    axes.grid(True, axis="y", which="both")


def limits_of(*values: Any) -> tuple[float, float]:
    """Limits of a logarithmic axis with room for all positive values."""
    known = np.concatenate([np.asarray(some, dtype=float) for some in values])
    known = known[known > 0]
    return float(known.min()), float(known.max())


def closed(low: Any, middle: Any, high: Any, limits: tuple[float, float]) -> tuple[Any, Any]:
    """Puts the open end of a one-sided interval at the edge of the axes; a value without an interval keeps none."""
    return np.where(low == 0, limits[0], low), np.where(np.isnan(high) & ~np.isnan(middle), limits[1], high)


def _estimates(figure: LinkFigure) -> Canvas:
    table, link = figure.table, figure.link
    factor, unit = span(link.series.duration_s)
    told = bool(table["throughput_bps"].notna().any())
    canvas, grid = _canvas(figure, (3.2, 1.1) if told else (1.1,))
    start = link.since_s(table["start_s"].to_numpy()) / factor
    length = (table["end_s"] - table["start_s"] + link.series.pace_s).to_numpy() / factor
    if told:
        _intervals(grid[0][0], start + length / 2, table, ("low_bps", "throughput_bps", "high_bps"), 1e-6)
    strip = grid[-1][0]
    for row, state in enumerate(reversed(STATES)):
        kept = (table["state"] == state).to_numpy()
        bars = list(zip(start[kept], length[kept], strict=True))
        strip.broken_barh(bars, (row - 0.4, 0.8), facecolors=STATE_TINTS[state], lw=0)
    counts = table["state"].value_counts()
    strip.set_yticks(range(4), [f"{state} ({counts.get(state, 0)})" for state in reversed(STATES)], fontsize=8.5)
    strip.set_ylim(-0.6, 3.6)
    strip.grid(visible=False)
    strip.set_xlim(0, max(link.series.duration_s / factor, float((start + length).max())))
    strip.set_xlabel(f"time since {link.begins}, {unit}")
    return canvas


def _calibration(figure: LinkFigure) -> Canvas:
    table = figure.table
    canvas, grid = _canvas(figure, (2.7, 2.7), 3, sharex=False, top=1.0)
    near = table[table["group"] == "trained, as assumed"]
    other = table[table["group"] == "trained, other links"]
    own = table[table["group"].str.startswith("this link")]
    told, untold = own[own["throughput_bps"].notna()], own[own["throughput_bps"].isna()]
    least, most = limits_of(
        *(table[name].to_numpy(dtype=float) / 1e6 for name in ("throughput_bps", "low_bps", "high_bps"))
    )
    limits = (least / 1.3, most * 1.3)
    for axes, (name, (title, scale)) in zip(grid.flat, CALIBRATION.items(), strict=True):
        axes.plot(other["throughput_bps"] / 1e6, other[name] * scale, "o", ms=2, color=PALE, label="other links")
        for number, (control, part) in enumerate(near.groupby("control", sort=True)):
            look: dict[str, Any] = {"color": colour(control, number), "label": shown(control) or "trained on"}
            axes.plot(part["throughput_bps"] / 1e6, part[name] * scale, "o", ms=3.2, **look)
        if len(told):
            x = told[["low_bps", "throughput_bps", "high_bps"]].to_numpy(dtype=float).T / 1e6
            x[0], x[2] = closed(x[0], x[1], x[2], limits)
            alpha = 1.0 if len(told) <= 30 else 0.35
            label = f"this link ({len(told)})"
            marks: dict[str, Any] = {"marker": "D", "ms": 5 if len(told) <= 30 else 3, "alpha": alpha, "zorder": 5}
            error = [x[1] - x[0], x[2] - x[1]] if len(told) <= 30 else None
            axes.errorbar(x[1], told[name] * scale, xerr=error, color=INK, ls="", lw=1, **marks, label=label)
        for number, (group, part) in enumerate(untold.groupby("group", sort=True)):
            state = str(group).removeprefix("this link, ")
            style = ("--", ":", "-.")[number % 3]
            label = f"{state} ({len(part)})"
            axes.axhline(float(part[name].median()) * scale, color=INK, lw=1.2, ls=style, label=label)
        axes.set_xscale("log")
        axes.set_xlim(limits)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.set_title(title)
    for axes in grid[-1]:
        axes.set_xlabel("goodput of a flow, Mbit/s")
    handles, labels = grid[0][0].get_legend_handles_labels()
    place = (0.003, 1 - 0.36 / canvas.get_figheight())
    canvas.legend(
        handles, labels, loc="upper left", bbox_to_anchor=place, borderaxespad=0, ncols=9, fontsize=9, columnspacing=1.4
    )
    return canvas


_DRAWERS: dict[str, Callable[[LinkFigure], Canvas]] = {
    "rtt": _rtt,
    "distribution": _distribution,
    "hours": _hours,
    "estimates": _estimates,
    "calibration": _calibration,
}
