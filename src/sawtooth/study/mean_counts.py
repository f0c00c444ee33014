"""Counts in a row of several seeds: the mean per run, like the goodput in the same row.

This rule holds for every table that combines seeds. Percentiles are of all seeds' samples together. Only ``count`` and
``ci_n`` are totals: the number of samples behind the row's statistics.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sawtooth.study.measures import RECORDS

COUNTS = tuple(one.name for one in RECORDS if one.counts)
"""Columns that count what happened in a run."""
TOTALS = ("count", "ci_n")
"""Columns that count samples of all seeds together."""


def per_run(row: Mapping[str, Any], runs: int) -> dict[str, Any]:
    """Replaces the sums in ``row`` (its columns in ``COUNTS``) by means per run."""
    return {name: value / runs if runs > 1 and name in COUNTS else value for name, value in row.items()}


def count_text(mean: float) -> str:
    """A count, or a mean of counts, for people: "17654", "5884.7", "0.33"."""
    if mean == round(mean):
        return f"{mean:.0f}"
    return f"{mean:.1f}" if mean >= 1 else f"{mean:.2g}"
