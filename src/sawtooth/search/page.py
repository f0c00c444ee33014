"""report.html of an answer, or of a study's answers: the path, the answer with interval and cost, the points tried."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from sawtooth.figures import Figure, render
from sawtooth.search.answers import Answers
from sawtooth.search.figure import contour, sides
from sawtooth.search.frontier import Frontier
from sawtooth.search.result import Threshold
from sawtooth.search.text import cells, checked, cost, frontier, summed, unknowns


def report(found: Threshold | Frontier | Answers, pictures: Sequence[str]) -> str:
    """HTML that loads nothing; ``pictures`` are the names of each answer's files, without extension."""
    several = isinstance(found, Answers)
    each = found.found if isinstance(found, Answers) else (found,)
    lines = summed(found) if isinstance(found, Answers) else []
    content = {
        "name": found.name,
        "want": each[0].want,
        "unknowns": unknowns(each[0]),
        "engine": each[0].engine,
        "cost": cost(found),
        "several": several,
        "lines": lines,
        "each": [_section(one, name) for one, name in zip(each, pictures, strict=True)],
    }
    return render(
        "sawtooth.search",
        "find.html.j2",
        content,
        [figure(one, name) for one, name in zip(each, pictures, strict=True)],
    )


def figure(found: Threshold | Frontier, name: str = "find") -> Figure:
    """For files and pages. ``name`` distinguishes it from the others of a page."""
    return contour(found, name) if isinstance(found, Frontier) else sides(found, name)


def _section(found: Threshold | Frontier, name: str) -> dict[str, Any]:
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
