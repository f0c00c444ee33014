"""Standing queues: from which round trip on packets wait in a queue; and comparisons with a gradual transition."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

SLACK = 0.1
"""Comparisons are certain only beyond this share; within it the result changes gradually."""
STANDS = 1.1
"""As a multiple of the shortest round trip."""
TOGETHER = 2
"""Segments per acknowledgement (RFC 5681 section 4.2). A smoothed round trip is that of the first, and the shortest may
be a SYN's: the time to send both on the path is not a queue."""


def above(least_s: ArrayLike, mss: ArrayLike, delivery_bps: ArrayLike) -> NDArray[np.float64]:
    """The smoothed round trip in s, minus its deviation, above which a queue stands; arrays of one shape.

    ``delivery_bps`` is at most the bottleneck's rate, so sending the segments takes at most this long; 0 or NaN if
    unknown.
    """
    rate = np.asarray(delivery_bps, float)
    with np.errstate(invalid="ignore", divide="ignore"):
        sending = np.where(rate > 0, TOGETHER * np.asarray(mss, float) * 8 / rate, 0.0)
    return STANDS * np.asarray(least_s, float) + sending


def sure(ratio: float, enough: float) -> float:
    """The certainty that ``ratio`` is ``enough``: 1 from there on, 0 a tenth below, linear in between."""
    return min(1.0, max(0.0, (ratio - enough + SLACK) / SLACK))
