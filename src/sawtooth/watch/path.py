"""Path: the range of paths that is consistent with the samples of a connection. Replays narrow it."""

from __future__ import annotations

from sawtooth.whatif import Estimate, Estimated, Observed
from sawtooth.whatif.estimate import (
    FASTER,
    UNKNOWN_QUEUE_BDP,
    beyond_window,
    no_ack_loss,
    poisson_interval,
    single_losses,
    window_limit,
)

SAMPLE = 0.1
"""Relative error by which the highest delivery rate sample may exceed the bottleneck's rate."""
ACKNOWLEDGED = 2
"""Number of segments per RTT by which it may be below: as many as one acknowledgement covers."""
MILLISECOND = 1e-3


def left_open(observed: Observed) -> Estimate:
    """The range of paths. Raises SawtoothError as ``Observed.check``."""
    observed.check()
    rate = _rate(observed)
    rtt = _rtt(observed, rate)
    return Estimate(
        rate=rate,
        rtt=rtt,
        queue=_queue(observed, rate, rtt),
        loss=_loss(observed),
        burst=single_losses(),
        ack_loss=no_ack_loss("not visible to the sender"),
        window=window_limit(observed),
        by_replay=True,
        cannot_tell=beyond_window(observed),
    )


def full(observed: Observed) -> bool:
    """Whether the bottleneck was seen full: BBR has found its bandwidth, or a queue stood and no higher rate was
    seen."""
    fastest = max(observed.delivery_bps or 0.0, observed.goodput_bps or 0.0)
    return bool(observed.bottleneck_bps) or fastest <= (1 + SAMPLE) * (observed.standing_bps or 0.0)


def _rate(observed: Observed) -> Estimated:
    wire = observed.frame_bytes / observed.mss
    # The bottleneck cannot be slower than the goodput.
    least = (observed.goodput_bps or 0.0) * wire
    if not full(observed):
        value = max(observed.delivery_bps or 0.0, observed.goodput_bps or 0.0) * wire
        how = "the highest rate seen; the path had no queue, so the bottleneck may be faster"
        return Estimated(value, value, value * FASTER, how, "at least")
    told = observed.bottleneck_bps or max(observed.standing_bps or 0.0, observed.delivery_bps or 0.0)
    value = max(told * wire, least)
    flight = max(ACKNOWLEDGED, value * (observed.rtt_mean_s or 0.0) / 8 / observed.frame_bytes)
    how = (
        "BBR's estimate of the bottleneck"
        if observed.bottleneck_bps
        else "the highest delivery rate while the path had a queue"
    )
    return Estimated(value, max(least, value * (1 - SAMPLE)), value * (1 + ACKNOWLEDGED / flight), how, "at least")


def _rtt(observed: Observed, rate: Estimated) -> Estimated:
    """The kernel's minimum RTT may come from a SYN, which takes no serialization time, or from a full frame."""
    seen = observed.rtt_min_s or MILLISECOND
    low = max(seen - observed.frame_bytes * 8 / rate.value, seen * 0.05)
    high = seen + (MILLISECOND if in_milliseconds(seen) else 0.0)
    return Estimated((low + high) / 2, low, high, "the minimum RTT", "at most")


def in_milliseconds(least_s: float) -> bool:
    """Whether the kernel's RTT comes from a TCP timestamp, after losses. It then has a resolution of 1 ms and may be up
    to 1 ms too small."""
    return round(least_s * 1e6) % 1000 == 0


def _queue(observed: Observed, rate: Estimated, rtt: Estimated) -> Estimated:
    bdp = max(1.0, rate.value * rtt.value / 8 / observed.frame_bytes)
    low, _, high = (part * bdp for part in UNKNOWN_QUEUE_BDP)
    how = "unknown; 0.2 to 4 bandwidth-delay products are tried"
    if full(observed) and observed.rtt_max_s is not None:
        seen = (observed.rtt_max_s - rtt.high) * rate.low / 8 / observed.frame_bytes
        low, high = seen, max(high, 3 * seen)
        how = "at least the largest queue delay, times the bottleneck's rate"
    low, high = max(2.0, low), max(4.0, high)
    return Estimated((low * high) ** 0.5, low, high, how, "at least")


def _loss(observed: Observed) -> Estimated:
    count, segments = observed.retransmits or 0, observed.segments or 1
    most = min(0.5, poisson_interval(count)[1] / segments)
    how = f"{count} of {segments} segments retransmitted; any part of them may be drops of a full queue"
    return Estimated(most / 2, 0.0, most, how, "at most")
