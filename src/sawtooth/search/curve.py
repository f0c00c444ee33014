"""Curve: where a parabola through noisy means crosses zero, with the range that the seeds cannot tell from the
crossing.

Near the crossing a margin is rarely straight: a rate bends toward its limit. A straight line through points on both
sides would shift the crossing; a parabola follows the bend. Means are weighted by their number of seeds. The change of
the slope is known beforehand to a factor (``BENDS``), as a ridge penalty on the bend, which matters only while there
are few means. The interval is the range next to the crossing in which the parabola does not differ from 0 by Student's
t (Fieller 1954, for a line). Its error is that of the seeds, or that of the means around the parabola if they are
further from it (Birge 1932).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from sawtooth.stats.interval import t_quantile

if TYPE_CHECKING:
    from numpy.typing import NDArray

BENDS = 3.0
"""Prior standard deviation of the slope's change, as a share of the slope, when the unknown changes by a factor e (or
by its own size): a power law with exponent n has n."""
_STEPS = 200
"""Steps on each side, to find the interval's ends."""


class Mean(Protocol):
    """The mean at one place, with its seeds and variance."""

    @property
    def place(self) -> float: ...
    @property
    def n(self) -> int: ...
    @property
    def mean(self) -> float: ...
    @property
    def variance(self) -> float: ...


@dataclass(frozen=True)
class Curve:
    """``shape``: level, slope and bend around ``centre``, in units of ``unit``. ``spread`` is the variance of one seed,
    by which ``covariance`` is multiplied; ``freedom`` is that of its Student's t."""

    centre: float
    unit: float
    shape: NDArray[Any]
    covariance: NDArray[Any]
    spread: float
    freedom: int

    def at(self, places: Any) -> tuple[Any, Any]:
        """The margins at these places and their standard errors."""
        import numpy as np

        powers = self._powers(places)
        return powers @ self.shape, np.sqrt(self.spread * ((powers @ self.covariance) * powers).sum(axis=1))

    def gain(self, place: float, seeds: int, ends: Sequence[float]) -> float:
        """How much ``seeds`` more seeds at a place would reduce the sum of variances at ``ends``."""
        powers = self._powers([place])[0]
        there = self.covariance @ powers
        return float(((self._powers(ends) @ there) ** 2).sum() / (1 / seeds + powers @ there))

    def crossing(self, low: float, high: float) -> float | None:
        """The place between the two where it is 0; None unless it crosses exactly once."""
        import numpy as np

        if np.prod(self.at([low, high])[0]) >= 0:
            return None
        inside = [self.centre + self.unit * float(one.real) for one in np.roots(self.shape[::-1])]
        return next((one for one in inside if low < one < high), None)

    def interval(self, about: float, low: float, high: float, confidence: float) -> tuple[float, float]:
        """The places next to the crossing ``about`` beyond which the curve differs from 0; ``low`` and ``high`` if
        there are none."""
        import numpy as np

        t = t_quantile(self.freedom, confidence)

        def first(end: float) -> float:
            places = np.linspace(about, end, _STEPS)[1:]
            margins, errors = self.at(places)
            clear = np.abs(margins) > t * errors
            return float(places[clear.argmax()]) if clear.any() else end

        return first(low), first(high)

    def _powers(self, places: Any) -> NDArray[Any]:
        import numpy as np

        return ((np.asarray(places, float) - self.centre) / self.unit)[:, None] ** np.arange(len(self.shape))


def through(points: Sequence[Mean], length: float) -> Curve | None:
    """The parabola through three or more places; None with fewer, or if no place has two seeds that differ. ``length``
    is the distance between values that differ by a factor e; see ``BENDS``."""
    import numpy as np

    seeds = np.array([one.n for one in points], float)
    freedom = int(seeds.sum()) - len(points)
    pooled = math.fsum(one.variance * (one.n - 1) for one in points) / freedom if freedom else 0.0
    if len(points) <= 2 or not pooled:
        return None
    places, means = np.array([one.place for one in points]), np.array([one.mean for one in points])
    centre = float(seeds @ places / seeds.sum())
    unit = float(np.abs(places - centre).max())
    powers = ((places - centre) / unit)[:, None] ** np.arange(3)

    def fitted(information: Any) -> tuple[Any, Any]:
        covariance = np.linalg.pinv(information)
        return covariance, covariance @ (powers.T @ (seeds * means))

    information = powers.T @ (seeds[:, None] * powers)
    line = np.linalg.lstsq(np.sqrt(seeds)[:, None] * powers[:, :2], np.sqrt(seeds) * means, rcond=None)[0]
    spread = pooled
    for _ in range(2):
        before = spread / max((BENDS * line[1] * unit / length / 2) ** 2, 1e-300)
        covariance, shape = fitted(information + np.diag([0, 0, before]))
        more = len(points) - 2
        spread = max(pooled, float(seeds @ (means - powers @ shape) ** 2) / more)
    return Curve(centre, unit, shape, covariance, spread, freedom)
