"""The panels of figures of a study: what each draws of its table."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sawtooth.figures.figure import SYMBOLS, Axis, Panel, Series
from sawtooth.figures.layout import Layout
from sawtooth.figures.lines import extremes, most_points, seconds
from sawtooth.figures.palette import MUTED, PUBLISHED, colour, shown

if TYPE_CHECKING:
    from pandas import DataFrame

THROUGHPUT = "goodput, Mbit/s"
SHARE = "share of the total goodput, %"


def _places(layout: Layout) -> tuple[Axis, dict[Any, float]]:
    """The x axis, and the positions of its values."""
    if not layout.numeric:
        names = tuple(shown(value) for value in layout.x_values)
        return Axis(layout.x_title, scale="category", names=names), {
            one: float(at) for at, one in enumerate(layout.x_values)
        }
    few = tuple(map(float, layout.x_values)) if len(layout.x_values) <= (40 if layout.geometric else 15) else ()
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


def over_time(table: DataFrame, layout: Layout) -> list[Panel]:
    panels = []
    most = most_points(len(layout.series_values) * len(layout.panel_values) * 2)
    for row, one in enumerate(layout.series_values):
        for at, panel in enumerate(layout.panel_values):
            part = layout.part(table, one, panel)
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
            panels.append(Panel(seconds([one.x for one in series]), _throughput(), series, title))
    return panels


def distribution(table: DataFrame, layout: Layout) -> list[Panel]:
    axis, places = _slots(layout)

    def boxes(row: int, one: Any, part: Any) -> list[Series]:
        names = {"y": "q50", "low": "min", "lower": "q25", "upper": "q75", "high": "max"}
        columns = {name: part[f"{column}_mbps"].to_numpy() for name, column in names.items()}
        x = [places[value] for value in part[layout.x]]
        slots: dict[str, Any] = {"slot": row, "slots": len(layout.series_values)}
        return [Series(layout.name(one, "all"), colour(one, row), x, kind="boxes", **columns, **slots)]

    return _by_panel(table, layout, axis, _throughput(), boxes)


def _by_panel(
    table: DataFrame, layout: Layout, x: Axis, y: Axis, made: Callable[[int, Any, Any], list[Series]]
) -> list[Panel]:
    """One panel per value of the layout's panels; ``made`` makes the content for each series."""
    series: list[list[Series]] = [[] for _ in layout.panel_values]
    for column, row, one, part in layout.parts(table):
        if not part.empty:
            series[column] += made(row, one, part)
    return [Panel(x, y, own, title) for own, title in zip(series, layout.panel_titles, strict=True)]


def mean(table: DataFrame, layout: Layout, logarithmic: bool) -> list[Panel]:
    axis, places = _places(layout)

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
    return _by_panel(table, layout, axis, y, means)


def _measured(
    name: str, tint: str, x: list[float], part: Any, columns: tuple[str, str, str], symbol: Any, layout: Layout
) -> Series:
    """Marks with intervals, connected if x is numeric."""
    low, middle, high = (part[column].to_numpy(dtype=float) for column in columns)
    kind = "line" if layout.numeric else "points"
    return Series(name, tint, x, middle, kind, low, high, symbol=symbol, width=2)  # type: ignore[arg-type]


def side_by_side(table: DataFrame, layout: Layout) -> list[Panel]:
    axis, places = _slots(layout)

    def bars(row: int, one: Any, part: Any) -> list[Series]:
        x = [places[value] for value in part[layout.x]]
        low, middle, high = (part[name].to_numpy(dtype=float) for name in ("ci_low_mbps", "mean_mbps", "ci_high_mbps"))
        slots: dict[str, Any] = {"slot": row, "slots": len(layout.series_values)}
        return [Series(layout.name(one), colour(one, row), x, middle, "bars", low, high, **slots)]

    return _by_panel(table, layout, axis, _throughput(), bars)


def share(table: DataFrame, layout: Layout) -> list[Panel]:
    axis, places = _places(layout)

    def shares(row: int, one: Any, part: Any) -> list[Series]:
        x = [places[value] for value in part[layout.x]]
        columns = ("share_low_percent", "share_percent", "share_high_percent")
        return [_measured(layout.name(one), colour(one, row), x, part, columns, SYMBOLS[row % len(SYMBOLS)], layout)]

    return _by_panel(table, layout, axis, Axis.of(SHARE, zero=True, high=100.0), shares)
