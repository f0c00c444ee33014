"""Fonts of the figures: DejaVu Sans, and fonts of this machine for characters that it lacks."""

from __future__ import annotations

import contextlib
import functools
import logging
import warnings
from collections.abc import Iterator

from sawtooth.figures.canvas import settle

OURS = "DejaVu Sans"
_BOXES = "Last Resort High-Efficiency"
"""A font that comes with matplotlib and shows a box for every character."""


@functools.lru_cache(maxsize=64)
def families(text: str) -> tuple[tuple[str, ...], str]:
    """Font families, best first, that have the characters of ``text``; and the characters that no font has."""
    settle()
    from matplotlib import font_manager

    missing = {letter for letter in text if not letter.isspace()} - _letters(font_manager.findfont(OURS))
    names = [OURS]
    regular = [
        font
        for font in font_manager.fontManager.ttflist
        if font.weight == 400 and font.style == "normal" and font.name != _BOXES
    ]
    for font in sorted(regular, key=lambda font: (font.name, font.fname)):
        if not missing:
            break
        if found := missing & _letters(font.fname):
            names.append(font.name)
            missing -= found
    return tuple(names), "".join(sorted(missing))


@contextlib.contextmanager
def accepted() -> Iterator[None]:
    """Suppress matplotlib's warnings about characters that no font has and about missing bold faces."""
    log = logging.getLogger("matplotlib.font_manager")
    before = log.level
    log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Glyph .* missing from")
            yield
    finally:
        log.setLevel(before)


@functools.cache
def _letters(path: str) -> frozenset[str]:
    from matplotlib.ft2font import FT2Font

    try:
        return frozenset(map(chr, FT2Font(path).get_charmap()))
    except (OSError, RuntimeError):
        # The font cache is out of date: the file is gone.
        return frozenset()
