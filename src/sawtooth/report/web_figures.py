"""Converts a report's figures to figures for the browser, with the same tables. ``sawtooth.figures`` draws them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from sawtooth import figures
from sawtooth.figures import Axis, Panel, Series
from sawtooth.figures.lines import Line, LineFigure
from sawtooth.figures.palette import MUTED, PUBLISHED, colour, shown
from sawtooth.figures.panels import Layout, PanelFigure
from sawtooth.figures.web_figure import DASHES, SYMBOLS
from sawtooth.report.figures import SHARE, THROUGHPUT

_BUDGET = 16_000
"""Maximum number of points of all lines over time in a figure."""
_LEAST = 200
"""Least number of points per line."""
_TIME = "time"
"""The group of figures that have time as x."""


def drawn(figure: PanelFigure | LineFigure) -> figures.Figure:
    """The page's figure for a report's figure."""
    return _lines(figure) if isinstance(figure, LineFigure) else _DRAWERS[figure.name](figure)


def _places(layout: Layout) -> tuple[Axis, dict[Any, float]]:
    """The x axis, and the positions of its values."""
    if not layout.numeric:
        names = tuple(shown(value) for value in layout.x_values)
        return Axis(layout.x_title, scale="category", names=names), {
            one: float(at) for at, one in enumerate(layout.x_values)
        }
    few = tuple(float(value) for value in layout.x_values) if len(layout.x_values) <= 15 or layout.geometric else ()
    scale = "log" if layout.geometric else "linear"
    return Axis.of(layout.x_title, scale=scale, ticks=few), {one: float(one) for one in layout.x_values}


def _slots(layout: Layout) -> tuple[Axis, dict[Any, float]]:
    """As ``_places``, for items with a width. Values that grow by factors are at equal distances, as names are."""
    if not layout.geometric:
        return _places(layout)
    title = Axis.of(layout.x_title)
    names = tuple(shown(value) for value in layout.x_values)
    at = {one: float(place) for place, one in enumerate(layout.x_values)}
    return Axis(title.label, title.unit, scale="category", names=names), at


def _throughput(zero: bool = True, **more: Any) -> Axis:
    return Axis.of(THROUGHPUT, zero=zero, **more)


def _figure(figure: PanelFigure, panels: Sequence[Panel], **more: Any) -> figures.Figure:
    """One page panel per value of the layout's panels, all with the same scales."""
    return figures.Figure(figure.name, figure.title, _sentence(figure), panels, alike=len(panels) > 1, **more)


def _sentence(figure: PanelFigure | LineFigure) -> str:
    return f"{figure.title}. {figure.caption}".strip()


def _time(figure: PanelFigure) -> figures.Figure:
    layout = figure.layout
    panels = []
    most = _most(len(layout.series_values) * len(layout.panel_values) * 2)
    for row, one in enumerate(layout.series_values):
        for at, panel in enumerate(layout.panel_values):
            part = layout.part(figure.table, one, panel)
            series = []
            for value, tint in layout.contrast(colour(one, row)):
                line = part[part[layout.x] == value]
                if line.empty:
                    continue
                name = layout.x_text(value)
                name = name if value == layout.baseline else f"{layout.name(one)}, {name}"
                x, y = extremes(line["t_s"].to_numpy(), line["mbps"].to_numpy(), most)
                series.append(
                    Series(name if layout.detail is not None else layout.name(one, THROUGHPUT), tint, x, y, width=1.3)
                )
            title = " · ".join(text for text in (layout.name(one, ""), layout.panel_titles[at]) if text)
            panels.append(Panel(_seconds([one.x for one in series]), _throughput(), series, title))
    _, across = layout.apart
    return _figure(figure, panels, across=across, group=_TIME)


def _seconds(columns: Sequence[Any], label: str = "time") -> Axis:
    """A time axis. It starts at the run's start, unless that is far before the data."""
    firsts = [column[0] for column in columns if len(column)]
    lasts = [column[-1] for column in columns if len(column)]
    early = bool(firsts) and 0 <= min(firsts) <= 0.1 * max(lasts)
    return Axis(label, "s", low=0.0 if early else None)


def _most(lines: int) -> int:
    return max(_LEAST, _BUDGET // max(1, lines))


def extremes(x: Any, y: Any, most: int) -> tuple[Any, Any]:
    """Reduce a line to at most ``most`` points that look the same: the minimum and the maximum of each section."""
    import numpy as np

    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if len(x) <= most:
        return x, y
    edges = np.linspace(0, len(x), most // 2 + 1).astype(int)
    kept: list[int] = []
    for start, end in itertools.pairwise(edges.tolist()):
        part = y[start:end]
        known = np.isfinite(part)
        if not known.any():
            kept.append(start)
            continue
        low, high = np.nanargmin(part), np.nanargmax(part)
        kept += sorted({start + int(low), start + int(high)})
    return x[kept], y[kept]


def _distribution(figure: PanelFigure) -> figures.Figure:
    layout = figure.layout
    axis, places = _slots(layout)

    def boxes(row: int, one: Any, part: Any) -> list[Series]:
        names = {"y": "q50", "low": "min", "lower": "q25", "upper": "q75", "high": "max"}
        columns = {name: part[f"{column}_mbps"].to_numpy() for name, column in names.items()}
        x = [places[value] for value in part[layout.x]]
        slots: dict[str, Any] = {"slot": row, "slots": len(layout.series_values)}
        return [Series(layout.name(one, "all"), colour(one, row), x, kind="boxes", **columns, **slots)]

    return _figure(figure, _by_panel(figure, axis, _throughput(), boxes))


def _by_panel(figure: PanelFigure, x: Axis, y: Axis, made: Callable[[int, Any, Any], list[Series]]) -> list[Panel]:
    """One panel per value of the layout's panels; ``made`` makes the content for each series."""
    layout = figure.layout
    series: list[list[Series]] = [[] for _ in layout.panel_values]
    for column, row, one, part in figure.parts():
        if not part.empty:
            series[column] += made(row, one, part)
    return [Panel(x, y, own, title) for own, title in zip(series, layout.panel_titles, strict=True)]


def _mean(figure: PanelFigure) -> figures.Figure:
    layout = figure.layout
    axis, places = _places(layout)
    logarithmic = figure.name.endswith("-log")

    def means(row: int, one: Any, part: Any) -> list[Series]:
        part = part[part["mean_mbps"] > 0] if logarithmic else part
        name, symbol = layout.name(one), SYMBOLS[row % len(SYMBOLS)]
        x = [places[value] for value in part[layout.x]]
        found = [
            _measured(name, colour(one, row), x, part, ("ci_low_mbps", "mean_mbps", "ci_high_mbps"), symbol, layout)
        ]
        for column, called, look in (
            ("published_mean_mbps", f"{name}, published", {"symbol": symbol, "open": True, "colour": PUBLISHED}),
            ("misprint_mbps", "misprint", {"symbol": "cross", "colour": MUTED}),
        ):
            known = part[part[column].notna()] if column in part else part[:0]
            if len(known):
                at = [places[value] for value in known[layout.x]]
                found.append(Series(called, x=at, y=known[column].to_numpy(), kind="points", **look))
        return found

    y = _throughput(False, scale="log") if logarithmic else _throughput(switch=True)
    return _figure(figure, _by_panel(figure, axis, y, means))


def _measured(
    name: str, tint: str, x: list[float], part: Any, columns: tuple[str, str, str], symbol: Any, layout: Layout
) -> Series:
    """Marks with intervals, connected if x is numeric."""
    low, middle, high = (part[column].to_numpy(dtype=float) for column in columns)
    kind = "line" if layout.numeric else "points"
    return Series(name, tint, x, middle, kind, low, high, symbol=symbol, width=2)  # type: ignore[arg-type]


def _side_by_side(figure: PanelFigure) -> figures.Figure:
    layout = figure.layout
    axis, places = _slots(layout)

    def bars(row: int, one: Any, part: Any) -> list[Series]:
        x = [places[value] for value in part[layout.x]]
        low, middle, high = (part[name].to_numpy(dtype=float) for name in ("ci_low_mbps", "mean_mbps", "ci_high_mbps"))
        slots: dict[str, Any] = {"slot": row, "slots": len(layout.series_values)}
        return [Series(layout.name(one), colour(one, row), x, middle, "bars", low, high, **slots)]

    return _figure(figure, _by_panel(figure, axis, _throughput(), bars))


def _share(figure: PanelFigure) -> figures.Figure:
    layout = figure.layout
    axis, places = _places(layout)

    def shares(row: int, one: Any, part: Any) -> list[Series]:
        x = [places[value] for value in part[layout.x]]
        columns = ("share_low_percent", "share_percent", "share_high_percent")
        return [_measured(layout.name(one), colour(one, row), x, part, columns, SYMBOLS[row % len(SYMBOLS)], layout)]

    return _figure(figure, _by_panel(figure, axis, Axis.of(SHARE, zero=True, high=100.0), shares))


def _lines(figure: LineFigure) -> figures.Figure:
    of_time = all(panel.x_title == "time, s" for panel in figure.panels)
    most = _most(len(figure.lines))
    panels = []
    for at, panel in enumerate(figure.panels):
        x = Axis.of(panel.x_title, scale="log" if panel.log_x else "linear")
        if panel.names:
            x = Axis(panel.x_title, scale="category", names=panel.names)
        y = Axis.of(panel.y_title, scale="log" if panel.log_y else "linear", zero=panel.from_zero and not panel.log_y)
        own = [line for line in figure.lines if line.panel == at]
        series = [_line(line, most) for line in own]
        ends = [value for line in own for value in line.x if value == value]
        if panel.same is not None and ends:
            same = [panel.same(value) for value in (min(ends), max(ends))]
            series.append(Series("the same", MUTED, [min(ends), max(ends)], same, width=1))
        if of_time:
            # The axis title is below the lowest panel.
            last = at + figure.across >= len(figure.panels)
            x = _seconds([line.x for line in own], "time" if last else "")
        panels.append(Panel(x, y, series, panel.title))
    group = _TIME if of_time else None
    alike = figure.alike and len(panels) > 1
    low = 170 if len(panels) > 3 and figure.across < len(panels) else None
    words = _sentence(figure)
    return figures.Figure(
        figure.name, figure.title, words, panels, figure.across, alike, group, low if of_time else None
    )


def _line(line: Line, most: int) -> Series:
    style: dict[str, Any] = {
        "kind": "line" if line.joined else "points",
        "dash": DASHES[line.look % len(DASHES)] if line.joined else "solid",
        "symbol": SYMBOLS[line.look % len(SYMBOLS)] if line.marked else None,
        "width": 1.6 if line.marked else 1.2,
    }
    if line.low is None or line.high is None:
        x, y = extremes(line.x, line.y, most) if line.joined else (line.x, line.y)
        return Series(line.name, line.tint, x, y, **style)
    return Series(line.name, line.tint, line.x, line.y, low=line.low, high=line.high, band=line.band, **style)


_DRAWERS: dict[str, Callable[[PanelFigure], figures.Figure]] = {
    "throughput-over-time": _time,
    "distribution": _distribution,
    "mean": _mean,
    "mean-log": _mean,
    "side-by-side": _side_by_side,
    "share": _share,
}
