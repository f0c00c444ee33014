"""Persistent congestion: RTT series of probes, where they come from, and what they say of a link.

>>> from sawtooth.link_estimate import check, difference, read_series
>>> far, near = read_series("far.csv")[0], read_series("near.csv")[0]
>>> link = difference(far, near)      # the link's own delay
>>> check(link)                       # raises, or remarks on what is odd
"""

from __future__ import annotations

from sawtooth.link_estimate.inputs import load_series, read_series
from sawtooth.link_estimate.series import Remark, RttSeries, difference, save_series
from sawtooth.link_estimate.series_checks import check
from sawtooth.link_estimate.shift import Shift, level_shifts

__all__ = [
    "Remark",
    "RttSeries",
    "Shift",
    "check",
    "difference",
    "level_shifts",
    "load_series",
    "read_series",
    "save_series",
]
