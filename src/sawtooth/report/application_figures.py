"""Figures of applications: the distributions of response times and page load times."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from sawtooth.figures.figure import TableFigure
from sawtooth.figures.layout import Layout
from sawtooth.figures.lines import Axes, Line, line_figure
from sawtooth.report.points import points
from sawtooth.run import Run
from sawtooth.stats import Application, applications
from sawtooth.stats.application import TABLES
from sawtooth.study.result import StudyResult

_QUANTILES = 200
_WORDS = {"requests": ("response", "answers", "Response times"), "pages": ("page", "pages", "Page times")}
"""For each kind of application: a column of times, what the times belong to, and the figure's title."""


def distribution(kind: str, result: StudyResult, layout: Layout) -> TableFigure:
    """Distributions of times of the first flow of a kind. ``table``: the key columns, ``share`` (of the completed
    responses or pages), and ``response_ms`` or ``page_ms``."""
    import numpy as np
    import pandas as pd

    def first(run: Run) -> list[Application]:
        return [one for one in applications(run) if one.kind == kind][:1]

    time, things, title = _WORDS[kind]
    shares = np.linspace(0, 1, _QUANTILES + 1)
    frames, lines = [], []
    for point in points(result, layout, (TABLES[kind],), first):
        took_ms = np.concatenate([one.took_s for one in point.seen]) * 1e3
        if took_ms.size:
            at = np.quantile(took_ms, shares)
            frames.append(pd.DataFrame({**point.key, "share": shares, f"{time}_ms": at}))
            percent = (100 * shares).tolist()
            lines.append(Line(0, point.name, point.tint, at.tolist(), percent, look=point.look, marked=False))
    spread = [line.x[-1] / line.x[0] for line in lines if line.x[0] > 0]
    panel = Axes("", f"{time} time, ms", f"{things}, %", log_x=max(spread, default=1) > 10)
    found = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()
    caption = f"Share of the {things} that took at most that long, all seeds together; unfinished ones are left out."
    return line_figure(f"{time}-cdf", title, caption, found, (panel,), lines, across=1)


MAKERS: dict[str, Callable[[StudyResult, Layout], TableFigure]] = {
    f"{words[0]}-cdf": partial(distribution, kind) for kind, words in _WORDS.items()
}
