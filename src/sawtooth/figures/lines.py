"""Lines: a figure with lines and marks in panels, each with its own scales."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sawtooth.figures.figure import Figure


@dataclass(frozen=True)
class Panel:
    """A panel. ``same``: where y would be if estimate and true value were equal, drawn as a thin line. ``names``: of x
    = 0, 1, …, if x is not numeric. ``from_zero``: a linear y axis starts at 0. ``bend_x`` and ``bend_y``: a logarithmic
    scale also shows 0 and is linear up to about this value.
    """

    title: str
    x_title: str
    y_title: str
    log_x: bool = False
    log_y: bool = False
    same: Callable[[float], float] | None = None
    names: tuple[str, ...] = ()
    from_zero: bool = False
    bend_x: float = 0.0
    bend_y: float = 0.0


@dataclass(frozen=True)
class Line:
    """A line. ``look`` selects dash and marker. ``joined``: a line through the points, otherwise only marks.
    ``marked``: marks in addition to the line.

    ``low`` and ``high``: ends of each point's interval, if any; with ``band`` they are drawn as an area. Lines with the
    same ``name`` share one legend entry.
    """

    panel: int
    name: str
    tint: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None
    look: int = 0
    joined: bool = True
    marked: bool = True
    band: bool = False


@dataclass(frozen=True)
class LineFigure(Figure):
    """A figure of lines. ``across``: number of panels per row. ``alike``: all panels have the scales of the first."""

    panels: tuple[Panel, ...]
    lines: tuple[Line, ...]
    across: int = 3
    alike: bool = False

    @property
    def words(self) -> str:
        texts = [f"{panel.title}{panel.x_title}{panel.y_title}{''.join(panel.names)}" for panel in self.panels]
        return "".join(sorted({*super().words, *"".join(texts), *"".join(line.name for line in self.lines)}))
