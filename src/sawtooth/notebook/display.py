"""Chooses the text, figure and table for each kind of value."""

from __future__ import annotations

from functools import singledispatch
from typing import TYPE_CHECKING, Any

from sawtooth.capture import Capture
from sawtooth.compare import Comparison
from sawtooth.errors import SawtoothError
from sawtooth.figures.figure import TableFigure
from sawtooth.figures.static import canvas
from sawtooth.link_estimate.estimate import Estimate
from sawtooth.notebook import captures, comparisons, estimates, finds, runs, seeds, studies
from sawtooth.notebook.page import page
from sawtooth.run import Run
from sawtooth.search import Answers, Frontier, Threshold
from sawtooth.study import Runs, Study, StudyResult

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@singledispatch
def text(value: Any) -> str:
    """A few lines, for ``repr``."""
    raise TypeError(f"nothing is known of {type(value).__name__}")


@singledispatch
def html(value: Any) -> str:
    """For a notebook: the same lines with a bold heading, a figure if there is one, and tables."""
    raise TypeError(f"nothing is known of {type(value).__name__}")


@singledispatch
def plot(value: Any) -> Figure:
    """The main figure, as a Matplotlib figure. Raises SawtoothError ``too-short`` if there is nothing to draw."""
    raise TypeError(f"nothing is known of {type(value).__name__}")


def _drawn(figure: TableFigure | None) -> Figure:
    if figure is None:
        message = "there is nothing to draw: no interval is whole, or nothing varies"
        raise SawtoothError("too-short", message, fix="choose a longer duration, or vary a field")
    return canvas(figure)


for _kind, _how in (
    (Run, runs),
    (Runs, seeds),
    (Study, studies.StudyDisplay),
    (StudyResult, studies.ResultDisplay),
    (Capture, captures),
    (Estimate, estimates),
    (Comparison, comparisons),
    (Threshold, finds),
    (Frontier, finds),
    (Answers, finds),
):
    text.register(_kind, _how.text)
    html.register(_kind, lambda value, how=_how: page(*how.parts(value)))

for _kind, _figure in ((Run, runs.figure), (Runs, seeds.figure), (StudyResult, studies.figure)):
    plot.register(_kind, lambda value, figure=_figure: _drawn(figure(value)))
