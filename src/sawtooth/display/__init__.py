"""Display: results as a shell and a notebook show them: a few lines of text, or a figure above its table."""

from sawtooth.display.display import html, text

__all__ = ["html", "text"]
