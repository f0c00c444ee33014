"""What a series of RTTs says of the queue that it went through, as numbers that a model can learn from.

The first three are those of Marder and Smith, "Modeling Persistent Congestion for Tail Drop Queue". Delays count from
the smallest RTT of the series, so the length of the path does not matter; only neighbouring probes that were both
answered are compared. docs/persistent-congestion.md says what each is worth.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sawtooth.congestion.series import RttSeries

FEATURES: dict[str, str] = {
    "mean_s": "mean of the queueing delay",
    "std_s": "standard deviation of the queueing delay",
    "increasing": "share of probes with RTT(i) > RTT(i−1)",
    "lag1": "autocorrelation of probes one pace apart",
    "lag2": "autocorrelation of probes two paces apart",
    "lag3": "autocorrelation of probes three paces apart",
    "asymmetry": "mean rise over mean fall from a probe to the next",
    "step_s": "mean absolute difference from a probe to the next",
    "bend_s": "mean absolute second difference",
    "low_s": "from the 10th percentile to the median",
    "high_s": "from the median to the 90th percentile",
    "range_s": "from the 0.5th to the 99.5th percentile",
    "skew": "third standardised moment of the queueing delay",
    "full": "share of probes within 3% of the range_s below the 99.5th percentile, or above it",
    "loss": "share of probes that were lost",
}
"""In the order of the columns of a model. Names that end in _s are in seconds, the others have no unit."""

UNSEEN_DEPTH = ("mean_s", "range_s")
"""Features that follow how deep the queue is, rather than the traffic in it: of another depth they mislead."""

_QUANTILES = (0.5, 10, 50, 90, 99.5)


def features(series: RttSeries) -> dict[str, float]:
    """Each of ``FEATURES``. The series must have passed ``check``: constant ones have no features.

    Raises ValueError where fewer than four answered probes follow each other, or all have the same RTT.
    """
    answered = series.answered
    rtt_s = series.rtt_s[answered]
    steps = _differences(series.rtt_s)
    bends = _differences(series.rtt_s, order=2)
    if len(bends) < 2 or np.ptp(rtt_s) == 0:
        raise ValueError("a series with no two differences, or a constant one, has no features")
    least, low, middle, high, most = np.percentile(rtt_s, _QUANTILES)
    mean, deviation = float(rtt_s.mean()), float(rtt_s.std())
    rises, falls = steps[steps > 0], -steps[steps < 0]
    values = {
        "mean_s": mean - float(rtt_s.min()),
        "std_s": deviation,
        "increasing": (steps > 0).mean(),
        "lag1": _autocorrelation(series.rtt_s, 1),
        "lag2": _autocorrelation(series.rtt_s, 2),
        "lag3": _autocorrelation(series.rtt_s, 3),
        "asymmetry": (rises.mean() / falls.mean()) if len(rises) and len(falls) else 1.0,
        "step_s": np.abs(steps).mean(),
        "bend_s": np.abs(bends).mean(),
        "low_s": middle - low,
        "high_s": high - middle,
        "range_s": most - least,
        "skew": (((rtt_s - mean) / deviation) ** 3).mean(),
        "full": (rtt_s > most - 0.03 * (most - least)).mean(),
        "loss": 1 - answered.mean(),
    }
    return {name: float(values[name]) for name in FEATURES}


def vector(values: dict[str, float]) -> NDArray[np.float64]:
    """The features in the order of ``FEATURES``, each on the scale on which a model is smooth in it.

    Seconds as the logarithm of milliseconds (of 1 µs where there is less), ``asymmetry`` as its logarithm, ``loss`` as
    its square root, since a TCP flow's window goes with one over it (Mathis et al. 1997); the rest as they are.
    """
    return np.array([_scaled(name, values[name]) for name in FEATURES])


def _scaled(name: str, value: float) -> float:
    if name.endswith("_s"):
        return float(np.log(max(value * 1e3, 1e-3)))
    if name == "asymmetry":
        return float(np.log(value))
    return float(np.sqrt(value)) if name == "loss" else value


def unscaled(name: str, scaled: NDArray[np.float64]) -> NDArray[np.float64]:
    """The feature ``name`` as ``features`` gives it, of what ``vector`` made of it."""
    if name.endswith("_s"):
        return np.asarray(np.exp(scaled) / 1e3)
    if name == "asymmetry":
        return np.asarray(np.exp(scaled))
    return np.asarray(scaled**2) if name == "loss" else scaled


def _differences(rtt_s: NDArray[np.float64], order: int = 1) -> NDArray[np.float64]:
    """Of neighbours that were answered: a lost probe is NaN, and so is what touches it."""
    found = np.diff(rtt_s, order)
    return found[~np.isnan(found)]


def _autocorrelation(rtt_s: NDArray[np.float64], lag: int) -> float:
    """Of pairs that were both answered, about the mean of the whole series."""
    centred = rtt_s - np.nanmean(rtt_s)
    products = centred[lag:] * centred[:-lag]
    known = products[~np.isnan(products)]
    return float(known.mean() / np.nanmean(centred**2)) if len(known) else 0.0
