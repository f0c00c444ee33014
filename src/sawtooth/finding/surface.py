"""Surface: a Gaussian process through noisy means, whose lengths are not chosen but averaged over.

Stochastic kriging (Ankenman, Nelson and Staum 2010): a mean of n seeds at a place is a trend that is linear, plus a
smooth deviation from it (Matérn 5/2, a length for each coordinate; Stein 1999), plus noise of variance v/n, where v is
known from the seeds; see ``noise``. Trend and deviation are Gaussian, so is what the means tell of any other place.

How large and how long the deviations are, the means tell badly when they are few. So no likeliest lengths are sought
and then believed: every combination of ``SIZES`` and ``LENGTHS`` answers, weighted by how likely it makes the means
(Rasmussen and Williams 2006, 5.2), and their disagreement is part of the error.

``misfit`` is of leaving each mean out (Dubrule 1983): the mean square of its distance from what all the others say, in
standard errors: 1 where the surface carries the means. Above 1 all errors are widened by its root (Birge 1932).
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

SIZES = (0.003, 0.03, 0.1, 0.3, 1.0)
"""Standard deviations of the deviation, in that of the means."""
LENGTHS = (0.5, 1.0, 2.0, 4.0)
"""In the units of coordinates, which go from about -1 to 1; longer ones are a trend."""
_TREND = 10.0
"""Standard deviation of the trend's coefficients: so large that they are not known beforehand."""
_BELIEVED = 0.01
"""Weights below so much of the largest do not answer."""
_JITTER = 1e-9


@dataclass(frozen=True)
class Surface:
    """``places`` has a row for each mean. ``answers`` and ``solved`` are of each combination that counts, ``weights``
    their shares; ``residuals`` of each mean left out, in standard errors."""

    places: NDArray[Any]
    unit: float
    sizes: NDArray[Any]
    lengths: NDArray[Any]
    weights: NDArray[Any]
    solved: NDArray[Any]
    inverses: NDArray[Any]
    residuals: NDArray[Any]
    misfit: float

    @classmethod
    def through(cls, places: NDArray[Any], means: NDArray[Any], variances: NDArray[Any]) -> Surface:
        """``variances`` are of the means."""
        import numpy as np

        unit = float(np.sqrt(np.mean(means**2))) or 1.0
        y, noise = means / unit, variances / unit**2 + _JITTER
        grid = np.array(list(itertools.product(SIZES, *[LENGTHS] * places.shape[1])))
        sizes, lengths = grid[:, 0], grid[:, 1:]
        covariances = _covariances(places, places, sizes, lengths) + np.diag(noise)
        factors = np.linalg.cholesky(covariances)
        whitened = np.linalg.solve(factors, np.broadcast_to(y[:, None], (len(grid), len(y), 1)))[..., 0]
        evidence = -(whitened**2).sum(axis=1) / 2 - np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1)
        weights = np.exp(evidence - evidence.max())
        kept = weights > _BELIEVED
        weights = weights[kept] / weights[kept].sum()
        inverses = np.linalg.inv(covariances[kept])
        solved = inverses @ y
        exact = np.diagonal(inverses, axis1=1, axis2=2)
        residuals = np.sqrt(weights @ (solved**2 / exact))
        misfit = float(np.mean(residuals**2))
        return cls(places, unit, sizes[kept], lengths[kept], weights, solved, inverses, residuals, misfit)

    @property
    def widened(self) -> float:
        """By what variances are multiplied."""
        return max(1.0, self.misfit)

    def at(self, places: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """The means there, and their standard errors."""
        import numpy as np

        across = _covariances(places, self.places, self.sizes, self.lengths)
        each = (across @ self.solved[..., None])[..., 0]
        spread = self._prior(places) - ((across @ self.inverses) * across).sum(axis=2)
        mean = self.weights @ each
        variance = self.weights @ (np.maximum(spread, 0) + (each - mean) ** 2)
        return np.asarray(self.unit * mean), self.unit * np.sqrt(variance * self.widened)

    def covariance(self, places: NDArray[Any]) -> NDArray[Any]:
        """Of the means at places with each other."""
        import numpy as np

        across = _covariances(places, self.places, self.sizes, self.lengths)
        told = across @ self.inverses @ np.swapaxes(across, 1, 2)
        each = (across @ self.solved[..., None])[..., 0]
        apart = each - self.weights @ each
        between = _covariances(places, places, self.sizes, self.lengths) - told + apart[:, :, None] * apart[:, None, :]
        return np.asarray(self.unit**2 * self.widened * np.tensordot(self.weights, between, 1))

    def _prior(self, places: NDArray[Any]) -> NDArray[Any]:
        import numpy as np

        trend = _TREND**2 * (1 + (places**2).sum(axis=1))
        return np.asarray((self.sizes**2)[:, None] + trend[None, :])


def _covariances(first: NDArray[Any], second: NDArray[Any], sizes: NDArray[Any], lengths: NDArray[Any]) -> NDArray[Any]:
    """Before anything is known, of every place with every other, for each combination."""
    import numpy as np

    squares = (first[:, None, :] - second[None, :, :]) ** 2
    apart = np.sqrt(5 * np.tensordot(1 / lengths**2, squares, axes=(1, 2)))
    smooth = (1 + apart + apart**2 / 3) * np.exp(-apart)
    trend = _TREND**2 * (1 + first @ second.T)
    return np.asarray((sizes**2)[:, None, None] * smooth + trend[None])
