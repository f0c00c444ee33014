"""Deliveries that leave the bottleneck together, as of cellular lines, Wi-Fi and mahimahi: what was sent over a while
arrives at once, and the pace within such a group is not the bottleneck's but that of what comes behind it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from sawtooth.whatif.observed import Trace

if TYPE_CHECKING:
    from numpy.typing import NDArray

COMPRESSED = 0.25
"""Neighbours that arrive within this part of the time that lay between them when they were sent have waited for each
other: a bottleneck that serves one after the other spreads what it delays, and never brings it together.
"""
USUAL = 0.5
"""A link gathers packets where so large a share of its deliveries is brought together."""
FEWEST = 40


def gathered(trace: Trace) -> Trace | None:
    """The trace with each group of deliveries as one, at its first one's time; None where the link gathers none."""
    if trace.delivered_t_s.size < FEWEST or trace.delivered_sent_s is None:
        return None
    since, sent = np.diff(trace.delivered_t_s), np.diff(trace.delivered_sent_s)
    known = np.isfinite(sent)
    together = known & (since < COMPRESSED * (np.where(known, sent, 0.0) - 2 * trace.grain_s))
    if known.sum() < FEWEST or together[known].mean() < USUAL:
        return None
    # What is as near without being known to have been sent apart is of the group as well.
    near_s = float(np.quantile(since[together], 0.95)) * 2
    first = np.flatnonzero(np.concatenate([[True], ~(together | (since <= near_s))]))
    return replace(
        trace,
        delivered_t_s=trace.delivered_t_s[first],
        delivered_bytes=np.add.reduceat(trace.delivered_bytes, first),
        delivered_sent_s=trace.delivered_sent_s[first],
    )


def overloaded(trace: Trace, frame_s: float, trip_s: float) -> NDArray[np.bool_]:
    """Of each loss, whether more was sent in the round trip around it than the bottleneck takes, a segment in
    ``frame_s``.
    """
    total = np.concatenate([[0], np.cumsum(trace.sent_segments)])
    low = np.searchsorted(trace.sent_t_s, trace.lost_t_s - trip_s / 2)
    high = np.searchsorted(trace.sent_t_s, trace.lost_t_s + trip_s / 2, "right")
    return np.asarray((total[high] - total[low]) * frame_s > trip_s)
