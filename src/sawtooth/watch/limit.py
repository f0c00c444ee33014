"""Determines what limits a connection, from the kernel's measurements in the window."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sawtooth.watch import layout
from sawtooth.watch.counters import Changes

if TYPE_CHECKING:
    from numpy.typing import NDArray

LIMITS = ("unknown", "idle", "application", "receive window", "send buffer", "pacing", "path", "congestion window")
UNKNOWN, IDLE, APPLICATION, RECEIVE_WINDOW, SEND_BUFFER, PACING, PATH, CONGESTION_WINDOW = range(len(LIMITS))
MOSTLY = 0.5
"""A limit that applies for at least this share of the time is the connection's limit."""
PART = 0.2
"""Least share of a window, buffer or queue that counts if no other limit applies for as long."""
BUSY = 0.75
"""A sender that is busy for a smaller share of the time has an application that pauses."""
NEAR = 0.8
"""A pacing cap counts as used if the rate reaches this share of it."""
USED = 0.9
"""The bottleneck counts as used if the rate reaches this share of its rate."""
STARTUP_GAIN = 2.5
"""BBR is in STARTUP if its pacing gain is above this. Its bandwidth probes have a gain of 1.25."""


def limits(changes: Changes) -> NDArray[np.int64]:
    """The limit of each connection, as an index into ``LIMITS``. The first that applies is chosen: hosts before
    network, certain before likely.

    busy_time, rwnd_limited and sndbuf_limited are clocks of the kernel (``tcp_chrono_start``), so limits by windows and
    buffers are certain. Before Linux 4.10 they are NaN, and only a full send buffer shows. A queue and a small
    congestion window are distinguished by comparing the RTT with the minimum RTT.
    """
    sample = changes.sample
    bbr = sample.bbr_known
    cap, pace = sample.field("max_pacing_rate"), sample.field("pacing_rate")
    # Without a cap the value is the largest number; in older kernels that of 32 bits.
    capped = (cap < layout.UNPACED / 2) & (cap != 2**32 - 1)
    paced = capped & (pace >= 0.99 * cap) & (changes.mean_bps >= NEAR * 8 * cap)
    growing = bbr & (sample.bbr["pacing_gain"] / 256 > STARTUP_GAIN)
    full = (changes.standing >= MOSTLY) | _used(changes) | (bbr & ~growing)
    silent = (changes.segments == 0) & (sample.field("unacked") == 0) & (sample.field("notsent_bytes").clip(0) == 0)
    waits = (changes.waiting >= MOSTLY) | (changes.busy < BUSY)
    known = ~np.isnan(changes.window_s) & ~np.isnan(changes.segments)
    return np.select(
        [
            ~known,
            silent,
            changes.receive_window >= MOSTLY,
            np.fmax(changes.send_buffer, changes.filled) >= MOSTLY,
            waits & (changes.receive_window >= PART),
            waits & (changes.send_buffer >= PART),
            waits,
            changes.receive_window >= PART,
            changes.send_buffer >= PART,
            paced,
            full,
        ],
        [
            UNKNOWN,
            IDLE,
            RECEIVE_WINDOW,
            SEND_BUFFER,
            RECEIVE_WINDOW,
            SEND_BUFFER,
            APPLICATION,
            RECEIVE_WINDOW,
            SEND_BUFFER,
            PACING,
            PATH,
        ],
        CONGESTION_WINDOW,
    )


def why(changes: Changes, at: int, limit: int) -> str:
    """The reason for a connection's limit, in a sentence."""
    busy, waiting = float(changes.busy[at]), float(changes.waiting[at])
    if limit == UNKNOWN:
        return "unknown: needs two samples, and a kernel that counts the bytes sent"
    if limit == IDLE:
        return "nothing was sent"
    if limit == APPLICATION:
        if busy < BUSY:
            return f"data was in flight only {busy:.0%} of the time"
        return f"the send buffer was empty in {waiting:.0%} of the samples"
    if limit == RECEIVE_WINDOW:
        return f"the peer's window was closed {float(changes.receive_window[at]):.0%} of the time"
    if limit == SEND_BUFFER:
        clock, samples = float(changes.send_buffer[at]), float(changes.filled[at])
        if np.isnan(clock) or samples > clock:
            return f"the send buffer was full and all of it in flight in {samples:.0%} of the samples"
        return f"the send buffer was too small {clock:.0%} of the time"
    if limit == PACING:
        return "it sends at the maximum that the application set (SO_MAX_PACING_RATE)"
    if limit == PATH:
        if changes.standing[at] >= MOSTLY:
            return f"the path has a queue: the RTT is {_times(changes, at)} its minimum"
        if _used(changes)[at]:
            used = min(1.0, float(changes.mean_bps[at] / changes.standing_bps[at]))
            return f"the path sometimes has a queue, and the connection uses {used:.0%} of the bottleneck's rate"
        return "BBR sends at its estimate of the bottleneck's rate"
    queue = "the path has no queue" if changes.standing[at] == 0 else "the path sometimes has a queue"
    if changes.lost[at] > 0:
        return f"losses keep the window small; {queue}"
    return f"the window is growing: no recent losses, and {queue}"


def _used(changes: Changes) -> NDArray[np.bool_]:
    """Whether the bottleneck's rate is used although its queue is sometimes empty, as short queues are."""
    return (changes.standing >= PART) & (changes.mean_bps >= USED * changes.standing_bps)


def _times(changes: Changes, at: int) -> str:
    least = float(changes.sample.field("min_rtt")[at]) / 1e6
    return f"{float(changes.rtt_mean_s[at]) / least:.1f} times" if least > 0 else "above"
