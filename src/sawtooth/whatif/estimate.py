"""Estimate: the path behind an observed transfer. Each quantity has its interval and a note on how it was obtained."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from sawtooth.whatif.observation import Observed
from sawtooth.whatif.quantity import Estimated

TAIL_DROP = "pfifo"
UNKNOWN_QUEUE_BDP = (0.2, 1.0, 4.0)
FASTER = 5.0
"""How far above a lower bound the replay tries, as a factor."""


@dataclass(frozen=True)
class Estimate:
    """The estimated path, and the limits that the hosts add.

    ``rate`` is in bit/s of Ethernet frames as Linux counts them; ``rtt`` in s (propagation only); ``queue`` in packets;
    ``loss`` and ``ack_loss`` are shares. ``burst`` is the mean length of a loss burst in packets, ``burst_loss`` the
    share of its packets that is lost. ``window`` is the data in bytes that the hosts allow in flight, if that was a
    limit. ``by_replay``: the input gives only bounds for the loss, and the replay keeps the values that reproduce the
    observation. ``queue_kinds``: those of scenarios with the probability of each; ``managed_loss``: the random loss if
    the queue is none with tail drop, where that differs.
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
    queue_kinds: tuple[tuple[str, float], ...] = ((TAIL_DROP, 1.0),)
    managed_loss: Estimated | None = None

    @property
    def quantities(self) -> dict[str, Estimated]:
        """The known quantities by name, in the order of the text."""
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
        described["queue_kinds"] = dict(self.queue_kinds)
        described["fitted_by_replay"] = self.by_replay
        described["cannot_tell"] = list(self.cannot_tell)
        return described


def single_losses() -> Estimated:
    return Estimated.exact(1.0, "each packet lost independently, because the input does not show runs")


def no_ack_loss(how: str) -> Estimated:
    return Estimated.exact(0.0, how)


def window_limit(observed: Observed) -> Estimated | None:
    """The data in flight that the receive window or the send buffer allowed, if the transfer waited for it."""
    return next((limit for limit, _ in _hosts(observed)), None)


def beyond_window(observed: Observed) -> tuple[str, ...]:
    """Quantities that stay unknown because the hosts, not the path, limited the transfer."""
    return tuple(said for _, said in _hosts(observed))


def _hosts(observed: Observed) -> list[tuple[Estimated, str]]:
    """For each host that limited the transfer: the data in bytes that it allowed in flight, and what stays unknown
    because of it."""
    from sawtooth import _core

    flight = None
    if observed.goodput_bps is not None and observed.rtt_mean_s is not None:
        flight = observed.goodput_bps * observed.rtt_mean_s / 8
    found = []
    for limit, host, size, how in (
        ("receive window", "receiver", observed.window_bytes, "the largest receive window; it"),
        ("send buffer", "sender", flight, "goodput times RTT; the send buffer"),
    ):
        share = observed.limited.get(limit, 0.0)
        bound = None if size is None else _core.host_limit(float(size), share, limit, host, how)
        if bound is not None:
            found.append((Estimated(**json.loads(bound[0])), bound[1]))
    return found


def poisson_interval(count: int) -> tuple[float, float]:
    """The middle 90% of the mean of a Poisson count: Jeffreys' gamma(count + 1/2); the low end is 0 if ``count`` is
    0."""
    from sawtooth import _core

    return _core.poisson_interval(count)
