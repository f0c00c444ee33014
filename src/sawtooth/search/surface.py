"""Surface: a Gaussian process through noisy means, averaged over its length scales instead of choosing them.

Stochastic kriging (Ankenman, Nelson and Staum 2010): the mean of n seeds at a place is a linear trend, plus a smooth
deviation (Matérn 5/2 with one length per coordinate; Stein 1999), plus noise of variance v/n, where v is known from the
seeds; see ``noise``. Trend and deviation are Gaussian, so the prediction at any other place is too.

Few means say little about the size and length of the deviations. So the most likely lengths are not used alone: every
combination of ``SIZES`` and ``LENGTHS`` predicts, weighted by its likelihood (Rasmussen and Williams 2006, 5.2), and
their disagreement is part of the error.

``misfit`` comes from leaving each mean out (Dubrule 1983): the mean square of its distance from the prediction by the
others, in standard errors; 1 if the surface fits the means. Above 1 all errors are widened by its square root (Birge
1932).
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

SIZES = (0.003, 0.03, 0.1, 0.3, 1.0)
"""Standard deviations of the deviation, relative to that of the means."""
LENGTHS = (0.5, 1.0, 2.0, 4.0)
"""Length scales in units of the coordinates, which go from about -1 to 1; longer ones are a trend."""
_TREND = 10.0
"""Prior standard deviation of the trend's coefficients: large enough to be uninformative."""
_BELIEVED = 0.01
"""Combinations with a weight below this share of the largest are dropped."""
_JITTER = 1e-9


@dataclass(frozen=True)
class Surface:
    """``places`` has one row per mean. ``answers`` and ``solved`` belong to each combination in use, ``weights`` are
    their shares; ``residuals`` are of each mean left out, in standard errors."""

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
        """Fits a surface; ``variances`` are those of the means."""
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
        """The factor by which variances are widened."""
        return max(1.0, self.misfit)

    def at(self, places: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """The predicted means at these places, and their standard errors."""
        import numpy as np

        across = _covariances(places, self.places, self.sizes, self.lengths)
        each = (across @ self.solved[..., None])[..., 0]
        spread = self._prior(places) - ((across @ self.inverses) * across).sum(axis=2)
        mean = self.weights @ each
        variance = self.weights @ (np.maximum(spread, 0) + (each - mean) ** 2)
        return np.asarray(self.unit * mean), self.unit * np.sqrt(variance * self.widened)

    def covariance(self, places: NDArray[Any]) -> NDArray[Any]:
        """The covariance of the predictions at these places."""
        import numpy as np

        across = _covariances(places, self.places, self.sizes, self.lengths)
        explained = across @ self.inverses @ np.swapaxes(across, 1, 2)
        each = (across @ self.solved[..., None])[..., 0]
        apart = each - self.weights @ each
        between = (
            _covariances(places, places, self.sizes, self.lengths) - explained + apart[:, :, None] * apart[:, None, :]
        )
        return np.asarray(self.unit**2 * self.widened * np.tensordot(self.weights, between, 1))

    def _prior(self, places: NDArray[Any]) -> NDArray[Any]:
        import numpy as np

        trend = _TREND**2 * (1 + (places**2).sum(axis=1))
        return np.asarray((self.sizes**2)[:, None] + trend[None, :])


def _covariances(first: NDArray[Any], second: NDArray[Any], sizes: NDArray[Any], lengths: NDArray[Any]) -> NDArray[Any]:
    """The prior covariance of every place with every other, for each combination."""
    import numpy as np

    squares = (first[:, None, :] - second[None, :, :]) ** 2
    apart = np.sqrt(5 * np.tensordot(1 / lengths**2, squares, axes=(1, 2)))
    smooth = (1 + apart + apart**2 / 3) * np.exp(-apart)
    trend = _TREND**2 * (1 + first @ second.T)
    return np.asarray((sizes**2)[:, None, None] * smooth + trend[None])
