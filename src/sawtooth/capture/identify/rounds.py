"""Round trips of a trace: one begins with a segment and ends with the first that was sent knowing it acknowledged."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sawtooth.capture.identify.trace import Flags, Floats, Integers, Trace

_WINDOW = 5
"""Rounds that a rate is taken over: in one, packets that come in bursts are counted a burst too many or too few."""


@dataclass(frozen=True)
class Rounds:
    """One row a round trip: its begin and length in seconds, the flight, segments acknowledged and sent again, and
    whether it is part of a recovery.

    The flight is the upper quartile over the round's segments: the window wherever that is full, and unlike the
    maximum without what bursts of acknowledgements do at the edges.
    """

    t_s: Floats
    rtt_s: Floats
    flight: Floats
    acked: Floats
    again: Integers
    recovery: Flags

    def __len__(self) -> int:
        return len(self.t_s)

    @property
    def min_rtt_s(self) -> float:
        """The shortest but one: behind a queue that drains, a round may pass faster than the path allows."""
        return float(np.partition(self.rtt_s, 1)[1])

    @property
    def rate(self) -> float:
        """Segments a second that the path delivered when it was busy."""
        acked, lasted = (np.convolve(values, np.ones(_WINDOW), mode="valid") for values in (self.acked, self.rtt_s))
        return float(np.quantile(acked / np.maximum(lasted, 1e-9), 0.9)) if len(self) >= _WINDOW else 0.0


def rounds(trace: Trace) -> Rounds:
    """Whole round trips only."""
    starts = _starts(trace)
    if len(starts) < 2:
        empty = np.zeros(0)
        return Rounds(empty, empty, empty, empty, empty.astype(np.int64), empty.astype(np.bool_))
    first, last = starts[:-1], starts[1:]
    t_s = trace.t_s
    of = np.repeat(np.arange(len(first)), last - first)
    sent = trace.flight[: last[-1]]
    ordered = sent[np.lexsort((sent, of))]
    flight = ordered[first + (3 * (last - first - 1)) // 4]
    resent = np.concatenate([[0], np.cumsum(trace.again)])
    again = resent[last] - resent[first]
    acked = (trace.known[last] - trace.known[first]) / trace.mss
    return Rounds(t_s[first], t_s[last] - t_s[first], flight, acked, again, _recovery(trace, first, last))


def _starts(trace: Trace) -> Integers:
    newest = np.maximum.accumulate(trace.end)
    found, at = [0], 0
    while True:
        at = max(int(np.searchsorted(trace.known, newest[at], side="left")), at + 1)
        if at >= len(trace.known):
            return np.array(found, dtype=np.int64)
        found.append(at)


def _recovery(trace: Trace, first: Integers, last: Integers) -> Flags:
    """From a retransmission until all that had been sent before it is acknowledged."""
    newest = np.maximum.accumulate(trace.end)
    inside = np.zeros(len(first), dtype=np.bool_)
    until = 0
    for at in np.flatnonzero(trace.again):
        if at < until:
            continue
        until = max(int(np.searchsorted(trace.known, newest[at], side="left")), int(at) + 1)
        begin = int(np.searchsorted(last, at, side="right"))
        inside[begin : int(np.searchsorted(first, until, side="left"))] = True
    return inside
