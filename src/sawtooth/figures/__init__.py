"""Figures and pages: colors, fonts, lines and image files; figures that a browser draws; the frame of all pages.

Works on tables and does not depend on what they contain.
"""

from sawtooth.figures.figure import Axis, Figure, Mark, Panel, Series, Span, TableFigure
from sawtooth.figures.page_shell import embedded_figures, render

__all__ = ["Axis", "Figure", "Mark", "Panel", "Series", "Span", "TableFigure", "embedded_figures", "render"]
