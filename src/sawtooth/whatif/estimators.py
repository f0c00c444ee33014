"""Chooses how a path is estimated: by the core from a capture, from the numbers given, or from totals."""

from __future__ import annotations

from dataclasses import replace

from sawtooth.whatif.estimate import Estimate, no_ack_loss, single_losses
from sawtooth.whatif.from_totals import from_sums
from sawtooth.whatif.observation import Observed


def estimate(observed: Observed) -> Estimate:
    """The path behind an observation. Raises SawtoothError ``not-a-measurement``, and as ``Observed.check`` does."""
    observed.check()
    if observed.path is not None:
        # A replay can only decide with a known control.
        return replace(observed.path, by_replay=observed.path.by_replay and observed.cc is not None)
    if observed.given:
        return _given(observed)
    return from_sums(observed)


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
