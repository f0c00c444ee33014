"""Which way leads from an observation to its path: its trace, the numbers that were given, or its sums."""

from __future__ import annotations

from sawtooth.whatif.estimate import Estimate, no_ack_loss, single_losses
from sawtooth.whatif.observed import Observed
from sawtooth.whatif.summed import from_sums
from sawtooth.whatif.traced import from_trace


def estimate(observed: Observed) -> Estimate:
    """The path that an observation speaks of. Raises SawtoothError ``not-a-measurement``, and as ``Observed.check``."""
    observed.check()
    if observed.trace is not None:
        return from_trace(observed, observed.trace)
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
