"""Shown: values that say in a few lines what they hold, in a shell by ``repr``, in a notebook with figure and table.

How, is for ``sawtooth.display`` to say, which knows statistics, tables and figures: far above the values. It is loaded
when somebody looks.
"""

from __future__ import annotations

from importlib import import_module


class Shown:
    """Its ``repr`` and its HTML are ``sawtooth.display``'s."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(import_module("sawtooth.display").text(self))

    def _repr_html_(self) -> str:
        return str(import_module("sawtooth.display").html(self))
