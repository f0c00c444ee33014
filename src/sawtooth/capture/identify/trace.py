"""The sender's data in flight over time, from a capture at any point that sees both directions.

The capture point sees a data segment some time after it was sent, and an acknowledgement some time before it arrives.
The segment itself shows what its sender knew: its TSecr is the TSval of the newest acknowledgement that had arrived
(RFC 7323, section 4.3). Without timestamps, the newest acknowledgement is the one that this point saw one loop to the
sender and back ago. That loop is measured on the handshake; at the sender it is zero. A file that begins during or
after the handshake lacks one loop or both; then data and acknowledgements give an estimate.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]
_SYN, _ACK = 2, 16


class TooLittle(Exception):
    """The capture does not show a congestion window; the message says why."""


@dataclass(frozen=True)
class Segments:
    """One connection's segments as captured, in order of time; sequence numbers are relative and do not wrap.

    ``direction`` is 0 for the client's segments, 1 for the server's; ``tsval`` and ``tsecr`` are 0 without timestamps;
    ``window`` is in bytes, 0 if unknown.
    """

    t_s: Floats
    direction: Integers
    seq: Integers
    length: Integers
    ack: Integers
    flags: Integers
    tsval: Integers
    tsecr: Integers
    window: Integers

    def in_order(self) -> Segments:
        """Sorted by time: merged files, and clocks that were set back, are not."""
        if (np.diff(self.t_s) >= 0).all():
            return self
        order = np.argsort(self.t_s, kind="stable")
        return Segments(**{name: values[order] for name, values in vars(self).items()})

    def part(self, begin_s: float, end_s: float) -> Segments:
        """The segments from ``begin_s`` to ``end_s`` after the first."""
        since = self.t_s - self.t_s[0]
        kept = (since >= begin_s) & (since <= end_s)
        return Segments(**{name: values[kept] for name, values in vars(self).items()})

    def without_timestamps(self) -> Segments:
        nothing = np.zeros_like(self.tsval)
        return replace(self, tsval=nothing, tsecr=nothing)


@dataclass(frozen=True, kw_only=True)
class Trace:
    """Data segments as they pass the capture point: ``end`` is the number after the last byte, ``known`` what the
    sender knew to be acknowledged, both in bytes since the first data; ``known_s`` is when that acknowledgement passed;
    ``again`` marks retransmissions.
    """

    t_s: Floats
    end: Integers
    known: Integers
    known_s: Floats
    again: Flags
    mss: int
    window: float
    """The largest offered receive window in bytes; NaN if unknown."""
    stretch: float = 1.0
    """Segments per acknowledgement."""
    idle_s: float = 0.0
    """How long the sender had nothing to wait for and sent nothing."""
    hidden: bool = False
    """Without timestamps and nearer the receiver: ``known`` is a guess, good only if the queue is short."""

    @property
    def flight(self) -> Floats:
        """In segments, when each segment was sent; selectively acknowledged data is included."""
        return (np.maximum.accumulate(self.end) - self.known) / self.mss

    @property
    def duration_s(self) -> float:
        return float(self.t_s[-1] - self.t_s[0]) if len(self.t_s) else 0.0


def trace(segments: Segments) -> Trace:
    """The trace of the direction with more data. Raises TooLittle if there is none."""
    carried = [int(segments.length[segments.direction == way].sum()) for way in (0, 1)]
    way = int(carried[1] > carried[0])
    data = (segments.direction == way) & (segments.length > 0)
    if not data.any():
        raise TooLittle("no data is carried")
    acks = (segments.direction != way) & (segments.flags & _ACK > 0)
    t_s, seq = segments.t_s[data], segments.seq[data]
    end = seq + segments.length[data]
    base = int(seq.min())
    known, known_s = _acknowledged_before(segments, data, acks, way)
    newest = np.maximum.accumulate(end)
    again = np.concatenate([[False], end[1:] <= newest[:-1]])
    window = segments.window[acks].max() if acks.any() and segments.window[acks].max() > 0 else np.nan
    mss = _segment_size(segments.length[data])
    hidden = not _stamped(segments, data, acks) and _nearer_receiver(segments, data, acks, way)
    stretch = _stretch(segments.ack[acks], mss)
    idle_s = _idle_s(segments, data, acks, known, way)
    known_since_base = np.maximum(known - base, 0)
    return Trace(
        t_s=t_s,
        end=end - base,
        known=known_since_base,
        known_s=known_s,
        again=again,
        mss=mss,
        window=float(window),
        stretch=stretch,
        idle_s=idle_s,
        hidden=hidden,
    )


def _idle_s(segments: Segments, data: Flags, acks: Flags, known: Integers, way: int) -> float:
    """From the acknowledgement of everything sent to the next segment, minus the loop to the sender and back."""
    t_s, newest = segments.t_s[data], np.maximum.accumulate(segments.seq[data] + segments.length[data])
    done = np.flatnonzero(known[1:] >= newest[:-1])
    if not len(done):
        return 0.0
    answered = np.searchsorted(np.maximum.accumulate(segments.ack[acks]), newest[done])
    waited = t_s[done + 1] - segments.t_s[acks][answered]
    loop_s = _loop_s(segments, way)
    return float(np.maximum(waited - (waited.min() if loop_s is None else loop_s), 0).sum())


def _stretch(ack: Integers, mss: int) -> float:
    """The median would be one or two; the mean shows the share of segments that are acknowledged singly."""
    numbers = np.unique(ack)
    return max(float(numbers[-1] - numbers[0]) / mss / (len(numbers) - 1), 1.0) if len(numbers) > 1 else 1.0


def _stamped(segments: Segments, data: Flags, acks: Flags) -> bool:
    if not data.any() or not acks.any():
        return False
    return bool((segments.tsecr[data] > 0).mean() > 0.9 and (segments.tsval[acks] > 0).mean() > 0.9)


def _segment_size(lengths: Integers) -> int:
    """The most common length, among segments cut by TCP. Longer ones are super-packets from offload."""
    values, counts = np.unique(lengths, return_counts=True)
    return int(values[np.argmax(counts)])


def _acknowledged_before(segments: Segments, data: Flags, acks: Flags, way: int) -> tuple[Integers, Floats]:
    """For each data segment, the highest acknowledgement number that its sender had, and when it first passed the
    capture point; the segment's own time if there was none."""
    if not acks.any():
        return np.full(int(data.sum()), int(segments.seq[data].min()), dtype=np.int64), segments.t_s[data]
    at, ack = segments.t_s[acks], np.maximum.accumulate(segments.ack[acks])
    stamps, echoes = segments.tsval[acks], segments.tsecr[data]
    if _stamped(segments, data, acks):
        # Among acknowledgements in one tick of the timestamp clock, the newest passed last.
        newest = np.maximum.accumulate(stamps)
        position = np.searchsorted(newest, echoes, side="right") - 1
    else:
        position = np.searchsorted(at, segments.t_s[data] - (_loop_s(segments, way) or 0.0), side="right") - 1
    highest = np.where(position >= 0, ack[np.maximum(position, 0)], int(segments.seq[data].min()))
    # At the sender an acknowledgement of the same tick may come after the segment: what was not seen yet was not known.
    seen = np.searchsorted(at, segments.t_s[data], side="right") - 1
    highest = np.maximum.accumulate(np.minimum(highest, np.where(seen >= 0, ack[np.maximum(seen, 0)], highest)))
    first = np.searchsorted(ack, highest)
    acknowledged = (first < len(ack)) & (highest > int(segments.seq[data].min()))
    return highest, np.where(acknowledged, at[np.minimum(first, len(ack) - 1)], segments.t_s[data])


def _loop_s(segments: Segments, way: int) -> float | None:
    """Seconds from this point to the end that sends in direction ``way`` and back, from the handshake; None if it is
    missing.

    That end's first answer to the other's SYN is its own SYN, or the handshake's third packet.
    """
    syn = segments.flags & _SYN > 0
    other = np.flatnonzero(syn & (segments.direction != way))
    own = np.flatnonzero((segments.direction == way) & (segments.flags & _ACK > 0))
    after = own[own > other[-1]] if len(other) else own[:0]
    return float(segments.t_s[after[0]] - segments.t_s[other[-1]]) if len(after) else None


def _nearer_receiver(segments: Segments, data: Flags, acks: Flags, way: int) -> bool:
    """By the handshake's two loops. A missing one is replaced: towards the receiver, by the time from a segment to its
    acknowledgement (10th percentile); towards the sender, by the median time from an acknowledgement to the next
    segment.
    """
    to_sender, to_receiver = _loop_s(segments, way), _loop_s(segments, 1 - way)
    sent_s, answered_s = segments.t_s[data], segments.t_s[acks]
    if to_receiver is None:
        end = segments.seq[data] + segments.length[data]
        first = np.searchsorted(np.maximum.accumulate(segments.ack[acks]), end)
        waited = answered_s[first[first < len(answered_s)]] - sent_s[first < len(answered_s)]
        to_receiver = float(np.quantile(waited, 0.1)) if len(waited) else np.inf
    if to_sender is None:
        # In the order of the capture: a packet and what it releases may have equal times.
        following = np.cumsum(data)[acks]
        waited = sent_s[following[following < len(sent_s)]] - answered_s[following < len(sent_s)]
        to_sender = float(np.median(waited)) if len(waited) else 0.0
    return to_sender > to_receiver
