"""Saving: the common look of all pictures, and their PNG and SVG files. Equal tables give equal bytes."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sawtooth.figures.canvas import settle
from sawtooth.figures.fonts import OURS, accepted, families
from sawtooth.figures.palette import GRID, INK, MUTED
from sawtooth.io.atomic_io import write_bytes

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

_PNG_DPI = 150

_STYLE: dict[Any, Any] = {
    "figure.facecolor": "white",
    "axes.facecolor": "white",
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.titlesize": 10.5,
    "axes.titleweight": "normal",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "xtick.color": INK,
    "ytick.color": INK,
    "text.color": INK,
    "text.parse_math": False,
    "font.family": OURS,
    "font.size": 9.5,
    "legend.frameon": False,
    "svg.hashsalt": "sawtooth",
    "svg.fonttype": "path",
}


@contextlib.contextmanager
def styled(words: str = "") -> Iterator[None]:
    """Within the block, use the common look and fonts that have the characters of ``words``."""
    settle()
    import matplotlib as mpl

    names, _ = families(words)
    with accepted(), mpl.rc_context(_STYLE | {"font.family": list(names)}):
        yield


def save(canvas: Canvas, name: str, directory: Path) -> list[Path]:
    """Write NAME.png and NAME.svg without date and version. Call it inside ``styled``.

    Raises SawtoothError ``unwritable-output`` or ``disk-full``.
    """
    written = []
    for ending, metadata in (("png", {"Software": None}), ("svg", {"Date": None})):
        path = directory / f"{name}.{ending}"
        drawn = io.BytesIO()
        canvas.savefig(drawn, format=ending, dpi=_PNG_DPI, metadata=metadata)
        write_bytes(path, drawn.getvalue())
        written.append(path)
    return written
