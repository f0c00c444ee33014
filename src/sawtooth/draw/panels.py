"""Panels: a figure of series in panels that share their scales, and how the columns of its table are used."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sawtooth.draw.figure import Figure
from sawtooth.draw.palette import BASELINE, shown

if TYPE_CHECKING:
    from pandas import DataFrame


TOGETHER = 6
"""Series that one panel shows, or one column; of more, several panels stand in a row."""
ACROSS = 3
"""So many."""


@dataclass(frozen=True)
class Layout:
    """``x`` runs along the axis, ``series`` has colours, each value of ``panels`` a panel of its own."""

    x: str
    x_title: str
    series: str | None
    series_title: str
    panels: tuple[str, ...]
    baseline: Any
    detail: Any
    x_values: tuple[Any, ...]
    series_values: tuple[Any, ...]
    panel_values: tuple[tuple[Any, ...], ...]
    panel_titles: tuple[str, ...]

    @property
    def numeric(self) -> bool:
        """Whether ``x`` is a scale, not a list of names."""
        return all(isinstance(value, (int, float)) for value in self.x_values)

    @property
    def geometric(self) -> bool:
        """Whether ``x`` grows by factors, so that a linear scale would crowd its small values."""
        if not self.numeric or len(self.x_values) < 3 or min(self.x_values) <= 0:
            return False
        ordered = sorted(self.x_values)
        closest = min(b - a for a, b in itertools.pairwise(ordered))
        return bool(closest < (ordered[-1] - ordered[0]) / 16)

    def series_text(self, value: Any) -> str:
        """A value of ``series`` in words: a number alone would not tell what it is."""
        return value_text(self.series_title, value) if isinstance(value, (int, float)) else shown(value)

    def name(self, series: Any, alone: str = "mean") -> str:
        """A series in a legend or title; ``alone`` where there is none to be told from."""
        return self.series_text(series) if self.series else alone

    @property
    def apart(self) -> tuple[int, int]:
        """Rows and columns of a figure in which each series has a panel of its own in each panel."""
        series, panels = len(self.series_values), len(self.panel_values)
        return (-(-series // ACROSS), ACROSS) if panels == 1 and series > TOGETHER else (series, panels)

    def place(self, series: int, panel: int) -> tuple[int, int]:
        """Row and column there, of a series and a panel by their numbers."""
        _, columns = self.apart
        return divmod(series * len(self.panel_values) + panel, columns)

    def part(self, table: DataFrame, series: Any, panel: tuple[Any, ...]) -> DataFrame:
        """The rows of one series in one panel."""
        kept = table if self.series is None else table[table[self.series] == series]
        for name, value in zip(self.panels, panel, strict=True):
            kept = kept[kept[name] == value]
        return kept

    def contrast(self, tint: str) -> list[tuple[Any, str]]:
        """The values of ``x`` drawn over time with their colours: the baseline is grey where there is another one."""
        if self.detail is None:
            return [(self.baseline, tint)]
        return [(self.baseline, BASELINE), (self.detail, tint)]

    def x_text(self, value: Any) -> str:
        """A value of ``x`` in words."""
        return value_text(self.x_title, value)


def value_text(title: str, value: Any) -> str:
    """A value in words: 1 of "packet loss, %" is "1% packet loss", 20 of "rtt, ms" is "20 ms rtt"."""
    what, comma, unit = title.rpartition(", ")
    if not comma:
        return f"{title} {shown(value)}"
    return f"{shown(value)}{'' if unit == '%' else ' '}{unit} {what}"


@dataclass(frozen=True)
class PanelFigure(Figure):
    """``layout`` says how the table's columns are used."""

    layout: Layout

    @property
    def words(self) -> str:
        layout = self.layout
        values = [*map(shown, layout.x_values), *map(layout.series_text, layout.series_values)]
        return "".join(sorted({*self.title, *layout.x_title, *"".join(layout.panel_titles), *"".join(values)}))

    def parts(self) -> Iterator[tuple[int, int, Any, DataFrame]]:
        """Each series in each panel: number of the panel, number of the series, the series itself, its rows."""
        layout = self.layout
        for column, panel in enumerate(layout.panel_values):
            for row, one in enumerate(layout.series_values):
                yield column, row, one, layout.part(self.table, one, panel)
