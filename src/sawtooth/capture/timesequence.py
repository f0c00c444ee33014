"""The time-sequence graph, after Ostermann's tcptrace: segments, acknowledgements, window, SACK, retransmissions.

Each segment is a vertical bar from its first to its last byte at the time of capture. Below is the line of
acknowledgements, above it the edge of the receiver's window.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sawtooth.capture.marks import ACK, DATA, DSACK, MARKS, SACK, WINDOW, quantity, scale
from sawtooth.capture.pixels import Floats, Raster
from sawtooth.capture.view import View
from sawtooth.capture.zoom import Zoom

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

_FEW = 250
"""At most this many segments have arrow heads: more would hide each other."""

_TALL = 12
"""A segment with arrow heads is at least this many raster rows high."""

_MANY_MARKS = 40
"""With more marks than this, marks are smaller so that the curve below stays visible."""

_MARK_CELL = 7
"""Raster pixels within which one mark is enough."""


def time_sequence(shown: list[View], zoom: Zoom) -> Canvas:
    """One panel per view, each with its own axes; call it inside ``saving.styled``."""
    from matplotlib.figure import Figure as Canvas

    canvas = Canvas(figsize=(max(9.0, 7.2 * len(shown)), 6.4), layout="constrained")
    for axes, view in zip(canvas.subplots(1, len(shown), squeeze=False)[0], shown, strict=True):
        _panel(axes, view, zoom)
    canvas.suptitle("Time and sequence numbers", x=0.01, ha="left", fontsize=13, fontweight="bold")
    return canvas


def _panel(axes: Axes, view: View, zoom: Zoom) -> None:
    left, right = zoom.start_s, min(zoom.end_s, view.end_s)
    if right <= left:
        right = left + 1e-3
    t, seq = _column(view.data, "t_s"), _column(view.data, "seq")
    high = seq + _column(view.data, "length")
    kind = view.data["kind"].to_numpy()
    at, ack = _column(view.acks, "t_s"), _column(view.acks, "ack")
    bottom, top = _range(t, seq, high, at, ack, left, right)
    raster = Raster(left, right, bottom, top)
    factor, unit = scale(top, "B")

    def bars(times: Floats, low: Floats, up: Floats, **look: Any) -> None:
        x, low, up = raster.bars(times, low, up)
        if len(x):
            # Square ends keep a bar visible that is lower than a pixel.
            axes.vlines(x, low / factor, up / factor, capstyle="projecting", **look)

    sacks = view.sacks
    for label, part, tint in (
        ("SACK", sacks[~sacks["dsack"].astype(bool)], SACK),
        ("duplicate SACK", sacks[sacks["dsack"].astype(bool)], DSACK),
    ):
        start, end = _column(part, "start"), _column(part, "end")
        inside = _inside(_column(part, "t_s"), left, right)
        if inside.any():
            name = f"{label} ({inside.sum():,} blocks)"
            bars(_column(part, "t_s"), start, end, color=tint, lw=1.3, zorder=2, label=name)

    x, y = raster.line(at, np.maximum.accumulate(ack) if len(ack) else ack)
    axes.step(x, y / factor, where="post", color=ACK, lw=1.1, zorder=3, label="acknowledged")
    x, y = raster.line(at, ack + _column(view.acks, "window"))
    axes.step(x, y / factor, where="post", color=WINDOW, lw=1.1, zorder=3, label="receive window ends")

    inside = _inside(t, left, right)
    plain = kind == 0
    tall = inside.any() and float(np.median((high - seq)[inside])) > _TALL * raster.height
    few = tall and int((inside & plain).sum()) <= _FEW
    bars(t[plain], seq[plain], high[plain], color=DATA, lw=1.2, zorder=4, label=f"data ({(inside & plain).sum():,})")
    if few:
        ends: dict[str, Any] = {"ls": "", "color": DATA, "ms": 3.2, "mew": 0, "zorder": 4}
        axes.plot(t[plain & inside], high[plain & inside] / factor, marker="^", **ends)
        axes.plot(t[plain & inside], seq[plain & inside] / factor, marker="v", **ends)
    for number, mark in MARKS.items():
        one = kind == number
        if not (one & inside).any():
            continue
        bars(t[one], seq[one], high[one], color=mark.colour, lw=1.6, zorder=5)
        middle = (seq[one] + high[one]) / 2
        dots = raster.dots(t[one], middle, _MARK_CELL)
        size = 5.5 if len(dots) <= _MANY_MARKS else 3.5
        look: dict[str, Any] = {
            "marker": mark.shape,
            "ms": size,
            "mec": "white",
            "mew": size / 12,
            "ls": "",
            "color": mark.colour,
        }
        name = f"{mark.name} ({(one & inside).sum():,})"
        axes.plot(t[one][dots], middle[dots] / factor, **look, zorder=6 if number < 5 else 5, label=name)

    axes.set_xlim(left, right)
    axes.set_ylim(bottom / factor, top / factor)
    axes.set_xlabel("time since the first segment, s")
    axes.set_ylabel(f"sequence number, {unit}")
    axes.set_title(f"{view.name}\n{view.ends}: {_acknowledged(at, ack, left, right)}")
    axes.grid(True, axis="x")
    handles, labels = axes.get_legend_handles_labels()
    # Data first, then retransmissions, then the lines.
    order = sorted(range(len(labels)), key=lambda one: (not labels[one].startswith("data"), -handles[one].get_zorder()))
    axes.legend(
        [handles[one] for one in order],
        [labels[one] for one in order],
        loc="upper left",
        fontsize=8.5,
        markerscale=1.4,
        handlelength=1.4,
        frameon=True,
        framealpha=0.9,
    )


def _range(
    t: Floats, seq: Floats, high: Floats, at: Floats, ack: Floats, left: float, right: float
) -> tuple[float, float]:
    """The range of sequence numbers: all data and acknowledgements, and as much of the window as the data is high."""
    inside, answered = _inside(t, left, right), _inside(at, left, right)
    found = np.concatenate((seq[inside], high[inside], ack[answered]))
    if not len(found):
        return 0.0, 1.0
    low, top = float(found.min()), float(found.max())
    margin = max((top - low) * 0.04, 1.0)
    return max(low - margin, 0.0), top + 2 * margin


def _acknowledged(at: Floats, ack: Floats, left: float, right: float) -> str:
    """Bytes acknowledged in the visible part."""
    answered = _inside(at, left, right)
    if not answered.any():
        return "nothing acknowledged"
    bytes_ = float(ack[answered].max() - ack[answered].min())
    return f"{quantity(bytes_, 'B')} in {right - left:.3g} s, {quantity(bytes_ * 8 / (right - left), 'bit/s')}"


def _inside(t: Floats, left: float, right: float) -> Any:
    return (t >= left) & (t <= right)


def _column(table: Any, name: str) -> Floats:
    return np.asarray(table[name], dtype=np.float64)
