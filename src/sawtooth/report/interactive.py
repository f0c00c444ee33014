"""The figures for the browser: the same tables drawn by plotly, as fragments of a page that holds plotly.js once."""

from __future__ import annotations

from collections.abc import Callable
from importlib import resources
from typing import Any

from sawtooth.draw.lines import LineFigure
from sawtooth.draw.palette import GRID, INK, MUTED, PUBLISHED, colour, shown
from sawtooth.draw.panels import Layout, PanelFigure
from sawtooth.report.figures import SHARE, THROUGHPUT

_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "triangle-down", "cross")
_DASHES = ("solid", "dash", "dot", "dashdot")


def fragment(figure: PanelFigure | LineFigure) -> str:
    """A div with its script; it needs plotly.js on the page, and no network."""
    canvas = _lines(figure) if isinstance(figure, LineFigure) else _DRAWERS[figure.name](figure)
    config = {"displaylogo": False, "responsive": True, "showSendToCloud": False}
    html = canvas.to_html(full_html=False, include_plotlyjs=False, config=config, div_id=f"figure-{figure.name}")
    return str(html)


def library() -> str:
    """plotly.js itself, to be put into the page: the bundle without maps; ``tools/plotlyjs`` leaves no host in it."""
    file = resources.files("sawtooth.report") / "plotlyjs" / "plotly-cartesian.min.js"
    return file.read_text(encoding="utf-8")


def _canvas(rows: int, titles: list[str], *, height: int, columns: int, shared_x: bool = False) -> Any:
    from plotly.subplots import make_subplots

    canvas = make_subplots(
        rows=rows,
        cols=columns,
        subplot_titles=titles,
        shared_yaxes="all",
        shared_xaxes="all" if shared_x else False,
        horizontal_spacing=0.04,
        # Room for a title; plotly takes no more than a share of the height, which many rows would use up.
        vertical_spacing=min(0.1, 50 / height),
    )
    _dress(canvas, height)
    return canvas


def _dress(canvas: Any, height: int) -> None:
    """What all figures look alike in."""
    canvas.update_layout(
        template="none",
        height=height,
        margin={"l": 64, "r": 16, "t": 40, "b": 96},
        font={"family": "system-ui, sans-serif", "size": 13, "color": INK},
        legend={"orientation": "h", "yref": "container", "y": 0.01, "x": 0, "yanchor": "bottom"},
        hoverlabel={"font": {"family": "system-ui, sans-serif"}},
        paper_bgcolor="white",
        plot_bgcolor="white",
    )
    canvas.update_yaxes(gridcolor=GRID, zerolinecolor=MUTED, linecolor=MUTED)
    canvas.update_xaxes(showgrid=False, linecolor=MUTED, zeroline=False, ticks="outside", tickcolor=MUTED)
    canvas.update_annotations(font_size=14, xanchor="left")
    for at, annotation in enumerate(canvas.layout.annotations):
        annotation.x = canvas.layout[f"xaxis{at + 1 if at else ''}"].domain[0]


def _panels(layout: Layout, height: int) -> Any:
    canvas = _canvas(1, list(layout.panel_titles), height=height, columns=len(layout.panel_values))
    canvas.update_yaxes(title_text=THROUGHPUT, col=1)
    canvas.update_xaxes(title_text=layout.x_title, title_standoff=6)
    if _linear(layout) and len(layout.x_values) <= 15:
        canvas.update_xaxes(tickvals=list(layout.x_values))
    if not _linear(layout):
        # Text that looks like a number ("0.5%") would become one, on an axis without its order and unit.
        categories = [shown(value) for value in layout.x_values]
        canvas.update_xaxes(type="category", categoryorder="array", categoryarray=categories)
    return canvas


def _x(layout: Layout, values: Any) -> list[Any]:
    return list(values) if _linear(layout) else [shown(value) for value in values]


def _linear(layout: Layout) -> bool:
    """Values that grow by factors stand at equal distances, like names."""
    return layout.numeric and not layout.geometric


def _placed(layout: Layout, series: Any, column: int) -> dict[str, Any]:
    """A trace in its panel, under one entry of the legend for all panels."""
    name = layout.name(series)
    return {"name": name, "legendgroup": name, "showlegend": column == 0, "row": 1, "col": column + 1}


def _time(figure: PanelFigure) -> Any:
    layout = figure.layout
    titles = [
        " · ".join(text for text in (layout.name(one, ""), panel) if text)
        for one in layout.series_values
        for panel in layout.panel_titles
    ]
    rows, columns = layout.apart
    canvas = _canvas(rows, titles, height=90 + 250 * rows, columns=columns, shared_x=True)
    for row, one in enumerate(layout.series_values):
        for column, panel in enumerate(layout.panel_values):
            part, at = layout.part(figure.table, one, panel), layout.place(row, column)
            for value, tint in layout.contrast(colour(one, row)):
                line = part[part[layout.x] == value]
                if line.empty:
                    continue
                name = layout.x_text(value)
                name = name if value == layout.baseline else f"{layout.name(one)}, {name}"
                first = column == 0 and (value != layout.baseline or row == 0)
                canvas.add_scatter(
                    x=line["t_s"].to_numpy(),
                    y=line["mbps"].round(3).to_numpy(),
                    mode="lines",
                    line={"color": tint, "width": 1.4 if len(line) < 1000 else 0.7},
                    name=name,
                    legendgroup=name,
                    showlegend=first,
                    hovertemplate="%{x:g} s: %{y:.1f} Mbit/s",
                    row=at[0] + 1,
                    col=at[1] + 1,
                )
    canvas.update_yaxes(rangemode="tozero")
    canvas.update_yaxes(title_text=THROUGHPUT, col=1)
    for last in range(len(titles))[-columns:]:
        below = {"row": last // columns + 1, "col": last % columns + 1}
        canvas.update_xaxes(title_text="time, s", title_standoff=6, showticklabels=True, **below)
    return canvas


def _distribution(figure: PanelFigure) -> Any:
    layout = figure.layout
    canvas = _panels(layout, 460)
    for column, row, one, part in figure.parts():
        canvas.add_box(
            x=_x(layout, part[layout.x]),
            lowerfence=part["min_mbps"],
            q1=part["q25_mbps"],
            median=part["q50_mbps"],
            q3=part["q75_mbps"],
            upperfence=part["max_mbps"],
            mean=part["mean_mbps"],
            offsetgroup=str(row),
            marker_color=colour(one, row),
            line_width=1.4,
            **_placed(layout, one, column),
        )
    canvas.update_layout(boxmode="group", showlegend=layout.series is not None)
    canvas.update_yaxes(rangemode="tozero")
    return canvas


def _error(low: Any, middle: Any, high: Any) -> dict[str, Any]:
    return {
        "type": "data",
        "symmetric": False,
        "array": (high - middle).fillna(0).clip(lower=0),
        "arrayminus": (middle - low).fillna(0).clip(lower=0),
        "thickness": 1.2,
        "width": 3,
    }


def _mean_error(part: Any) -> dict[str, Any]:
    return _error(part["ci_low_mbps"], part["mean_mbps"], part["ci_high_mbps"])


def _mean(figure: PanelFigure) -> Any:
    layout = figure.layout
    logarithmic = figure.name.endswith("-log")
    canvas = _panels(layout, 460)
    named: set[str] = set()

    def once(name: str) -> dict[str, Any]:
        first = name not in named
        named.add(name)
        return {"name": name, "legendgroup": name, "showlegend": first}

    for column, row, one, part in figure.parts():
        part = part[part["mean_mbps"] > 0] if logarithmic else part
        x, name, symbol = _x(layout, part[layout.x]), layout.name(one), _SYMBOLS[row % len(_SYMBOLS)]
        where = {"row": 1, "col": column + 1}
        canvas.add_scatter(
            x=x,
            y=part["mean_mbps"],
            error_y=_mean_error(part),
            mode="lines+markers",
            line={"color": colour(one, row), "width": 2},
            marker={"symbol": symbol, "size": 7},
            hovertemplate="%{x}: %{y:.2f} Mbit/s",
            **once(name),
            **where,
        )
        for values, called, look in (
            ("published_mean_mbps", f"{name}, published", {"symbol": f"{symbol}-open", "color": PUBLISHED}),
            ("misprint_mbps", "misprint", {"symbol": "x-thin-open", "color": MUTED}),
        ):
            if values in part and part[values].notna().any():
                canvas.add_scatter(
                    x=x,
                    y=part[values],
                    mode="markers",
                    marker={**look, "size": 11},
                    hovertemplate="%{x}: %{y:.2f} Mbit/s",
                    **once(called),
                    **where,
                )
    if logarithmic:
        canvas.update_yaxes(type="log", dtick=1)
    else:
        canvas.update_yaxes(rangemode="tozero")
    return canvas


def _side_by_side(figure: PanelFigure) -> Any:
    layout = figure.layout
    canvas = _panels(layout, 460)
    for column, row, one, part in figure.parts():
        canvas.add_bar(
            x=_x(layout, part[layout.x]),
            y=part["mean_mbps"],
            error_y=_mean_error(part),
            marker_color=colour(one, row),
            customdata=part["change_percent"],
            hovertemplate="%{x}: %{y:.2f} Mbit/s (%{customdata:+.1f}%)",
            **_placed(layout, one, column),
        )
    canvas.update_layout(barmode="group", bargap=0.18)
    return canvas


def _share(figure: PanelFigure) -> Any:
    layout = figure.layout
    canvas = _panels(layout, 460)
    for column, row, one, part in figure.parts():
        canvas.add_scatter(
            x=_x(layout, part[layout.x]),
            y=part["share_percent"],
            error_y=_error(part["share_low_percent"], part["share_percent"], part["share_high_percent"]),
            mode="lines+markers",
            line={"color": colour(one, row), "width": 2},
            marker={"symbol": _SYMBOLS[row % len(_SYMBOLS)], "size": 7},
            customdata=part["mean_mbps"],
            hovertemplate="%{x}: %{y:.1f}% (%{customdata:.2f} Mbit/s)",
            **_placed(layout, one, column),
        )
    canvas.update_yaxes(range=[0, 100])
    canvas.update_yaxes(title_text=SHARE, col=1)
    return canvas


def _lines(figure: LineFigure) -> Any:
    from plotly.subplots import make_subplots

    titles = [panel.title for panel in figure.panels]
    height = 140 + (360 if figure.rows == 1 else 240) * figure.rows
    canvas = make_subplots(
        rows=figure.rows,
        cols=figure.across,
        subplot_titles=titles,
        horizontal_spacing=0.04 if figure.alike else 0.08,
        vertical_spacing=min(0.3 / figure.rows, 80 / height),
    )
    _dress(canvas, height)
    named: set[str] = set()
    for line in figure.lines:
        error = None
        where = {"row": line.panel // figure.across + 1, "col": line.panel % figure.across + 1}
        if line.band and line.low is not None and line.high is not None:
            for edge, fill in ((line.low, None), (line.high, "tonexty")):
                look = {"mode": "lines", "line": {"width": 0}, "fill": fill, "fillcolor": _faint(line.tint)}
                quiet = {"showlegend": False, "hoverinfo": "skip", "legendgroup": line.name}
                canvas.add_scatter(x=list(line.x), y=[round(y, 4) for y in edge], **look, **quiet, **where)
        elif line.low is not None and line.high is not None:
            above = [high - y for y, high in zip(line.y, line.high, strict=True)]
            below = [y - low for y, low in zip(line.y, line.low, strict=True)]
            error = {"type": "data", "symmetric": False, "array": above, "arrayminus": below, "thickness": 1}
        modes = [name for name, wanted in (("lines", line.joined), ("markers", line.marked)) if wanted]
        canvas.add_scatter(
            x=list(line.x),
            y=[round(y, 4) for y in line.y],
            error_y=error,
            mode="+".join(modes),
            line={"color": line.tint, "width": 1.6 if line.marked else 0.8, "dash": _DASHES[line.look % len(_DASHES)]},
            marker={"symbol": _SYMBOLS[line.look % len(_SYMBOLS)], "size": 6, "color": line.tint},
            name=line.name,
            legendgroup=line.name,
            showlegend=line.name not in named,
            **where,
        )
        named.add(line.name)
    for at, panel in enumerate(figure.panels):
        place = {"row": at // figure.across + 1, "col": at % figure.across + 1}
        scales = ("log" if logarithmic else "linear" for logarithmic in (panel.log_x, panel.log_y))
        x_title = panel.x_title if figure.is_lowest(at) else None
        y_title = panel.y_title if figure.is_leftmost(at) else None
        canvas.update_xaxes(title_text=x_title, title_standoff=6, type=next(scales), **place)
        canvas.update_yaxes(title_text=y_title, type=next(scales), **place)
        if figure.alike:
            canvas.update_xaxes(matches="x", **place)
            canvas.update_yaxes(matches="y", **place)
        if panel.from_zero and not panel.log_y:
            canvas.update_yaxes(rangemode="tozero", **place)
        if panel.names:
            span = [-0.5, len(panel.names) - 0.5]
            canvas.update_xaxes(tickvals=list(range(len(panel.names))), ticktext=list(panel.names), range=span, **place)
        values = [x for line in figure.lines if line.panel == at for x in line.x]
        if panel.same is not None and values:
            ends = [min(values), max(values)]
            same = {"x": ends, "y": [panel.same(x) for x in ends], "line": {"color": MUTED, "width": 1}}
            canvas.add_scatter(mode="lines", name="the same", showlegend=at == 0, **same, **place)
    return canvas


def _faint(tint: str) -> str:
    """A colour "#rrggbb" that lets through what is behind it."""
    red, green, blue = (int(tint[at : at + 2], 16) for at in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.25)"


_DRAWERS: dict[str, Callable[[PanelFigure], Any]] = {
    "throughput-over-time": _time,
    "distribution": _distribution,
    "mean": _mean,
    "mean-log": _mean,
    "side-by-side": _side_by_side,
    "share": _share,
}
