"""The cost of a wrong assumption: the model's error if its assumed RTT is not that of the flows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sawtooth.link_estimate.model import COLUMNS, CongestionModel

ASSUMED_RTT_S = (0.005, 0.007, 0.01, 0.014, 0.02, 0.028, 0.04, 0.057, 0.08, 0.113, 0.16)
"""Base RTTs that are assumed in turn."""


@dataclass(frozen=True)
class WrongRtt:
    """Over all windows, for one assumed ``rtt_s``: estimate / truth, and the error |estimate / truth - 1| in %."""

    rtt_s: float
    ratio: float
    median_error_percent: float
    p90_error_percent: float


def assumed_rtts(
    model: CongestionModel, features: Sequence[Mapping[str, float]], rate_bps: Any, true_bps: Any
) -> list[WrongRtt]:
    """One row for each of ``ASSUMED_RTT_S``, including those for which the command would refuse to answer.

    ``features`` are those of windows of probes, ``rate_bps`` their links' rates (NaN: unknown), ``true_bps`` a flow's
    real rate, above 0.
    """
    import numpy as np
    import pandas as pd

    frame = pd.DataFrame(list(features))
    frame["rate_bps"] = rate_bps
    found = []
    for rtt_s in ASSUMED_RTT_S:
        ratio = model.predict(frame.assign(rtt_s=rtt_s)[list(COLUMNS)]) / true_bps
        wrong = np.abs(ratio - 1) * 100
        found.append(WrongRtt(rtt_s, float(np.median(ratio)), float(np.median(wrong)), float(np.quantile(wrong, 0.9))))
    return found
