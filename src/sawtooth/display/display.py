"""Display: of each kind of value its lines, and its figure and table."""

from __future__ import annotations

from functools import singledispatch
from typing import TYPE_CHECKING, Any

from sawtooth.capture import Capture
from sawtooth.compare import Comparison
from sawtooth.congestion.estimate import Estimate
from sawtooth.display import captures, comparisons, estimates, finds, runs, seeds, studies
from sawtooth.display.page import page
from sawtooth.finding import Answers, Found, Frontier
from sawtooth.run import Run
from sawtooth.study import Runs, Study, StudyResult

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@singledispatch
def text(value: Any) -> str:
    """A few lines, as ``repr`` gives them."""
    raise TypeError(f"nothing is known of {type(value).__name__}")


@singledispatch
def html(value: Any) -> str:
    """For a notebook: the same in bold, a figure where there is one, tables."""
    raise TypeError(f"nothing is known of {type(value).__name__}")


@singledispatch
def plot(value: Any) -> Figure:
    """Its main figure as Matplotlib's."""
    raise TypeError(f"nothing is known of {type(value).__name__}")


for _kind, _how in (
    (Run, runs),
    (Runs, seeds),
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

for _kind, _drawn in ((Run, runs.drawn), (Runs, seeds.drawn), (StudyResult, studies.Answered.drawn)):
    plot.register(_kind, _drawn)
