"""Display: how results appear in a shell (a few lines of text) and in a notebook (a figure above its table)."""

from sawtooth.notebook.display import html, plot, text

__all__ = ["html", "plot", "text"]
