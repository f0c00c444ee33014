"""Counts in a row of several seeds: each is the mean of the runs', as the throughput beside it is.

The one rule for every table that puts seeds together. Percentiles are of all seeds' samples together, and ``count`` and
``ci_n`` say how many samples the statistics of the row are of: these two alone are totals.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

COUNTS = (
    *("segments_out", "retransmits", "timeouts", "tail_probes"),
    *("queue_drops", "queue_early_drops", "queue_marks"),
    *("transfers", "responses", "pages", "video_segments", "video_stalls"),
)
"""Columns that count what happened in a run."""
TOTALS = ("count", "ci_n")
"""Columns that count samples of all seeds together."""


def per_run(row: Mapping[str, Any], runs: int) -> dict[str, Any]:
    """``row``, in which each of ``COUNTS`` is a sum over so many runs, with their means instead."""
    return {name: value / runs if name in COUNTS and runs > 1 else value for name, value in row.items()}


def told(mean: float) -> str:
    """A count or a mean of counts for people: "17654", "5884.7", "0.33"."""
    if mean == round(mean):
        return f"{mean:.0f}"
    return f"{mean:.1f}" if mean >= 1 else f"{mean:.2g}"
