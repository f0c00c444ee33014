"""An explanation as one page that loads nothing."""

from __future__ import annotations

from typing import Any

from sawtooth.explain.explanation import Explanation, Gain
from sawtooth.explain.text import rows, table
from sawtooth.figures import Axis, Figure, Panel, Series, render
from sawtooth.figures.palette import ACCENT


def page(explanation: Explanation) -> str:
    """HTML with the answers, and a figure of what each change would give."""
    shown = [one for one in explanation.gains if one.goodput_bps is not None]
    content = {
        "inputs": explanation.inputs,
        "problems": explanation.problems,
        "doubts": explanation.doubts,
        "limited": explanation.limited.by,
        "rows": rows(explanation),
        "test": None if explanation.test is None else explanation.test.words,
        "gains": table(explanation) if explanation.gains else [],
        "drawn": bool(shown),
        "next": explanation.next,
    }
    return render("sawtooth.explain", "explain.html.j2", content, [_figure(shown)] if shown else [])


def _figure(shown: list[Gain]) -> Figure:
    named = [one.change for one in shown]
    places = [float(at) for at in range(len(shown))]
    goodput = Series(
        "goodput",
        ACCENT,
        places,
        [(one.goodput_bps or 0.0) / 1e6 for one in shown],
        kind="points",
        symbol="circle",
        low=[(one.low_bps or 0.0) / 1e6 for one in shown],
        high=[(one.high_bps or 0.0) / 1e6 for one in shown],
    )
    panel = Panel(Axis("change", scale="category", names=tuple(named)), Axis("goodput", "Mbit/s", zero=True), [goodput])
    columns: dict[str, list[Any]] = {"change": named, "goodput_bps": [one.goodput_bps for one in shown]}
    return Figure(
        "gains", "What each change would give", "Points are medians, bars 90% intervals.", [panel], saved=columns
    )
