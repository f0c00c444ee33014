"""Goodput, bytes in flight and round-trip time of a connection over time, with what limits it."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sawtooth.capture.marks import DATA, LIMITS, MARKS, RTT, WINDOW, quantity, scale
from sawtooth.capture.pixels import Floats, Raster
from sawtooth.capture.view import View
from sawtooth.capture.zoom import Zoom

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

_BINS = 240
"""Most points per curve: shorter intervals are merged."""

ROUND_TRIPS = 3
"""Goodput is a mean over at least this many round trips: shorter intervals show the bursts in which acknowledgements
arrive."""


def over_time(shown: list[View], zoom: Zoom) -> Canvas:
    """One column of panels per view, each with its own axes; call it inside ``saving.styled``."""
    from matplotlib.figure import Figure as Canvas

    canvas = Canvas(figsize=(max(9.0, 7.2 * len(shown)), 8.6), layout="constrained")
    grid = canvas.subplots(4, len(shown), squeeze=False, sharex="col", height_ratios=[0.07, 1, 1, 1])
    limits = set()
    for column, view in enumerate(shown):
        limits |= _column_of(grid[:, column], view, zoom)
    canvas.suptitle("Goodput, bytes in flight and round-trip time", x=0.01, ha="left", fontsize=13, fontweight="bold")
    if limits:
        from matplotlib.patches import Patch

        patches = [Patch(color="none", label="limited by:")]
        patches += [Patch(color=LIMITS[number].colour, label=LIMITS[number].name) for number in sorted(limits)]
        canvas.legend(handles=patches, loc="outside lower left", ncols=6, fontsize=9.5)
    return canvas


def _column_of(panels: Any, view: View, zoom: Zoom) -> set[int]:
    """Draws a view and returns its limits."""
    left, right = zoom.start_s, max(min(zoom.end_s, view.end_s), zoom.start_s + 1e-3)
    strip, rate, flight, rtt = panels
    length = float(np.median(np.diff(view.series["t_s"]))) if len(view.series) > 1 else right - left
    # One more interval at each end, so that the curves reach the edge.
    series = view.series[view.series["t_s"].between(left - length, right + 2 * length)]
    end = series["t_s"].to_numpy(dtype=np.float64)
    _shade(panels, end - length, end, series["limit"].to_numpy())
    strip.set_yticks([])
    strip.grid(False)
    strip.set_title(f"{view.name}\n{view.ends}")

    bins = max(length, (right - left) / _BINS)
    smooth = max(length, (right - left) / 100, ROUND_TRIPS * view.rtt_s)
    _goodput(rate, _grouped(series, smooth, length), view, left, right)
    _flight(flight, _grouped(series, bins, length))
    _rtt(rtt, view, series, left, right)
    rtt.set_xlim(left, right)
    rtt.set_xlabel("time since the first segment, s")
    return set(series["limit"].astype(int)) & LIMITS.keys()


def _grouped(series: Any, bin_s: float, length_s: float) -> Any:
    """Merges intervals of ``length_s`` into about ``bin_s``."""
    return series.groupby(np.arange(len(series)) // max(1, round(bin_s / length_s)))


def _shade(panels: Any, start: Floats, end: Floats, limit: NDArray[Any]) -> None:
    """A strip in full color above the panels, and a tint in them; adjacent intervals are merged."""
    for number, run in itertools.groupby(range(len(limit)), key=lambda at: int(limit[at])):
        if number not in LIMITS:
            continue
        at = list(run)
        for axes in panels:
            strip = axes is panels[0]
            axes.axvspan(start[at[0]], end[at[-1]], color=LIMITS[number].colour, alpha=1 if strip else 0.13, lw=0)


def _goodput(axes: Axes, grouped: Any, view: View, left: float, right: float) -> None:
    t = grouped["t_s"].last()
    goodput = grouped["goodput_bps"].mean()
    factor, unit = scale(float(goodput.max()) if len(goodput) else 0, "bit/s")
    name = f"mean of {quantity(float(t.diff().median()), 's')}" if len(t) > 1 else "mean"
    axes.plot(t, goodput / factor, color=DATA, lw=1.2, label=name)
    axes.set_ylabel(f"goodput, {unit}")
    axes.set_ylim(bottom=0)
    again = view.data[view.data["kind"].between(1, 4) & view.data["t_s"].between(left, right)]
    for number, part in again.groupby("kind"):
        mark = MARKS[int(str(number))]
        times = part["t_s"].to_numpy(dtype=np.float64)
        dots = Raster(left, right, 0, 1).dots(times, np.zeros(len(times)), 5)
        at_foot: dict[str, Any] = {"transform": axes.get_xaxis_transform(), "clip_on": False, "zorder": 5}
        look: dict[str, Any] = {
            "marker": mark.shape,
            "color": mark.colour,
            "ms": 4.5,
            "ls": "",
            "mec": "white",
            "mew": 0.4,
        }
        axes.plot(times[dots], np.full(len(dots), 0.02), label=f"{mark.name} ({len(part):,})", **look, **at_foot)
    _legend(axes)


def _flight(axes: Axes, grouped: Any) -> None:
    t, flight, window = grouped["t_s"].last(), grouped["in_flight_bytes"].max(), grouped["window_bytes"].min()
    highest = float(flight.max()) if len(flight) else 0.0
    factor, unit = scale(highest, "B")
    axes.plot(t, flight / factor, color=DATA, lw=1.2, label="in flight, largest")
    axes.plot(t, window / factor, color=WINDOW, lw=1.2, label="receive window, smallest")
    axes.set_ylabel(f"bytes, {unit}")
    # A window far above the flight does not limit it and need not be visible.
    axes.set_ylim(0, 1.6 * max(highest, 1.0) / factor)
    _legend(axes)


def _rtt(axes: Axes, view: View, series: Any, left: float, right: float) -> None:
    samples = view.rtts[view.rtts["t_s"].between(left, right)]
    y = samples["rtt_s"].to_numpy(dtype=np.float64) * 1e3
    x = samples["t_s"].to_numpy(dtype=np.float64)
    known = series[series["rtt_min_s"].notna()]
    if len(y):
        # A few samples may be many times larger than the others, which would then become a flat line.
        top = max(1.3 * float(np.quantile(y, 0.995)), 1100 * float(known["rtt_min_s"].max()), 1e-3)
        dots = Raster(left, right, 0, top, columns=700, rows=180).dots(x, y)
        # Drawn as pixels in the SVG too: tens of thousands of circles would make it huge.
        axes.plot(
            x[dots],
            y[dots],
            ls="",
            marker="o",
            ms=1.4,
            color=RTT,
            alpha=0.45,
            mew=0,
            label="each sample",
            rasterized=True,
        )
        axes.set_ylim(0, top)
    axes.plot(known["t_s"], known["rtt_min_s"] * 1e3, color=DATA, lw=1, label="smallest of an interval")
    axes.set_ylabel("round-trip time, ms")
    _legend(axes)


def _legend(axes: Axes) -> None:
    if axes.get_legend_handles_labels()[0]:
        look = {"fontsize": 8.5, "markerscale": 1.8, "frameon": True, "framealpha": 0.85, "edgecolor": "none"}
        axes.legend(loc="lower right", bbox_to_anchor=(1, 1.0), ncols=4, borderaxespad=0.1, **look)
