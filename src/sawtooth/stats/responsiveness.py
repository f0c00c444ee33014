"""Responsiveness in round trips per minute (RPM): draft-ietf-ippm-responsiveness-08, sections 5.3 and 5.3.1.2.

The draft sends HTTP requests; here its round trips come from what a run has. *Foreign* probes open a connection of
their own and ask for one byte: over TCP alone two round trips, the handshake's and the request's, which weigh the same.
A probe of the scenario is one such round trip past the load, so its trimmed mean stands for both. *Self* probes ask on
the connections that are the load; where that cannot be, the draft takes the stack's own estimate of the round trip,
and so is it here: the smoothed RTTs of ``tcp_info``.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from sawtooth.rows import groups
from sawtooth.run import Run
from sawtooth.stats.throughput import after_warmup

if TYPE_CHECKING:
    from numpy import ndarray
    from numpy.typing import ArrayLike

TRIMMED = 0.95
"""The draft's TMP: the share of the samples, from the smallest on, that the trimmed mean is of."""


def trimmed_mean(samples: ArrayLike) -> float:
    """The draft's single-sided trimmed mean; NaN of nothing. NaN among the samples are left out."""
    import numpy as np

    values = np.sort(np.asarray(samples, dtype=float))
    values = values[np.isfinite(values)]
    kept = values[: math.ceil(TRIMMED * values.size)]
    return float(kept.mean()) if kept.size else math.nan


def rpm(round_trips_s: ArrayLike) -> float:
    """Round trips a minute, by the trimmed mean of those seen, in seconds; NaN of nothing."""
    mean_s = trimmed_mean(round_trips_s)
    return 60 / mean_s if mean_s > 0 else math.nan


def smoothed_s(run: Run) -> ndarray[Any, Any]:
    """Seconds: the smoothed RTTs of the sampled connections at the end of each interval after the warm-up."""
    import numpy as np

    if "tcp_info" not in run.tables:
        return np.empty(0)
    found = []
    for part in groups(run.tables, "tcp_info", ("t_s", "srtt_s")):
        rtts = after_warmup(run, part)["srtt_s"].to_numpy(float)
        found.append(rtts[rtts > 0])
    return np.concatenate(found)
