"""Shows an answer of ``find``: the terminal's lines, the figure, and a table of the values that were tried."""

from __future__ import annotations

from sawtooth.figures.static import draw
from sawtooth.notebook.page import picture, table
from sawtooth.search import Answers, Frontier, Threshold, words
from sawtooth.search.page import figure


def text(found: Threshold | Frontier | Answers) -> str:
    """The lines that the command prints; for a single answer without the values that were tried."""
    whole = words(found)
    return whole if isinstance(found, Answers) else "\n".join([*whole.split("\n\n")[:2], whole.split("\n\n")[-1]])


def parts(found: Threshold | Frontier | Answers) -> tuple[str, list[str], list[str], list[str]]:
    """Heading, lines, pictures and tables for ``page``."""
    said = text(found).splitlines()
    pictures = [] if isinstance(found, Answers) else [picture(lambda aside: draw(figure(found), aside), found.answer)]
    shown = found.frontier if isinstance(found, Frontier) else found.table
    return said[0], [line for line in said[1:] if line] * (not isinstance(found, Answers)), pictures, [table(shown)]
