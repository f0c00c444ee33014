"""Shows a result on the page, as JSON values: a heading, lines, figures for ``web/draw``, and tables."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sawtooth.run import Run, is_saved
from sawtooth.sanitize import where

if TYPE_CHECKING:
    from pandas import DataFrame

MOST_ROWS = 500
"""Maximum number of rows of a table on the page. The total is shown, too."""


def page_data(directory: Path) -> dict[str, Any]:
    """The page's data of a run or study result. Raises SawtoothError ``not-a-result``."""
    if is_saved(directory):
        return _run(directory)
    # Imported here because each branch needs other modules.
    from sawtooth.lab import study_page

    return study_page.page_data(directory, MOST_ROWS)


def _run(directory: Path) -> dict[str, Any]:
    from sawtooth.notebook import runs
    from sawtooth.stats.summary import summary

    run = Run.load(directory)
    heading, lines = runs.heading_and_lines(run)
    figure = runs.figure(run)
    return {
        "heading": heading,
        "lines": [*lines, f"in {where(directory)}"],
        "figures": [] if figure is None else [figure.json()],
        "tables": [table("Flows", summary(run).dropna(axis="columns", how="all"))],
    }


def table(title: str, rows: DataFrame) -> dict[str, Any]:
    """Columns and rows as text, at most MOST_ROWS, and the total number of rows."""
    shown = rows.head(MOST_ROWS).itertuples(index=False, name=None)
    cells = [[_cell(value) for value in row] for row in shown]
    return {"title": title, "columns": [str(name) for name in rows.columns], "rows": cells, "all": len(rows)}


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return "–" if math.isnan(value) else f"{value:.6g}"
    return str(value)
