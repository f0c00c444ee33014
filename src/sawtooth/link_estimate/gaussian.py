"""A Gaussian process stored in a JSON file: scikit-learn finds its length scales, numpy predicts.

Rasmussen and Williams, "Gaussian Processes for Machine Learning" (2006), algorithm 2.1: the covariance is ``signal ·
exp(−½ Σ ((a − b)/length)²)``, with ``noise`` on its diagonal, over scaled columns. Its knowledge is the rows
themselves, so the file shows what the answer is based on.
"""

from __future__ import annotations

import importlib
import warnings
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sawtooth.errors import SawtoothError

Floats = NDArray[np.float64]

_LENGTHS = (0.3, 1e3)
_FOLDS = 8
_ENOUGH = 500
"""Rows used to find length scales, chosen evenly, since the time grows with the third power. All rows are used to
predict."""


_STEPS, _STEPS_ON = 80, 12
"""Steps of the search for length scales: from scratch, and from another process's result."""


@dataclass(frozen=True, eq=False)
class Gaussian:
    """``rows`` are as given, ``targets`` one per row; ``lengths`` are in standard deviations of a column."""

    rows: Floats
    targets: Floats
    lengths: Floats
    signal: float
    noise: float

    @classmethod
    def learn(cls, rows: Floats, targets: Floats, start: Floats | None = None) -> Gaussian:
        """Trains by maximum likelihood, starting from ``start`` if given.

        Raises SawtoothError ``tool-missing`` if scikit-learn is not installed.
        """
        process, kernels = scikit("gaussian_process"), scikit("gaussian_process.kernels")
        lengths = np.full(rows.shape[1], 3.0) if start is None else start
        noise = kernels.WhiteKernel(0.02, (1e-4, 1.0))
        kernel = kernels.ConstantKernel(1.0) * kernels.RBF(lengths, _LENGTHS) + noise
        steps = partial(_optimum, steps=_STEPS if start is None else _STEPS_ON)
        learner = process.GaussianProcessRegressor(kernel, optimizer=steps, normalize_y=True)
        with warnings.catch_warnings():
            # A length at its bound means an irrelevant column: a result, not a failure.
            warnings.simplefilter("ignore", scikit("exceptions").ConvergenceWarning)
            some = np.argsort(targets, kind="stable")[:: -(-len(targets) // _ENOUGH)]
            found = learner.fit(((rows - rows.mean(axis=0)) / spread(rows))[some], targets[some]).kernel_
        return cls(rows, targets, np.array(found.k1.k2.length_scale), found.k1.k1.constant_value, found.k2.noise_level)

    def predict(self, rows: Floats) -> tuple[Floats, Floats]:
        """Mean and standard deviation of the target at each row, including noise."""
        near = self._covariance(rows)
        whitener, weights = self._solved
        unit = self.targets.std()
        explained = whitener @ near.T
        variance = np.maximum(self.signal + self.noise - (explained**2).sum(axis=0), 1e-12)
        return self.targets.mean() + unit * near @ weights, unit * np.sqrt(variance)

    def held_out(self, groups: NDArray[Any]) -> tuple[Floats, Floats]:
        """Like ``predict`` for each of its own rows, from the rows of other folds; groups are never split."""
        means, deviations = np.empty(len(self.targets)), np.empty(len(self.targets))
        folds = np.unique(groups, return_inverse=True)[1] % _FOLDS
        for fold in np.unique(folds):
            out = folds == fold
            rest = Gaussian(self.rows[~out], self.targets[~out], self.lengths, self.signal, self.noise)
            means[out], deviations[out] = rest.predict(self.rows[out])
        return means, deviations

    @cached_property
    def _solved(self) -> tuple[Floats, Floats]:
        factor = np.linalg.cholesky(self._covariance(self.rows) + self.noise * np.eye(len(self.rows)))
        centred = (self.targets - self.targets.mean()) / self.targets.std()
        # The inverse is stored because a long series asks for one row per window, and each would solve again.
        whitener = np.linalg.inv(factor)
        return np.asarray(whitener, dtype=np.float64), np.asarray(whitener.T @ (whitener @ centred), dtype=np.float64)

    def apart(self, rows: Floats) -> Floats:
        """Squared distances to its own rows, in length scales."""
        unit = spread(self.rows) * self.lengths
        return squared_distances(rows / unit, self.rows / unit)

    def _covariance(self, rows: Floats) -> Floats:
        return np.asarray(self.signal * np.exp(-self.apart(rows) / 2))


def _optimum(objective: Any, start: Floats, bounds: Floats, *, steps: int) -> tuple[Floats, float]:
    """As scikit-learn's optimizer, but limited to this many steps."""
    from scipy.optimize import minimize

    found = minimize(objective, start, method="L-BFGS-B", jac=True, bounds=bounds, options={"maxiter": steps})
    return found.x, float(found.fun)


def scikit(module: str) -> Any:
    """A module of scikit-learn, which is needed for training only.

    Raises SawtoothError ``tool-missing`` if it is not installed.
    """
    try:
        return importlib.import_module(f"sklearn.{module}")
    except ImportError as error:
        fix = "install it: pip install scikit-learn (the extra learn); a model that is there is used without it"
        raise SawtoothError("tool-missing", "scikit-learn is not installed; it does the learning", fix=fix) from error


def squared_distances(first: Floats, second: Floats) -> Floats:
    """Between every row of one and every row of the other."""
    across = (first**2).sum(axis=1)[:, None] + (second**2).sum(axis=1)[None, :] - 2 * first @ second.T
    return np.asarray(np.maximum(across, 0.0))


def spread(rows: Floats) -> Floats:
    """Standard deviation of each column; 1 if a column is constant apart from rounding."""
    deviation = rows.std(axis=0)
    return np.where(deviation > 1e-7 * (1 + np.abs(rows.mean(axis=0))), deviation, 1.0)
