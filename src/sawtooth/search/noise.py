"""Noise: the variance of one seed, as a smooth function of the place.

A variance from four seeds is off by half its size, so each place's own is worth little. One for all places is wrong if
losses are many at one end and few at the other. Its logarithm is modeled as linear in the coordinates, by the
likelihood of sums of squares (a gamma regression; Harvey 1976).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SLOPES = 2.0
"""Prior standard deviation of the change of the logarithm over one unit of a coordinate."""


@dataclass(frozen=True)
class Noise:
    """``level`` is the mean variance, ``slopes`` those of the logarithm of its factor; ``level`` is 0 if seeds change
    nothing."""

    level: float
    slopes: NDArray[Any]

    @classmethod
    def of(cls, places: NDArray[Any], variances: NDArray[Any], freedom: NDArray[Any]) -> Noise:
        """Fits ``variances`` with ``freedom`` degrees of freedom each."""
        import numpy as np
        from scipy.optimize import minimize

        known = freedom > 0
        free, terms = freedom[known], np.column_stack([np.ones(known.sum()), places[known]])
        level = float(free @ variances[known] / free.sum()) if known.any() else 0.0
        if not level:
            return cls(0.0, np.zeros(places.shape[1] + 1))
        ratio = variances[known] / level
        stiff = np.array([0.0, *[_SLOPES**-2] * places.shape[1]])

        def unlikely(slopes: Any) -> tuple[float, Any]:
            logarithm = np.clip(terms @ slopes, -30, 30)
            less = ratio * np.exp(-logarithm)
            value = free @ (logarithm + less) / 2 + stiff @ slopes**2 / 2
            return float(value), terms.T @ (free * (1 - less)) / 2 + stiff * slopes

        found = minimize(unlikely, np.zeros(terms.shape[1]), jac=True, method="L-BFGS-B")
        return cls(level, found.x)

    def at(self, places: NDArray[Any]) -> NDArray[Any]:
        """The variance of one seed at these places."""
        import numpy as np

        logarithm = np.column_stack([np.ones(len(places)), places]) @ self.slopes
        return np.asarray(self.level * np.exp(np.clip(logarithm, -30, 30)))
