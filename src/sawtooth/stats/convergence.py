"""Time to converge: how long after the last flow starts until all flows have, and keep, their fair share.

As in Dong et al., *PCC: Re-architecting Congestion Control for Consistent High Performance*, NSDI 2015, section 4.2.2:
the earliest time from which the throughput of each second is within 25% of the equal share for five seconds.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from sawtooth.run import Run

if TYPE_CHECKING:
    from pandas import DataFrame

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
    seconds, step_s = _by_second(run)
    begun_s = max(one.start_ns for one in compiled.flows) / 1e9
    seconds = seconds[seconds.index > begun_s - 1e-9]
    counts = np.array([one.count for one in compiled.flows], dtype=float)
    got = seconds.reindex(columns=range(len(counts)), fill_value=0.0).to_numpy()
    fair = got.sum(axis=1, keepdims=True) * counts / counts.sum()
    within = (np.abs(got - fair) <= BAND * fair).all(axis=1) & (fair.sum(axis=1) > 0)
    hold = math.ceil(HOLD_S / step_s - 1e-9)
    for at in range(len(within) - hold + 1):
        if within[at : at + hold].all():
            return float(seconds.index[at]) - begun_s
    return math.nan


def _by_second(run: Run) -> tuple[DataFrame, float]:
    """Each flow's rate (columns) in each whole second, indexed by its beginning, and the length of that second: the
    interval's length if that is longer."""
    import numpy as np

    table = run.tables["intervals"]
    interval_s = run.scenario.interval.seconds
    together = max(1, round(1 / interval_s))
    pivoted = table.pivot_table(index="t_s", columns="flow", values="goodput_bps", aggfunc="sum").fillna(0.0)
    whole = len(pivoted) // together * together
    place = np.arange(whole) // together
    summed = pivoted.iloc[:whole].groupby(place).sum()
    step_s = together * interval_s
    summed.index = summed.index * step_s
    return summed, step_s
