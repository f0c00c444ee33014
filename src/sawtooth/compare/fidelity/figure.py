"""The figure: the ratio sim/kernel at each point, sorted, and along the axes of the grid."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sawtooth.compare.fidelity.measures import MEASURES
from sawtooth.figures.palette import GRID, INK, MUTED, colour, shown
from sawtooth.figures.saving import save, styled
from sawtooth.scenario import CONTROLS
from sawtooth.scenario.header_sizes import FULL_FRAME

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

    from sawtooth.compare.fidelity.fidelity import Fidelity
    from sawtooth.compare.fidelity.grid import Point

NAME = "fidelity"
_DRAWN = ("mean_mbps", "std_mbps", "retransmits", "timeouts", "mean_rtt_ms", "queue_packets")
_AXES: dict[str, tuple[str, dict[float, str]]] = {
    "loss": ("loss, %", {0.004: "0", 0.01: "0.01", 0.1: "0.1", 1: "1", 10: "10"}),
    "rtt_ms": ("base RTT, ms", {0.4: "0.4", 2: "2", 10: "10", 40: "40", 140: "140"}),
    "rate_mbps": ("rate, Mbit/s", {10: "10", 50: "50", 100: "100", 1000: "1000", 2500: "  2500"}),
    "queue_bdp": ("queue, bdp", {0.3: "0.3", 1: "1", 3: "3", 8: "8", 30: "30"}),
}
"""Axes are logarithmic, so a loss of 0 is drawn at 0.004%."""
_LEAST_LOSS = 0.004
_BESIDE = {one.name: 0.84 + 0.08 * at for at, one in enumerate(one for one in CONTROLS.values() if one.simulated)}
"""Small shifts, so that points with equal x do not cover each other."""
_MIXED = "several"
_FRAME_BITS = FULL_FRAME * 8
_EDGE = math.log(2)
"""Ratios beyond 2 are drawn at the edge."""


def draw(found: Fidelity, directory: Path) -> list[Path]:
    """Write fidelity.png and .svg. Raises SawtoothError ``unwritable-output`` or ``disk-full``."""
    import pandas as pd
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    places = pd.DataFrame([_place(point) for point in found.points]).set_index("point")
    with styled():
        canvas = Figure(figsize=(15, 2.3 * len(_DRAWN) + 0.8), layout="constrained")
        grid = canvas.subplots(len(_DRAWN), 1 + len(_AXES), sharey=True, sharex="col")
        titles = {measure.name: measure.title for measure in MEASURES}
        for line, name in zip(grid, _DRAWN, strict=True):
            rows = found.differences
            kept = rows[(rows["measure"] == name) & rows["enough"]].join(places, on="point")
            kept = kept.assign(shown=kept["ln_ratio"].clip(-_EDGE, _EDGE))
            _sorted(line[0], kept)
            for axes, axis in zip(line[1:], _AXES, strict=True):
                _along(axes, kept, axis)
            line[0].set_ylabel(f"{titles[name]}\nsim / kernel")
        for axes, label in zip(grid[-1], ("points, sorted, %", *(label for label, _ in _AXES.values())), strict=True):
            axes.set_xlabel(label)
        ccs = [cc for cc in (*_BESIDE, _MIXED) if cc in set(places["cc"])]
        marks = [Line2D([], [], ls="", marker="o", ms=5, color=_colour(cc), label=shown(cc)) for cc in ccs]
        marks.append(Line2D([], [], ls="", marker="o", ms=5, mfc="none", color=INK, label="within the noise"))
        canvas.legend(handles=marks, loc="outside upper center", ncols=len(marks))
        return save(canvas, NAME, directory)


def _sorted(axes: Axes, kept: DataFrame) -> None:
    order = kept.sort_values("ln_ratio", kind="stable").reset_index(drop=True)
    noise = order["ln_noise"].clip(upper=_EDGE)
    place = 100 * (order.index + 0.5) / len(order)
    axes.fill_between(place, -noise, noise, color=GRID, lw=0, zorder=0)
    _points(axes, order, place)
    _frame(axes)
    axes.set_xlim(0, 100)
    axes.text(0.03, 0.94, f"n = {len(order)}", transform=axes.transAxes, va="top", color=MUTED)


def _along(axes: Axes, kept: DataFrame, axis: str) -> None:
    ticks = _AXES[axis][1]
    place = kept[axis].clip(min(ticks), max(ticks))
    _points(axes, kept, place * kept["cc"].map(_BESIDE).astype(float).fillna(1.0))
    axes.set_xscale("log")
    axes.minorticks_off()
    axes.set_xticks(list(ticks), list(ticks.values()))
    axes.set_xlim(min(ticks) / 1.6, max(ticks) * 1.6)
    _frame(axes)


def _points(axes: Axes, kept: DataFrame, x: Any) -> None:
    for cc, group in kept.assign(x=x).groupby("cc"):
        for quiet, some in group.groupby("in_noise"):
            face = "none" if quiet else _colour(str(cc))
            axes.plot(some["x"], some["shown"], ls="", marker="o", ms=3, mew=0.8, mfc=face, color=_colour(str(cc)))


def _frame(axes: Axes) -> None:
    ticks = (0.5, 0.75, 0.9, 1, 1.1, 1.33, 2)
    axes.set_yticks([math.log(tick) for tick in ticks], ["≤0.5", *(f"{tick:g}" for tick in ticks[1:-1]), "≥2"])
    axes.set_ylim(-1.06 * _EDGE, 1.06 * _EDGE)
    axes.axhline(0, color=MUTED, lw=0.8, zorder=1)


def _colour(cc: str) -> str:
    return colour(cc, 0)


def _place(point: Point) -> dict[str, Any]:
    """A point's position on the axes, from the path of its first flow."""
    compiled = point.scenario.compile()
    flow = compiled.flows[0]
    rtt_s = sum(link.delay_ns for link in compiled.way((*flow.forward, *flow.backward))) / 1e9
    kept = math.prod(1 - link.loss_ppb / 1e9 for link in compiled.way(flow.forward))
    slowest = min(compiled.transmitters_of(flow.forward), key=lambda one: one.rate_bps)
    packets = slowest.queue_packets or (slowest.queue_bytes or 0) * 8 / _FRAME_BITS
    ccs = {flow.cc for flow in compiled.flows}
    return {
        "point": point.name,
        "cc": ccs.pop() if len(ccs) == 1 else _MIXED,
        "loss": max(100 * (1 - kept), _LEAST_LOSS),
        "rtt_ms": 1e3 * rtt_s,
        "rate_mbps": slowest.rate_bps / 1e6,
        "queue_bdp": packets * _FRAME_BITS / (slowest.rate_bps * rtt_s),
    }
