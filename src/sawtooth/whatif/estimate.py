"""Estimate: the path behind an observed transfer, each quantity with its interval and how it was got."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sawtooth.errors import InputError
from sawtooth.whatif.estimated import Estimated
from sawtooth.whatif.observed import Observed

LIMITED = 0.2
"""A window or buffer that limited the transfer for a larger share of its time is part of what is replayed."""
UNKNOWN_QUEUE_BDP = (0.2, 1.0, 4.0)
FASTER = 5.0
"""How far above a lower bound the replay tries."""
STEADY, COMMON, FAST = 0.03, 0.4, 0.8
"""A plateau: so near each other, such a share of the intervals, and not much below the fastest of them."""


@dataclass(frozen=True)
class Estimate:
    """The path and what the hosts add to it.

    ``rate`` in bit/s of Ethernet frames as Linux counts them, ``rtt`` (propagation only) in s, ``queue`` in packets,
    ``loss`` and ``ack_loss`` as shares; ``burst`` is the mean length of a burst of losses in packets, ``burst_loss``
    the share of these that is lost. ``window`` is what the hosts let be in flight, in bytes, where that was a limit.
    ``by_replay``: the input leaves the loss open between bounds, and the replay keeps what reproduces the observation.
    """

    rate: Estimated
    rtt: Estimated
    queue: Estimated
    loss: Estimated
    burst: Estimated
    ack_loss: Estimated
    burst_loss: float = 1.0
    delayed_ack: bool = True
    delayed_ack_how: str = "assumed"
    window: Estimated | None = None
    by_replay: bool = False
    cannot_tell: tuple[str, ...] = ()

    @property
    def quantities(self) -> dict[str, Estimated]:
        """Those that are known, by name, in the order of the text."""
        named = {
            "rate": self.rate,
            "rtt": self.rtt,
            "queue": self.queue,
            "loss": self.loss,
            "burst": self.burst,
            "ack_loss": self.ack_loss,
            "window": self.window,
        }
        return {name: value for name, value in named.items() if value is not None}

    def describe(self) -> dict[str, Any]:
        """As JSON values."""
        described: dict[str, Any] = {name: value.describe() for name, value in self.quantities.items()}
        described["delayed_ack"] = {"value": self.delayed_ack, "how": self.delayed_ack_how}
        described["fitted_by_replay"] = self.by_replay
        described["cannot_tell"] = list(self.cannot_tell)
        return described


def estimate(observed: Observed) -> Estimate:
    """The path that an observation speaks of. Raises SawtoothError ``not-a-measurement``, and as ``Observed.check``."""
    observed.check()
    if observed.trace is not None:
        from sawtooth.whatif.traced import from_trace

        return from_trace(observed, observed.trace)
    if observed.given:
        return _given(observed)
    return _summary(observed)


def single_losses() -> Estimated:
    return Estimated.exact(1.0, "each packet by itself: nothing is known of runs")


def no_ack_loss(how: str) -> Estimated:
    return Estimated.exact(0.0, how)


def window_limit(observed: Observed) -> Estimated | None:
    """What the receive window or the send buffer let be in flight, where the transfer waited for it."""
    share = observed.limited.get("receive window", 0.0)
    if share >= LIMITED and observed.window_bytes is not None:
        how = f"the largest window offered; it was the limit {share:.0%} of the time"
        return Estimated.exact(observed.window_bytes, how)
    share = observed.limited.get("send buffer", 0.0)
    if share >= LIMITED and observed.goodput_bps is not None and observed.rtt_mean_s is not None:
        flight = observed.goodput_bps * observed.rtt_mean_s / 8
        how = f"throughput times RTT: the send buffer was the limit {share:.0%} of the time"
        return Estimated.exact(flight, how)
    return None


def beyond_window(observed: Observed) -> tuple[str, ...]:
    """What stays open because hosts, not the path, held the transfer back."""
    said = []
    for limit, host in (("receive window", "receiver"), ("send buffer", "sender")):
        share = observed.limited.get(limit, 0.0)
        if share >= LIMITED:
            said.append(
                f"the {limit} limited the transfer {share:.0%} of the time: what the path gives with a larger one "
                f"cannot be told from this; the answers are for this {host} as it is"
            )
    return tuple(said)


def _given(observed: Observed) -> Estimate:
    given = observed.given
    return Estimate(
        rate=given["rate"],
        rtt=given["rtt"],
        queue=given["queue"],
        loss=given["loss"],
        burst=single_losses(),
        ack_loss=no_ack_loss("assumed"),
    )


def _summary(observed: Observed) -> Estimate:
    """From sums and means: what iperf3 and ss tell."""
    rate, full = _rate(observed)
    rtt = _rtt(observed, rate, full)
    queue = _queue(observed, rate, rtt, full)
    loss, by_replay = _loss(observed, full)
    cannot = list(beyond_window(observed))
    if rate.bound:
        cannot.append("the bottleneck was never seen full: its rate is a lower bound, and so is what BBR gets of it")
    return Estimate(
        rate=rate,
        rtt=rtt,
        queue=queue,
        loss=loss,
        burst=single_losses(),
        ack_loss=no_ack_loss("not visible in this input"),
        window=window_limit(observed),
        by_replay=by_replay and observed.cc is not None and observed.goodput_bps is not None,
        cannot_tell=tuple(cannot),
    )


def _rate(observed: Observed) -> tuple[Estimated, bool]:
    """The bottleneck's rate, and whether it was seen full."""
    wire = observed.frame_bytes / observed.mss
    if observed.bottleneck_bps:
        value = observed.bottleneck_bps * wire
        if (observed.goodput_bps or 0) < 1.02 * observed.bottleneck_bps:
            how = "BBR's own filter: the largest delivery rate of its last ten round trips"
            return Estimated(value, value * 0.95, value * 1.05, how), True
    candidates = [value for value in (observed.goodput_bps, observed.delivery_bps) if value]
    rates = observed.rates_bps
    if rates is not None and rates.size >= 5:
        middle, half, share = _plateau(rates)
        if share >= COMMON and middle > FAST * np.quantile(rates, 0.9) and "receive window" not in observed.limited:
            half = max(0.01, half)
            how = f"the plateau: {share:.0%} of the intervals have this rate, to {STEADY:.0%}"
            return Estimated(middle * wire, middle * wire * (1 - half), middle * wire * (1 + half), how), True
    if not candidates:
        message = "it says neither how long the transfer took nor how fast it was"
        raise InputError(
            "not-a-measurement", message, fix="look while data is sent: ss -tin prints busy: and delivery_rate then"
        )
    if observed.standing_bps and observed.standing_bps >= max(candidates):
        value = observed.standing_bps * wire
        how = "the delivery rate while a queue stood (rtt above minrtt)"
        return Estimated(value, value * 0.9, value * 1.1, how), True
    value = max(candidates) * wire
    how = "the fastest that was seen; no plateau, so the bottleneck may be faster"
    return Estimated(value, value, value * FASTER, how, "at least"), False


def _plateau(rates: NDArray[np.float64]) -> tuple[float, float, float]:
    """The rate that most intervals share: its middle, how far nine of ten of them are from it, their share of all."""
    logs = np.sort(np.log(np.maximum(rates, 1.0)))
    inside = np.searchsorted(logs, logs + 2 * STEADY, "right") - np.arange(logs.size)
    at = int(np.argmax(inside))
    chosen = np.exp(logs[at : at + inside[at]])
    middle = float(np.median(chosen))
    return middle, float(np.quantile(np.abs(chosen / middle - 1), 0.9)), float(inside[at] / logs.size)


def _rtt(observed: Observed, rate: Estimated, full: bool) -> Estimated:
    seen = observed.rtt_min_s
    if seen is None:
        how = "not in this input (a receiver's report has none): 1 to 200 ms is tried"
        return Estimated(0.02, 0.001, 0.2, how, "at most")
    base = max(seen - observed.frame_bytes * 8 / rate.value, seen * 0.05)
    if not observed.rtt_smoothed:
        return Estimated(base, base * 0.97, base * 1.03, "the least round trip, less a frame's own time")
    if not full:
        return Estimated(base, base * 0.85, base * 1.05, "the least smoothed round trip, less a frame's own time")
    how = "the least smoothed round trip; a queue may have stood in it"
    return Estimated(base, base * 0.4, base, how, "at most")


def _queue(observed: Observed, rate: Estimated, rtt: Estimated, full: bool) -> Estimated:
    bdp = max(1.0, rate.value * rtt.value / 8 / observed.frame_bytes)
    largest = observed.rtt_max_s
    if largest is None or not full:
        low, middle, high = (max(2.0, part * bdp) for part in UNKNOWN_QUEUE_BDP)
        how = "never seen full: between 0.2 and 4 bandwidth-delay products is tried"
        return Estimated(middle, low, high, how, "at least")
    seen = max(2.0, (largest - rtt.value) * rate.value / 8 / observed.frame_bytes)
    how = "the largest round trip above the base, at the bottleneck's rate"
    return Estimated(seen * 1.2, seen * 0.9, max(seen * 3, bdp * 0.5), how, "at least")


def _loss(observed: Observed, full: bool) -> tuple[Estimated, bool]:
    """The share lost at random, and whether only the replay can tell it from losses at a full queue."""
    share = observed.retransmitted
    if share is None:
        how = "not in this input (only a sender counts what it sends again): 0 to 1% is tried"
        return Estimated(0.001, 0.0, 0.01, how, "at most"), True
    count, segments = observed.retransmits or 0, observed.segments or 1
    low, high = poisson_interval(count)
    if full:
        how = (
            f"{count} of {segments} segments sent again; the queue was full at times, so any part of them may be random"
        )
        return Estimated(share / 2, 0.0, high / segments, how, "at most"), True
    if count and observed.from_start:
        how = f"{count} of {segments} segments sent again; slow start may have lost any part of them at a full queue"
        return Estimated(share / 2, 0.0, high / segments, how, "at most"), True
    how = f"{count} of {segments} segments sent again, the queue never seen full"
    return Estimated(share, low / segments, high / segments, how), False


def poisson_interval(count: int) -> tuple[float, float]:
    """The middle 90% of the mean of a Poisson count: Jeffreys' gamma(count + 1/2), with 0 at the low end of none."""
    from scipy.special import gammaincinv

    low = 0.0 if count == 0 else float(gammaincinv(count + 0.5, 0.05))
    return low, float(gammaincinv(count + 0.5, 0.95))
