"""Adds lost probes that a source omits: if only answers are in the file, a missing one leaves a gap."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sawtooth.link_estimate.series import Remark, RttSeries

_LONGEST = 20
"""Longest run of missing probes that counts as lost; in a longer gap nothing may have been sent."""
_NEAR = 0.2
"""Share of the pace by which a gap may differ from a whole number of paces."""
_ON_PACE = 0.95
"""Share of the distances that must be whole numbers of paces before any gap counts as losses."""


def with_lost(series: RttSeries, numbers: NDArray[np.float64] | None = None) -> RttSeries:
    """The series with a lost probe (RTT NaN) for each missing one; unchanged if losses are recorded or none is missing.

    ``numbers`` are the source's probe numbers. Without them a gap of whole paces means lost probes. A remark says how
    many.
    """
    if not series.answered.all() or len(series) < 2:
        return series
    if numbers is not None and np.isfinite(numbers).all() and (np.diff(numbers) >= 1).all():
        steps = np.diff(numbers)
    elif series.clock != "counted":
        exact = np.diff(series.sent_s) / series.pace_s
        steps = np.round(exact)
        if (steps < 1).any() or (np.abs(exact - steps) < _NEAR).mean() < _ON_PACE:
            return series
        # Off the pace nothing is missing: the probe was late.
        steps[np.abs(exact - steps) >= _NEAR] = 1
    else:
        return series
    missing = np.where(steps <= _LONGEST + 1, steps - 1, 0).astype(np.int64)
    if not missing.any():
        return series
    rows = np.arange(len(series)) + np.concatenate([[0], np.cumsum(missing)])
    total = int(rows[-1]) + 1
    sent_s = np.interp(np.arange(total), rows, series.sent_s)
    kept: dict[str, Any] = {"sent_s": sent_s, "rtt_s": _spread(series.rtt_s, rows, total, np.nan)}
    for name, empty in (("late_s", np.nan), ("address", ""), ("reply", ""), ("duplicates", 0)):
        values = getattr(series, name)
        if values is not None:
            kept[name] = _spread(values, rows, total, empty)
    count = int(missing.sum())
    text = f"{count} of {total} probes are missing in the file; they count as lost"
    return replace(series, **kept).remarked(Remark("silent-losses", text))


def _spread(values: NDArray[Any], rows: NDArray[np.int64], total: int, empty: Any) -> NDArray[Any]:
    found = np.full(total, empty, dtype=values.dtype)
    found[rows] = values
    return found
