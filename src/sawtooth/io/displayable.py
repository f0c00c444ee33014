"""Base classes of values that print a summary in a shell (``repr``) and show a figure and a table in a notebook.

``sawtooth.notebook`` does the formatting. It needs statistics, tables and figures, so it is loaded only when a value is
shown.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Displayable:
    """A value whose ``repr`` and HTML come from ``sawtooth.notebook``."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(import_module("sawtooth.notebook").text(self))

    def _repr_html_(self) -> str:
        return str(import_module("sawtooth.notebook").html(self))


class Drawn(Displayable):
    """A value that also has a figure."""

    __slots__ = ()

    def plot(self) -> Figure:
        """Draws the main figure with Matplotlib; save it with ``.plot().savefig("one.png")``.

        Raises SawtoothError ``too-short`` if there is nothing to draw.
        """
        return import_module("sawtooth.notebook").plot(self)  # type: ignore[no-any-return]
