"""Chooses how a path is estimated: by the core from a capture, from the numbers given, or from totals."""

from __future__ import annotations

from dataclasses import replace

from sawtooth.whatif.estimate import UNKNOWN_QUEUE_BDP, Estimate, no_ack_loss, single_losses
from sawtooth.whatif.from_totals import from_sums
from sawtooth.whatif.kinds import MANAGED, NOT_SEEN, simulated
from sawtooth.whatif.observation import Observed
from sawtooth.whatif.quantity import Estimated
from sawtooth.whatif.shared import LIKELY, learned, likely

SAME = 0.005
"""If the data's shortest round trip is below the handshake's by more than this share, the handshake waited: full
packets take longer to send."""
EMPTY = 1 / (1 + UNKNOWN_QUEUE_BDP[-1])
"""Least base round trip as a part of the shortest that was seen: the longest queue that is tried may always have been
full."""


def estimate(observed: Observed) -> Estimate:
    """The path behind an observation. Raises SawtoothError ``not-a-measurement``, and as ``Observed.check`` does."""
    observed.check()
    if observed.path is not None:
        # A replay can only decide with a known control.
        path = _managed(observed, observed.path)
        if likely(observed) >= LIKELY:
            path = replace(path, rtt=_behind_others(observed, path.rtt))
        if learned().knows(observed):
            path = replace(path, rate=_left(path.rate), queue=_left(path.queue))
        return replace(path, by_replay=path.by_replay and observed.cc is not None)
    if observed.given:
        return _given(observed)
    return from_sums(observed)


def _behind_others(observed: Observed, rtt: Estimated) -> Estimated:
    """The base round trip where others probably use the path: the queue may not have been empty at the start, and the
    bottleneck may be faster than what they leave."""
    took, least = observed.rtt_handshake_s, observed.rtt_min_s
    if not took or not least:
        return rtt
    if least < took * (1 - SAME):
        how = "the minimum RTT; the handshake took longer, so others may have filled the queue before it"
        return Estimated(least, least * EMPTY, least, how, "at most")
    return replace(rtt, high=max(rtt.high, took))


def _left(value: Estimated) -> Estimated:
    """A rate or queue where others may use the path: the bottleneck has more than they leave. Nothing is tried above,
    since what changes give was learned."""
    return replace(value, high=value.value, bound="at least", how=f"{value.how}; it is what others leave")


def _managed(observed: Observed, path: Estimate) -> Estimate:
    """A queue that drops before it is full takes its drops from what seemed lost at random."""
    if not observed.kinds:
        return path
    queue, process = observed.kinds["queue_kind"], observed.kinds["loss_process"]
    if process.answer == "congestion":
        loss = Estimated.exact(0.0, "the queue dropped all that was lost")
    else:
        how = f"{path.loss.how}; any part of them may be drops by the queue"
        loss = Estimated(path.loss.value / 2, 0.0, path.loss.high, how, "at most")
    if queue.answer in MANAGED:
        if (kind := MANAGED[queue.answer]) is None:
            return path
        burst = single_losses() if loss.high == 0 else path.burst
        return replace(path, queue_kinds=((kind, 1.0),), loss=loss, burst=burst, by_replay=loss.high > 0)
    if queue.answer not in (None, NOT_SEEN) or not queue.shares:
        return path
    return replace(path, queue_kinds=simulated(queue), managed_loss=loss)


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
