"""Figures and pages: colors, fonts, lines and image files; figures that a browser draws; the frame of all pages.

Works on tables and does not depend on what they contain.
"""

from sawtooth.figures.page_shell import embedded_figures, render
from sawtooth.figures.web_figure import Axis, Figure, Mark, Panel, Series, Span

__all__ = ["Axis", "Figure", "Mark", "Panel", "Series", "Span", "embedded_figures", "render"]
