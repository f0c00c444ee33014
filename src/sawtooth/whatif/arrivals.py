"""What arrived, from what a sending socket accepted: iperf3's intervals count the blocks that the send buffer accepted.

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
# What is "chosen" comes from work on half of the 73 paths of docs/validation.md ("Rate from iperf3"). All bounds of
# these paths and of 22 others hold with it.
WRITEABLE = 2 / 3
"""The part of its send buffer to which a writer is woken (``sk_stream_is_writeable``)."""
BUFFER_WINDOWS = 9.0
"""Largest send buffer in congestion windows: ``tcp_sndbuf_expand`` takes 2 windows, BBR 3, of up to three times the
payload for each segment's memory."""
IN_FLIGHT = 0.8
"""Least part of the congestion window in flight: during a recovery it is not all used. Chosen."""
HELD = 0.5
"""Least part of the buffer at the end that an earlier buffer of the same capacity held: ``WRITEABLE``, less what the
memory of segments takes. That margin is chosen."""
LEAST_PART = 0.4
"""The shortest stretch, as a part of the transfer: that of a plateau (``COMMON`` of ``from_totals``)."""
SHORTEST_S = 1.0
"""The shortest stretch in s: one interval of iperf3, as it prints them by default."""
FULL_MOST = 0.01
"""A full path carries up to this share less than its rate: BBR drains the queue at times. Chosen."""
FOLLOWS, RATIO, VARIES = 0.9, 0.5, 0.03
"""With a queue, the round trip follows the window: their least correlation, the largest deviation of their ratio as a
part of that of the round trip, and the least deviation of the round trip (all of logarithms). Chosen."""


class Arrival(NamedTuple):
    """Payload in bit/s: ``low`` is certain; ``value`` and ``high`` are of a path that was full over the stretch.
    ``consistent``: one rate over the whole transfer fits."""

    low: float
    value: float
    high: float
    consistent: bool


def arrival(
    seconds: Floats,
    accepted_bytes: Floats,
    windows: Floats | None,
    *,
    uncounted: float | None,
    after_s: float,
    goodput_bps: float,
    block: float,
) -> Arrival | None:
    """The rate of arrival from some interval to the end, where it is known best.

    ``seconds`` and ``accepted_bytes`` are of the intervals, ``windows`` in bytes at each interval's end (None or all 0:
    unknown). ``uncounted``: bytes that the socket accepted and the receiver did not count (None: unknown); the receiver
    counted until ``after_s`` later. ``block``: bytes of one write.

    None for fewer than four intervals, if the first is most of the transfer, or if neither ``windows`` nor
    ``uncounted`` is known: then nothing bounds the send buffer.
    """
    if windows is not None and not windows.any():
        windows = None
    if len(seconds) < 4 or (uncounted is None and windows is None):
        return None
    ends, total = np.cumsum(seconds), np.cumsum(accepted_bytes)
    span, accepted = ends[-1] - ends[:-1], total[-1] - total[:-1]
    window = np.zeros(len(seconds)) if windows is None else windows
    final_low = 0.0 if uncounted is None else uncounted
    final_high = BUFFER_WINDOWS * float(window.max()) if uncounted is None else uncounted + after_s * goodput_bps / 8
    grown = np.maximum.accumulate(window)[:-1] >= window.max()
    held = np.where(grown & (windows is not None), HELD * final_low, 0.0)
    # The window may be larger than all that the sender has to send.
    buffer_low = np.minimum(np.maximum(IN_FLIGHT * window[:-1], held), final_high)
    buffer_high = final_high / WRITEABLE
    long = span >= max(LEAST_PART * ends[-1], SHORTEST_S)
    if not long.any():
        return None
    span, accepted, buffer_low = span[long], accepted[long], buffer_low[long]
    low = (accepted - final_high + buffer_low) * 8 / span
    high = (accepted - final_low + buffer_high + block) * 8 / span * (1 + FULL_MOST)
    at = int(np.argmin(high / np.maximum(low, 1.0)))
    certain = max(goodput_bps if uncounted is not None else 0.0, float(low.max()))
    top = max(float(high[at]), certain)
    value = min(top, max(certain, float(accepted[at] * 8 / span[at])))
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
