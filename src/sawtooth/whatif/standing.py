"""Standing: from which round trip on packets wait in a queue, and how sure a comparison is that has some slack."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

SLACK = 0.1
"""A comparison is no more certain than to this share: over so much, what it decides goes over from one to the other."""
STANDS = 1.1
"""Times the least round trip."""
TOGETHER = 2
"""Segments that an acknowledgement tells of (RFC 5681 section 4.2). A smoothed round trip is of the first, the least
one may be a SYN's: the time that the path takes to send both is no queue.
"""


def above(least_s: ArrayLike, mss: ArrayLike, delivery_bps: ArrayLike) -> NDArray[np.float64]:
    """The smoothed round trip, in s, less what it deviates by, above which a queue stands; arrays of one shape.

    ``delivery_bps`` is as fast as the bottleneck or slower, so that segments take so long to be sent at most; 0 or NaN
    where it is not known.
    """
    rate = np.asarray(delivery_bps, float)
    with np.errstate(invalid="ignore", divide="ignore"):
        sending = np.where(rate > 0, TOGETHER * np.asarray(mss, float) * 8 / rate, 0.0)
    return STANDS * np.asarray(least_s, float) + sending


def sure(ratio: float, enough: float) -> float:
    """How sure it is that ``ratio`` is ``enough``: 1 from there on, 0 a tenth below, in between in proportion."""
    return min(1.0, max(0.0, (ratio - enough + SLACK) / SLACK))
