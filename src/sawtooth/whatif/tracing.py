"""A trace out of the segments of one connection, as seen at one point of the path: either end or between them.

At the sender, deliveries are what acknowledgements report and waiting shows in the round trip of data. At the receiver,
deliveries are arrivals and waiting shows in how late a segment comes after the time that its timestamp has.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from sawtooth.whatif.observed import Trace

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pandas import DataFrame

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]

RETRANSMITTED = (1, 2, 3)
"""Kinds of a data segment that tell of an earlier copy's loss: fast retransmission, timeout, tail loss probe."""
FILLS = 6
COPY = 11
"""The same packet captured once more, which nobody sent."""
TICKS_S = (1e-3, 1e-2, 4e-3, 1e-6, 1e-4)
"""Units of TCP timestamps that are about: Linux's first (``TCP_TS_HZ``), then others'."""
SMOOTHED_TICKS = 2
MOST_SMOOTHED = 33


@dataclass(frozen=True)
class Data:
    """The data segments of one direction, in order of time; ``end`` is exclusive."""

    t_s: Floats
    seq: Integers
    end: Integers
    kind: Integers
    tsval: Integers
    tsecr: Integers


@dataclass(frozen=True)
class Acks:
    """What the other end sent: ``high`` is the highest byte that it has, by SACK or acknowledgement; ``opens`` marks
    those that report a new hole, ``blind`` those of a recovery in which not all that arrived was reported.
    """

    t_s: Floats
    ack: Integers
    newest: Integers
    opens: NDArray[np.bool_]
    tsval: Integers
    blind: NDArray[np.bool_]


def tables(segments: DataFrame, sacks: DataFrame, direction: int) -> tuple[Data, Acks]:
    """Splits the reader's tables (docs/design.md, "Captures") into the data of ``direction`` and its answers."""
    data = segments[(segments["direction"] == direction) & (segments["length"] > 0) & (segments["kind"] != COPY)]
    seq = data["seq"].to_numpy(np.int64)
    sent = Data(
        t_s=data["t_s"].to_numpy(float),
        seq=seq,
        end=seq + data["length"].to_numpy(np.int64),
        kind=data["kind"].to_numpy(np.int64),
        tsval=data["tsval"].to_numpy(np.int64),
        tsecr=data["tsecr"].to_numpy(np.int64),
    )
    back = segments["direction"].to_numpy() != direction
    ack = segments["ack"].to_numpy(np.int64)[back]
    # RFC 2018, section 4: the first block holds the segment that caused the acknowledgement.
    first = sacks[~sacks["dsack"].astype(bool)].drop_duplicates("segment")
    start = np.full(len(segments), -1, dtype=np.int64)
    end = np.full(len(segments), -1, dtype=np.int64)
    start[first["segment"].to_numpy(np.int64)] = first["start"].to_numpy(np.int64)
    end[first["segment"].to_numpy(np.int64)] = first["end"].to_numpy(np.int64)
    start, end = start[back], end[back]
    newest = np.maximum(ack, end)
    before = np.concatenate([[0], np.maximum.accumulate(newest)[:-1]])
    answers = Acks(
        t_s=segments["t_s"].to_numpy(float)[back],
        ack=ack,
        newest=newest,
        opens=(end > before) & (start > before),
        tsval=segments["tsval"].to_numpy(np.int64)[back],
        blind=np.zeros(ack.size, dtype=bool),
    )
    repeats = np.concatenate([[False], np.diff(ack) == 0]) & (segments["length"].to_numpy()[back] == 0)
    return sent, replace(answers, blind=_blind(sent, answers, repeats & (end < 0)))


def _blind(data: Data, acks: Acks, mute: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """From a retransmission on which acknowledgements followed that repeat their number without SACK (there is none, or
    the capture cut it off) until all is acknowledged that was sent by then: what such acknowledgements move over may
    have arrived long before.
    """
    blind = np.zeros(acks.ack.size, dtype=bool)
    if acks.ack.size == 0 or data.end.size == 0:
        return blind
    acked, high = np.maximum.accumulate(acks.ack), np.maximum.accumulate(data.end)
    said = np.concatenate([[0], np.cumsum(mute)])
    until = 0
    for copy in np.flatnonzero(np.isin(data.kind, (*RETRANSMITTED, FILLS))).tolist():
        at = int(np.searchsorted(acks.t_s, data.t_s[copy]))
        if at < until:
            continue
        end = min(int(np.searchsorted(acked, high[copy])) + 1, blind.size)
        if said[end] > said[at]:
            blind[at:end], until = True, end
    return blind


def round_trips(data: Data, acks: Acks) -> tuple[Floats, Floats]:
    """Times at which segments passed, and after how long the far end's answer did: each segment that was sent once
    (Karn) and whose arrival an acknowledgement reports at once, which one for two segments does and a SACK.
    """
    first, ends, times = _first_sent(data)
    high = np.maximum.accumulate(acks.newest) if acks.newest.size else acks.newest
    before = np.concatenate([[0], high[:-1]]) if high.size else high
    at = np.searchsorted(ends, acks.newest)
    at = np.minimum(at, max(ends.size - 1, 0))
    # A single segment's acknowledgement may have waited for the delayed-ACK timer.
    several = np.searchsorted(ends, acks.newest, "right") - np.searchsorted(ends, before, "right") >= 2
    holds = (acks.newest > before) & ~acks.blind & (several | (acks.newest > acks.ack))
    if ends.size == 0:
        return np.empty(0), np.empty(0)
    holds &= (ends[at] == acks.newest) & first[at] & (acks.t_s >= times[at])
    return times[at][holds], (acks.t_s - times[at])[holds]


def _first_sent(data: Data) -> tuple[NDArray[np.bool_], Integers, Floats]:
    """Segments in order of sequence: whether sent once, their ends, their first time."""
    order = np.lexsort((data.t_s, data.end))
    ends, at, copies = np.unique(data.end[order], return_index=True, return_counts=True)
    return copies == 1, ends, data.t_s[order][at]


def echoes(data: Data, acks: Acks) -> Floats:
    """Times from an acknowledgement that passes to the first data that echoes its timestamp: the way to the sender
    and back, with what the sender waited; s, in order of time.
    """
    if not acks.tsval.any() or not data.tsecr.any():
        return np.empty(0)
    values, at = np.unique(acks.tsval, return_index=True)
    echoed, first = np.unique(data.tsecr, return_index=True)
    place = np.minimum(np.searchsorted(values, echoed), values.size - 1)
    known = values[place] == echoed
    trips = data.t_s[first[known]] - acks.t_s[at[place[known]]]
    return np.asarray(trips[(trips > 0) & (trips < 10)], dtype=float)


def lateness(data: Data) -> tuple[Floats, float]:
    """How late each data segment passes after the time in its timestamp, s above the least, and the timestamps' unit.

    Empty without timestamps. The unit is found from the capture's own clock. Within it a segment's time is not known:
    the least of the neighbours within two units comes near.
    """
    from scipy.ndimage import minimum_filter1d

    none = np.empty(0), 0.0
    if data.tsval.size < 2 or not data.tsval.any():
        return none
    ticks = (data.tsval - data.tsval[0] + 2**31) % 2**32 - 2**31
    span = float(data.t_s[-1] - data.t_s[0])
    if span <= 0 or ticks[-1] <= 0:
        return none
    passed = int(ticks[-1])
    tick = min(TICKS_S, key=lambda unit: abs(math.log(passed * unit / span)))
    if abs(passed * tick / span - 1) > 0.02:
        return none
    late = data.t_s - data.t_s[0] - ticks * tick
    width = int(min(MOST_SMOOTHED, max(1, SMOOTHED_TICKS * tick * data.t_s.size / span)))
    late = minimum_filter1d(late, width, mode="nearest")
    return np.asarray(late - late.min(), dtype=float), tick


def idle_s(data: Data, acks: Acks, away_s: float) -> float:
    """Time in which all data was acknowledged and no more was sent, s; ``away_s`` is the way to the sender and back."""
    highest = np.maximum.accumulate(data.end)
    new = np.flatnonzero(data.end[1:] > highest[:-1]) + 1
    acked = np.maximum.accumulate(acks.ack)
    done = np.searchsorted(acked, highest[new - 1])
    known = done < acked.size
    gaps = data.t_s[new[known]] - acks.t_s[done[known]] - away_s
    return float(gaps[gaps > 0].sum())


def sender_losses(data: Data) -> tuple[Floats, Integers]:
    """Seen where the sender is: for each retransmission the time at which its lost copy was sent, and lengths of runs.

    A run is of segments sent one after the other. Retransmissions that turned out to be needless do not count.
    """
    last: dict[int, int] = {}
    lost: list[int] = []
    again = np.isin(data.kind, RETRANSMITTED)
    sequence = np.sort(data.seq)
    for at in range(data.seq.size):
        start = int(data.seq[at])
        if again[at]:
            copy = last.get(start)
            if copy is None:
                # Cut out of a super-packet: the one that starts before it.
                below = max(0, int(np.searchsorted(sequence, start)) - 1)
                copy = last.get(int(sequence[below]))
            if copy is not None:
                lost.append(copy)
        last[start] = at
    return _runs(np.array(sorted(lost), dtype=np.int64), data.t_s)


def _runs(lost: Integers, t_s: Floats) -> tuple[Floats, Integers]:
    """Positions in the order of sending, joined where they are neighbours."""
    if lost.size == 0:
        return np.empty(0), np.empty(0, dtype=np.int64)
    begins = np.concatenate([[True], np.diff(lost) > 1])
    starts = np.flatnonzero(begins)
    lengths = np.diff(np.concatenate([starts, [lost.size]]))
    return t_s[lost[starts]], lengths.astype(np.int64)


def receiver_losses(data: Data, mss: int) -> tuple[Floats, Integers]:
    """Seen behind the loss: for each hole the time at which the first segment beyond it passed, and its length."""
    high = np.maximum.accumulate(data.end)
    fills = np.flatnonzero(data.kind == FILLS)
    if fills.size == 0:
        return np.empty(0), np.empty(0, dtype=np.int64)
    beyond = np.searchsorted(high, data.end[fills], "left")
    # Filled by the last segment of all: nothing passed beyond, as after the loss of a tail.
    beyond = np.minimum(beyond, fills)
    order = np.lexsort((data.seq[fills], beyond))
    fills, beyond = fills[order], beyond[order]
    joined = (np.diff(beyond) == 0) & (data.seq[fills][1:] == data.end[fills][:-1])
    starts = np.flatnonzero(np.concatenate([[True], ~joined]))
    lengths = np.maximum(1, -(-(data.end - data.seq)[fills] // mss))
    runs = np.add.reduceat(lengths, starts)
    order = np.argsort(data.t_s[beyond[starts]], kind="stable")
    return data.t_s[beyond[starts]][order], runs[order].astype(np.int64)


def at_sender(data: Data, acks: Acks, mss: int, handshake_s: float) -> Trace:
    """The trace where data has the path before it; ``handshake_s`` is the SYN's round trip from here, or infinite."""
    high = np.maximum.accumulate(acks.newest) if acks.newest.size else acks.newest
    gained = np.diff(np.concatenate([[0], high])).astype(float)
    news = gained > 0
    # What fills a hole, or opens one, jumps by more than came.
    jumps = acks.blind | acks.opens | ((acks.ack == acks.newest) & _after_hole(acks))
    delivered = np.where(jumps, np.nan, gained)[news]
    times, trips = round_trips(data, acks)
    order = np.argsort(times, kind="stable")
    lost, runs = sender_losses(data)
    return Trace(
        delivered_t_s=acks.t_s[news],
        delivered_bytes=delivered,
        delivered_sent_s=_sent(data, acks.newest[news]),
        delay_t_s=times[order],
        delay_s=trips[order],
        sent_t_s=data.t_s,
        sent_segments=_segments(data, mss),
        lost_t_s=lost,
        lost_segments=runs,
        segments_an_ack=_stretch(acks, mss),
        sender_side=True,
        floor_s=handshake_s,
    )


def _sent(data: Data, newest: Integers) -> Floats:
    """When the segments that end at ``newest`` were sent, s; NaN for what was sent twice, or where none ends."""
    once, ends, times = _first_sent(data)
    if ends.size == 0:
        return np.full(newest.size, np.nan)
    at = np.minimum(np.searchsorted(ends, newest), ends.size - 1)
    return np.asarray(np.where((ends[at] == newest) & once[at], times[at], np.nan), dtype=float)


def _after_hole(acks: Acks) -> NDArray[np.bool_]:
    """Whether the acknowledgement before had data beyond a hole."""
    held = acks.newest > acks.ack
    return np.concatenate([[False], held[:-1]])


def at_receiver(data: Data, acks: Acks, mss: int) -> Trace:
    """The trace where data has the path behind it."""
    late, grain = lateness(data)
    lost, runs = receiver_losses(data, mss)
    arrived = _segments(data, mss)
    return Trace(
        delivered_t_s=data.t_s,
        delivered_bytes=(data.end - data.seq).astype(float),
        delivered_sent_s=data.t_s - late if late.size else None,
        delay_t_s=data.t_s if late.size else late,
        delay_s=late,
        sent_t_s=np.concatenate([data.t_s, lost]),
        sent_segments=np.concatenate([arrived, runs]),
        lost_t_s=lost,
        lost_segments=runs,
        segments_an_ack=_stretch(acks, mss),
        sender_side=False,
        grain_s=grain,
    )


def _segments(data: Data, mss: int) -> Integers:
    """Super-packets count as the segments that they are cut into."""
    return np.asarray(np.maximum(1, -(-(data.end - data.seq) // mss)), dtype=np.int64)


def _stretch(acks: Acks, mss: int) -> Floats:
    """Segments that each acknowledgement in order newly covers."""
    if acks.ack.size < 2:
        return np.empty(0)
    steps = np.diff(acks.ack)
    plain = (acks.newest[1:] == acks.ack[1:]) & (acks.newest[:-1] == acks.ack[:-1]) & (steps > 0)
    return np.asarray(steps[plain] / mss, dtype=float)
