"""Pages: figures drawn by the browser, and the frame that all pages share. Independent of what is drawn."""

from sawtooth.page.figure import Axis, Figure, Mark, Panel, Series, Span
from sawtooth.page.shell import embedded_figures, render

__all__ = ["Axis", "Figure", "Mark", "Panel", "Series", "Span", "embedded_figures", "render"]
