"""Reduces very many marks to what is visible: no more bars, points and corners than pixels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Raster:
    """A grid over the visible part of the plane, in the units of its axes."""

    left: float
    right: float
    bottom: float
    top: float
    columns: int = 1600
    rows: int = 1000

    @property
    def height(self) -> float:
        """The height of one row."""
        return (self.top - self.bottom) / self.rows

    def column(self, x: Floats) -> NDArray[np.int64]:
        return np.floor((x - self.left) / (self.right - self.left) * self.columns).astype(np.int64)

    def bars(self, x: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats, Floats]:
        """The fewest vertical bars that cover the same pixels: bars that touch within a column are merged."""
        seen = (x >= self.left) & (x <= self.right) & (high >= self.bottom) & (low <= self.top)
        x, low, high = x[seen], low[seen], high[seen]
        if not len(x):
            return x, low, high
        column = self.column(x)
        order = np.lexsort((low, column))
        x, low, high, column = x[order], low[order], high[order], column[order]
        # How far up earlier bars reach in the same column: each column is lifted above the previous one.
        lift = (column - column[0]) * (float(high.max()) - float(low.min()) + 1)
        reach = np.maximum.accumulate(high + lift) - lift
        apart = (column[1:] != column[:-1]) | (low[1:] > reach[:-1] + self.height)
        first = np.flatnonzero(np.concatenate(([True], apart)))
        return x[first], low[first], np.maximum.reduceat(high, first)

    def line(self, x: Floats, y: Floats) -> tuple[Floats, Floats]:
        """The first, lowest, highest and last point of each column, plus the nearest ones outside.

        After Jugel et al., "M4: A Visualization-Oriented Time Series Data Aggregation", VLDB 2014.
        """
        begin = max(int(np.searchsorted(x, self.left)) - 1, 0)
        end = int(np.searchsorted(x, self.right, side="right")) + 1
        x, y = x[begin:end], y[begin:end]
        if len(x) <= 4 * self.columns:
            return x, y
        column = self.column(x)
        edge = np.flatnonzero(np.diff(column))
        first = np.concatenate(([0], edge + 1))
        last = np.concatenate((edge, [len(x) - 1]))
        order = np.lexsort((y, column))
        kept = np.unique(np.concatenate((first, last, order[first], order[last])))
        return x[kept], y[kept]

    def dots(self, x: Floats, y: Floats, size: int = 1) -> NDArray[np.int64]:
        """The index of the first point in each non-empty cell of ``size`` × ``size`` pixels."""
        seen = np.flatnonzero((x >= self.left) & (x <= self.right) & (y >= self.bottom) & (y <= self.top))
        row = np.floor((y[seen] - self.bottom) / (self.height or 1)).astype(np.int64) // size
        _, first = np.unique(self.column(x[seen]) // size * (self.rows + 1) + row, return_index=True)
        kept: NDArray[np.int64] = seen[np.sort(first)]
        return kept
