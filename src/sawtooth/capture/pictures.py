"""The pictures of captures as files: one capture, or several side by side, each with its own axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sawtooth.capture.graphs import over_time
from sawtooth.capture.timesequence import time_sequence
from sawtooth.capture.view import View, views
from sawtooth.capture.zoom import Zoom
from sawtooth.figures.saving import save, styled
from sawtooth.io.atomic_io import writing

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

    from sawtooth.capture.capture import Capture

PICTURES: dict[str, Callable[[list[View], Zoom], Canvas]] = {
    "time-sequence": time_sequence,
    "over-time": over_time,
}
"""Pictures by the names of their files."""


def draw(captures: Capture | Sequence[Capture], directory: Path, zoom: Zoom | None = None) -> list[Path]:
    """Writes time-sequence and over-time, each as PNG and SVG, into ``directory`` (created if needed); returns the
    files.

    The captures must have the segments of the connection to draw. Raises SawtoothError ``conflict`` if it carries no
    data, ``unwritable-output`` or ``disk-full``.
    """
    shown = views(captures if isinstance(captures, Sequence) else [captures])
    with writing(directory):
        directory.mkdir(parents=True, exist_ok=True)
    written = []
    with styled("".join(view.name for view in shown)):
        for name, picture in PICTURES.items():
            canvas = picture(shown, zoom or Zoom())
            _settle(canvas)
            written += save(canvas, name, directory)
    return written


def _settle(canvas: Canvas) -> None:
    """Fixes the layout: the solver's last binary digits vary from call to call."""
    canvas.draw_without_rendering()
    canvas.set_layout_engine("none")
    for axes in canvas.axes:
        left, bottom, width, height = (round(value, 6) for value in axes.get_position().bounds)
        axes.set_position((left, bottom, width, height))
