"""Pages: figures that a browser draws, and the shell that all pages share. Nothing here knows what is drawn."""

from sawtooth.page.figure import Axis, Figure, Mark, Panel, Series, Span
from sawtooth.page.shell import embedded_figures, render

__all__ = ["Axis", "Figure", "Mark", "Panel", "Series", "Span", "embedded_figures", "render"]
