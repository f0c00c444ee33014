"""Responsiveness in round trips per minute (RPM): draft-ietf-ippm-responsiveness-08, sections 5.3 and 5.3.1.2.

The draft sends HTTP requests; here the round trips come from the run. *Foreign* probes open a separate connection and
request one byte. Over TCP alone these are two round trips with equal weight, handshake and request. A probe of the
scenario is one such round trip past the load, so its trimmed mean serves for both. *Self* probes send requests on the
loaded connections. If that is impossible, the draft uses the stack's own estimate of the round trip, and so does this:
the smoothed RTTs in ``tcp_info``.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from sawtooth.io.table_store import groups
from sawtooth.run import Run
from sawtooth.stats.throughput import after_warmup

if TYPE_CHECKING:
    from numpy import ndarray
    from numpy.typing import ArrayLike

TRIMMED = 0.95
"""The draft's TMP: the share of the samples, smallest first, that the trimmed mean uses."""


def trimmed_mean(samples: ArrayLike) -> float:
    """The draft's single-sided trimmed mean; NaN without samples. NaN samples are ignored."""
    import numpy as np

    values = np.sort(np.asarray(samples, dtype=float))
    values = values[np.isfinite(values)]
    kept = values[: math.ceil(TRIMMED * values.size)]
    return float(kept.mean()) if kept.size else math.nan


def rpm(round_trips_s: ArrayLike) -> float:
    """Round trips per minute, from the trimmed mean of ``round_trips_s`` in seconds; NaN without samples."""
    mean_s = trimmed_mean(round_trips_s)
    return 60 / mean_s if mean_s > 0 else math.nan


def smoothed_s(run: Run) -> ndarray[Any, Any]:
    """The smoothed RTTs in seconds of the sampled connections at each interval's end after the warm-up."""
    import numpy as np

    if "tcp_info" not in run.tables:
        return np.empty(0)
    found = []
    for part in groups(run.tables, "tcp_info", ("t_s", "srtt_s")):
        rtts = after_warmup(run, part)["srtt_s"]
        found.append(rtts[rtts > 0])
    return found[0] if len(found) == 1 else np.concatenate(found)
