"""Figure: a table with the texts of its picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas
    from pandas import DataFrame


@dataclass(frozen=True)
class Figure:
    """``name`` is the name of its files; ``table`` contains all that is drawn."""

    name: str
    title: str
    caption: str
    table: DataFrame

    @property
    def words(self) -> str:
        """All text in the picture that comes from the user."""
        return "".join(sorted({*self.title}))

    def canvas(self, rows: int, columns: int, *, height: float, **shared: Any) -> tuple[Canvas, Any]:
        """A matplotlib canvas with the title, and its axes in rows, each ``height`` inches high.

        ``shared`` is passed to ``subplots``. Call it inside ``saving.styled``.
        """
        # Use the object interface: pyplot would keep every figure in memory and need a display.
        from matplotlib.figure import Figure as Canvas

        canvas = Canvas(figsize=(max(7.0, 5.2 * columns), height * rows + 0.7), layout="constrained")
        axes = canvas.subplots(rows, columns, squeeze=False, **shared)
        canvas.suptitle(self.title, x=0.01, ha="left", fontsize=13, fontweight="bold")
        return canvas, axes
