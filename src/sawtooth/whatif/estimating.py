"""Which way leads from an observation to its path: the core's estimate, the numbers that were given, or its sums."""

from __future__ import annotations

from dataclasses import replace

from sawtooth.whatif.estimate import Estimate, no_ack_loss, single_losses
from sawtooth.whatif.observed import Observed
from sawtooth.whatif.summed import from_sums


def estimate(observed: Observed) -> Estimate:
    """The path that an observation speaks of. Raises SawtoothError ``not-a-measurement``, and as ``Observed.check``."""
    observed.check()
    if observed.path is not None:
        # Only with a known control a replay can tell.
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
