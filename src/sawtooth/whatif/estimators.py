"""Chooses how a path is estimated: by the core from a capture, from the numbers given, or from totals."""

from __future__ import annotations

from dataclasses import replace

from sawtooth.whatif.estimate import Estimate, no_ack_loss, single_losses
from sawtooth.whatif.from_totals import from_sums
from sawtooth.whatif.kinds import MANAGED, NOT_SEEN, simulated
from sawtooth.whatif.observation import Observed
from sawtooth.whatif.quantity import Estimated


def estimate(observed: Observed) -> Estimate:
    """The path behind an observation. Raises SawtoothError ``not-a-measurement``, and as ``Observed.check`` does."""
    observed.check()
    if observed.path is not None:
        # A replay can only decide with a known control.
        path = _managed(observed, observed.path)
        return replace(path, by_replay=path.by_replay and observed.cc is not None)
    if observed.given:
        return _given(observed)
    return from_sums(observed)


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
