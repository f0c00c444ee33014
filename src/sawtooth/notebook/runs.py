"""Shows a run: one line per flow, the bottleneck's queue, probes; goodput and round-trip time over time."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from sawtooth.figures.figure import TableFigure
from sawtooth.figures.lines import Axes, Line, line_figure
from sawtooth.figures.palette import colour
from sawtooth.figures.static import draw
from sawtooth.notebook.page import picture, table
from sawtooth.programs import finished
from sawtooth.run import Run
from sawtooth.run.metadata import limit_lines
from sawtooth.stats import latencies, throughput_by_flow
from sawtooth.stats.queueing import bottleneck, mean_delay_s, total
from sawtooth.stats.summary import summary

if TYPE_CHECKING:
    from pandas import DataFrame

_MOST = 8
"""Flows listed or drawn one by one."""
_MOST_TIMES = 2000
"""Points per line of the figure."""


def text(run: Run) -> str:
    """Several lines."""
    heading, lines = heading_and_lines(run)
    return "\n".join([heading, *(f"  {line}" for line in lines)])


def parts(run: Run) -> tuple[str, list[str], list[str], list[str]]:
    """Heading, lines, pictures and tables for ``page``."""
    heading, lines = heading_and_lines(run)
    flows = summary(run)
    plot = figure(run)
    words = f"goodput and smoothed round-trip time of {heading}"
    pictures = [] if plot is None else [picture(lambda aside: draw(plot, aside), words)]
    after = lines[min(len(flows), _MOST + 1) :]
    return heading, after, pictures, [table(flows.dropna(axis="columns", how="all"))]


def heading_and_lines(run: Run) -> tuple[str, list[str]]:
    """A heading, and lines: flows, the queue, probes, what limits flows, tables, warnings."""
    scenario = run.scenario
    warmup = f" after {scenario.warmup} of warm-up" if scenario.warmup.ns else ""
    settings = f"{scenario.topology}, {scenario.duration}{warmup}, seed {scenario.seed}"
    heading = f"Run of {scenario.name} on {run.engine}: {settings}"
    flows = summary(run)
    lines = [_flow(row) for row in flows.head(_MOST).to_dict("records")]
    if len(flows) > _MOST:
        lines.append(f"… and {len(flows) - _MOST} more flows, {flows['mean_mbps'].sum():.4g} Mbit/s all together")
    lines += [one.describe() for one in finished(run)]
    lines += [f"{name}: {value:.6g}" for name, value in run.measured.items()]
    queue = bottleneck(run)
    if queue is not None:
        delay, drops, marks = mean_delay_s([queue]), total([queue], "drops"), total([queue], "marks")
        parts = [f"{delay * 1e3:.3g} ms on average"] * (not math.isnan(delay))
        parts += [f"{drops:.0f} drops"] * (not math.isnan(drops)) + [f"{marks:.0f} marks"] * (marks > 0)
        lines += [f"queue {queue.name}: {', '.join(parts)}"] * bool(parts)
    for one in latencies(run):
        answered = one.rtt_s[one.rtt_s == one.rtt_s]
        median = f"median {sorted(answered)[len(answered) // 2] * 1e3:.4g} ms, " if len(answered) else ""
        lines.append(f"{one.name}: {median}{len(one.rtt_s) - len(answered)} of {len(one.rtt_s)} lost")
    if len(flows) <= _MOST:
        lines += [f"limit of {line}" for line in limit_lines(run.limits)]
    lines.append("tables: " + ", ".join(sorted(run.tables)))
    return heading, lines + [f"warning: {warning}" for warning in run.warnings]


def _flow(row: dict[Any, Any]) -> str:
    control = "" if row["cc"] == row["flow"] else f" ({row['cc']})"
    parts = [f"{row['mean_mbps']:.4g} Mbit/s"]
    parts += [f"RTT {row['mean_srtt_ms']:.4g} ms"] * (not math.isnan(row["mean_srtt_ms"]))
    parts += [f"{row['retransmits']:.0f} retransmits"] * (not math.isnan(row["retransmits"]))
    parts += [f"{row['timeouts']:.0f} timeouts"] * (row["timeouts"] > 0)
    if row["transfers"]:
        parts.append(f"{row['transfers']} transfers, median {row['fct_ms_p50']:.4g} ms")
    count = f" × {row['connections']}" if row["connections"] > 1 else ""
    return f"{row['flow']}{control}{count}: {', '.join(parts)}"


def figure(run: Run) -> TableFigure | None:
    """Goodput of each flow, and its smoothed round-trip time if the engine provides it."""
    import pandas as pd

    rates = throughput_by_flow(run)
    if rates.empty:
        return None
    names = [flow.name for flow in run.scenario.compile().flows]
    shown = [int(flow) for flow in rates.columns[:_MOST]]
    step = -(-len(rates) // _MOST_TIMES)
    curves = [
        Line(0, names[flow], colour(names[flow], at), *_xy(rates[flow].iloc[::step]), marked=False)
        for at, flow in enumerate(shown)
    ]
    panels = [Axes("goodput", "time, s", "Mbit/s", from_zero=True)]
    tables: list[DataFrame] = [rates[shown]]
    if "tcp_info" in run.tables and len(run.tables["tcp_info"]):
        panels.append(Axes("smoothed round-trip time", "time, s", "ms", from_zero=True))
        seen = run.tables["tcp_info"]
        rtts = seen[seen["srtt_s"] > 0].pivot_table(index="t_s", columns="flow", values="srtt_s", aggfunc="mean") * 1e3
        curves += [
            Line(1, names[flow], colour(names[flow], at), *_xy(rtts[flow].dropna().iloc[::step]), marked=False)
            for at, flow in enumerate(shown)
            if flow in rtts
        ]
        tables.append(rtts)
    title = f"{run.scenario.name} on {run.engine}"
    return line_figure("run", title, "", pd.concat(tables, axis=1), panels, curves, across=len(panels))


def _xy(series: Any) -> tuple[list[float], list[float]]:
    return series.index.tolist(), series.tolist()
