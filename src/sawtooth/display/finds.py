"""An answer of find: the terminal's lines, the figure, the table of what was looked at."""

from __future__ import annotations

from pathlib import Path

from sawtooth.display.page import picture, table
from sawtooth.draw import lines
from sawtooth.draw.saving import save, styled
from sawtooth.finding import Answers, Found, words
from sawtooth.finding.figure import figure


def text(found: Found | Answers) -> str:
    """The lines of the command; of one answer without the values that were looked at."""
    told = words(found)
    return told if isinstance(found, Answers) else "\n".join([*told.split("\n\n")[:2], told.split("\n\n")[-1]])


def parts(found: Found | Answers) -> tuple[str, list[str], list[str], list[str]]:
    """What ``page`` puts together."""
    said = text(found).splitlines()
    pictures = [] if isinstance(found, Answers) else [picture(lambda aside: _draw(found, aside), found.answer)]
    return said[0], [line for line in said[1:] if line] * isinstance(found, Found), pictures, [table(found.table)]


def _draw(found: Found, directory: Path) -> list[Path]:
    drawn = figure(found)
    with styled(drawn.words):
        return save(lines.draw(drawn), drawn.name, directory)
