"""Display: results as a shell and a notebook show them: a few lines of text, or a figure above its table."""

from sawtooth.display.display import html, plot, text

__all__ = ["html", "plot", "text"]
