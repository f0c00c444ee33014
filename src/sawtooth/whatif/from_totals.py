"""Estimates a path from totals and means, as iperf3 and ss report them."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sawtooth.errors import InputError
from sawtooth.whatif.arrivals import Arrival
from sawtooth.whatif.estimate import (
    FASTER,
    UNKNOWN_QUEUE_BDP,
    Estimate,
    beyond_window,
    no_ack_loss,
    poisson_interval,
    single_losses,
    window_limit,
)
from sawtooth.whatif.observation import Observed
from sawtooth.whatif.quantity import Estimated
from sawtooth.whatif.standing_queue import SLACK, STANDS, TOGETHER, sure

MILLISECOND = 1e-3
STEADY, COMMON, FAST = 0.03, 0.4, 0.8
"""A plateau: intervals this near each other, at least this share of all, and at least this fraction of the fastest."""
VARIED = STANDS + SLACK
"""If the largest smoothed round trip is this multiple of the smallest, a queue came and went, and may never have been
empty."""
SAME = 0.02
"""By how much a delivery rate may be off that was the same in all samples."""
TIMED = 0.01
"""Share by which times of acknowledgements make a delivery rate too high."""
WELL = 0.05
"""Widest interval of a rate from what a sending socket took, to either side, as a logarithm."""


def from_sums(observed: Observed) -> Estimate:
    """Estimates each quantity as far as totals allow. Raises SawtoothError ``not-a-measurement``."""
    rate, full = _rate(observed)
    rtt = _rtt(observed, rate, full)
    queue = _queue(observed, rate, rtt, full)
    cannot = list(beyond_window(observed))
    if rate.bound:
        cannot.append("the bottleneck's rate: it was never full, so its rate and BBR's goodput are lower bounds")
    return Estimate(
        rate=rate,
        rtt=rtt,
        queue=queue,
        loss=_loss(observed),
        burst=single_losses(),
        ack_loss=no_ack_loss("not visible in this input"),
        window=window_limit(observed),
        by_replay=observed.cc is not None and observed.goodput_bps is not None,
        cannot_tell=tuple(cannot),
    )


def _rate(observed: Observed) -> tuple[Estimated, float]:
    """The bottleneck's rate, and the certainty that it was full."""
    wire = observed.frame_bytes / observed.mss
    candidates = [value for value in (observed.goodput_bps, observed.delivery_bps) if value]
    rates = observed.rates_bps
    if rates is not None and rates.size >= 5 and "receive window" not in observed.limited:
        middle, half, share = _plateau(rates)
        steady = share >= COMMON and middle > FAST * np.quantile(rates, 0.9)
        how = f"{share:.0%} of the intervals have this rate within {STEADY:.0%}"
        if observed.arrival is None and steady:
            half = max(0.01, half)
            return Estimated(middle * wire, middle * wire * (1 - half), middle * wire * (1 + half), how), 1.0
        if observed.arrival is not None and (
            arrived := _arrived(observed, observed.arrival, middle if steady else None)
        ):
            return arrived, 1.0
    if not candidates and not observed.bottleneck_bps:
        message = "it shows neither how long the transfer took nor how fast it was"
        raise InputError(
            "not-a-measurement", message, fix="run ss -tin while data is sent: it then prints busy: and delivery_rate"
        )
    fastest, full = max(candidates, default=observed.bottleneck_bps or 0.0), 0.0
    value = fastest * wire
    how = "the highest rate seen; the rate was not steady, so the bottleneck may be faster"
    least = max(observed.goodput_bps or 0.0, _certain(observed)) or fastest
    rate = Estimated(value, least * wire, value * FASTER, how, "at least")
    if observed.standing_bps:
        # The delivery rate while a queue stood is the bottleneck's, unless something was faster.
        full = observed.standing * sure(observed.standing_bps / fastest, 1 - SLACK)
        value = observed.standing_bps * wire
        how = "the delivery rate while the path had a queue (rtt above minrtt)"
        off = SAME if observed.alone else SLACK
        rate = rate.toward(Estimated(value, value * (1 - off), value * (1 + off), how), full)
    if observed.bottleneck_bps:
        found = sure(-(observed.goodput_bps or 0) / observed.bottleneck_bps, -1 - SLACK)
        value = observed.bottleneck_bps * wire
        how = "BBR's estimate: the highest delivery rate of its last ten round trips"
        rate = rate.toward(Estimated(value, value * 0.95, value * 1.05, how), found)
        full = max(full, found)
    # The bottleneck is at least as fast as what got through.
    return rate.above((observed.goodput_bps or 0.0) * wire), full


def _certain(observed: Observed) -> float:
    """The least rate at which data was delivered, in payload bit/s. A socket's delivery rate is that of a round trip,
    between two acknowledgements that cover ``TOGETHER`` segments each: up to half of these arrived before."""
    delivery, trip = observed.delivery_bps or 0.0, observed.rtt_min_s or 0.0
    if observed.source == "iperf3" or not delivery or not trip:
        return delivery
    counted = delivery * trip / 8 / observed.mss
    return delivery * counted / (counted + TOGETHER / 2) * (1 - TIMED)


def _arrived(observed: Observed, arrival: Arrival, plateau: float | None) -> Estimated | None:
    """The rate of a path that was full, if it is known well enough; ``plateau``: that of most intervals."""
    if arrival.low <= 0 or math.log(arrival.high / arrival.low) / 2 > WELL:
        return None
    same = plateau is not None and abs(math.log(plateau / arrival.value)) <= STEADY
    if not (arrival.consistent and (same or observed.queued)):
        return None
    sign = "the intervals' rate is steady" if same else "the round trip follows the window"
    how = f"what arrived over a long stretch, within what the send buffer may have held; {sign}"
    wire = observed.frame_bytes / observed.mss
    return Estimated(arrival.value * wire, arrival.low * wire, arrival.high * wire, how)


def _plateau(rates: NDArray[np.float64]) -> tuple[float, float, float]:
    """The rate that most intervals share: its median, the distance of nine in ten of them from it, and their share of
    all."""
    logs = np.sort(np.log(np.maximum(rates, 1.0)))
    inside = np.searchsorted(logs, logs + 2 * STEADY, "right") - np.arange(logs.size)
    at = int(np.argmax(inside))
    chosen = np.exp(logs[at : at + inside[at]])
    middle = float(np.median(chosen))
    return middle, float(np.quantile(np.abs(chosen / middle - 1), 0.9)), float(inside[at] / logs.size)


def _rtt(observed: Observed, rate: Estimated, full: float) -> Estimated:
    seen = observed.rtt_min_s
    if seen is None:
        how = "unknown, because a receiver's report has none; 1 to 200 ms is tried"
        return Estimated(0.02, 0.001, 0.2, how, "at most")
    base = max(seen - observed.frame_bytes * 8 / rate.value, seen * 0.05)
    if not observed.rtt_smoothed:
        # It may be that of a SYN, which takes no time to send, or come from a timestamp, in whole milliseconds.
        most = seen + (MILLISECOND if in_milliseconds(seen) else 0.0)
        return Estimated((base + most) / 2, base, most, "the minimum RTT, of a frame or of less")
    how = "the minimum smoothed RTT minus the time to send a frame"
    if rate.bound:
        # A faster bottleneck sends a frame in less time, and the rate may be what others leave of it.
        middle = max(seen - observed.frame_bytes * 8 / rate.high, base)
        empty = Estimated(middle, base * 0.85, max(seen, middle * 1.05), how)
    else:
        empty = Estimated(base, base * 0.85, base * 1.05, how)
    # Queues rarely stand still: a steady round trip is the path's.
    varied = 0.0 if observed.rtt_max_s is None else sure(observed.rtt_max_s / seen, VARIED)
    how = "the minimum smoothed RTT; it may include queue delay"
    return empty.toward(Estimated(base, base * 0.4, seen, how, "at most"), max(full, varied))


def _queue(observed: Observed, rate: Estimated, rtt: Estimated, full: float) -> Estimated:
    """The largest round trip is a lower bound: the queue may hold more than what waited."""
    bdp = max(1.0, rate.value * rtt.value / 8 / observed.frame_bytes)
    low, middle, high = (max(2.0, part * bdp) for part in UNKNOWN_QUEUE_BDP)
    how = "unknown, because it was never full; 0.2 to 4 bandwidth-delay products are tried"
    unknown = Estimated(middle, low, high, how, "at least")
    if observed.rtt_max_s is None:
        return unknown
    seen = max(2.0, (observed.rtt_max_s - rtt.value) * rate.value / 8 / observed.frame_bytes)
    how = "at least the largest queue delay times the bottleneck's rate"
    return unknown.toward(Estimated(seen * 1.2, seen * 0.9, max(seen * 3, bdp * 0.5), how, "at least"), full)


def in_milliseconds(least_s: float) -> bool:
    """Whether the kernel's RTT comes from a TCP timestamp, after losses. It then has a resolution of 1 ms and may be up
    to 1 ms too small."""
    return round(least_s * 1e6) % 1000 == 0


def _loss(observed: Observed) -> Estimated:
    """The share of random loss, which only the replay can separate from losses at a full queue."""
    if observed.retransmitted is None:
        how = "unknown, because only a sender counts retransmissions; 0 to 1% is tried"
        return Estimated(0.001, 0.0, 0.01, how, "at most")
    count, segments = observed.retransmits or 0, observed.segments or 1
    most = min(0.5, poisson_interval(count)[1] / segments)
    how = f"{count} of {segments} segments retransmitted; any part of them may be drops of a full queue"
    return Estimated(observed.retransmitted / 2, 0.0, most, how, "at most")
