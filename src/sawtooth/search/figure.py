"""The figure of an answer: both sides of the comparison over the unknown; with several unknowns, the answered one over
the first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sawtooth.figures.figure import DASHES, SYMBOLS, Axis, Figure, Mark, Panel, Series, Span
from sawtooth.figures.palette import ACCENT, MUTED, colour
from sawtooth.scenario.expressions import RATE, SIZE, TIME

if TYPE_CHECKING:
    from pandas import DataFrame

    from sawtooth.search.frontier import Frontier
    from sawtooth.search.result import Threshold
    from sawtooth.search.unknown import Unknown

_SCALES = {RATE: (1e6, "Mbit/s"), TIME: (1e-3, "ms"), SIZE: (8e3, "kB")}
_LOOKED = (("yes", "holds", "#009e73"), ("no", "does not hold", "#d55e00"), ("unclear", "inconclusive", MUTED))


def sides(found: Threshold, name: str = "find") -> Figure:
    """The left side with its interval, the right side, and the answer with its interval."""
    scale, unit = _SCALES.get(found.dimension, (1.0, ""))
    x = found.table["value"].tolist()
    left, low, high, right = (
        (found.table[column] / scale).tolist() for column in ("left", "left_low", "left_high", "right")
    )
    words = [side.strip() for side in found.want.replace(">", "<").replace("=", "").split("<", 1)]
    series = [
        Series(words[0], colour(words[0], 0), x, left, low=low, high=high, symbol="circle"),
        Series(words[1], colour(words[1], 1), x, right, dash="dashed", symbol="none"),
    ]
    known: dict[str, Any] = {}
    if found.verdict == "found":
        known = {"spans": [Span(*found.interval, "95% interval", MUTED)], "marks": [Mark("x", found.value, "answer")]}
    panel = Panel(_axis(found.unknown), Axis("both sides", unit), series, **known)
    return _figure(found, name, panel, found.table)


def contour(found: Frontier, name: str = "find") -> Figure:
    """The frontier with its band, the points tried, and the minimum; with three unknowns one line per value of the
    second."""
    first, *others = found.unknowns.given
    answered = found.unknowns.answered
    rows = found.frontier[found.frontier["verdict"] == "found"]
    series = []
    values = sorted(set(rows[others[0].field])) if others else [0.0]
    for number, value in enumerate(values):
        part = rows[rows[others[0].field] == value] if others else rows
        words = f"{others[0].field} {others[0].text(value)}" if others else f"{answered.field}, 95% interval"
        tint, dash = colour(words, number) if others else ACCENT, DASHES[number % len(DASHES)]
        x, y, low, high = (part[column].tolist() for column in (first.field, "value", "low", "high"))
        series.append(Series(words, tint, x, y, low=low, high=high, band=True, dash=dash, symbol="circle"))
    if not others:
        for (holds, words, tint), symbol in zip(_LOOKED, SYMBOLS[1:], strict=False):
            part = found.table[found.table["holds"] == holds]
            x, y = part[first.field].tolist(), part[answered.field].tolist()
            series.append(Series(words, tint, x, y, kind="points", symbol=symbol))
    marks = [] if found.minimum is None else [Mark("x", found.minimum.values[0], "least")]
    panel = Panel(_axis(first), _axis(answered), series, marks=marks)
    return _figure(found, name, panel, found.frontier)


def _axis(unknown: Unknown) -> Axis:
    """The axis with the scale of the search."""
    bend = unknown.bend or None
    return Axis(unknown.field, unknown.unit, scale="asinh" if bend else unknown.scale, bend=bend)


def _figure(found: Threshold | Frontier, name: str, panel: Panel, table: DataFrame) -> Figure:
    saved = {str(column): table[column].tolist() for column in table}
    return Figure(name, f"{found.name}: {found.want}", f"{found.want}: {found.answer}", [panel], saved=saved)
