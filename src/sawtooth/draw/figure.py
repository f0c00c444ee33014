"""Figure: a table, and the words under which it is drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas
    from pandas import DataFrame


@dataclass(frozen=True)
class Figure:
    """``name`` names its files, ``table`` is all that is drawn."""

    name: str
    title: str
    caption: str
    table: DataFrame

    @property
    def words(self) -> str:
        """All the text that is drawn and not ours."""
        return "".join(sorted({*self.title}))

    def canvas(self, rows: int, columns: int, *, height: float, **shared: Any) -> tuple[Canvas, Any]:
        """For matplotlib: a canvas under the title, and its axes in rows, each ``height`` inches high.

        ``shared`` is for ``subplots``. Call it inside ``saving.styled``.
        """
        # The object interface: pyplot would keep every figure in memory and ask for a display.
        from matplotlib.figure import Figure as Canvas

        canvas = Canvas(figsize=(max(7.0, 5.2 * columns), height * rows + 0.7), layout="constrained")
        axes = canvas.subplots(rows, columns, squeeze=False, **shared)
        canvas.suptitle(self.title, x=0.01, ha="left", fontsize=13, fontweight="bold")
        return canvas, axes
