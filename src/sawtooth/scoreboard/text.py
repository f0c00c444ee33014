"""What the terminal shows of a scoreboard: each control over all networks, and where it breaks."""

from __future__ import annotations

import math
from collections.abc import Sequence

from sawtooth.figures.palette import shown
from sawtooth.io.text_table import aligned
from sawtooth.scoreboard.board import Board, Cell, Standing
from sawtooth.scoreboard.measures import MEASURES, Measure
from sawtooth.stats import Interval

MOST = 8
"""Networks that the terminal names. The page and scoreboard.csv have all."""

RULE = (
    "± is half of the 95% confidence interval over seeds. Percentages and fairness are means over networks, times are "
    "medians. Broken: runs with less than a tenth of the best control's goodput, or 3 s without any delivery."
)


def words(board: Board, width: int | None = None) -> str:
    parts = [
        f"{title(board, marks)}:\n" + "\n".join(aligned(lines(found), (0,), width))
        for marks in (False, True)
        if (found := board.standings(marks))
    ]
    if board.broken:
        worst = [["control", "network", "broken", "goodput", "of the best"], *map(_broken, board.broken[:MOST])]
        heading = f"where they break ({min(MOST, len(board.broken))} of {len(board.broken)}):"
        parts.append(f"{heading}\n" + "\n".join(aligned(worst, (0, 1), width)))
    return "\n\n".join([*parts, RULE])


def title(board: Board, marks: bool) -> str:
    count = sum(network.marks == marks for network in board.networks)
    some = f"{count} network{'s' if count != 1 else ''}"
    return f"{some} with ECN marks" if marks else f"{some} without marks"


def columns(standings: Sequence[Standing]) -> list[Measure]:
    """The measures that any of these controls has."""
    return [one for one in MEASURES if any(one.name in standing.pooled for standing in standings)]


def number(over: Interval | None, measure: Measure) -> str:
    """A mean and half of its interval."""
    if over is None or math.isnan(over.mean):
        return "–"
    mean = f"{over.mean:.{measure.digits}f}"
    half = max(over.mean - over.low, over.high - over.mean)
    return mean if math.isnan(half) or half == 0 else f"{mean} ± {half:.{measure.digits}f}"


def lines(standings: Sequence[Standing]) -> list[list[str]]:
    """A table's heading and rows."""
    chosen = columns(standings)
    head = ["control", "broken", *(one.heading for one in chosen)]
    rows = [
        [shown(one.control.name), f"{one.broken} of {one.runs}"]
        + [number(one.pooled.get(measure.name), measure) for measure in chosen]
        for one in standings
    ]
    return [head, *rows]


def _broken(cell: Cell) -> list[str]:
    count = f"{cell.broken} of {len(cell.runs)}"
    return [shown(cell.control.name), cell.network.name, count, f"{cell.own_mbps:.3g} Mbit/s", f"{cell.of_best:.1%}"]
