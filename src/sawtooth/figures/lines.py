"""Lines: a figure with lines and marks in panels, each with its own scales."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sawtooth.figures.figure import Figure
from sawtooth.figures.palette import MARKERS, MUTED

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

DASHES = ("solid", "dashed", "dotted", "dashdot")
"""matplotlib's line styles; a line's number selects one."""


_UPRIGHT = 40
"""Maximum total length in characters of x names that stand side by side below a panel. Longer ones are turned."""


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

    @property
    def rows(self) -> int:
        """Number of rows of panels."""
        return -(-len(self.panels) // self.across)

    def is_lowest(self, panel: int) -> bool:
        """Whether a panel (by number) has an x axis title. With equal scales, only panels with none below do."""
        return not self.alike or panel + self.across >= len(self.panels)

    def is_leftmost(self, panel: int) -> bool:
        """Whether a panel has a y axis title."""
        return not self.alike or panel % self.across == 0


def draw(figure: LineFigure) -> Canvas:
    """Draw with matplotlib. Call it inside ``saving.styled``."""
    height = 4.2 if figure.rows == 1 else 2.6
    canvas, grid = figure.canvas(figure.rows, figure.across, height=height, sharex=figure.alike, sharey=figure.alike)
    panels = list(grid.flat)
    for line in figure.lines:
        axes, mark = panels[line.panel], MARKERS[line.look % len(MARKERS)]
        style = {
            "color": line.tint,
            "ls": DASHES[line.look % len(DASHES)] if line.joined else "",
            "lw": 1.4 if line.marked else 0.8,
            "marker": mark if line.marked else "",
            "ms": 4.5,
        }
        if line.low is None or line.high is None:
            axes.plot(line.x, line.y, label=line.name, **style)
        elif line.band:
            axes.fill_between(line.x, line.low, line.high, color=line.tint, alpha=0.25, lw=0)
            axes.plot(line.x, line.y, label=line.name, **style)
        else:
            # Because of rounding, an end may lie on the wrong side of the mean.
            below = [max(y - low, 0.0) for y, low in zip(line.y, line.low, strict=True)]
            above = [max(high - y, 0.0) for y, high in zip(line.y, line.high, strict=True)]
            axes.errorbar(line.x, line.y, [below, above], label=line.name, elinewidth=0.9, **style)
    for at, (axes, panel) in enumerate(zip(panels, figure.panels, strict=False)):
        axes.set_title(panel.title)
        if figure.is_lowest(at):
            axes.set_xlabel(panel.x_title)
            axes.tick_params(labelbottom=True)
        if figure.is_leftmost(at):
            axes.set_ylabel(panel.y_title)
        if panel.names:
            leaning = sum(map(len, panel.names)) > _UPRIGHT
            how: dict[str, Any] = {"rotation": 25, "ha": "right"} if leaning else {}
            axes.set_xticks(range(len(panel.names)), panel.names, **how)
            axes.set_xlim(-0.5, len(panel.names) - 0.5)
        if panel.bend_x:
            axes.set_xscale("asinh", linear_width=panel.bend_x)
            asinh_ticks(axes.xaxis, panel.bend_x)
        elif panel.log_x:
            axes.set_xscale("log")
            log_ticks(axes.xaxis, *axes.get_xlim())
        if panel.bend_y:
            axes.set_yscale("asinh", linear_width=panel.bend_y)
            asinh_ticks(axes.yaxis, panel.bend_y)
        elif panel.log_y:
            axes.set_yscale("log")
            log_ticks(axes.yaxis, *axes.get_ylim())
        if panel.from_zero and not panel.log_y:
            axes.set_ylim(0, 1.05 * axes.get_ylim()[1])
        if panel.same is not None:
            ends = axes.get_xlim()
            axes.plot(ends, [panel.same(x) for x in ends], color=MUTED, lw=0.9)
            axes.set_xlim(ends)
    for axes in panels[len(figure.panels) :]:
        axes.set_visible(False)
    found: dict[str, Any] = {}
    for axes in panels:
        handles, labels = axes.get_legend_handles_labels()
        found |= {label: handle for label, handle in zip(labels, handles, strict=True) if label not in found}
    if len(found) > 1:
        # Restore the drawing order: matplotlib lists lines with intervals after the others.
        found = {line.name: found[line.name] for line in figure.lines}
        # About eleven characters per inch, including the sample of the line.
        columns = max(1, int(11 * canvas.get_figwidth() / (max(map(len, found)) + 8)))
        canvas.legend(found.values(), found.keys(), loc="outside lower left", ncols=columns, fontsize=9.5)
    return canvas


def asinh_ticks(axis: Any, bend: float) -> None:
    """Ticks at 0 and whole decades, for a scale that is linear up to about ``bend`` and logarithmic above."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    high = axis.get_data_interval()[1]
    powers = range(math.ceil(math.log10(bend)), math.floor(math.log10(max(high, bend))) + 1)
    axis.set_major_locator(FixedLocator([0.0, *(float(f"1e{power}") for power in powers)]))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def log_ticks(axis: Any, low: float, high: float) -> None:
    """Ticks with plain numbers; more of them if the range is less than a decade."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    if high < 10 * low:
        axis.set_major_locator(LogLocator(subs=(1, 1.2, 1.5, 2, 3, 4, 5, 6, 7, 8, 9)))
    elif high < 200 * low:
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())
