"""Panels of the figures of a link: what each draws of its table."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sawtooth.figures import Axis, Mark, Panel, Series, Span
from sawtooth.figures.figure import Symbol
from sawtooth.figures.palette import BASELINE, BEHIND, INK, colour, shown
from sawtooth.link_estimate.report.link import Link
from sawtooth.link_estimate.series import span

if TYPE_CHECKING:
    from pandas import DataFrame

Floats = NDArray[np.float64]

QUANTILES = (10, 50, 90, 99, 95)
CALIBRATION = {
    "std_s": ("standard deviation, ms", 1e3),
    "increasing": ("increasing, % of probes", 100.0),
    "lag1": ("autocorrelation at 100 ms", 1.0),
    "loss": ("lost, % of probes", 100.0),
    "step_s": ("mean step between probes, ms", 1e3),
    "skew": ("skewness", 1.0),
}
"""Features that are drawn, with their label and the factor to that unit."""
STATES = ("congested", "busy", "idle", "inconclusive")
GROUP = "time"
"""Figures over time show the same range when zoomed."""
TINT = "#0072b2"
LOST = "#d55e00"
STATE_TINTS = {"congested": "#d55e00", "busy": "#e69f00", "idle": "#009e73", "inconclusive": BASELINE}
_PARTS = 100
"""Parts with separate loss shares, if probes are drawn one by one."""
_BARS = 120
"""Windows up to which each has a mark with its interval; more become a line in a band."""


def _time(link: Link) -> tuple[float, Axis]:
    factor, unit = span(link.series.duration_s)
    return factor, Axis(f"time since {link.begins}", unit, low=0.0, high=link.series.duration_s / factor)


def rtt(link: Link, table: DataFrame) -> tuple[list[Panel], dict[str, Any]]:
    factor, time = _time(link)
    t = table["t_s"].to_numpy(dtype=np.float64) / factor
    steps = np.diff(t)
    # Nothing is drawn across a gap.
    breaks = np.flatnonzero(steps > 5 * (np.median(steps) if len(steps) else 0.0)) + 1
    names = ("least_ms", "median_ms", "largest_ms")
    least, median, largest = (np.insert(table[name].to_numpy(dtype=np.float64), breaks, np.nan) for name in names)
    at = np.insert(t, breaks, t[breaks])
    many = int(table["probes"].max()) > 1
    band: dict[str, Any] = {"low": least, "high": largest, "band": True} if many else {}
    words = "median, smallest to largest" if many else "RTT"
    line = Series(words, TINT, at, median, width=1.0, **band)
    marks = [
        Mark("x", float(row["t_s"]) / factor, str(row["remarks"]))
        for row in table[table["remarks"] != ""].to_dict("records")
    ]
    label = "far − near" if link.series.difference else "RTT"
    panels = [Panel(time, Axis(label, "ms"), [line], marks=marks)]
    if table["lost"].sum():
        panels.append(Panel(time, Axis("lost", "%", zero=True), [_lost(table, t)]))
    return panels, {"across": 1, "height": 230, "group": GROUP}


def _lost(table: DataFrame, t: Floats) -> Series:
    """The loss share of each part; a short series' parts are combined."""
    size = 1 if int(table["probes"].max()) > 1 else -(-len(table) // _PARTS)
    part = np.arange(len(table)) // size
    sums = table[["lost", "probes"]].groupby(part).sum()
    return Series("lost", LOST, t[::size], 100 * (sums["lost"] / sums["probes"]).to_numpy(), kind="steps")


def distribution(link: Link, table: DataFrame) -> tuple[list[Panel], dict[str, Any]]:
    width = float(table["to_ms"].iloc[0] - table["from_ms"].iloc[0])
    # The last row may contain everything far above.
    kept = table[np.isclose(table["to_ms"] - table["from_ms"], width)] if len(table) > 1 else table
    delay = Axis("queueing delay above the smallest", "ms")
    middle = ((kept["from_ms"] + kept["to_ms"]) / 2).to_numpy(dtype=np.float64)
    bars = Series("probes", TINT, middle, kept["share_percent"].to_numpy(dtype=np.float64), kind="bars")
    upto = Series("at most that delay", TINT, [0.0, *kept["to_ms"]], [0.0, *kept["cumulative_percent"]], quiet=True)
    of = link.delay_ms
    quantiles = {percent: float(np.nanpercentile(of, percent)) for percent in (50, 90)}
    marks = [Mark("x", at, f"{percent}th percentile: {at:.3g} ms") for percent, at in quantiles.items()]
    return [
        Panel(delay, Axis("share of probes", "%", zero=True), [bars]),
        Panel(delay, Axis("share with at most that delay", "%", zero=True, high=100.0), [upto], marks=marks),
    ], {"across": 2}


def hours(link: Link, table: DataFrame) -> tuple[list[Panel], dict[str, Any]]:
    unix = link.series.clock == "unix"
    words = "hour of the day, UTC" if unix else "hours since the start; those after 24 h begin anew"
    hour = Axis(words, ticks=tuple(range(0, 25, 4)), low=0.0, high=24.0)
    middle = table["hour"].to_numpy(dtype=np.float64) + 0.5
    delay = {q: table[f"delay_p{q}_ms"].to_numpy(dtype=np.float64) for q in QUANTILES}
    low_high: dict[str, Any] = {"low": delay[10], "high": delay[90], "band": True}
    curves = [
        Series("median, 10th to 90th percentile", TINT, middle, delay[50], symbol="circle", **low_high),
        Series("95th percentile", TINT, middle, delay[95], dash="dotted"),
        Series("99th percentile", TINT, middle, delay[99], dash="dashed"),
    ]
    panels = [Panel(hour, Axis("queueing delay", "ms", zero=True), curves)]
    if link.windows:
        low, flow, high = (table[f"flow_p{q}_mbps"].to_numpy(dtype=np.float64) for q in (10, 50, 90))
        if not np.isnan(flow).all():
            flows = Series("a flow, median, 10th to 90th percentile", INK, middle, flow, "points", low, high)
            panels.append(Panel(hour, Axis("a flow", "Mbit/s", "log"), [flows]))
        windows = table[[f"{state} windows" for state in STATES]]
        share = 100 * windows.div(windows.sum(axis=1).replace(0, np.nan), axis=0)
        states = [
            Series(
                state, STATE_TINTS[state], middle, share[f"{state} windows"].to_numpy(dtype=np.float64), symbol="square"
            )
            for state in STATES
            if windows[f"{state} windows"].sum()
        ]
        panels.append(Panel(hour, Axis("windows", "%", zero=True, high=100.0), states))
    return panels, {"across": 1, "height": 220}


def limits_of(*values: Any) -> tuple[float, float]:
    """Limits of a logarithmic axis with room for all positive values."""
    known = np.concatenate([np.asarray(some, dtype=float) for some in values])
    known = known[known > 0]
    return float(known.min()), float(known.max())


def closed(low: Any, middle: Any, high: Any, limits: tuple[float, float]) -> tuple[Any, Any]:
    """Puts the open end of a one-sided interval at the edge of the axes; a value without an interval keeps none."""
    return np.where(low == 0, limits[0], low), np.where(np.isnan(high) & ~np.isnan(middle), limits[1], high)


def estimates(link: Link, table: DataFrame) -> tuple[list[Panel], dict[str, Any]]:
    factor, time = _time(link)
    starts, ends = (link.since_s(table[name].to_numpy(dtype=np.float64)) / factor for name in ("start_s", "end_s"))
    middle = (starts + ends) / 2
    counts = table["state"].value_counts()
    spans = []
    for state, run in itertools.groupby(range(len(table)), key=table["state"].tolist().__getitem__):
        at = list(run)
        stop = starts[at[-1] + 1] if at[-1] + 1 < len(table) else ends[-1]
        spans.append(Span(float(starts[at[0]]), float(stop), f"{state} ({counts[state]})", STATE_TINTS[state]))
    panels = []
    if table["throughput_bps"].notna().any():
        names = ("low_bps", "throughput_bps", "high_bps")
        low, flow, high = (table[name].to_numpy(dtype=np.float64) / 1e6 for name in names)
        least, most = limits_of(low, flow, high)
        low, high = closed(low, flow, high, (least / 2, most * 2))
        # Very many bars would become a solid block.
        many = int(table["throughput_bps"].notna().sum()) > _BARS
        words = "a flow, with its interval"
        throughput = Series(words, INK, middle, flow, "line" if many else "points", low, high, band=many)
        panels.append(Panel(time, Axis("a flow", "Mbit/s", "log"), [throughput], spans=spans))
    row = {state: at for at, state in enumerate(reversed(STATES))}
    states = [
        Series(
            f"{state} ({counts[state]})",
            STATE_TINTS[state],
            middle[(table["state"] == state).to_numpy()],
            np.full(counts[state], row[state]),
            "points",
            symbol="square",
            quiet=True,
        )
        for state in STATES
        if state in counts
    ]
    axis = Axis("each window is", scale="category", names=tuple(reversed(STATES)))
    panels.append(Panel(time, axis, states, spans=spans))
    return panels, {"across": 1, "height": 200, "group": GROUP}


def _points(words: str, tint: str, part: DataFrame, feature: str, symbol: Symbol | None = None) -> Series:
    x = part["throughput_bps"].to_numpy(dtype=np.float64) / 1e6
    y = part[feature].to_numpy(dtype=np.float64) * CALIBRATION[feature][1]
    return Series(words, tint, x, y, "points", symbol=symbol)


def calibration(table: DataFrame) -> tuple[list[Panel], dict[str, Any]]:
    group = table["group"].astype(str)
    far, near = table[group == "trained, other links"], table[group == "trained, as assumed"]
    own = table[group.str.startswith("this link")]
    estimated, inconclusive = own[own["throughput_bps"].notna()], own[own["throughput_bps"].isna()]
    throughput = Axis("goodput of a flow", "Mbit/s", "log")
    panels = []
    for name, (title, scale) in CALIBRATION.items():
        series = []

        if len(far):
            series.append(_points("other links", BEHIND, far, name))
        for number, (control, part) in enumerate(near.groupby("control", sort=True)):
            series.append(_points(shown(control) or "trained on", colour(control, number), part, name))
        if len(estimated):
            series.append(_points(f"this link ({len(estimated)})", INK, estimated, name, symbol="diamond"))
        marks = [
            Mark("y", float(part[name].median()) * scale, f"{str(state).removeprefix('this link, ')} ({len(part)})")
            for state, part in inconclusive.groupby("group", sort=True)
            if part[name].notna().any()
        ]
        panels.append(Panel(throughput, Axis.of(title), series, marks=marks))
    return panels, {"across": 3, "height": 240}
