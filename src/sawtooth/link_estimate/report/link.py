"""Link: a series of RTTs through a link, its oddities, and the model's estimates for its windows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from sawtooth.errors import SawtoothError
from sawtooth.link_estimate.estimate import Estimate, estimate
from sawtooth.link_estimate.model import CongestionModel
from sawtooth.link_estimate.random_links import PROBES
from sawtooth.link_estimate.series import RttSeries
from sawtooth.link_estimate.series_checks import check
from sawtooth.link_estimate.together import narrower, narrower_text, together

_SHOWN = ("too-few-probes", "constant-series")
"""Problems of a series whose RTTs can still be shown: its units and its clock are valid."""


@dataclass(frozen=True)
class Assumed:
    """Mean base RTT of the link's TCP flows in s, and the link's rate in bit/s (None: unknown)."""

    rtt_s: float | None = None
    rate_bps: float | None = None


@dataclass(frozen=True, eq=False)
class Link:
    """``series`` is in order of time and has its remarks if it could be checked; else ``problem`` says why not.
    ``whole`` is the answer of all windows together, ``narrower`` says what would narrow it."""

    series: RttSeries
    problem: SawtoothError | None
    estimates: tuple[Estimate, ...]
    whole: Estimate | None = None
    narrower: str = ""

    @classmethod
    def of(
        cls,
        series: RttSeries,
        model: CongestionModel,
        assumed: Assumed,
        progress: Callable[[float], None] | None = None,
    ) -> Link:
        """``progress`` is called with the finished share. Raises SawtoothError ``out-of-range`` as ``estimate``
        does."""
        known = {"rtt_s": assumed.rtt_s, "rate_bps": assumed.rate_bps}
        estimates = estimate(series, model, **known, progress=progress)
        whole = together(estimates, model, **known)
        more = narrower_text(narrower(estimates, whole, model, **known))
        try:
            return cls(check(series), None, tuple(estimates), whole, more)
        except SawtoothError as problem:
            order = np.argsort(series.sent_s, kind="stable")
            return cls(series.part(order), problem, tuple(estimates))

    @property
    def name(self) -> str:
        return self.estimates[0].source

    @property
    def windows(self) -> tuple[Estimate, ...]:
        """The estimates of windows of 1,000 probes; empty if the series as a whole allows no answer."""
        return () if self.problem else tuple(one for one in self.estimates if one.probes == PROBES)

    @property
    def numbers(self) -> tuple[Estimate, ...]:
        """The windows with a throughput."""
        return tuple(one for one in self.windows if one.throughput_bps is not None)

    @property
    def drawable(self) -> bool:
        """Whether a picture of its RTTs would not mislead."""
        sound = self.problem is None or self.problem.code in _SHOWN
        return sound and bool(self.series.answered.any())

    @property
    def least_s(self) -> float:
        """The smallest RTT, from which queueing delays count."""
        return float(np.nanmin(self.series.rtt_s))

    @property
    def delay_ms(self) -> NDArray[np.float64]:
        """Queueing delay of each probe above the smallest RTT; NaN: lost."""
        return np.asarray((self.series.rtt_s - self.least_s) * 1e3)

    @property
    def begins(self) -> str:
        """The origin of times: when the first probe was sent, as far as known."""
        if self.series.clock != "unix":
            return "the first probe"
        return f"{datetime.fromtimestamp(float(self.series.sent_s[0]), UTC):%Y-%m-%d %H:%M:%S} UTC"

    def since_s(self, sent_s: NDArray[np.float64]) -> NDArray[np.float64]:
        """Times since the first probe."""
        return np.asarray(sent_s - self.series.sent_s[0])
