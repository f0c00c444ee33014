"""Figures of applications: the distributions of response times and page load times."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from sawtooth.figures.figure import TableFigure
from sawtooth.figures.layout import Layout
from sawtooth.figures.lines import Axes, line_figure
from sawtooth.report.points import cumulative, points
from sawtooth.run import Run
from sawtooth.stats import Application, applications
from sawtooth.stats.application import TABLES
from sawtooth.study.result import StudyResult

_WORDS = {"requests": ("response", "answers", "Response times"), "pages": ("page", "pages", "Page times")}
"""For each kind of application: a column of times, what the times belong to, and the figure's title."""


def distribution(kind: str, result: StudyResult, layout: Layout) -> TableFigure:
    """Distributions of times of the first flow of a kind. ``table``: the key columns, ``share`` (of the completed
    responses or pages), and ``response_ms`` or ``page_ms``."""
    import numpy as np

    def first(run: Run) -> list[Application]:
        return [one for one in applications(run) if one.kind == kind][:1]

    time, things, title = _WORDS[kind]
    shown = points(result, layout, (TABLES[kind],), first)
    found, lines, log_x = cumulative(
        shown, lambda point: np.concatenate([one.took_s for one in point.seen]) * 1e3, f"{time}_ms"
    )
    panel = Axes("", f"{time} time, ms", f"{things}, %", log_x=log_x)
    caption = f"Share of the {things} that took at most that long, all seeds together; unfinished ones are left out."
    return line_figure(f"{time}-cdf", title, caption, found, (panel,), lines, across=1)


MAKERS: dict[str, Callable[[StudyResult, Layout], TableFigure]] = {
    f"{words[0]}-cdf": partial(distribution, kind) for kind, words in _WORDS.items()
}
