"""Paths that others use: what a change would give there, learned from simulated paths.

What others yield to a new transfer depends on how many they are and on their controls, which no capture shows. So
boosted trees learned, from captures of simulated paths with all kinds of other traffic, what each change gave
(experiments/train_shared.py): quantile regression, with conformal margins from paths left out (Romano et al.,
"Conformalized quantile regression", NeurIPS 2019).
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np

from sawtooth.capture.identify.classifier import MISSING, calibrated
from sawtooth.capture.identify.forest import Forest
from sawtooth.capture.identify.trace import Floats
from sawtooth.whatif.kinds import as_seen, described, shipped, steady, unlike
from sawtooth.whatif.observation import CONTROLS, Observed

FORMAT = 1
QUANTILES = (0.05, 0.5, 0.95)
MEASURES = ("goodput", "trip")
LIKELY = 0.3
"""Least probability of other traffic from which the answers are the learned ones, and captures were learned from."""
Range = tuple[float, float, float]
"""Low end, middle and high end of a 90% interval."""


@dataclass(frozen=True)
class Given:
    """What a change gives: goodput in bit/s and mean smoothed round trip in s."""

    goodput_bps: Range
    rtt_s: Range


@dataclass(frozen=True)
class Measure:
    """Three regressions of the logarithm of what a change gives over what was observed. ``margins`` widen the interval
    at both ends; their keys are those of ``related``."""

    forests: tuple[Forest, ...]
    margins: Mapping[str, tuple[float, float]]

    def ratio(self, values: Floats, relation: str) -> Range:
        low, middle, high = sorted(float(forest.logits(values)[0]) for forest in self.forests)
        below, above = self.margins[relation]
        return math.exp(min(middle, low - below)), math.exp(middle), math.exp(max(middle, high + above))


@dataclass(frozen=True)
class Shared:
    """The regressions; the names of the changes of a path; the range of each sign, of which at most the share
    ``strange`` may be exceeded."""

    measures: Mapping[str, Measure]
    changes: tuple[str, ...]
    limits: Floats
    strange: float

    @classmethod
    def read(cls, kept: Mapping[str, Any]) -> Shared:
        """Reads what ``experiments/train_shared.py`` wrote. Raises ValueError for another format."""
        if kept.get("format") != FORMAT:
            raise ValueError(f"format {kept.get('format')} of the regressions, not {FORMAT}")
        measures = {
            name: Measure(
                tuple(Forest.read(one["trees"], [one["base"]]) for one in kept["measures"][name]["forests"]),
                {relation: tuple(ends) for relation, ends in kept["measures"][name]["margins"].items()},
            )
            for name in MEASURES
        }
        return cls(measures, tuple(kept["changes"]), np.array(kept["limits"], dtype=float), kept["strange"])

    def knows(self, observed: Observed) -> bool:
        """Whether others may use the path, and it is like those that were learned from."""
        if likely(observed) < LIKELY:
            return False
        assert observed.path is not None
        if unlike(described(observed.path)) is not None:
            return False
        values = seen(observed)
        shown = values != MISSING
        outside = (values < self.limits[0]) | (values > self.limits[1])
        return float(outside[shown].mean()) <= self.strange

    def gives(self, observed: Observed, cc: str, change: str | None = None) -> Given:
        """What ``cc`` gets on the path, with one of ``changes`` or none: no more than a steady rate. 2% of what was
        learned from is above it."""
        assert observed.path is not None
        assert observed.goodput_bps is not None
        assert observed.rtt_mean_s is not None
        values = np.concatenate([seen(observed), change_features(observed, cc, change, self.changes)])
        relation = related(observed.cc, cc)
        goodput, trip = (self.measures[name].ratio(values, relation) for name in MEASURES)
        rate = observed.path.rate
        most = rate.high if steady(rate.describe()) else math.inf
        return Given(_times(goodput, observed.goodput_bps, most), _times(trip, observed.rtt_mean_s))


def _times(ratio: Range, value: float, most: float = math.inf) -> Range:
    low, middle, high = (min(one * value, most) for one in ratio)
    return low, middle, high


def likely(observed: Observed) -> float:
    """The probability that others use the bottleneck, also where that is no answer; 0 if the input shows no signs."""
    if None in (observed.signs, observed.path, observed.goodput_bps, observed.rtt_mean_s):
        return 0.0
    part = shipped().parts["cross_traffic"]
    shares = calibrated(part.forest.logits(as_seen(observed)), part.temperature)
    return float(shares[part.classes.index("present")])


def may_use(observed: Observed) -> str:
    """How probable others are, in words."""
    return f"others may use the bottleneck ({likely(observed):.0%})"


def seen(observed: Observed) -> Floats:
    """What the capture shows, as numbers."""
    assert observed.goodput_bps is not None
    assert observed.rtt_mean_s is not None
    more = (
        likely(observed),
        float(observed.cc == "reno"),
        float(observed.cc == "bbr3"),
        math.log10(max(observed.goodput_bps, 1.0)),
        math.log10(max(observed.rtt_mean_s, 1e-6)),
        observed.duration_s or 0.0,
    )
    return np.concatenate([as_seen(observed), more])


def change_features(observed: Observed, cc: str, change: str | None, changes: tuple[str, ...]) -> Floats:
    """The change as numbers: its control, whether that is the observed one, and which of ``changes`` it is."""
    controls = [float(cc == one) for one in CONTROLS]
    return np.array([*controls, float(cc == observed.cc), *(float(change == one) for one in changes)])


def related(observed: str | None, cc: str) -> str:
    """How a control relates to the observed one."""
    if observed not in CONTROLS:
        return "to an unknown one"
    return "the same" if cc == observed else "another"


@functools.cache
def learned() -> Shared:
    """The regressions that come with this version."""
    return Shared.read(json.loads((files("sawtooth") / "data" / "shared.json").read_text(encoding="utf-8")))
