"""Shown: values that say in a few lines what they hold, in a shell by ``repr``, in a notebook with figure and table.

How, is for ``sawtooth.display`` to say, which knows statistics, tables and figures: far above the values. It is loaded
when somebody looks.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Shown:
    """Its ``repr`` and its HTML are ``sawtooth.display``'s."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(import_module("sawtooth.display").text(self))

    def _repr_html_(self) -> str:
        return str(import_module("sawtooth.display").html(self))


class Drawn(Shown):
    """One that has a figure."""

    __slots__ = ()

    def plot(self) -> Figure:
        """Its main figure, as Matplotlib's; to be saved: ``.plot().savefig("one.png")``.

        Raises SawtoothError ``too-short`` where there is nothing to draw.
        """
        return import_module("sawtooth.display").plot(self)  # type: ignore[no-any-return]
