"""Shows a comparison: the terminal's table and the figure of the command ``compare``."""

from __future__ import annotations

from sawtooth.compare import Comparison, draw
from sawtooth.compare.text import words
from sawtooth.notebook.page import picture, table

_MOST_LINES = 14
_COLUMNS = (
    *("against", "point", "reference_mbps", "mean_mbps", "difference_percent"),
    *("difference_low_mbps", "difference_high_mbps", "verdict"),
)


def text(comparison: Comparison) -> str:
    """The lines that the command prints, shortened if there are many; the verdict always stays."""
    lines = words(comparison).splitlines()
    if len(lines) > _MOST_LINES:
        left = len(lines) - _MOST_LINES
        lines = [*lines[: _MOST_LINES - 1], f"… and {left} more lines: .table is all of it", lines[-1]]
    return "\n".join(lines)


def parts(comparison: Comparison) -> tuple[str, list[str], list[str], list[str]]:
    """Heading, lines, pictures and tables for ``page``."""
    lines = words(comparison).splitlines()
    heading = f"{' and '.join(comparison.labels[1:])} against {comparison.labels[0]}"
    columns = comparison.table[[name for name in _COLUMNS if name in comparison.table]]
    return heading, [lines[-1]], [picture(lambda aside: draw(comparison, aside), heading)], [table(columns)]
