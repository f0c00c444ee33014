"""Figures of studies with probes: RTTs of probes through a link, beside the throughput of the link's TCP flows.

They use ``StudyResult.probed``, which has one row per window of probes and flow named in ``report.flows``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sawtooth.figures.figure import TableFigure
from sawtooth.figures.layout import Layout
from sawtooth.figures.lines import Axes, Line, line_figure
from sawtooth.figures.palette import colour
from sawtooth.report.points import setting_text
from sawtooth.study import store
from sawtooth.study.result import StudyResult

if TYPE_CHECKING:
    from pandas import DataFrame

_TRUE = "true goodput of a flow, Mbit/s"
_CURVES = {
    "probe_rtt_ms": "mean RTT of the probes, ms",
    "probe_std_ms": "standard deviation, ms",
    "probe_increasing_percent": "increasing, %",
}
_OPEN = 4.0
"""An open end of an interval is drawn at this factor from the estimate."""
_LEGIBLE = 6
"""Maximum number of panels of RTTs over time."""


def _itself(x: float) -> float:
    return x


def _one(_: float) -> float:
    return 1.0


def figures(result: StudyResult, layout: Layout, names: Sequence[str]) -> dict[str, TableFigure]:
    """The figures of probes among ``names``."""
    plots = [name for name in names if name in MAKERS]
    if not plots:
        return {}
    table = result.probed
    return {name: MAKERS[name](result, layout, table) for name in plots}


@dataclass(frozen=True)
class _Group:
    """Rows that are drawn in the same way: equal values in all columns except ``x`` and the seed."""

    name: str
    tint: str
    look: int
    rows: DataFrame


def _groups(result: StudyResult, layout: Layout, table: DataFrame) -> Iterator[_Group]:
    """Groups of rows. Colours show what is compared (flows, series of probes, or the study's series); markers and
    dashes show the rest."""
    several = [name for name in ("flow", "probe") if table[name].nunique() > 1]
    keys = [*several, *([layout.series] if layout.series else []), *layout.panels]
    if not keys:
        yield _Group(layout.x_title, colour(None, 3), 0, table)
        return
    tints = table[keys[0]].drop_duplicates().tolist()
    styles = [tuple(row) for row in table[keys[1:]].drop_duplicates().itertuples(index=False, name=None)]
    for values, rows in table.groupby(keys, sort=False):
        at = tints.index(values[0])
        name = ", ".join(_shown(result, key, value) for key, value in zip(keys, values, strict=True))
        yield _Group(name, colour(values[0], at), styles.index(tuple(values[1:])), rows)


def _shown(result: StudyResult, key: str, value: Any) -> str:
    if key in ("flow", "probe"):
        return f"flows {value}" if key == "flow" else str(value)
    return setting_text(result, key, value)


def _plain(table: DataFrame) -> DataFrame:
    return table.drop(columns="probe_features").reset_index(drop=True)


def curves(result: StudyResult, layout: Layout, table: DataFrame) -> TableFigure:
    """The curves of the published source: mean, deviation and percent increasing, against throughput."""
    lines = []
    for group in _groups(result, layout, table):
        for panel, name in enumerate(_CURVES):
            rows = group.rows[group.rows["true_mbps"] > 0]
            lines += _through_means(panel, group, rows, layout.x, name)
    panels = tuple(Axes("", _TRUE, title, log_x=True) for title in _CURVES.values())
    caption = "Each mark is 1,000 probes of one run; lines go through the means over seeds."
    return line_figure("probe-curves", "What probes show about flows", caption, _plain(table), panels, lines)


def _through_means(panel: int, group: _Group, rows: DataFrame, x: str, name: str) -> list[Line]:
    means = rows.groupby([x, "probe_from_s"], sort=False)[["true_mbps", name]].mean().sort_values("true_mbps")
    style: dict[str, Any] = {"look": group.look}
    single = len(means) == len(rows)
    line = Line(
        panel, group.name, group.tint, means["true_mbps"].tolist(), means[name].tolist(), marked=single, **style
    )
    if single:
        return [line]
    marks = Line(panel, group.name, group.tint, rows["true_mbps"].tolist(), rows[name].tolist(), joined=False, **style)
    return [line, marks]


def estimates(result: StudyResult, layout: Layout, table: DataFrame) -> TableFigure:
    """Estimates of ``congestion estimate`` against the flows' throughput."""
    import numpy as np

    lines = []
    for group in _groups(result, layout, table):
        rows = group.rows[(group.rows["true_mbps"] > 0) & group.rows["estimate_mbps"].notna()]
        if not rows.empty:
            marks: dict[str, Any] = {"look": group.look, "joined": False}
            truth = rows["true_mbps"].to_numpy(float)
            found, low, high = (rows[name].to_numpy(float) for name in ("estimate_mbps", "low_mbps", "high_mbps"))
            lines.append(Line(0, group.name, group.tint, truth.tolist(), found.tolist(), **marks))
            # A logarithmic axis cannot show an open end.
            low, high = np.where(low == 0, found / _OPEN, low), np.where(np.isnan(high), found * _OPEN, high)
            ends = {"low": (low / truth).tolist(), "high": (high / truth).tolist()}
            lines.append(Line(1, group.name, group.tint, truth.tolist(), (found / truth).tolist(), **ends, **marks))
    refused = table.drop_duplicates(["seed", "probe", "probe_from_s", *result.places[0].key])
    silent = refused[refused["estimate_mbps"].isna()]
    reasons = ", ".join(
        f"{count} {reason}" for reason, count in (silent["probe_reason"] + silent["probe_state"]).value_counts().items()
    )
    caption = (
        "The shipped model's estimate from 1,000 probes with its 90% confidence interval, against the flow's true "
        "goodput. On the line they are equal."
    )
    if (table["probe_bound"] != "").any():
        caption += f" A one-sided interval is drawn to {_OPEN:g} times or 1/{_OPEN:g} of the estimate."
    if reasons:
        caption += f" Without an estimate, out of {len(refused)} windows: {reasons}."
    panels = (
        Axes("", _TRUE, "estimate, Mbit/s", log_x=True, log_y=True, same=_itself),
        Axes("", _TRUE, "estimate / truth", log_x=True, log_y=True, same=_one),
    )
    title = "Estimated and true goodput of a flow"
    return line_figure("probe-estimates", title, caption, _plain(table), panels, lines, across=2)


def assumed_rtt(result: StudyResult, layout: Layout, table: DataFrame) -> TableFigure:
    """The model's error as a function of the error in the assumed RTT, including values that the command would
    refuse."""
    import pandas as pd

    from sawtooth.link_estimate.model import CongestionModel
    from sawtooth.link_estimate.wrong_rtt import assumed_rtts

    model = CongestionModel.default()
    rows: list[dict[str, Any]] = []
    lines = []
    for group in _groups(result, layout, table):
        known = group.rows[group.rows["probe_features"].notna() & (group.rows["true_mbps"] > 0)]
        if known.empty:
            continue
        rate_bps, true_bps = (known[name].to_numpy() * 1e6 for name in ("probe_rate_mbps", "true_mbps"))
        made: list[dict[str, Any]] = [
            {
                "line": group.name,
                "probe_assumed_rtt_ms": wrong.rtt_s * 1e3,
                "count": len(known),
                "estimate_over_true": wrong.ratio,
                "median_error_percent": wrong.median_error_percent,
                "p90_error_percent": wrong.p90_error_percent,
            }
            for wrong in assumed_rtts(model, known["probe_features"].tolist(), rate_bps, true_bps)
        ]
        rows += made
        for panel, name in enumerate(("estimate_over_true", "median_error_percent")):
            xs = [one["probe_assumed_rtt_ms"] for one in made]
            lines.append(Line(panel, group.name, group.tint, xs, [one[name] for one in made], look=group.look))
    panels = (
        Axes("", "assumed base RTT of the flows, ms", "estimate / truth, median", log_x=True, log_y=True, same=_one),
        Axes("", "assumed base RTT of the flows, ms", "error, median, %", log_x=True, log_y=True),
    )
    caption = (
        "The shipped model's answer for each assumed RTT, even where the command would refuse it. Medians over all "
        "points and seeds of a line."
    )
    title = "A wrong assumed RTT"
    found = pd.DataFrame(rows)
    return line_figure("assumed-rtt", title, caption, found, panels, lines, across=2)


def over_time(result: StudyResult, layout: Layout, table: DataFrame) -> TableFigure:
    """RTTs of the last series of probes, for the first seed, at the baseline and at the highlighted value of ``x``."""
    import pandas as pd

    from sawtooth.link_estimate.inputs.run import read

    panels: list[Axes] = []
    lines: list[Line] = []
    frames = []
    wanted = [value for value in (layout.baseline, layout.detail) if value is not None]
    places = [
        place
        for place in result.places
        if place.seed == result.places[0].seed and (place.key[layout.x] in wanted or len(layout.x_values) == 1)
    ]
    for place in places:
        series = read(store.point_directory(result.directory, place.id))[-1]
        here = (table[list(place.key)] == list(place.key.values())).all(axis=1) & (table["seed"] == place.seed)
        true_mbps = table.loc[here, "true_mbps"].iloc[0]
        name = ", ".join(_shown(result, key, value) for key, value in place.key.items())
        frames.append(pd.DataFrame({**place.key, "probe_from_s": series.sent_s, "probe_rtt_ms": series.rtt_s * 1e3}))
        if len(panels) < _LEGIBLE:
            one = place.key.get(layout.series or "")
            at = layout.series_values.index(one) if layout.series else 0
            xs, ys = series.sent_s.tolist(), (series.rtt_s * 1e3).tolist()
            lines.append(Line(len(panels), layout.name(one, "RTT"), colour(one, at), xs, ys, marked=False))
            panels.append(Axes(f"{name}: {true_mbps:.3g} Mbit/s a flow", "time, s", "RTT, ms"))
    caption = f"RTTs of the probes, seed {result.places[0].seed}; gaps are lost probes."
    if len(frames) > len(panels):
        caption += f" The figure has the first {len(panels)} of {len(frames)} points; the table has all."
    return line_figure(
        "probe-rtts",
        "RTTs over time",
        caption,
        pd.concat(frames, ignore_index=True),
        panels,
        lines,
        across=len(wanted) or 1,
    )


MAKERS: dict[str, Callable[[StudyResult, Layout, DataFrame], TableFigure]] = {
    "probe-curves": curves,
    "probe-estimates": estimates,
    "probe-rtts": over_time,
    "assumed-rtt": assumed_rtt,
}
