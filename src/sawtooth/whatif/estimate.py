"""Estimate: the path behind an observed transfer, each quantity with its interval and how it was got."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sawtooth.whatif.estimated import Estimated
from sawtooth.whatif.observed import Observed

LIMITED = 0.2
"""A window or buffer that limited the transfer for a larger share of its time is part of what is replayed."""
UNKNOWN_QUEUE_BDP = (0.2, 1.0, 4.0)
FASTER = 5.0
"""How far above a lower bound the replay tries."""


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


def poisson_interval(count: int) -> tuple[float, float]:
    """The middle 90% of the mean of a Poisson count: Jeffreys' gamma(count + 1/2), with 0 at the low end of none."""
    from scipy.special import gammaincinv

    low = 0.0 if count == 0 else float(gammaincinv(count + 0.5, 0.05))
    return low, float(gammaincinv(count + 0.5, 0.95))
