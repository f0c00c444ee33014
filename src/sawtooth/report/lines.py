"""Lines: a figure of lines and marks in panels, each with its own scales. ``plots`` and ``interactive`` draw it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sawtooth.report.figures import Figure

DASHES = ("solid", "dashed", "dotted", "dashdot")
"""Of matplotlib; a line has one by its number."""


@dataclass(frozen=True)
class Panel:
    """``same``: where y would be if estimate and truth were the same, drawn as a thin line."""

    title: str
    x_title: str
    y_title: str
    log_x: bool = False
    log_y: bool = False
    same: Callable[[float], float] | None = None


@dataclass(frozen=True)
class Line:
    """``look`` chooses dash and marker. ``joined``: a line through the points, else marks only; ``marked``: marks too.

    ``low`` and ``high`` are the ends of each point's interval, where it has one. One entry of the legend a ``name``.
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


@dataclass(frozen=True)
class LineFigure(Figure):
    """``across`` panels stand in a row."""

    panels: tuple[Panel, ...]
    lines: tuple[Line, ...]
    across: int = 3

    @property
    def words(self) -> str:
        texts = [f"{panel.title}{panel.x_title}{panel.y_title}" for panel in self.panels]
        return "".join(sorted({*super().words, *"".join(texts), *"".join(line.name for line in self.lines)}))

    @property
    def rows(self) -> int:
        """Of panels."""
        return -(-len(self.panels) // self.across)
