"""The response figure: throughput against loss on logarithmic scales, with closed-form models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sawtooth.engines import get
from sawtooth.errors import SawtoothError
from sawtooth.figures.figure import TableFigure
from sawtooth.figures.layout import ACROSS, TOGETHER, Layout
from sawtooth.figures.lines import Axes, Line, line_figure
from sawtooth.figures.palette import BEHIND, INK, colour, shown
from sawtooth.stats import throughput
from sawtooth.study.result import StudyResult

if TYPE_CHECKING:
    from pandas import DataFrame


def figure(result: StudyResult, layout: Layout) -> TableFigure:
    """``table`` has one row per point, over all seeds: the key columns, mean_mbps, ci_low_mbps, ci_high_mbps, and
    formula_mbps (NaN where no closed form applies). x = 0 is omitted, because a logarithmic scale has no place for it.

    If there are more than TOGETHER series, each has its own panel, with the means of the others in the background.
    """
    keys = [*([layout.series] if layout.series else []), *layout.panels, layout.x]
    table = result.pooled[[*keys, "mean_mbps", "ci_low_mbps", "ci_high_mbps"]].copy()
    table["formula_mbps"] = _formulas(result, table[keys])
    table = table[table[layout.x] > 0].reset_index(drop=True)
    apart = len(layout.series_values) > TOGETHER
    panels: list[Axes] = []
    lines: list[Line] = []
    for place, panel in enumerate(layout.panel_values):
        for number, series in enumerate(layout.series_values):
            if apart or number == 0:
                of = [layout.panel_titles[place], shown(series) if apart else ""]
                title = ", ".join(part for part in of if part)
                panels.append(Axes(title, layout.x_title, "goodput, Mbit/s", log_x=True, log_y=True))
            if apart:
                others = [layout.part(table, one, panel) for one in layout.series_values if one != series]
                lines.append(_behind(len(panels) - 1, layout, others))
            lines += _lines(len(panels) - 1, layout, series, number, layout.part(table, series, panel), apart)
    caption = "Mean over all seeds with its 95% confidence interval; thin lines are closed forms, if there is one."
    if apart:
        caption += " Gray: the means of the others."
    title = f"Goodput against {layout.x_title.rpartition(', ')[0] or layout.x_title}, with closed forms"
    return line_figure("response", title, caption, table, panels, lines, min(ACROSS, len(panels)), True)


def _behind(panel: int, layout: Layout, others: Sequence[DataFrame]) -> Line:
    """The means of the other series, as one line with gaps."""
    x, y = [], []
    for part in others:
        x += [*part[layout.x], float("nan")]
        y += [*part["mean_mbps"], float("nan")]
    return Line(panel, "the others", BEHIND, x, y, marked=False)


def _lines(panel: int, layout: Layout, series: Any, number: int, part: DataFrame, apart: bool) -> list[Line]:
    if part.empty:
        return []
    tint = colour("reno", 0) if apart else colour(series, number)
    name = "measured" if apart else layout.name(series)
    x, look = part[layout.x].tolist(), 0 if apart else number
    interval = (part["ci_low_mbps"].tolist(), part["ci_high_mbps"].tolist())
    lines = [Line(panel, name, tint, x, part["mean_mbps"].tolist(), *interval, look=look, joined=False)]
    if part["formula_mbps"].notna().any():
        closed, thin = ("closed form", INK) if apart else (f"{name}, closed form", tint)
        lines.append(Line(panel, closed, thin, x, part["formula_mbps"].tolist(), marked=False))
    return lines


def _formulas(result: StudyResult, wanted: DataFrame) -> list[float]:
    """The closed form's throughput for each row of key columns, in Mbit/s."""
    closed = get("model")
    found: dict[tuple[Any, ...], float] = {}
    drawn = {tuple(place.key.values()) for place in result.places}
    for point, scenario in result.study.each(seeds=[1], overrides=result.overrides, only=drawn):
        try:
            mean = float(throughput(closed.run(scenario)).mean())
        except SawtoothError:
            # No closed form applies.
            mean = float("nan")
        found[tuple(point.key[name] for name in wanted.columns)] = mean
    return [found.get(row, float("nan")) for row in wanted.itertuples(index=False, name=None)]
