"""Time to converge: how long after the last flow starts until all flows have, and keep, their fair share.

As in Dong et al., *PCC: Re-architecting Congestion Control for Consistent High Performance*, NSDI 2015, section 4.2.2:
the earliest time from which the throughput of each second is within 25% of the equal share for five seconds.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from sawtooth.io.table_store import whole
from sawtooth.run import Run
from sawtooth.stats.throughput import rates_by_flow

if TYPE_CHECKING:
    from numpy import ndarray

    Floats = ndarray[Any, Any]

BAND = 0.25
HOLD_S = 5


def converges_s(run: Run) -> float:
    """Seconds from the start of the last flow. NaN if the flows do not converge, or if there are fewer than two.

    The equal share is a connection's part of the total in that second; a flow's connections count together. Flows that
    end early, pause, or whose connections come and go have no such time.
    """
    import numpy as np

    compiled = run.scenario.compile()
    pauses = (one.duration_ns or one.bytes or one.lifetime_ns or one.writes or one.arrivals for one in compiled.flows)
    if len(compiled.flows) < 2 or any(pauses):
        return math.nan
    begins_s, got, step_s = _by_second(run)
    begun_s = max(one.start_ns for one in compiled.flows) / 1e9
    after = begins_s > begun_s - 1e-9
    begins_s, got = begins_s[after], got[after]
    counts = np.array([one.count for one in compiled.flows], dtype=float)
    fair = got.sum(axis=1, keepdims=True) * counts / counts.sum()
    within = (np.abs(got - fair) <= BAND * fair).all(axis=1) & (fair.sum(axis=1) > 0)
    hold = math.ceil(HOLD_S / step_s - 1e-9)
    for at in range(len(within) - hold + 1):
        if within[at : at + hold].all():
            return float(begins_s[at]) - begun_s
    return math.nan


def _by_second(run: Run) -> tuple[Floats, Floats, float]:
    """When each whole second begins, each flow's rate in it (columns), and the length of that second: the interval's
    length if that is longer."""
    import numpy as np

    interval_s = run.scenario.interval.seconds
    together = max(1, round(1 / interval_s))
    rows = whole(run.tables, "intervals", ("t_s", "flow", "goodput_bps"))
    _, bps = rates_by_flow(rows, len(run.scenario.compile().flows))
    seconds = len(bps) // together
    summed = bps[: seconds * together].reshape(seconds, together, bps.shape[1]).sum(axis=1)
    step_s = together * interval_s
    return np.arange(seconds) * step_s, summed, step_s
