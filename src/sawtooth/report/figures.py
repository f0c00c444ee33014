"""The figures of a report: which ones it has, and of the simpler ones table, title and caption."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from sawtooth.figures.figure import Panel, TableFigure
from sawtooth.figures.layout import TOGETHER, Layout
from sawtooth.figures.lines import TIME
from sawtooth.figures.palette import shown
from sawtooth.report import application_figures, measure_figures, panels, probes, response, time_figures
from sawtooth.study.interval_text import intervals, means
from sawtooth.study.result import StudyResult
from sawtooth.study.shares import ALL
from sawtooth.study.study import Roles

if TYPE_CHECKING:
    from pandas import DataFrame

MOST_POINTS = 20_000
"""Maximum number of points of a line over time: more than a screen can show, and few enough to draw quickly."""


def figures(result: StudyResult) -> list[TableFigure]:
    """The figures that the study asks for, in its order."""
    layout = _layout_of(result, result.pooled, result.study.roles())
    # With a single value of x there is nothing to plot against, and a single box is only five numbers.
    plots = result.study.report.plots
    alone = ["time", "window", *probes.MAKERS, "latency", "latency-cdf", "completion", *application_figures.MAKERS]
    alone += ["distribution"] * (len(result.pooled) > 1)
    names = [name for name in plots if len(layout.x_values) > 1 or name in alone]
    of_probes = probes.figures(result, layout, names)
    drawn = [of_probes[name] if name in of_probes else _MAKERS[name](result, layout) for name in names]
    return [figure for figure in drawn if not figure.table.empty]


def _layout_of(result: StudyResult, table: DataFrame, roles: Roles) -> Layout:
    """The layout for ``table``, whose columns have the ``roles``."""

    def values(name: str | None) -> tuple[Any, ...]:
        return (None,) if name is None else tuple(table[name].drop_duplicates().tolist())

    xs = values(roles.x)
    seen = table[list(roles.panels)].drop_duplicates().itertuples(index=False, name=None) if roles.panels else [()]
    panel_values = tuple(tuple(panel) for panel in seen)
    baseline = roles.baseline if roles.baseline in xs else None
    rest = [value for value in xs if value != baseline]
    detail = roles.detail if roles.detail in rest else rest[-1] if rest else None
    titles = tuple(
        ", ".join(
            f"{result.study.title_of(name)}: {shown(value)}" for name, value in zip(roles.panels, panel, strict=True)
        )
        for panel in panel_values
    )
    title = result.study.title_of(roles.x)
    return Layout(
        x=roles.x,
        x_title=title,
        series=roles.series,
        series_title=result.study.title_of(roles.series) if roles.series else "",
        panels=roles.panels,
        baseline=baseline,
        detail=detail,
        x_values=xs,
        series_values=values(roles.series),
        panel_values=panel_values,
        panel_titles=titles,
    )


def _figure(name: str, title: str, caption: str, table: DataFrame, drawn: Sequence[Panel], **more: Any) -> TableFigure:
    """All its panels have the same scales."""
    return TableFigure.of(name, title, caption, table, drawn, alike=len(drawn) > 1, **more)


def _keys(layout: Layout) -> list[str]:
    return [*([layout.series] if layout.series else []), *layout.panels, layout.x]


def _time(result: StudyResult, layout: Layout) -> TableFigure:
    samples = result.samples
    wanted = [value for value in (layout.baseline, layout.detail) if value is not None]
    seed = result.places[0].seed
    table = samples[samples[layout.x].isin(wanted) & (samples["seed"] == seed)].reset_index(drop=True)
    against = " and ".join(layout.x_text(value) for value in wanted)
    omitted = result.records[0]["from_s"]
    after = f", after the first {omitted:g} s" if omitted else ""
    table, together = _thinned(table, _keys(layout))
    each = "each sampling interval" if together == 1 else f"sampling intervals ({together} together)"
    caption = f"Goodput at the receiver in {each}, {against}; seed {seed}{after}."
    drawn, more = panels.over_time(table, layout), {"across": layout.across, "group": TIME}
    return _figure("throughput-over-time", "Goodput over time", caption, table, drawn, **more)


def _thinned(samples: DataFrame, keys: list[str]) -> tuple[DataFrame, int]:
    """Average groups of neighbouring samples, so that no line has more than ``MOST_POINTS`` points. Returns the table
    and the group size.

    An average is at the end of its last interval.
    """
    place = samples.groupby(keys, sort=False).cumcount()
    together = int(place.max()) // MOST_POINTS + 1 if len(place) else 1
    if together == 1:
        return samples, together
    how = dict.fromkeys(samples.columns, "last") | {"mbps": "mean"}
    groups = samples.groupby([*keys, place // together], sort=False)
    return groups.agg(how).reset_index(drop=True), together


def _distribution(result: StudyResult, layout: Layout) -> TableFigure:
    columns = [*_keys(layout), "count", "min_mbps", "q25_mbps", "q50_mbps", "q75_mbps", "max_mbps", "mean_mbps"]
    caption = (
        "Boxes span the middle half of all sampling intervals of all seeds. The line in a box is the median; whiskers "
        "reach the minimum and maximum."
    )
    table = result.pooled[columns]
    return _figure("distribution", "Distribution of goodput", caption, table, panels.distribution(table, layout))


def _means(result: StudyResult, layout: Layout) -> DataFrame:
    columns = [*_keys(layout), "mean_mbps", "ci_low_mbps", "ci_high_mbps", "published_mean_mbps"]
    table = result.pooled[columns].copy()
    known = result.published
    if known is not None:
        misprints = [known.figure(row, untrusted=True) for row in result.records]
        trusted = table["published_mean_mbps"].notna()
        table["misprint_mbps"] = [
            float("nan") if fine else value for fine, value in zip(trusted, misprints, strict=True)
        ]
    return table


def _bars(result: StudyResult) -> str:
    """What the marks and bars in a figure of means are, in words."""
    of = intervals(result.records)
    bars = f" Bars: {of}." if of else ""
    return f"Mean over all seeds, {means(result.records)}.{bars}"


def _mean_caption(result: StudyResult) -> str:
    caption = _bars(result)
    if result.published is not None:
        caption += " Hollow marks are the published means"
        untrusted = not result.published.figures["trusted"].all()
        caption += "; crosses are misprints in the source, which are not compared." if untrusted else "."
    return caption


def _quantity(layout: Layout) -> str:
    return layout.x_title.rpartition(", ")[0] or layout.x_title


def _mean(result: StudyResult, layout: Layout, logarithmic: bool = False) -> TableFigure:
    name, what = ("mean-log", ", logarithmic") if logarithmic else ("mean", "")
    caption = _mean_caption(result) + (" Logarithmic scale." if logarithmic else "")
    table = _means(result, layout)
    title = f"Mean goodput against {_quantity(layout)}{what}"
    return _figure(name, title, caption, table, panels.mean(table, layout, logarithmic))


def _compare(result: StudyResult, layout: Layout) -> TableFigure:
    columns = [*_keys(layout), "mean_mbps", "ci_low_mbps", "ci_high_mbps", "change_percent"]
    few = layout.series and len(layout.series_values) <= TOGETHER
    names = " against ".join(map(layout.series_text, layout.series_values)) if few else "Side by side"
    table = result.pooled[columns]
    return _figure("side-by-side", names, _bars(result), table, panels.side_by_side(table, layout))


def _share(result: StudyResult, layout: Layout) -> TableFigure:
    """One line per flow; one panel for each combination of the other varied fields."""
    shares = result.shares
    if shares.empty:
        return _figure("share", "", "", shares, [])
    keys = [layout.x, *([layout.series] if layout.series else []), *layout.panels]
    columns = [*keys, "flow", "share_percent", "share_low_percent", "share_high_percent", "mean_mbps", "std_mbps"]
    table = shares.loc[shares["seed"] == ALL, columns].reset_index(drop=True)
    roles = replace(result.study.roles(), series="flow", panels=tuple(keys[1:]))
    own = _layout_of(result, table, roles)
    title = f"Each flow's share against {_quantity(layout)}"
    caption = (
        "Share of the total goodput per flow, mean over all seeds; bars are the 95% confidence interval over seeds."
    )
    return _figure("share", title, caption, table, panels.share(table, own))


_MAKERS: dict[str, Callable[[StudyResult, Layout], TableFigure]] = {
    "time": _time,
    "distribution": _distribution,
    "mean": _mean,
    "mean-log": partial(_mean, logarithmic=True),
    "compare": _compare,
    "share": _share,
    "response": response.figure,
    "window": time_figures.figure,
    **measure_figures.MAKERS,
    **application_figures.MAKERS,
}
