"""By how much the windows of each of the core's congestion controls are off, told the same as the sender of a trace.

The control's own code runs with the acknowledgements and losses of the trace (``crates/replay``): it tells the window
that it would have had when each segment left, and its pacing rate. The less of the window and of what that rate sends
in a round trip is compared with the round's flight.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sawtooth import _core
from sawtooth.capture.identify.rounds import rounds
from sawtooth.capture.identify.trace import Flags, Floats, Trace

_INITIAL_WINDOW = 10
_RANGE = 4.0
"""Logarithms of ratios beyond are all the same."""

Numbers = NDArray[np.uint64]


def replayed(trace: Trace) -> tuple[tuple[str, float], ...]:
    """Each control, nearest first, and the share by which its windows are off in the middle of the rounds outside
    recoveries, the larger of the two by the smaller less one; none where no round shows it.
    """
    made = rounds(trace)
    calm = ~made.recovery & ~made.cut
    if not calm.any():
        return ()
    begins = np.searchsorted(trace.t_s, made.t_s)
    last = np.maximum(np.append(begins[1:], len(trace.t_s) - 1) - 1, begins)
    middle = (begins + last) // 2
    told = columns(trace)
    found = []
    for control in _core.congestion_controls():
        cwnd, pacing = _core.replay(control, *told, trace.mss, _INITIAL_WINDOW)
        allowed = np.minimum(cwnd[last], pacing[middle] / trace.mss * made.rtt_s)
        away = np.log(np.maximum(allowed, 0.5) / np.maximum(made.flight, 0.5))
        found.append((control, float(np.expm1(np.median(np.minimum(np.abs(away[calm]), _RANGE))))))
    return tuple(sorted(found, key=lambda one: one[1]))


def columns(trace: Trace) -> tuple[Numbers, Numbers, Numbers, Numbers, Flags]:
    """What ``_core.replay`` takes. A segment leaves at once where its acknowledgement lets it: the shortest that this
    took is the loop from the point to the sender and back.
    """
    waited = trace.t_s - trace.known_s
    new = np.diff(trace.known, prepend=trace.known[0]) > 0
    loop_s = float(waited[new].min()) if new.any() else 0.0
    known_s = np.maximum.accumulate(np.minimum(trace.known_s + loop_s, trace.t_s))

    def nanoseconds(t_s: Floats) -> Numbers:
        return np.asarray(np.round(np.maximum(t_s - trace.t_s[0], 0) * 1e9), dtype=np.uint64)

    numbers = (trace.end.astype(np.uint64), trace.known.astype(np.uint64))
    return nanoseconds(trace.t_s), *numbers, nanoseconds(known_s), trace.again
