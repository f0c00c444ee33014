"""What each figure of a report draws: a table, a title and a sentence. Drawing is for ``plots`` and ``interactive``."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sawtooth.report.palette import BASELINE, shown
from sawtooth.study.means import intervals, means
from sawtooth.study.result import ALL, StudyResult
from sawtooth.study.study import Roles

if TYPE_CHECKING:
    from pandas import DataFrame

THROUGHPUT = "throughput, Mbit/s"
SHARE = "share of the sum, %"
MOST_POINTS = 20_000
"""Of a line over time: more than any screen shows apart, and few enough for a page to draw."""


@dataclass(frozen=True)
class Figure:
    """``name`` names its files, ``table`` is all that is drawn, ``layout`` says how its columns are used."""

    name: str
    title: str
    caption: str
    table: DataFrame
    layout: Layout

    @property
    def words(self) -> str:
        """All the text that is drawn and not ours."""
        layout = self.layout
        values = [*map(shown, layout.x_values), *map(layout.series_text, layout.series_values)]
        return "".join(sorted({*self.title, *layout.x_title, *"".join(layout.panel_titles), *"".join(values)}))

    def parts(self) -> Iterator[tuple[int, int, Any, DataFrame]]:
        """Each series in each panel: number of the panel, number of the series, the series itself, its rows."""
        layout = self.layout
        for column, panel in enumerate(layout.panel_values):
            for row, one in enumerate(layout.series_values):
                yield column, row, one, layout.part(self.table, one, panel)


@dataclass(frozen=True)
class Layout:
    """``x`` runs along the axis, ``series`` has colours, each value of ``panels`` a panel of its own."""

    x: str
    x_title: str
    series: str | None
    series_title: str
    panels: tuple[str, ...]
    baseline: Any
    detail: Any
    x_values: tuple[Any, ...]
    series_values: tuple[Any, ...]
    panel_values: tuple[tuple[Any, ...], ...]
    panel_titles: tuple[str, ...]

    @property
    def numeric(self) -> bool:
        """Whether ``x`` is a scale, not a list of names."""
        return all(isinstance(value, (int, float)) for value in self.x_values)

    @property
    def geometric(self) -> bool:
        """Whether ``x`` grows by factors, so that a linear scale would crowd its small values."""
        if not self.numeric or len(self.x_values) < 3 or min(self.x_values) <= 0:
            return False
        ordered = sorted(self.x_values)
        closest = min(b - a for a, b in itertools.pairwise(ordered))
        return bool(closest < (ordered[-1] - ordered[0]) / 30)

    def series_text(self, value: Any) -> str:
        """A value of ``series`` in words: a number alone would not tell what it is."""
        return value_text(self.series_title, value) if isinstance(value, (int, float)) else shown(value)

    def name(self, series: Any, alone: str = "mean") -> str:
        """A series in a legend or title; ``alone`` where there is none to be told from."""
        return self.series_text(series) if self.series else alone

    def part(self, table: DataFrame, series: Any, panel: tuple[Any, ...]) -> DataFrame:
        """The rows of one series in one panel."""
        kept = table if self.series is None else table[table[self.series] == series]
        for name, value in zip(self.panels, panel, strict=True):
            kept = kept[kept[name] == value]
        return kept

    def contrast(self, tint: str) -> list[tuple[Any, str]]:
        """The values of ``x`` drawn over time with their colours: the baseline is grey where there is another one."""
        if self.detail is None:
            return [(self.baseline, tint)]
        return [(self.baseline, BASELINE), (self.detail, tint)]

    def x_text(self, value: Any) -> str:
        """A value of ``x`` in words."""
        return value_text(self.x_title, value)


def value_text(title: str, value: Any) -> str:
    """A value in words: 1 of "packet loss, %" is "1% packet loss", 20 of "rtt, ms" is "20 ms rtt"."""
    what, comma, unit = title.rpartition(", ")
    if not comma:
        return f"{title} {shown(value)}"
    return f"{shown(value)}{'' if unit == '%' else ' '}{unit} {what}"


def figures(result: StudyResult) -> list[Figure]:
    """The figures that the study asks for, in its order."""
    from sawtooth.report import probes

    layout = _layout_of(result, result.pooled, result.study.roles())
    # Against a single value nothing can be drawn.
    asked = result.study.report.plots
    alone = ("time", "distribution", *probes.MAKERS)
    names = [name for name in asked if len(layout.x_values) > 1 or name in alone]
    of_probes = probes.figures(result, layout, names)
    made = [of_probes[name] if name in of_probes else _MAKERS[name](result, layout) for name in names]
    return [figure for figure in made if not figure.table.empty]


def _layout_of(result: StudyResult, table: DataFrame, roles: Roles) -> Layout:
    """How ``table`` is drawn: its columns have the ``roles``."""

    def values(name: str | None) -> tuple[Any, ...]:
        return (None,) if name is None else tuple(table[name].drop_duplicates().tolist())

    xs = values(roles.x)
    seen = table[list(roles.panels)].drop_duplicates().itertuples(index=False, name=None) if roles.panels else [()]
    panels = tuple(tuple(panel) for panel in seen)
    baseline = roles.baseline if roles.baseline in xs else None
    rest = [value for value in xs if value != baseline]
    detail = roles.detail if roles.detail in rest else rest[-1] if rest else None
    titles = tuple(
        ", ".join(
            f"{result.study.title_of(name)}: {shown(value)}" for name, value in zip(roles.panels, panel, strict=True)
        )
        for panel in panels
    )
    title = result.study.title_of(roles.x)
    return Layout(
        roles.x,
        title,
        roles.series,
        result.study.title_of(roles.series) if roles.series else "",
        roles.panels,
        baseline,
        detail,
        xs,
        values(roles.series),
        panels,
        titles,
    )


def _keys(layout: Layout) -> list[str]:
    return [*([layout.series] if layout.series else []), *layout.panels, layout.x]


def _time(result: StudyResult, layout: Layout) -> Figure:
    samples = result.samples
    wanted = [value for value in (layout.baseline, layout.detail) if value is not None]
    seed = result.places[0].seed
    table = samples[samples[layout.x].isin(wanted) & (samples["seed"] == seed)].reset_index(drop=True)
    against = " and ".join(layout.x_text(value) for value in wanted)
    omitted = result.records[0]["from_s"]
    after = f", after the first {omitted:g} s" if omitted else ""
    table, together = _thinned(table, _keys(layout))
    each = "each sampling interval" if together == 1 else f"sampling intervals ({together} together)"
    caption = f"Throughput at the receiver in {each}, {against}; seed {seed}{after}."
    return Figure("throughput-over-time", "Throughput over time", caption, table, layout)


def _thinned(samples: DataFrame, keys: list[str]) -> tuple[DataFrame, int]:
    """``samples`` with as many neighbours averaged as leave each line ``MOST_POINTS`` at most, and how many those are.

    An average stands at the end of its last interval.
    """
    place = samples.groupby(keys, sort=False).cumcount()
    together = int(place.max()) // MOST_POINTS + 1 if len(place) else 1
    if together == 1:
        return samples, together
    how = dict.fromkeys(samples.columns, "last") | {"mbps": "mean"}
    groups = samples.groupby([*keys, place // together], sort=False)
    return groups.agg(how).reset_index(drop=True), together


def _distribution(result: StudyResult, layout: Layout) -> Figure:
    columns = [*_keys(layout), "count", "min_mbps", "q25_mbps", "q50_mbps", "q75_mbps", "max_mbps", "mean_mbps"]
    caption = (
        "Boxes span the middle half of all intervals of all seeds, the line in a box is the median, whiskers reach the "
        "smallest and the largest."
    )
    return Figure("distribution", "How throughput is distributed", caption, result.pooled[columns], layout)


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
    """What marks and bars of a figure of means are."""
    of = intervals(result.records)
    bars = f" Bars: {of}." if of else ""
    return f"Mean over all seeds, {means(result.records)}.{bars}"


def _mean_caption(result: StudyResult) -> str:
    caption = _bars(result)
    if result.published is not None:
        caption += " Hollow marks are the published means"
        untrusted = not result.published.figures["trusted"].all()
        caption += "; crosses are published misprints, shown and not compared with." if untrusted else "."
    return caption


def _quantity(layout: Layout) -> str:
    return layout.x_title.rpartition(", ")[0] or layout.x_title


def _mean(result: StudyResult, layout: Layout) -> Figure:
    caption = _mean_caption(result)
    return Figure("mean", f"Mean throughput against {_quantity(layout)}", caption, _means(result, layout), layout)


def _mean_log(result: StudyResult, layout: Layout) -> Figure:
    caption = _mean_caption(result) + " Logarithmic scale."
    title = f"Mean throughput against {_quantity(layout)}, logarithmic"
    return Figure("mean-log", title, caption, _means(result, layout), layout)


def _compare(result: StudyResult, layout: Layout) -> Figure:
    columns = [*_keys(layout), "mean_mbps", "ci_low_mbps", "ci_high_mbps", "change_percent"]
    names = " against ".join(map(layout.series_text, layout.series_values)) if layout.series else "Side by side"
    return Figure("side-by-side", names, _bars(result), result.pooled[columns], layout)


def _share(result: StudyResult, layout: Layout) -> Figure:
    """A line for each flow; what else varies gets a panel each."""
    shares = result.shares
    if shares.empty:
        return Figure("share", "", "", shares, layout)
    keys = [layout.x, *([layout.series] if layout.series else []), *layout.panels]
    columns = [*keys, "flow", "share_percent", "share_low_percent", "share_high_percent", "mean_mbps", "std_mbps"]
    table = shares.loc[shares["seed"] == ALL, columns].reset_index(drop=True)
    roles = replace(result.study.roles(), series="flow", panels=tuple(keys[1:]))
    own = _layout_of(result, table, roles)
    title = f"Each flow's share against {_quantity(layout)}"
    caption = (
        "What each flow gets of the sum of all, mean over all seeds; bars are the 95% interval of the seeds' shares."
    )
    return Figure("share", title, caption, table, own)


_MAKERS: dict[str, Callable[[StudyResult, Layout], Figure]] = {
    "time": _time,
    "distribution": _distribution,
    "mean": _mean,
    "mean-log": _mean_log,
    "compare": _compare,
    "share": _share,
}
