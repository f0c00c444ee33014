"""The figure of a frontier: the answered unknown over the first one, with its intervals and the sampled points."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sawtooth.figures.lines import Line, LineFigure, Panel
from sawtooth.figures.palette import ACCENT, MUTED, colour

if TYPE_CHECKING:
    from sawtooth.search.frontier import Frontier

_LOOKED = (("yes", "holds", "#009e73"), ("no", "does not hold", "#d55e00"), ("unclear", "inconclusive", MUTED))


def contour(found: Frontier) -> LineFigure:
    """One panel: the frontier with its band; with three unknowns one line per value of the second."""
    first, *others = found.unknowns.given
    answered = found.unknowns.answered
    rows = found.frontier[found.frontier["verdict"] == "found"]
    lines = []
    values = sorted(set(rows[others[0].field])) if others else [0.0]
    for number, value in enumerate(values):
        part = rows[rows[others[0].field] == value] if others else rows
        name = f"{others[0].field} {others[0].text(value)}" if others else f"{answered.field}, 95% interval"
        tint = colour(name, number) if others else ACCENT
        x, y, low, high = (part[column].tolist() for column in (first.field, "value", "low", "high"))
        lines.append(Line(0, name, tint, x, y, low, high, look=number % 4, band=True))
    if not others:
        for look, (holds, name, tint) in enumerate(_LOOKED, 1):
            part = found.table[found.table["holds"] == holds]
            x, y = part[first.field].tolist(), part[answered.field].tolist()
            lines.append(Line(0, name, tint, x, y, look=look, joined=False))
    titles = [f"{one.field}, {one.unit}" if one.unit else one.field for one in (first, answered)]
    panel = Panel(
        "",
        titles[0],
        titles[1],
        log_x=first.scale == "log",
        log_y=answered.scale == "log",
        bend_x=first.bend,
        bend_y=answered.bend,
    )
    title = f"{found.name}: {found.want}"
    return LineFigure("find", title, found.answer, found.frontier, (panel,), tuple(lines), across=1)
