"""Shows runs with several seeds: their mean with its interval, and the goodput of each over time."""

from __future__ import annotations

from sawtooth.figures.figure import TableFigure
from sawtooth.figures.lines import Axes, Line, line_figure
from sawtooth.figures.palette import colour
from sawtooth.figures.static import draw
from sawtooth.notebook.page import picture, table
from sawtooth.stats import throughput
from sawtooth.study import Runs
from sawtooth.study.interval_text import COUNTED
from sawtooth.study.runs import mean_of

_MOST = 10
"""Seeds drawn one by one."""
_COLUMNS = ("seed", "mean_mbps", "std_mbps", "mean_srtt_ms", "retransmits", "timeouts", "utilization_percent")


def text(runs: Runs) -> str:
    """Several lines."""
    heading, lines = heading_and_lines(runs)
    return "\n".join([heading, *(f"  {line}" for line in lines)])


def parts(runs: Runs) -> tuple[str, list[str], list[str], list[str]]:
    """Heading, lines, pictures and tables for ``page``."""
    heading, lines = heading_and_lines(runs)
    plot = figure(runs)
    pictures = [] if plot is None else [picture(lambda aside: draw(plot, aside), f"goodput of {heading}")]
    return heading, lines, pictures, [table(runs.table[list(_COLUMNS)].dropna(axis="columns", how="all"))]


def heading_and_lines(runs: Runs) -> tuple[str, list[str]]:
    """A heading, and lines."""
    row = {str(name): value for name, value in runs.mean().items()}
    shown = ", ".join(map(str, runs.seeds[:_MOST])) + (" …" if len(runs.seeds) > _MOST else "")
    heading = f"{len(runs)} runs of {runs.scenario.name} on {runs.engine}, seeds {shown}"
    return heading, [mean_of(row), f".mean() and .table: {COUNTED}", *(f"warning: {one}" for one in runs.warnings)]


def figure(runs: Runs) -> TableFigure | None:
    """Goodput of each seed over time."""
    import pandas as pd

    series = {seed: throughput(run) for seed, run in zip(runs.seeds[:_MOST], runs.runs, strict=False)}
    if all(one.empty for one in series.values()):
        return None
    panel = Axes("goodput", "time, s", "Mbit/s", from_zero=True)
    lines = tuple(
        Line(0, f"seed {seed}", colour(None, at), one.index.tolist(), one.tolist(), look=at % 4, marked=False)
        for at, (seed, one) in enumerate(series.items())
    )
    title = f"{runs.scenario.name} on {runs.engine}"
    return line_figure("runs", title, "", pd.DataFrame(series), (panel,), lines, across=1)
