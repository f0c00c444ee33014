"""What arrived, from what a sending socket took: iperf3's intervals count the blocks that the send buffer accepted.

Let W be the sum of the intervals and B the data in the send buffer (in flight, or not yet sent). Then W - B has
arrived. So over a stretch the mean rate of arrival is that of W, off by the change of B divided by the stretch's
length. At the end, the receiver's total gives B. Before, three facts of Linux bound it:

- A writer sleeps until the buffer is down to two thirds, and fills it then (``sk_stream_is_writeable``).
- The buffer grows with the congestion window and never shrinks (``tcp_sndbuf_expand``).
- What is in flight is in the buffer.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
WRITEABLE = 2 / 3
"""The part of its send buffer to which a writer is woken."""
BUFFER_WINDOWS = 9.0
"""Largest send buffer in congestion windows: ``tcp_sndbuf_expand`` takes 2 windows, BBR 3, of up to three times the
payload for each segment's memory."""
IN_FLIGHT = 0.8
"""Least part of the congestion window in flight: during a recovery it is not all used."""
HELD = 0.5
"""Least part of the buffer at the end that an earlier buffer of the same capacity held."""
LEAST_PART = 0.4
"""The shortest stretch, as a part of the transfer."""
SHORTEST_S = 1.0
"""The shortest stretch in s."""
FULL_MOST = 0.01
"""A full path carries up to this share less than its rate: BBR drains the queue at times."""
FOLLOWS, RATIO, VARIES = 0.9, 0.5, 0.03
"""With a queue, the round trip follows the window: their least correlation, the largest deviation of their ratio as a
part of that of the round trip, and the least deviation of the round trip (all of logarithms)."""


class Arrival(NamedTuple):
    """Payload in bit/s: ``low`` is certain; ``value`` and ``high`` are of a path that was full over the stretch.
    ``consistent``: one rate over the whole transfer fits."""

    low: float
    value: float
    high: float
    consistent: bool


def arrival(
    took: Floats,
    taken: Floats,
    windows: Floats | None,
    *,
    kept: float | None,
    after_s: float,
    goodput: float,
    block: float,
) -> Arrival | None:
    """The rate of arrival from some interval to the end, where it is known best; None for fewer than four intervals, or
    if the first is most of the transfer.

    ``took`` in s, ``taken`` in bytes, ``windows`` in bytes at each interval's end (None: unknown). ``kept``: bytes that
    the socket took and the receiver did not count (None: unknown); the receiver counted until ``after_s`` later.
    ``goodput`` in bit/s; ``block``: bytes of one write.
    """
    if len(took) < 4 or (kept is None and windows is None):
        return None
    ends, total = np.cumsum(took), np.cumsum(taken)
    span, sent = ends[-1] - ends[:-1], total[-1] - total[:-1]
    window = np.zeros(len(took)) if windows is None else windows
    least = 0.0 if kept is None else kept
    most = BUFFER_WINDOWS * float(window.max()) if kept is None else kept + after_s * goodput / 8
    grown = np.maximum.accumulate(window)[:-1] >= window.max()
    held = np.maximum(IN_FLIGHT * window[:-1], np.where(grown & (windows is not None), HELD * least, 0.0))
    # The window may be larger than all that the sender has to send.
    held = np.minimum(held, most)
    long = span >= max(LEAST_PART * ends[-1], SHORTEST_S)
    if not long.any():
        return None
    span, sent, held = span[long], sent[long], held[long]
    low = (sent - most + held) * 8 / span
    high = (sent - least + most / WRITEABLE + block) * 8 / span * (1 + FULL_MOST)
    at = int(np.argmin(high / np.maximum(low, 1.0)))
    certain = max(goodput if kept is not None else 0.0, float(low.max()))
    top = max(float(high[at]), certain)
    value = min(top, max(certain, float(sent[at] * 8 / span[at])))
    return Arrival(certain, value, top, float(low.max()) <= float(high.min()))


def queued(windows: Floats, rtts: Floats) -> bool:
    """Whether the round trip rises and falls with the window, as it does where a queue stands: then what the window
    adds only waits. Both are of the same moments, after slow start."""
    if len(windows) < 4 or len(windows) != len(rtts) or min(windows.min(), rtts.min()) <= 0:
        return False
    window, rtt = np.log(windows), np.log(rtts)
    if rtt.std() < VARIES or window.std() == 0:
        return False
    return bool(np.corrcoef(window, rtt)[0, 1] > FOLLOWS and (window - rtt).std() < RATIO * rtt.std())
