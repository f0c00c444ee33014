"""Layout: how a figure of series in panels with equal scales uses its table's columns."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sawtooth.figures.palette import BASELINE, shown

if TYPE_CHECKING:
    from pandas import DataFrame


TOGETHER = 6
"""Maximum number of series in one panel or one column. If there are more, several panels are in a row."""
ACROSS = 3
"""Number of panels in a row."""


@dataclass(frozen=True, kw_only=True)
class Layout:
    """``x`` is the horizontal axis; each value of ``series`` has a colour; each value of ``panels`` has a panel."""

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
        """Whether ``x`` is numeric, not a list of names."""
        return all(isinstance(value, (int, float)) for value in self.x_values)

    @property
    def geometric(self) -> bool:
        """Whether ``x`` grows by factors; a linear scale would crowd its small values."""
        if not self.numeric or len(self.x_values) < 3 or min(self.x_values) <= 0:
            return False
        ordered = sorted(self.x_values)
        closest = min(b - a for a, b in itertools.pairwise(ordered))
        return bool(closest < (ordered[-1] - ordered[0]) / 16)

    def series_text(self, value: Any) -> str:
        """A value of ``series`` in words, because a number alone would be unclear."""
        return value_text(self.series_title, value) if isinstance(value, (int, float)) else shown(value)

    def name(self, series: Any, alone: str = "mean") -> str:
        """A series' name in a legend or title; ``alone`` if there is only one."""
        return self.series_text(series) if self.series else alone

    @property
    def across(self) -> int:
        """Panels in a row, where each series and each panel value has its own."""
        panels = len(self.panel_values)
        return ACROSS if panels == 1 and len(self.series_values) > TOGETHER else panels

    def part(self, table: DataFrame, series: Any, panel: tuple[Any, ...]) -> DataFrame:
        """The rows of one series in one panel."""
        kept = table if self.series is None else table[table[self.series] == series]
        for name, value in zip(self.panels, panel, strict=True):
            kept = kept[kept[name] == value]
        return kept

    def parts(self, table: DataFrame) -> Iterator[tuple[int, int, Any, DataFrame]]:
        """Each series in each panel: the panel's number, the series' number, the series, its rows."""
        for column, panel in enumerate(self.panel_values):
            for row, one in enumerate(self.series_values):
                yield column, row, one, self.part(table, one, panel)

    def contrast(self, tint: str) -> list[tuple[Any, str]]:
        """The values of ``x`` that are drawn over time, with their colours. The baseline is grey if there is another
        value."""
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
