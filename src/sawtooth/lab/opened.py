"""Opened: a result as a page shows it, in JSON values: a heading, lines, figures for ``web/draw``, tables."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sawtooth.display import runs
from sawtooth.plain import where
from sawtooth.report.drawn import drawn
from sawtooth.report.figures import figures
from sawtooth.run import Run, is_saved
from sawtooth.stats.summary import summary
from sawtooth.study.result import StudyResult
from sawtooth.study.shares import ALL

if TYPE_CHECKING:
    from pandas import DataFrame

MOST_ROWS = 500
"""Of a table on a page; how many there are is told."""
_AGAIN = ("mean-log", "side-by-side")
"""Figures that show the same as that of the means."""
_TABLES = (
    *(("shares", "Shares"), ("latency", "Latency"), ("completions", "Completion times")),
    ("applications", "Applications"),
)


def told(directory: Path) -> dict[str, Any]:
    """Of a run or of a study's result. Raises SawtoothError ``not-a-result``."""
    return _run(directory) if is_saved(directory) else _study(directory)


def _run(directory: Path) -> dict[str, Any]:
    run = Run.load(directory)
    heading, lines = runs.told(run)
    figure = runs.figure(run)
    return {
        "heading": heading,
        "lines": [*lines, f"in {where(directory)}"],
        "figures": [] if figure is None else [drawn(figure).json()],
        "tables": [table("Flows", summary(run).dropna(axis="columns", how="all"))],
    }


def _study(directory: Path) -> dict[str, Any]:
    result = StudyResult.load(directory)
    made = figures(result)
    if any(one.name == "mean" for one in made):
        made = [one for one in made if one.name not in _AGAIN]
    study = result.study
    shown = [table("Means, of all seeds together", result.pooled.dropna(axis="columns", how="all"))]
    for name, title in _TABLES:
        found = getattr(result, name)
        if not found.empty:
            shown.append(table(title, found[found["seed"] == ALL].dropna(axis="columns", how="all")))
    return {
        "heading": f"{study.title or study.name}, engine {result.engine}",
        "lines": [*filter(None, [study.question.strip()]), *result.warnings, f"in {where(directory)}"],
        "figures": [drawn(one).json() for one in made],
        "tables": shown,
    }


def table(title: str, rows: DataFrame) -> dict[str, Any]:
    """Columns and rows as text, as many as a page shows, and how many there are."""
    shown = rows.head(MOST_ROWS).itertuples(index=False, name=None)
    cells = [[_cell(value) for value in row] for row in shown]
    return {"title": title, "columns": [str(name) for name in rows.columns], "rows": cells, "all": len(rows)}


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return "–" if math.isnan(value) else f"{value:.6g}"
    return str(value)
