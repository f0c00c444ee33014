"""The figure of values inside runs: goodput, congestion window, RTT and queue over time.

In scenarios with one flow, each line is a point of the study. With several flows, each line is a flow and each column a
point.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sawtooth.figures.figure import TableFigure
from sawtooth.figures.layout import ACROSS, Layout
from sawtooth.figures.lines import Axes, Line, line_figure
from sawtooth.figures.palette import BASELINE, MUTED, colour, shown
from sawtooth.io.table_store import Rows, groups
from sawtooth.report.points import named
from sawtooth.run import Run
from sawtooth.stats.queueing import bottleneck
from sawtooth.study import store
from sawtooth.study.result import Place, StudyResult

if TYPE_CHECKING:
    from pandas import DataFrame

LINES = 8
"""Maximum number of points, or flows, shown together."""
MOST = 2000
"""Maximum number of times per line. If there are more, every n-th is used."""
_PANELS = {
    "goodput_mbps": "goodput, Mbit/s",
    "cwnd_segments": "congestion window, segments",
    "srtt_ms": "round-trip time, ms",
    "queue_packets": "queue, packets",
}
_TABLES = ("intervals", "tcp_info", "queues")


@dataclass(frozen=True)
class _FlowSeries:
    """A flow of a run over time: columns ``t_s`` and those of ``_PANELS`` that the engine provides."""

    flow: str
    cc: str
    table: DataFrame


@dataclass(frozen=True)
class _Run:
    """One run. ``count``: number of flows in the scenario; ``flows`` has the first of them."""

    place: Place
    count: int
    flows: list[_FlowSeries]

    @classmethod
    def of(cls, result: StudyResult, place: Place) -> _Run:
        run = Run.load(store.point_directory(result.directory, place.id), tables=_TABLES)
        return cls(place, len(run.scenario.compile().flows), _flows(run))


def figure(result: StudyResult, layout: Layout) -> TableFigure:
    """``table``: the key columns, ``flow``, ``t_s``, and, if the engine provides them, ``goodput_mbps``,
    ``cwnd_segments`` and ``srtt_ms`` (of the flow's first connection), and ``queue_packets`` (of the bottleneck)."""
    import pandas as pd

    several = not result.shares.empty
    places = _places(result, layout, ACROSS if several else LINES)
    runs = [run for run in (_Run.of(result, place) for place in places) if run.flows]
    frames = [one.table.assign(**run.place.key, flow=one.flow) for run in runs for one in run.flows]
    if not frames:
        return line_figure("window-over-time", "", "", pd.DataFrame(), (), ())
    table = pd.concat(frames, ignore_index=True)
    columns = [name for name in _PANELS if name in table and table[name].notna().any()]
    # If points differ, another figure already shows the throughput of single flows.
    drawn = columns if several or len(runs) == 1 else [name for name in columns if name != "goodput_mbps"]
    names = [name for name, _, _ in named(result, layout, [run.place.key for run in runs])]
    if several:
        lines, titles = _by_flow(runs, drawn), names if len(runs) > 1 else [""]
    else:
        lines, titles = _by_point(result, layout, runs, drawn), [""]
    panels = [Axes(title, "time, s", _PANELS[name], from_zero=True) for name in drawn for title in titles]
    table = table[[*places[0].key, "flow", "t_s", *columns]]
    across = len(titles)
    what = "Each flow, and the bottleneck's queue" if several else "Window, round-trip time and queue"
    what = "Goodput, window, round-trip time and queue" if "goodput_mbps" in drawn and not several else what
    caption = _caption(result, layout, runs, several)
    if not drawn:
        table = table.head(0)
    return line_figure("window-over-time", f"{what} over time", caption, table, panels, lines, across)


def _places(result: StudyResult, layout: Layout, most: int) -> list[Place]:
    """The points of the first seed that are shown: all if there is room, otherwise the highlighted ones."""
    first = [place for place in result.places if place.seed == result.places[0].seed]
    if len(first) <= most:
        return first
    for wanted in ((layout.baseline, layout.detail), (layout.detail,), (layout.baseline,)):
        chosen = [place for place in first if place.key[layout.x] in wanted]
        if 0 < len(chosen) <= most:
            return chosen
    return chosen[:most]


def _flows(run: Run) -> list[_FlowSeries]:
    import pandas as pd

    compiled = run.scenario.compile()
    queue = bottleneck(run)
    found = []
    for at, flow in enumerate(compiled.flows[:LINES]):
        parts: dict[str, Any] = {}
        if "intervals" in run.tables:
            own = _of(run, "intervals", at)
            parts["goodput_mbps"] = own.groupby("t_s")["goodput_bps"].sum() / 1e6
        if "tcp_info" in run.tables:
            own = _of(run, "tcp_info", at)
            own = own[own["connection"] == 0].drop_duplicates("t_s", keep="last").set_index("t_s")
            if "cwnd_segments" in own:
                parts["cwnd_segments"] = own["cwnd_segments"]
            parts["srtt_ms"] = own["srtt_s"].where(own["srtt_s"] > 0) * 1e3
        if queue is not None and "packets" in queue.table:
            parts["queue_packets"] = queue.table.frame().drop_duplicates("t_s", keep="last").set_index("t_s")["packets"]
        if parts:
            table = pd.DataFrame(parts).rename_axis("t_s").sort_index().reset_index()
            found.append(_FlowSeries(flow.entry, flow.cc, table.iloc[:: -(-len(table) // MOST) or 1]))
    return found


def _of(run: Run, name: str, flow: int) -> DataFrame:
    """The rows of one flow, from a table that may be larger than memory."""
    return Rows.joined([part[part["flow"] == flow] for part in groups(run.tables, name)]).frame()


def _by_flow(runs: list[_Run], drawn: list[str]) -> list[Line]:
    """Panels: one row per quantity, one column per point."""
    lines = []
    for row, name in enumerate(drawn):
        for column, run in enumerate(runs):
            panel = row * len(runs) + column
            if name == "queue_packets":
                lines.append(_line(panel, "the queue", BASELINE, run.flows[0].table, name))
                continue
            same = len({one.cc for one in run.flows}) < len(run.flows)
            if name == "goodput_mbps" and len(run.flows) == run.count:
                lines.append(_line(panel, "all together", MUTED, _together(run.flows), name))
            for at, one in enumerate(run.flows):
                tint = colour(one.flow if same else one.cc, at)
                lines.append(_line(panel, shown(one.flow), tint, one.table, name))
    return lines


def _together(flows: list[_FlowSeries]) -> DataFrame:
    import pandas as pd

    each = [one.table.set_index("t_s")["goodput_mbps"] for one in flows]
    return pd.concat(each, axis=1).sum(axis=1).rename("goodput_mbps").reset_index()


def _by_point(result: StudyResult, layout: Layout, runs: list[_Run], drawn: list[str]) -> list[Line]:
    lines = []
    keys = [run.place.key for run in runs]
    for (name, tint, look), run in zip(named(result, layout, keys), runs, strict=True):
        for one in run.flows:
            if len(runs) == 1:
                name, tint = shown(one.cc), colour(one.cc, 0)
            lines += [_line(panel, name, tint, one.table, column, look) for panel, column in enumerate(drawn)]
    return lines


def _line(panel: int, name: str, tint: str, table: DataFrame, column: str, look: int = 0) -> Line:
    values = table[column] if column in table else table["t_s"] * float("nan")
    return Line(panel, name, tint, table["t_s"].tolist(), values.tolist(), look=look, marked=False)


def _caption(result: StudyResult, layout: Layout, runs: list[_Run], several: bool) -> str:
    sentences = [f"At the end of each sampling interval, seed {result.places[0].seed}."]
    if several:
        sentences.append("Window and RTT are those of a flow's first connection; the queue is the bottleneck's.")
    count = len({tuple(place.key.values()) for place in result.places})
    if len(runs) < count:
        at = {run.place.key[layout.x] for run in runs}
        where = f": {layout.x_text(*at)}" if len(at) == 1 else ""
        sentences.append(f"The figure has {len(runs)} of {count} points{where}.")
    most = max(run.count for run in runs)
    if most > LINES:
        sentences.append(f"The figure has the first {LINES} of {most} flows.")
    if max((len(one.table) for run in runs for one in run.flows), default=0) >= MOST:
        sentences.append("Only every n-th interval is drawn.")
    return " ".join(sentences)
