"""Round trips of a trace: each begins with a segment and ends with the first segment sent after its acknowledgement was
known.

A round trip begins where a recovery ends, which cuts the previous one short.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sawtooth.capture.identify.trace import Flags, Floats, Integers, Trace

_WINDOW = 5
"""Rounds over which a rate is taken: in a single one, bursty arrivals count one burst too many or too few."""


@dataclass(frozen=True)
class Rounds:
    """One row per round trip: its begin and length in seconds, the flight, segments acknowledged, and whether it is
    part of a recovery.

    The flight is what is under way after the last segment that an acknowledgement releases: only then is the window
    full. The upper quartile of these is used, which ignores the effect of acknowledgement bursts at the edges; if none
    is known, that of all segments.
    """

    t_s: Floats
    rtt_s: Floats
    flight: Floats
    acked: Floats
    recovery: Flags
    cut: Flags
    """Shorter than a round trip: a recovery ended within it."""
    noticed: Integers
    """For each recovery that ended, the round in which it began."""
    ended: Integers
    """For the same recoveries, the round that begins at the end."""
    top: Floats
    """For the same recoveries, the flight when the loss was noticed, before duplicate acknowledgements release more."""

    def __len__(self) -> int:
        return len(self.t_s)

    @property
    def min_rtt_s(self) -> float:
        """The second-shortest: behind a queue that drains, one round may be faster than the path allows."""
        return max(float(np.partition(self.rtt_s[~self.cut], 1)[1]), 1e-4)

    @property
    def rate(self) -> float:
        """Segments per second that the path delivered while busy."""
        acked, lasted = (np.convolve(values, np.ones(_WINDOW), mode="valid") for values in (self.acked, self.rtt_s))
        return float(np.quantile(acked / np.maximum(lasted, 1e-9), 0.9)) if len(self) >= _WINDOW else 0.0


def rounds(trace: Trace) -> Rounds:
    """Whole round trips only, except those cut by a recovery's end."""
    begin, end = _recoveries(trace)
    starts, cut = _starts(trace, end)
    if len(starts) < 2:
        none, no = np.zeros(0), np.zeros(0, dtype=np.int64)
        return Rounds(none, none, none, none, no > 0, no > 0, no, no, none)
    first, last = starts[:-1], starts[1:]
    t_s = trace.t_s
    sent = trace.flight
    of = np.repeat(np.arange(len(first)), last - first)
    # A segment is the last that an acknowledgement releases if the next one was sent with less under way.
    counted = sent[: last[-1]] > sent[1 : last[-1] + 1]
    counted |= np.bincount(of[counted], minlength=len(first))[of] == 0
    ordered = sent[: last[-1]][counted]
    ordered = ordered[np.lexsort((ordered, of[counted]))]
    number = np.bincount(of[counted], minlength=len(first))
    flight = ordered[np.cumsum(number) - number + (3 * (number - 1)) // 4]
    acked = (trace.known[last] - trace.known[first]) / trace.mss
    recovery = np.zeros(len(first), dtype=np.bool_)
    noticed, ended = np.searchsorted(last, begin, side="right"), np.searchsorted(first, end)
    for entry, done in zip(noticed, ended, strict=True):
        recovery[entry:done] = True
    over = end < last[-1]
    # The last segment released by an acknowledgement before the repeated one.
    full = np.maximum(np.searchsorted(trace.known, trace.known[begin[over]]) - 1, 0)
    lasted = t_s[last] - t_s[first]
    return Rounds(t_s[first], lasted, flight, acked, recovery, cut, noticed[over], ended[over], sent[full])


def _starts(trace: Trace, recovered: Integers) -> tuple[Integers, Flags]:
    """The first segment of each round, and whether one of ``recovered`` cuts it."""
    newest = np.maximum.accumulate(trace.end)
    found, cut, at, passed = [0], [], 0, 0
    while True:
        following = max(int(np.searchsorted(trace.known, newest[at], side="left")), at + 1)
        while passed < len(recovered) and recovered[passed] <= at:
            passed += 1
        cut.append(passed < len(recovered) and int(recovered[passed]) < following)
        at = int(recovered[passed]) if cut[-1] else following
        if at >= len(trace.known):
            return np.array(found, dtype=np.int64), np.array(cut[:-1], dtype=np.bool_)
        found.append(at)


def _recoveries(trace: Trace) -> tuple[Integers, Integers]:
    """From a retransmission until everything sent before it is acknowledged: the first segments of both."""
    newest = np.maximum.accumulate(trace.end)
    begin, end = [], []
    until = 0
    for at in np.flatnonzero(trace.again):
        if at < until:
            continue
        until = max(int(np.searchsorted(trace.known, newest[at], side="left")), int(at) + 1)
        begin.append(int(at))
        end.append(until)
    return np.array(begin, dtype=np.int64), np.array(end, dtype=np.int64)
