"""Figures of measures other than throughput: latency over time and as a distribution, completion times by size, columns
of a study's table against x, or one column against another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from sawtooth.figures.figure import TableFigure
from sawtooth.figures.layout import ACROSS, Layout
from sawtooth.figures.lines import Axes, Line, line_figure
from sawtooth.figures.palette import MUTED, colour, shown
from sawtooth.report.headline import THROUGHPUT
from sawtooth.report.points import LEGIBLE, Point, cumulative, is_drawn, keys_of, named, points, setting_text
from sawtooth.stats import Latency, latencies
from sawtooth.stats.completion import QUANTILES
from sawtooth.study.measures import TITLES
from sawtooth.study.result import StudyResult
from sawtooth.study.shares import ALL

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from pandas import DataFrame

_BINS = 60
"""Maximum number of time bins of a line. There are fewer if bins would have less than ``_PROBES`` probes."""
_PROBES = 20
"""Least number of probes in a bin, for a band from the 5th to the 95th percentile."""
MOST_LINES = 7
"""Maximum number of lines that can be distinguished in one panel."""


def _probed(result: StudyResult, layout: Layout) -> list[Point[Latency]]:
    """The first probe flow of each point that is drawn."""
    return points(result, layout, ("probes",), lambda run: latencies(run)[:1])


def over_time(result: StudyResult, layout: Layout) -> TableFigure:
    """Bands of latency over time, one panel per point. ``table``: the key columns, ``t_s`` (middle of a time bin),
    ``latency_p5_ms``, ``latency_p50_ms``, ``latency_p95_ms``, ``latency_idle_ms``."""
    import numpy as np
    import pandas as pd

    frames, lines = [], []
    panels: list[tuple[str, float]] = []
    for point in _probed(result, layout):
        sent = np.concatenate([one.sent_s for one in point.seen])
        rtt = np.concatenate([one.rtt_s for one in point.seen]) * 1e3
        bins = max(1, min(_BINS, len(sent) // _PROBES))
        edges = np.linspace(sent.min(), sent.max() + 1e-9, bins + 1) if len(sent) else np.zeros(bins + 1)
        place = np.searchsorted(edges, sent, side="right") - 1
        rows = []
        for at in range(bins):
            part = rtt[(place == at) & np.isfinite(rtt)]
            if part.size:
                rows.append((float(edges[at : at + 2].mean()), *np.quantile(part, (0.05, 0.5, 0.95)).tolist()))
        names = ["t_s", "latency_p5_ms", "latency_p50_ms", "latency_p95_ms"]
        table = pd.DataFrame(rows, columns=names).assign(latency_idle_ms=point.seen[0].idle_s * 1e3)
        frames.append(table.assign(**point.key)[[*point.key, *table]])
        if len(panels) < LEGIBLE and rows:
            t_s, low, middle, high = (table[name].tolist() for name in names)
            idle = table["latency_idle_ms"].tolist()
            where = len(panels)
            lines.append(Line(where, "empty path", MUTED, t_s, idle, marked=False))
            lines.append(Line(where, point.name, point.tint, t_s, middle, low, high, marked=False, band=True))
            panels.append((point.name, max(high) / min(idle)))
    steep = any(spread > 10 for _, spread in panels)
    boxes = tuple(Axes(name, "time, s", "round-trip time, ms", log_y=steep) for name, _ in panels)
    caption = (
        "RTTs of the first probe while flows send. The line is the median, the band the 5th to 95th percentile, all "
        "seeds together; the thin line is the idle path."
    )
    if len(frames) > len(panels):
        caption += f" The figure has the first {len(panels)} of {len(frames)} points; the table has all."
    found = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()
    across = min(ACROSS, len(boxes) or 1)
    return line_figure("latency", "Latency under load", caption, found, boxes, lines, across, alike=True)


def distribution(result: StudyResult, layout: Layout) -> TableFigure:
    """Distributions of latency. ``table``: the key columns, ``share`` (of the answered probes) and ``latency_ms``."""
    import numpy as np

    def answered_ms(point: Point[Latency]) -> NDArray[np.float64]:
        rtt = np.concatenate([one.rtt_s for one in point.seen]) * 1e3
        return rtt[np.isfinite(rtt)]

    found, lines, log_x = cumulative(_probed(result, layout), answered_ms, "latency_ms")
    panel = Axes("", "round-trip time, ms", "answered probes, %", log_x=log_x)
    caption = "Share of the first probe's RTTs that are at most the value, all seeds together, without lost probes."
    title = "Distribution of latency under load"
    return line_figure("latency-cdf", title, caption, found, (panel,), lines, across=1)


def completion(result: StudyResult, layout: Layout) -> TableFigure:
    """Completion times and slowdowns of transfers by size. ``table``: rows of ``StudyResult.completions``, over all
    seeds."""
    table = result.completions
    if not table.empty:
        table = table[table["seed"] == ALL]
        table = table[[is_drawn(layout, key) for key in keys_of(result, table)]].reset_index(drop=True)
    high = "p50" if table.empty else next(one for one in reversed(QUANTILES) if table[f"slowdown_{one}"].notna().any())
    names = tuple(f"{what}_{one}" for what in ("fct_ms", "slowdown") for one in dict.fromkeys(("p50", high)))
    lines = []
    keys = list(result.places[0].key)
    groups = list(table.groupby([*keys, "flow"], sort=False)) if not table.empty else []
    whose = [dict(zip([*keys, "flow"], values, strict=True)) for values, _ in groups]
    for (name, tint, look), (_, part) in zip(named(result, layout, whose), groups, strict=True):
        sizes = ((part["bytes_from"] * part["bytes_to"]) ** 0.5 / 1e3).tolist()
        for panel, column in enumerate(names):
            lines.append(Line(panel, name, tint, sizes, part[column].tolist(), look=look))
    panels = tuple(Axes("", "size of the transfer, kB", TITLES[one], log_x=True, log_y=True) for one in names)
    caption = (
        "Finished transfers of all seeds. Slowdown is the completion time divided by that of a sender that knows the "
        "idle path. A percentile is missing if there are too few transfers."
    )
    title = "Completion times by size"
    return line_figure("completion", title, caption, table, panels, lines, across=len(names) // 2)


def harmed(result: StudyResult, layout: Layout) -> TableFigure:
    """The throughput that flows lose when other flows share the link, with one panel per combination of flows.
    ``table``: the key columns, ``flow``, ``harm``, ``mean_mbps``."""
    import pandas as pd

    keys = list(result.places[0].key)
    shares = result.shares
    table = pd.DataFrame() if shares.empty else shares[(shares["seed"] == ALL) & shares["harm"].notna()]
    scale, names = _scale(layout)
    panels: list[Axes] = []
    lines = []
    flows = table["flow"].drop_duplicates().tolist() if len(table) else []
    for panel in layout.panel_values:
        for series in layout.series_values:
            part = layout.part(table, series, panel) if len(table) else table
            if part.empty:
                continue
            for flow, own in part.groupby("flow", sort=False):
                x, y = [scale[value] for value in own[layout.x]], (100 * own["harm"]).tolist()
                at = flows.index(flow)
                lines.append(Line(len(panels), shown(flow), colour(flow, at), x, y, look=at, joined=layout.numeric))
            title = ", ".join(part for part in (layout.name(series, ""), *map(shown, panel)) if part)
            panels.append(Axes(title, layout.x_title, "harm, %", log_x=layout.geometric, names=names))
    table = table[[*keys, "flow", "harm", "mean_mbps"]] if len(table) else table
    caption = "Share of its goodput alone that a flow loses when it competes with the other one, all seeds together."
    across = min(ACROSS, len(panels) or 1)
    return line_figure("harm", "Harm", caption, table, panels, lines, across, alike=True)


def _scale(layout: Layout) -> tuple[dict[Any, float], tuple[str, ...]]:
    """Positions of the values of x, and their names if x is not numeric."""
    scale = {value: float(value) if layout.numeric else float(at) for at, value in enumerate(layout.x_values)}
    return scale, () if layout.numeric else tuple(shown(value) for value in layout.x_values)


def along(result: StudyResult, layout: Layout) -> TableFigure:
    """Columns of the study's table against x, one panel each. ``table``: the key columns and the drawn ones, with
    ``_low`` and ``_high`` over the seeds."""
    # The study's headline comes first.
    wanted = sorted(result.study.report.measures, key=lambda one: one != result.study.headline)
    table = _with_ends(result, wanted)
    titles = dict(result.study.titles)
    if THROUGHPUT in wanted and len(ways := _by_way(result)) > 1:
        # Show the directions separately: no link carries their sum.
        at = wanted.index(THROUGHPUT)
        wanted[at : at + 1] = [f"{THROUGHPUT}_{whose}" for whose in ways]
        for whose, sums in ways.items():
            titles[f"{THROUGHPUT}_{whose}"] = f"goodput of {whose}, Mbit/s"
            columns = {
                name: f"{THROUGHPUT}_{whose}{end}" for name, end in (("mean", ""), ("min", "_low"), ("max", "_high"))
            }
            table = table.merge(sums.rename(columns=columns), on=list(result.places[0].key), how="left")
        table = table.drop(columns=[f"{THROUGHPUT}{end}" for end in ("", "_low", "_high")])
    scale, names = _scale(layout)
    lines = []
    rows = _facets(layout)
    for at, (_, kept) in enumerate(rows):
        facet = table
        for key, value in zip(layout.panels, kept, strict=False):
            facet = facet[facet[key] == value]
        for name, tint, look, part in _groups(result, layout, facet):
            for number, column in enumerate(wanted):
                here = part[part[column].notna()]
                x = [scale[value] for value in here[layout.x]]
                y, low, high = (here[f"{column}{end}"].tolist() for end in ("", "_low", "_high"))
                panel = at * len(wanted) + number
                lines.append(Line(panel, name, tint, x, y, low, high, look=look, joined=layout.numeric))
    log_x = layout.geometric
    panels = tuple(
        Axes(title, layout.x_title, titles[one], log_x=log_x, names=names, from_zero=True)
        for title, _ in rows
        for one in wanted
    )
    caption = "All seeds together; bars reach from the lowest to the highest seed."
    title = f"Measures against {layout.x_title.rpartition(', ')[0] or layout.x_title}"
    across = len(wanted) if len(rows) > 1 else min(ACROSS, len(panels))
    return line_figure("measures", title, caption, table, panels, lines, across)


def _by_way(result: StudyResult) -> dict[str, DataFrame]:
    """Total throughput of the flows in each direction, by the direction's name: the key columns, ``mean`` over the
    seeds, ``min`` and ``max``. One entry if all flows have the same direction."""
    if result.shares.empty:
        return {}
    keys = list(result.places[0].key)
    found = {}
    for names in result.opposite:
        own = result.shares[(result.shares["seed"] != ALL) & result.shares["flow"].isin(names)]
        sums = own.groupby([*keys, "seed"], sort=False)["mean_mbps"].sum().groupby(level=keys, sort=False)
        found["_".join(names)] = sums.agg(["mean", "min", "max"]).reset_index()
    return found


def _facets(layout: Layout) -> list[tuple[str, tuple[Any, ...]]]:
    """Title and panel values for each row of panels. One row; if a panel would have too many lines to distinguish, one
    row per value."""
    if len(layout.series_values) * len(layout.panel_values) <= MOST_LINES:
        return [("", ())]
    return list(zip(layout.panel_titles, layout.panel_values, strict=True))


def trade(result: StudyResult, layout: Layout) -> TableFigure:
    """One column of the study's table against another: one mark per point, one panel per value of the panels'
    columns."""
    across, up = result.study.report.trade
    titles = result.study.titles
    table = _with_ends(result, (across, up))
    panels, lines = [], []
    for place, panel in enumerate(layout.panel_values):
        for number, series in enumerate(layout.series_values):
            part = layout.part(table, series, panel)
            part = part[part[across].notna() & part[up].notna()]
            if len(part):
                x, y = part[across].tolist(), part[up].tolist()
                tint = colour(series, number)
                lines.append(Line(place, layout.name(series, "all"), tint, x, y, look=number, joined=layout.numeric))
        logs = {name: _is_steep(table[name]) for name in (across, up)}
        title = layout.panel_titles[place]
        panels.append(Axes(title, titles[across], titles[up], log_x=logs[across], log_y=logs[up]))
    if not layout.series:
        lines = [_one(result, layout, table, at, (across, up)) for at in range(len(layout.x_values))]
    caption = f"Each mark is a point, all seeds together; lines follow {layout.x_title}."
    if not (layout.series and layout.numeric):
        caption = "Each mark is a point, all seeds together."
    what = [titles[name].partition(", ")[0] for name in (up, across)]
    across_panels = min(ACROSS, len(panels))
    return line_figure(
        "trade",
        f"{what[0].capitalize()} against {what[1]}",
        caption,
        table,
        panels,
        lines,
        across_panels,
        alike=True,
    )


def _one(result: StudyResult, layout: Layout, table: DataFrame, at: int, columns: tuple[str, str]) -> Line:
    """A separate mark for each value of x, if nothing else distinguishes points."""
    value = layout.x_values[at]
    part = table[table[layout.x] == value]
    x, y = (part[name].tolist() for name in columns)
    return Line(0, setting_text(result, layout.x, value), colour(value, at), x, y, look=at, joined=False)


def _is_steep(values: Any) -> bool:
    known = values[values > 0]
    return bool(len(known) and len(known) == values.notna().sum() and known.max() > 20 * known.min())


def _with_ends(result: StudyResult, columns: Sequence[str]) -> DataFrame:
    """The key columns and ``columns`` over all seeds, with the minimum and maximum over seeds."""
    keys = list(result.places[0].key)
    table = result.pooled[[*keys, *columns]].copy()
    seeds = result.details[result.details["seed"] != ALL].groupby(keys, sort=False)
    for column in columns:
        ends = seeds[column].agg(["min", "max"]).reset_index()
        known = ends["max"].notna()
        table[f"{column}_low"] = ends["min"].where(known, table[column]).clip(upper=table[column])
        table[f"{column}_high"] = ends["max"].where(known, table[column]).clip(lower=table[column])
    return table


def _groups(result: StudyResult, layout: Layout, table: DataFrame) -> Iterator[tuple[str, str, int, DataFrame]]:
    """Groups of rows that differ only in x, each with name, colour and look."""
    keys = [*([layout.series] if layout.series else []), *layout.panels]
    if not keys:
        yield layout.x_title, colour(None, 3), 0, table
        return
    groups = list(table.groupby(keys, sort=False))
    whose = [dict(zip(keys, values, strict=True)) for values, _ in groups]
    for (name, tint, look), (_, part) in zip(named(result, layout, whose), groups, strict=True):
        yield name, tint, look, part


MAKERS: dict[str, Callable[[StudyResult, Layout], TableFigure]] = {
    "latency": over_time,
    "latency-cdf": distribution,
    "completion": completion,
    "harm": harmed,
    "measures": along,
    "trade": trade,
}
