"""replication.html: the paper's figures with ours over them, every cell, and what is known to differ."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any

from sawtooth.figures import render
from sawtooth.figures.figure import TableFigure
from sawtooth.figures.lines import Axes, Line, line_figure
from sawtooth.figures.palette import colour, shown
from sawtooth.figures.static import draw
from sawtooth.io.atomic_io import write_bytes, writing
from sawtooth.io.csv import csv_text
from sawtooth.replication.evaluation import Evaluation, Row
from sawtooth.replication.replication import Compare
from sawtooth.replication.text import RULE, percent, plus_minus

FILE = "replication.html"
MOST_PANELS = 24
"""More would be too small to read; the table has every cell."""
_ACROSS = 3


def write_page(judged: Evaluation) -> Path:
    """Writes replication.html, replication.csv, and plots/NAME.png, .svg and .csv into the results. Returns the page.

    Raises SawtoothError ``unwritable-output`` or ``disk-full``.
    """
    directory = judged.result.directory
    plots = directory / "plots"
    with writing(plots):
        plots.mkdir(exist_ok=True)
    made = figures(judged)
    for figure in made:
        draw(figure, plots)
        write_bytes(plots / f"{figure.name}.csv", csv_text(figure.table).encode())
    write_bytes(directory / "replication.csv", csv_text(judged.table()).encode())
    html = render("sawtooth.replication", "replication.html.j2", _content(judged, made), made)
    page = directory / FILE
    write_bytes(page, html.encode())
    return page


def figures(judged: Evaluation) -> list[TableFigure]:
    """The published figures with ours over them, one figure per compared column, and all of them against ours."""
    made = [_drawn(judged, at, compared) for at, compared in enumerate(judged.replication.about.compare)]
    return [_against(judged), *(figure for figure in made if figure is not None)]


def _against(judged: Evaluation) -> TableFigure:
    panels: list[Axes] = []
    drawn: list[Line] = []
    for compared in judged.replication.about.compare:
        own = [row for row in judged.rows if row.compared is compared and row.published > 0 and row.ours > 0]
        if not own:
            continue
        title = judged.title(compared)
        for look, (inside, tint) in enumerate(((True, colour("inside", 0)), (False, colour("outside", 3)))):
            some = [row for row in own if row.inside == inside]
            name = "inside the authors' spread" if inside else "outside"
            x, y = [row.published for row in some], [row.ours for row in some]
            if some:
                drawn.append(Line(len(panels), name, tint, x, y, look=look, joined=False))
        panels.append(Axes(title, "published", "ours", log_x=True, log_y=True, same=lambda value: value))
    caption = "Every figure that was published against ours. On the thin line both are equal."
    across = min(_ACROSS, max(1, len(panels)))
    title = "Published against ours"
    return line_figure("published-against-ours", title, caption, judged.table(), panels, drawn, across)


def _drawn(judged: Evaluation, at: int, compared: Compare) -> TableFigure | None:
    about, own = judged.replication.about, [row for row in judged.rows if row.compared is compared]
    x, series = about.figure.x, about.figure.series
    keys = judged.replication.keys
    varied = [key for key in keys if len({row.cell[key] for row in own}) > 1]
    others = [key for key in varied if key not in (x, series)]
    values = list(dict.fromkeys(row.cell[x] for row in own))
    if len(values) < 2:
        return None
    numeric = all(isinstance(value, (int, float)) for value in values)
    place = {value: float(value) if numeric else float(number) for number, value in enumerate(values)}
    names = () if numeric else tuple(map(shown, values))
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in own:
        groups.setdefault(tuple(row.cell[key] for key in others), []).append(row)
    panels: list[Axes] = []
    drawn: list[Line] = []
    ordered = sorted(place.values())
    geometric = numeric and len(ordered) > 2 and ordered[0] > 0 and ordered[-1] > 8 * ordered[0]
    for number, (group, rows) in enumerate(list(groups.items())[:MOST_PANELS]):
        title = ", ".join(f"{key.replace('_', ' ')} {shown(value)}" for key, value in zip(others, group, strict=True))
        panels.append(Axes(title, x.replace("_", " "), judged.title(compared), geometric, names=names, from_zero=True))
        lines_of: dict[Any, list[Row]] = {}
        for row in rows:
            lines_of.setdefault(row.cell[series] if series else "ours", []).append(row)
        tints = list(dict.fromkeys(row.cell[series] for row in own)) if series else ["ours"]
        for one, points in lines_of.items():
            points = sorted(points, key=lambda row: place[row.cell[x]])
            tint, name = colour(one, tints.index(one)), shown(one)
            at_x = [place[row.cell[x]] for row in points]
            published = [row.published for row in points]
            spread = [0.0 if math.isnan(row.spread) else row.spread for row in points]
            label = f"{name}, published" if series else "published"
            low = [value - sd for value, sd in zip(published, spread, strict=True)]
            high = [value + sd for value, sd in zip(published, spread, strict=True)]
            drawn.append(Line(number, label, tint, at_x, published, low, high, look=1, joined=False))
            drawn.append(Line(number, f"{name}, ours" if series else "ours", tint, at_x, [row.ours for row in points]))
    left = len(groups) - len(panels)
    caption = "Marks without a line are published, with one standard deviation of the authors' runs; lines are ours."
    if left > 0:
        caption += f" The first {MOST_PANELS} of {len(groups)} panels; the table has all cells."
    table = judged.table()
    table = table[table["compared"] == judged.title(compared)]
    title = judged.title(compared)
    across = min(_ACROSS, len(panels))
    return line_figure(f"cells-{at}", title, caption, table, panels, drawn, across)


def _content(judged: Evaluation, made: list[TableFigure]) -> dict[str, Any]:
    about, keys = judged.replication.about, list(judged.replication.keys)
    rows = sorted(judged.rows, key=lambda row: (row.inside, -row.far))
    causes = Counter(row.cause for row in judged.worst)
    out = Counter(why for _, why in judged.replication.left_out)
    return {
        "about": about,
        "name": judged.replication.name,
        "engine": judged.result.engine,
        "seeds": len({place.seed for place in judged.result.places}),
        "cells": len({tuple(place.key.values()) for place in judged.result.places}),
        "figures": len(judged.rows),
        "inside": judged.inside,
        "share": f"{judged.inside / len(judged.rows):.1%}" if judged.rows else "–",
        "rule": RULE,
        "summary": [
            [
                row["compared"],
                row["cells"],
                row["inside"],
                row["chance"],
                f"{row['attainable']:.0f}",
                percent(row["median_percent"]),
                percent(row["p90_percent"]),
            ]
            for row in judged.summary()
        ],
        "causes": [[cause, count] for cause, count in causes.most_common()],
        "left_out": [[why, count] for why, count in out.most_common()],
        "made": made,
        "columns": [*keys, "compared", "published", "ours", "difference", "inside", "cause"],
        "rows": [
            [
                *(shown(row.cell[key]) for key in keys),
                judged.title(row.compared),
                plus_minus(row.published, row.spread),
                plus_minus(row.ours, row.ours_sd),
                "–" if math.isnan(row.difference) or math.isnan(row.ours) else f"{100 * row.difference:+.1f}%",
                "yes" if row.inside else "no",
                row.cause,
            ]
            for row in rows
        ],
        "prose": [*range(len(keys) + 1), len(keys) + 5],
    }
