"""Display: of each kind of value its lines, and its figure and table."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

from sawtooth.capture import Capture
from sawtooth.compare import Comparison
from sawtooth.congestion.estimate import Estimate
from sawtooth.display import captures, comparisons, estimates, finds, runs, studies
from sawtooth.display.page import page
from sawtooth.finding import Answers, Found, Frontier
from sawtooth.run import Run
from sawtooth.study import Study, StudyResult


@singledispatch
def text(value: Any) -> str:
    """A few lines, as ``repr`` gives them."""
    raise TypeError(f"nothing is known of {type(value).__name__}")


@singledispatch
def html(value: Any) -> str:
    """For a notebook: the same in bold, a figure where there is one, tables."""
    raise TypeError(f"nothing is known of {type(value).__name__}")


for _kind, _how in (
    (Run, runs),
    (Study, studies.Asked),
    (StudyResult, studies.Answered),
    (Capture, captures),
    (Estimate, estimates),
    (Comparison, comparisons),
    (Found, finds),
    (Frontier, finds),
    (Answers, finds),
):
    text.register(_kind, _how.text)
    html.register(_kind, lambda value, how=_how: page(*how.parts(value)))
