"""The path out of a trace: rate from trains of deliveries, queue from delays at losses, loss apart from congestion."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sawtooth.whatif.estimate import (
    FASTER,
    UNKNOWN_QUEUE_BDP,
    Estimate,
    beyond_window,
    no_ack_loss,
    poisson_interval,
    window_limit,
)
from sawtooth.whatif.estimated import Estimated
from sawtooth.whatif.gathered import gathered, overloaded
from sawtooth.whatif.observed import Observed, Trace

Floats = NDArray[np.float64]

SHORT, LONG = (2, 3, 4, 6, 8, 16), (64, 32)
"""Deliveries in a row over which a rate is taken. Packets that left the bottleneck back to back keep its spacing: short
trains show it even where the window is a handful; in long ones the jitter of clocks and acknowledgements averages out.
"""
TIGHT = 0.02
COMMON = 0.05
"""A rate that so many short trains share, to 2%, is the bottleneck's: nothing else spaces packets that evenly."""
SHARP = 2.5
"""Times as many trains at that rate as at those 4% faster and slower: without it, it is a broad hill, of chance."""
STEADY = 0.5
"""The share of long trains at one rate from which the bottleneck was busy most of the time."""
FEWEST_TRAINS = 12
NEAR_FULL = 0.8
"""Of the largest delay: above it a queue counts as nearly full."""
LEAST_FRAMES = 2.0
"""Frames of waiting below which there was no queue to speak of."""
FEWEST_GRAINS = 3
"""Units of the delays below which a full queue cannot be told from an empty one."""
SPARSE = 0.5
CHANCE = 1e-3
SLOWER = 0.1
FEWEST_BUSY = 20
APART = math.log(1.4)
"""Trains faster than the busy bottleneck by more than this were bunched together behind it."""
SYN_BYTES = 74
_JITTER = 0.005
NEAR = 0.25
BURSTY = 1.5
"""Runs a burst from which on they are no chance: a quarter of the mean time apart, 1.28 belong together at random."""
DENSER = 20.0
"""Times as dense as all losses are those within bursts: what is near at random is so four times, or a little more."""


def from_trace(observed: Observed, trace: Trace) -> Estimate:
    """Each quantity from what the segments show."""
    least = [trip for trip in (observed.rtt_handshake_s, observed.rtt_full_s or observed.rtt_min_s) if trip is not None]
    groups = gathered(trace)
    trace = groups or trace
    got = (observed.goodput_bps or 0.0) * observed.frame_bytes / observed.mss
    rate = bottleneck(trace, observed, min(least)).above(got * _until_acknowledged(observed))
    rtt = base_rtt(observed, rate)
    frame_s = observed.frame_bytes * 8 / rate.value
    split = separate(trace, frame_s, got / rate.value)
    if groups is not None:
        split = by_load(groups, split, frame_s, min(least))
    split = by_time(trace, split, observed.rtt_mean_s or min(least))
    queue = queue_limit(split, rate, rtt, observed.frame_bytes)
    delayed, delayed_how = delayed_acks(trace)
    cannot = list(beyond_window(observed))
    if rate.bound:
        cannot.append("the bottleneck was never seen full: its rate is a lower bound, and so is what BBR gets of it")
    if not split.known:
        cannot.append("random losses from those at a full queue: this side of the capture shows no delays")
    return Estimate(
        rate=rate,
        rtt=rtt,
        queue=queue,
        loss=random_loss(split),
        burst=runs(split),
        burst_loss=burst_loss(split),
        ack_loss=ack_loss(trace),
        delayed_ack=delayed,
        delayed_ack_how=delayed_how,
        window=window_limit(observed),
        by_replay=not split.known and trace.lost_t_s.size > 0 and observed.cc is not None,
        cannot_tell=tuple(cannot),
    )


def _until_acknowledged(observed: Observed) -> float:
    """The transfer's duration, of data, over that until its last acknowledgement at the latest."""
    duration = observed.duration_s
    return 1.0 if duration is None else duration / (duration + (observed.rtt_max_s or 0.0))


def train_rates(trace: Trace, length: int) -> Floats:
    """Payload bit/s of every train of ``length`` deliveries after a first one, none with a break in it."""
    t_s, size = trace.delivered_t_s, trace.delivered_bytes
    if t_s.size <= length:
        return np.empty(0)
    total = np.concatenate([[0.0], np.cumsum(np.nan_to_num(size))])
    broken = np.concatenate([[0], np.cumsum(np.isnan(size))])
    count = t_s.size - length
    last = np.arange(count) + length
    took = t_s[last] - t_s[:count]
    whole = (broken[last + 1] - broken[np.arange(count) + 1] == 0) & (took > 0)
    return np.asarray((total[last + 1] - total[np.arange(count) + 1])[whole] * 8 / took[whole], dtype=float)


@dataclass(frozen=True)
class Cluster:
    """The densest rate among the faster ones: payload bit/s, half its width as a share, the share of trains there, and
    how many times as many that are as beside it.
    """

    bps: float
    half: float
    share: float
    stands_out: float


def _cluster(rates: Floats) -> Cluster:
    if rates.size < FEWEST_TRAINS:
        return Cluster(0.0, 0.0, 0.0, 0.0)
    logs = np.sort(np.log(rates[rates > np.quantile(rates, 0.99) / 2]))
    ends = np.searchsorted(logs, logs + 2 * TIGHT, "right")
    inside = ends - np.arange(logs.size)
    at = int(np.argmax(inside))
    chosen = np.exp(logs[at : ends[at]])
    middle = float(np.median(chosen))
    half = float(np.quantile(np.abs(chosen / middle - 1), 0.9))
    around = np.searchsorted(logs, (logs[at] - 2 * TIGHT, logs[at] + 4 * TIGHT))
    beside = (around[1] - around[0] - inside[at]) / 2
    share = inside[at] / rates.size if inside[at] >= FEWEST_TRAINS else 0.0
    return Cluster(middle, half, share, float(inside[at] / max(beside, 1.0)))


def bottleneck(trace: Trace, observed: Observed, base_s: float) -> Estimated:
    """bit/s of full Ethernet frames."""
    wire = observed.frame_bytes / observed.mss
    found = {length: _cluster(train_rates(trace, length)) for length in (*SHORT, *LONG)}
    sharp = [length for length in SHORT if found[length].share >= COMMON and found[length].stands_out >= SHARP]
    short = max(sharp, key=lambda at: found[at].bps, default=0)
    chosen = next((length for length in LONG if found[length].share >= STEADY), 0)
    if (
        short
        and chosen
        and found[short].bps > found[chosen].bps * (1 + SLOWER)
        and not _stands(trace, found[chosen].bps)
    ):
        # Evenly spread by a window or a pacer, not by a bottleneck: bursts went through faster.
        chosen = 0
    chosen = chosen or short
    busy = busy_rates(trace, base_s, found[chosen].bps if chosen else 0.0)
    if busy.size >= FEWEST_BUSY:
        low, middle, high = np.quantile(busy, (0.1, 0.5, 0.9)).tolist()
        if not chosen or abs(math.log(middle / found[chosen].bps)) > APART:
            how = f"deliveries while packets waited for others, at {busy.size} times: the rate is not steady"
            return Estimated(middle * wire, low * wire, high * wire, how)
    where = "acknowledged at the sender" if trace.sender_side else "arriving at the receiver"
    if chosen:
        cluster = found[chosen]
        how = f"{cluster.share:.0%} of trains of {chosen + 1} deliveries {where} have this rate, to {TIGHT:.0%}"
        half = max(cluster.half, _JITTER)
        return Estimated(cluster.bps * wire, cluster.bps * wire * (1 - half), cluster.bps * wire * (1 + half), how)
    value = max([observed.goodput_bps or 0.0, *(found[length].bps for length in LONG)]) * wire
    how = f"the fastest long trains of deliveries {where}; they share no rate, so the bottleneck may be faster"
    return Estimated(value, value, value * FASTER, how, "at least")


def busy_rates(trace: Trace, base_s: float, bps: float) -> Floats:
    """Payload bit/s of deliveries over the time that a packet had waited, at its own: the bottleneck had no pause then.

    Only where it waited for a quarter of the base round trip and for eight packets (at ``bps``, where that is known);
    one such time in each base round trip.
    """
    if trace.delay_s.size == 0 or trace.delivered_t_s.size < FEWEST_TRAINS:
        return np.empty(0)
    least = min(float(trace.delay_s.min()), trace.floor_s)
    wait = trace.delay_s - least
    enough = max(base_s / 4, 3 * trace.grain_s, 8 * 8 * 1500 / bps if bps else 0.0)
    at = trace.delay_t_s + (trace.delay_s if trace.sender_side else 0.0)
    picked = np.flatnonzero(wait >= enough)
    _, first = np.unique((at[picked] / max(base_s, 1e-3)).astype(np.int64), return_index=True)
    picked = picked[first]
    total = np.concatenate([[0.0], np.cumsum(np.nan_to_num(trace.delivered_bytes))])
    until = np.searchsorted(trace.delivered_t_s, at[picked], "right")
    since = np.searchsorted(trace.delivered_t_s, at[picked] - wait[picked], "right")
    rates = (total[until] - total[since]) * 8 / wait[picked]
    return np.asarray(rates[rates > 0], dtype=float)


def _stands(trace: Trace, bps: float) -> bool:
    """Whether packets usually waited: for more than four of them at this rate."""
    if trace.delay_s.size == 0:
        return False
    frame_s = 8 * 1500 / bps
    return float(np.median(trace.delay_s)) - min(float(trace.delay_s.min()), trace.floor_s) > 4 * frame_s


def base_rtt(observed: Observed, rate: Estimated) -> Estimated:
    """Propagation only: the bottleneck's own time for a frame is the transmitter's, in a scenario."""
    sizes = ((observed.rtt_handshake_s, SYN_BYTES), (observed.rtt_full_s or observed.rtt_min_s, observed.frame_bytes))
    seen, size = min((trip, size) for trip, size in sizes if trip is not None)
    base = max(seen - size * 8 / rate.value, seen * 0.05)
    jitter = max(base * 0.01, 2e-5)
    how = "the least round trip seen, less its frame's time at the bottleneck"
    if observed.from_start:
        return Estimated(
            base, max(base - jitter, base * 0.5), base + jitter, f"{how}; the start was seen, with no queue"
        )
    return Estimated(base, base * 0.8, base + jitter, f"{how}; the start was not seen, so a queue may stand in it")


@dataclass(frozen=True)
class Split:
    """Losses by how long packets waited around them. Delays in s above the least; counts are of segments.

    ``full_s`` is the delay of a full queue, between the median and the most of what waited beside its losses; without
    losses there, the largest delay seen. ``known``: there are delays at all. ``random_at`` marks the random ones of the
    trace's runs of losses; they are so many ``bursts`` in time, which last for ``burst_span`` segments in all.
    """

    known: bool
    full: bool
    full_s: float
    full_low_s: float
    full_high_s: float
    random: int
    random_runs: int
    random_sent: int
    congestive: int
    random_at: NDArray[np.bool_] | None = None
    bursts: int | None = None
    burst_span: int = 0


def separate(trace: Trace, frame_s: float, used: float) -> Split:
    """Losses when the queue was nearly full are congestion's, if there are more of them than of others by far.

    The others' share of the packets that met a queue not nearly full is the path's own: what is expected of it also
    near the full queue decides, by the Poisson distribution, whether the excess there is chance. ``used`` is the share
    of the bottleneck's rate that the transfer got: controls that lose only at a full queue get more than half.
    """
    from scipy.special import gammainc

    sent, lost = int(trace.sent_segments.sum()), int(trace.lost_segments.sum())
    if trace.delay_s.size == 0:
        return Split(False, False, 0.0, 0.0, 0.0, lost, trace.lost_t_s.size, sent, 0)
    least = min(float(trace.delay_s.min()), trace.floor_s)
    most = float(np.quantile(trace.delay_s, 0.9995))
    waited = trace.delay_s - least
    span = most - least
    if 0 < span < FEWEST_GRAINS * trace.grain_s and lost and used > SPARSE:
        return Split(False, False, span, span, span, lost, trace.lost_t_s.size, sent, 0)
    if span < max(LEAST_FRAMES * frame_s, FEWEST_GRAINS * trace.grain_s):
        return Split(True, False, span, span, span, lost, trace.lost_t_s.size, sent, 0)
    at_loss = waited[_nearest(trace.delay_t_s, trace.lost_t_s)]
    at_sent = waited[_nearest(trace.delay_t_s, trace.sent_t_s)]
    near = NEAR_FULL * span - trace.grain_s
    near_loss, near_sent = at_loss >= near, at_sent >= near
    top_lost, top_sent = int(trace.lost_segments[near_loss].sum()), int(trace.sent_segments[near_sent].sum())
    low_lost, low_sent = lost - top_lost, max(1, sent - top_sent)
    # Runs, not segments: a burst is one event.
    events = int(near_loss.sum())
    expected = max(int((~near_loss).sum()), 1) / low_sent * top_sent
    # The chance of so many or more: Poisson's upper tail is the regularised lower gamma function.
    full = top_lost >= 2 and events > 0 and float(gammainc(events, expected)) < CHANCE
    if not full:
        return Split(True, False, span, span, span, lost, trace.lost_t_s.size, sent, 0)
    # A queue that is full is never longer: neighbours that waited less were not right beside the loss.
    low, high = np.quantile(at_loss[near_loss], (0.5, 1.0)).tolist()
    runs_apart = int((~near_loss).sum())
    full_s = max(low, min(span, high))
    return Split(True, True, full_s, low, high, low_lost, runs_apart, low_sent, top_lost, ~near_loss)


def by_load(trace: Trace, split: Split, frame_s: float, trip_s: float) -> Split:
    """Where packets leave together, what they waited is no measure of the queue: a loss is congestion's where more was
    sent around it than the bottleneck takes.
    """
    random = ~overloaded(trace, frame_s, trip_s)
    lost, apart = int(trace.lost_segments.sum()), int(trace.lost_segments[random].sum())
    if apart == lost:
        return split
    sent = int(trace.sent_segments.sum())
    longest_s = split.full_high_s
    return Split(True, True, longest_s, longest_s / 2, longest_s, apart, int(random.sum()), sent, lost - apart, random)


def by_time(trace: Trace, split: Split, trip_s: float) -> Split:
    """With the bursts in time of the random losses: those within a round trip of the one before, and within a quarter
    of the mean time between them, so that what is lost at an even pace is no burst (as in docs/reference/capture.md).
    """
    chosen = np.ones(trace.lost_t_s.size, dtype=bool) if split.random_at is None else split.random_at
    order = np.argsort(trace.lost_t_s[chosen], kind="stable")
    times, lengths = trace.lost_t_s[chosen][order], trace.lost_segments[chosen][order]
    if not split.known or times.size < 2 or trace.sent_t_s.size < 2:
        return split
    near_s = min(trip_s, NEAR * float(trace.sent_t_s[-1] - trace.sent_t_s[0]) / times.size)
    first = np.flatnonzero(np.concatenate([[True], np.diff(times) > near_s]))
    last = np.concatenate([first[1:], [times.size]]) - 1
    total = np.concatenate([[0], np.cumsum(trace.sent_segments)])
    low = np.searchsorted(trace.sent_t_s, times[first])
    high = np.searchsorted(trace.sent_t_s, times[last])
    lost = np.add.reduceat(lengths, first)
    span = np.maximum(total[high] - total[low] + lengths[last], lost)
    return replace(split, bursts=int(first.size), burst_span=int(span.sum()))


def _nearest(among: Floats, wanted: Floats) -> NDArray[np.int64]:
    """Index of the time nearest to each of ``wanted``; both in s, ``among`` in order."""
    right = np.clip(np.searchsorted(among, wanted), 1, max(among.size - 1, 1))
    if among.size == 1:
        return np.zeros(wanted.size, dtype=np.int64)
    left = right - 1
    return np.asarray(np.where(wanted - among[left] <= among[right] - wanted, left, right), dtype=np.int64)


def queue_limit(split: Split, rate: Estimated, rtt: Estimated, frame_bytes: int) -> Estimated:
    """Packets that may wait."""
    bdp = max(1.0, rate.value * rtt.value / 8 / frame_bytes)
    packets = rate.value / 8 / frame_bytes
    if split.full:
        middle = max(1.0, split.full_s * packets)
        low = max(1.0, min(split.full_low_s * packets, middle * 0.95, middle - 1))
        high = max(split.full_high_s * packets, middle * 1.05, middle + 1)
        how = f"packets waited {split.full_s * 1e3:.3g} ms when others were lost, at the bottleneck's rate"
        return Estimated(middle, low, high, how)
    seen = max(1.0, split.full_s * packets)
    if not split.known or seen < LEAST_FRAMES:
        low, middle, high = (max(2.0, part * bdp) for part in UNKNOWN_QUEUE_BDP)
        return Estimated(
            middle, low, high, "no waiting was seen: 0.2 to 4 bandwidth-delay products are tried", "at least"
        )
    how = f"packets waited up to {split.full_s * 1e3:.3g} ms, and no loss marks that as full"
    return Estimated(max(seen * 1.5, bdp), seen, max(seen * 4, bdp * 2), how, "at least")


def random_loss(split: Split) -> Estimated:
    """The share that the path loses whatever its queue."""
    sent = max(1, split.random_sent)
    if not split.known:
        high = poisson_interval(split.random)[1] / sent
        how = f"{split.random} segments lost of {sent}, of which any part may be at a full queue"
        return Estimated(high / 2, 0.0, high, how, "at most")
    # What happens at once is one event, of which there may be more or fewer: a burst, or else a run.
    events = split.bursts if in_bursts(split) and split.bursts else split.random_runs
    low, high = poisson_interval(events)
    length = split.random / events if events else 1.0
    how = f"{split.random} of {sent} segments lost while the queue was not nearly full"
    if split.congestive:
        how += f"; {split.congestive} lost at a full queue are not counted"
    return Estimated(split.random / sent, low * length / sent, high * length / sent, how)


def in_bursts(split: Split) -> bool:
    """Whether the path's own losses come near each other in time, more than by chance."""
    if not (split.known and split.random_sent and split.bursts) or split.bursts < 2:
        return False
    if split.random_runs <= BURSTY * split.bursts:
        return False
    return split.random / split.burst_span > DENSER * split.random / split.random_sent


def burst_loss(split: Split) -> float:
    """The share of packets lost in a burst, from its first loss to its last; all of them where only runs are known."""
    return split.random / split.burst_span if in_bursts(split) and split.burst_span else 1.0


def runs(split: Split) -> Estimated:
    """Mean length of a burst of losses that are the path's own, in packets: from the first lost to the last."""
    if in_bursts(split) and split.bursts:
        mean = split.burst_span / split.bursts
        few, many = poisson_interval(split.bursts)
        how = f"{split.bursts} bursts in time, of {split.random / split.bursts:.3g} losses each among that many packets"
        return Estimated(mean, max(1.0, mean * split.bursts / many), mean * split.bursts / few, how)
    if split.random_runs < 10 or not split.known:
        return Estimated.exact(1.0, "each packet by itself: too few losses to tell")
    mean = split.random / split.random_runs
    share = split.random / max(1, split.random_sent)
    # Packets lost each by itself stand together now and then: 1 / (1 - p) in the mean.
    if mean <= 1 / (1 - share) * 1.15:
        return Estimated.exact(1.0, f"runs of {mean:.2f} segments, as when each packet is lost by itself")
    half = 1.645 * np.sqrt(mean * (mean - 1) / split.random_runs)
    how = f"runs of {mean:.2f} segments in the mean, longer than when each packet is lost by itself"
    return Estimated(mean, max(1.0, mean - half), mean + half, how)


def delayed_acks(trace: Trace) -> tuple[bool, str]:
    """Whether the receiver acknowledges every second segment or each one."""
    steps = trace.segments_an_ack
    if steps.size < FEWEST_TRAINS:
        return True, "assumed: too few acknowledgements in order"
    single = float((steps <= 1.01).mean())
    return single < 0.8, f"{single:.0%} of acknowledgements are for one segment, {np.mean(steps):.2f} in the mean"


def ack_loss(trace: Trace) -> Estimated:
    """Acknowledgements that never came make others cover more; receivers that join segments do the same."""
    steps = trace.segments_an_ack
    if not trace.sender_side:
        return no_ack_loss("not visible behind the path")
    if steps.size < FEWEST_TRAINS:
        return no_ack_loss("too few acknowledgements in order")
    usual = max(1.0, float(np.median(steps)))
    if usual > 2.5:
        return no_ack_loss("the receiver joins segments, which hides lost acknowledgements")
    missing = float(np.maximum(0, np.round(steps / usual) - 1).sum())
    share = missing / (missing + steps.size)
    if share < 0.002:
        return no_ack_loss("nearly every acknowledgement covers what the usual one does")
    how = f"{share:.1%} of acknowledgements seem to be missing; a receiver that joins segments looks the same"
    return Estimated(share / 2, 0.0, share, how, "at most")
