"""Curves over time on a page: goodput, bytes in flight, round-trip time; several captures share the axes."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sawtooth.capture.graphs import ROUND_TRIPS
from sawtooth.capture.marks import LIMITS, WINDOW, scale
from sawtooth.capture.view import View
from sawtooth.figures import Axis, Figure, Panel, Series, Span

if TYPE_CHECKING:
    from pandas import DataFrame

Floats = NDArray[np.float64]

NAME = "over-time"
GROUP = "time"
"""The group of all graphs of the page; they show the same range of time."""
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
"""Colors of captures, in their order."""
_POINTS = 1500
"""Most points per curve: shorter intervals are merged."""
_STRETCHES = 400
"""Intervals shaded by the limit that held for most of each."""
_SEEN = 1.6
"""Multiple of the largest flight: a higher receive window limits nothing and would flatten the rest. Round trips above
this multiple of their 99.5th percentile would do the same."""


def curves(shown: Sequence[View]) -> Figure:
    """Three panels. A single capture's are shaded by what limits it."""
    time = Axis("time since the first segment", "s", low=0.0)
    end_s = max(view.end_s for view in shown)
    rates = [_goodput(view) for view in shown]
    flights = [_flight(view) for view in shown]
    trips = [_round_trips(view, end_s) for view in shown]
    bits, bit_unit = scale(max((float(np.nanmax(y, initial=0)) for _, y in rates), default=0), "bit/s")
    size, size_unit = scale(max((float(np.nanmax(y, initial=0)) for _, y, _ in flights), default=0), "B")
    long, long_unit = scale(max((float(np.nanmax(high, initial=0)) for *_, high in trips), default=0) or 1e-3, "s")
    spans = shading(shown[0]) if len(shown) == 1 else []
    panels: list[list[Series]] = [[], [], []]
    for at, view in enumerate(shown):
        tint, name = COLOURS[at % len(COLOURS)], view.name if len(shown) > 1 else ""
        t, goodput = rates[at]
        panels[0].append(Series(name or "goodput", tint, t, goodput / bits))
        t, flight, window = flights[at]
        panels[1].append(Series(name or "in flight, largest", tint, t, flight / size))
        if not name:
            panels[1].append(Series("receive window, smallest", WINDOW, t, window / size))
        t, least, middle, high = trips[at]
        words = name or "RTT: median, smallest to largest"
        panels[2].append(Series(words, tint, t, middle / long, low=least / long, high=high / long, band=True))
    names = (("goodput", bit_unit), ("in flight", size_unit), ("round-trip time", long_unit))
    connections = ", ".join(f"{view.name} {view.ends}" for view in shown)
    return Figure(
        NAME,
        "Over time",
        f"Goodput, bytes in flight and round-trip time over {end_s:.4g} s of {connections}.",
        [Panel(time, Axis(*name, zero=True), each, spans=spans) for name, each in zip(names, panels, strict=True)],
        across=1,
        group=GROUP,
        height=210,
    )


def stretches(view: View) -> list[tuple[float, float, int]]:
    """The ranges of time with their limit, by its number in ``LIMITS``."""
    series = view.series
    if not len(series):
        return []
    size = max(1, -(-len(series) // _STRETCHES))
    end = series["t_s"].to_numpy(dtype=np.float64)
    length = _length(view)
    limit = series["limit"].to_numpy(dtype=np.int64)
    most = [int(np.bincount(limit[at : at + size]).argmax()) for at in range(0, len(limit), size)]
    ends = [float(end[min(at + size, len(end)) - 1]) for at in range(0, len(limit), size)]
    found, start = [], max(0.0, float(end[0]) - length)
    for number, run in itertools.groupby(range(len(most)), key=most.__getitem__):
        stop = ends[list(run)[-1]]
        if number in LIMITS:
            found.append((start, stop, number))
        start = stop
    return found


def shading(view: View) -> list[Span]:
    """The same ranges in the form that a page shades."""
    return [Span(start, end, f"limited by: {LIMITS[at].name}", LIMITS[at].colour) for start, end, at in stretches(view)]


def _length(view: View) -> float:
    """The length of an interval of the series."""
    return float(np.median(np.diff(view.series["t_s"]))) if len(view.series) > 1 else view.end_s


def _grouped(view: View, at_least_s: float) -> tuple[DataFrame, NDArray[np.int64]]:
    """The series, and for each interval the number of its group."""
    return view.series, np.arange(len(view.series)) // max(1, round(at_least_s / max(_length(view), 1e-9)))


def _goodput(view: View) -> tuple[Floats, Floats]:
    series, group = _grouped(view, max(ROUND_TRIPS * view.rtt_s, view.end_s / _POINTS))
    found = series.groupby(group)
    return _floats(found["t_s"].last()), _floats(found["goodput_bps"].mean())


def _flight(view: View) -> tuple[Floats, Floats, Floats]:
    series, group = _grouped(view, view.end_s / _POINTS)
    found = series.groupby(group)
    flight, window = _floats(found["in_flight_bytes"].max()), _floats(found["window_bytes"].min())
    highest = float(np.nanmax(flight, initial=0))
    return _floats(found["t_s"].last()), flight, np.where(window <= _SEEN * highest, window, np.nan)


def _round_trips(view: View, end_s: float) -> tuple[Floats, Floats, Floats, Floats]:
    """Time, smallest, median and largest sample in as many intervals as a page is wide, without extreme samples."""
    t = _floats(view.rtts["t_s"])
    if not len(t):
        none = np.array([np.nan])
        return np.array([0.0]), none, none, none
    interval = max(end_s / _POINTS, 1e-6)
    # A few samples may be many times larger than the others, which would then become a flat line.
    most = _SEEN * float(np.quantile(view.rtts["rtt_s"], 0.995))
    kept = view.rtts[view.rtts["rtt_s"] <= most]
    found = kept.groupby((kept["t_s"] // interval).astype(np.int64))
    return (
        _floats(found["t_s"].mean()),
        *(_floats(found["rtt_s"].min()), _floats(found["rtt_s"].median()), _floats(found["rtt_s"].max())),
    )


def _floats(values: object) -> Floats:
    return np.asarray(values, dtype=np.float64)
