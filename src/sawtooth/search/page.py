"""report.html of an answer, or of a study's answers: the path, the answer with interval and cost, the points tried."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from sawtooth import figures
from sawtooth.figures import Axis, Mark, Panel, Series, Span, render
from sawtooth.figures.lines import LineFigure
from sawtooth.figures.palette import MUTED
from sawtooth.figures.web_figure import SYMBOLS
from sawtooth.search.answers import Answers
from sawtooth.search.figure import figure
from sawtooth.search.frontier import Frontier
from sawtooth.search.result import Found
from sawtooth.search.text import cells, checked, cost, frontier, summed, unknowns
from sawtooth.search.unknown import Unknown


def report(found: Found | Frontier | Answers, pictures: Sequence[str]) -> str:
    """HTML that loads nothing; ``pictures`` are the names of each answer's files, without extension."""
    several = isinstance(found, Answers)
    each = found.found if isinstance(found, Answers) else (found,)
    lines = summed(found) if isinstance(found, Answers) else []
    content = {
        "name": found.name,
        "want": each[0].want,
        "told": unknowns(each[0]),
        "engine": each[0].engine,
        "cost": cost(found),
        "several": several,
        "lines": lines,
        "each": [_section(one, name) for one, name in zip(each, pictures, strict=True)],
    }
    return render("sawtooth.search", "find.html.j2", content, [drawn(*one) for one in zip(each, pictures, strict=True)])


def drawn(found: Found | Frontier, name: str) -> figures.Figure:
    """The figure for a browser."""
    shape = figure(found)
    both = _contour(found, shape) if isinstance(found, Frontier) else _sides(found, shape)
    shown = found.frontier if isinstance(found, Frontier) else found.table
    table = {str(column): shown[column].tolist() for column in shown}
    return figures.Figure(name, shape.title, f"{found.want}: {found.answer}", [both], table=table)


def _contour(found: Frontier, shape: LineFigure) -> Panel:
    """The frontier with its band, the points tried, and the minimum."""
    first, answered = found.unknowns.given[0], found.unknowns.answered
    series = [
        Series(
            line.name,
            line.tint,
            line.x,
            line.y,
            kind="line" if line.joined else "points",
            low=line.low,
            high=line.high,
            band=line.band,
            symbol="circle" if line.joined else SYMBOLS[line.look % len(SYMBOLS)],
        )
        for line in shape.lines
    ]
    marks = [] if found.minimum is None else [Mark("x", found.minimum.values[0], "least")]
    return Panel(_axis(first), _axis(answered), series, marks=marks)


def _axis(unknown: Unknown) -> Axis:
    """The axis with the scale of the search."""
    bend = unknown.bend or None
    return Axis(unknown.field, unknown.unit, scale="asinh" if bend else unknown.scale, bend=bend)


def _sides(found: Found, shape: LineFigure) -> Panel:
    """Both sides over the unknown, with the answer."""
    panel = shape.panels[0]
    series = [
        Series(
            line.name,
            line.tint,
            line.x,
            line.y,
            low=line.low,
            high=line.high,
            dash="dashed" if line.look else "solid",
            symbol="circle" if line.marked else "none",
        )
        for line in shape.lines[:2]
    ]
    known = found.verdict == "found"
    return Panel(
        _axis(found.unknown),
        Axis("both sides", panel.y_title),
        series,
        spans=[Span(*found.interval, "95% interval", MUTED)] if known else [],
        marks=[Mark("x", found.value, "answer")] if known else [],
    )


def _section(found: Found | Frontier, name: str) -> dict[str, Any]:
    rows = cells(found)
    fields = found.fields if isinstance(found, Frontier) else [found.unknown.field]
    return {
        "frontier": frontier(found) if isinstance(found, Frontier) else [],
        "title": found.name,
        "picture": name,
        "answer": found.answer,
        "remarks": found.remarks,
        "cost": cost(found),
        "path": list(_path(found.scenario)),
        "varies": fields,
        "rows": rows,
        "checks": checked(found),
    }


def _path(scenario: Mapping[str, Any]) -> Sequence[tuple[str, str, str]]:
    """Field, name and text of the scenario's path and of each flow."""
    topology = str(scenario.get("topology", "path")).removesuffix("-asymmetric")
    found = []
    table = scenario.get(topology)
    if isinstance(table, Mapping):
        found += [
            (f"{topology}.{name}", name, _text(value)) for name, value in table.items() if value not in (None, [])
        ]
    for number, flow in enumerate(scenario.get("flows", ())):
        count = flow.get("count", 1)
        kind = flow.get("source", {}).get("kind") if isinstance(flow.get("source"), Mapping) else None
        name = str(flow.get("name", flow.get("cc", number)))
        found.append((f"flows.{name}.count", name, f"{count} × {kind or _text(flow.get('cc', 'cubic'))}"))
    return found


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_text(one)}" for name, one in value.items() if one is not None)
    if isinstance(value, float) and math.isfinite(value):
        return f"{value:g}"
    return str(value)
