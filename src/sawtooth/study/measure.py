"""Measure: the record of one column of a study's table, read by figures, goals, expectations and the documentation."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Measure:
    """``name``: the column; its ending is the unit (``_ms``, ``_s``, ``_mbps``, ``_percent``). ``title``: in figures,
    with the unit; empty: no figure has it. ``counts``: it counts what happened, so a row of several seeds has the mean
    per run. ``aliases``: other names in goals and expectations. ``last``: its column is at the end of tables, where it
    was added later. ``heading`` and ``digits``: in the terminal's tables of applications.
    """

    name: str
    title: str = ""
    counts: bool = False
    aliases: tuple[str, ...] = ()
    last: bool = False
    heading: str = ""
    digits: int = 0
