"""Features of a series of RTTs that describe the queue, as numbers for a model.

``std_s``, ``increasing`` and the mean are those of Marder and Smith, "Modeling Persistent Congestion for Tail Drop
Queue". RTTs are first cut to between their 1st and 99th percentile, so that no feature depends on a few unusual probes.
Delays count from the 1st percentile, so the path's length does not matter. Only neighboring probes that were both
answered are compared. docs/persistent-congestion.md explains the value of each feature.
"""

from __future__ import annotations

import contextlib

import numpy as np
from numpy.typing import NDArray

from sawtooth.link_estimate.series import RttSeries

FEATURES: dict[str, str] = {
    "mean_s": "mean of the queueing delay",
    "std_s": "standard deviation of the queueing delay",
    "increasing": "share of probes with RTT(i) > RTT(i−1)",
    "lag1": "autocorrelation of probes one pace apart",
    "lag2": "autocorrelation of probes two paces apart",
    "lag3": "autocorrelation of probes three paces apart",
    "lag5": "autocorrelation of probes five paces apart",
    "lag10": "autocorrelation of probes ten paces apart",
    "lag20": "autocorrelation of probes twenty paces apart",
    "asymmetry": "mean rise over mean fall from a probe to the next",
    "step_s": "mean absolute difference from a probe to the next",
    "bend_s": "mean absolute second difference",
    "rise_s": "90th percentile of the differences from a probe to the next",
    "fall_s": "their 10th percentile, downwards",
    "bottom_s": "from the 1st to the 10th percentile",
    "low_s": "from the 10th percentile to the median",
    "high_s": "from the median to the 90th percentile",
    "top_s": "from the 90th to the 99th percentile",
    "range_s": "from the 1st to the 99th percentile",
    "skew": "third standardised moment of the queueing delay",
    "peaked": "fourth standardised moment of the queueing delay",
    "empty": "share of probes within 5% of range_s above the 1st percentile, or below it",
    "full": "share of probes within 5% of range_s below the 99th percentile, or above it",
    "loss": "share of probes that were lost",
    "clump": "share of lost probes followed by another loss, shrunk towards the loss rate if few were lost",
    "near_loss": "mean rank (0 … 1) of the RTTs just before and after a lost probe, shrunk towards ½ if few were lost",
}
"""In the order of a model's columns. Names that end in _s are in seconds, the others have no unit."""

OF_LOSS = ("loss", "clump", "near_loss")
"""Features that require a source which records lost probes."""

PART = 333
"""Approximate number of probes per part."""
_PERCENTILES = (1, 10, 50, 90, 99)
_EDGE = 0.05
_LAGS = (1, 2, 3, 5, 10, 20)
_PRIOR = 5
"""Lost probes that weigh as much as the expectation without any."""


def features(series: RttSeries) -> dict[str, float]:
    """The values of ``FEATURES``. The series must have passed ``check``: constant ones have no features.

    Raises ValueError if no part has four consecutive answered probes, or nearly all have the same RTT.
    """
    found = []
    for part in np.array_split(series.rtt_s, max(1, round(len(series) / PART))):
        with contextlib.suppress(ValueError):
            found.append(_of_part(part))
    if not found:
        raise ValueError("a series with no two differences, or a constant one, has no features")
    return {name: float(np.median([one[name] for one in found])) for name in FEATURES}


def _of_part(whole_s: NDArray[np.float64]) -> dict[str, float]:
    answered = ~np.isnan(whole_s)
    if not answered.any():
        raise ValueError("nothing was answered")
    least, low, middle, high, most = np.percentile(whole_s[answered], _PERCENTILES)
    cut_s = np.clip(whole_s, least, most)
    rtt_s = cut_s[answered]
    steps, bends = _differences(cut_s), _differences(cut_s, order=2)
    if len(bends) < 2 or most == least:
        raise ValueError("no two differences, or a constant")
    mean, deviation, range_s = float(rtt_s.mean()), float(rtt_s.std()), float(most - least)
    rises, falls = steps[steps > 0], -steps[steps < 0]
    fall_s, rise_s = np.percentile(steps, (10, 90))
    values = {
        "mean_s": mean - least,
        "std_s": deviation,
        "increasing": (steps > 0).mean(),
        **{f"lag{lag}": _autocorrelation(cut_s, lag) for lag in _LAGS},
        "asymmetry": (rises.mean() / falls.mean()) if len(rises) and len(falls) else 1.0,
        "step_s": np.abs(steps).mean(),
        "bend_s": np.abs(bends).mean(),
        "rise_s": max(rise_s, 0.0),
        "fall_s": max(-fall_s, 0.0),
        "bottom_s": low - least,
        "low_s": middle - low,
        "high_s": high - middle,
        "top_s": most - high,
        "range_s": range_s,
        "skew": (((rtt_s - mean) / deviation) ** 3).mean(),
        "peaked": (((rtt_s - mean) / deviation) ** 4).mean(),
        "empty": (rtt_s < least + _EDGE * range_s).mean(),
        "full": (rtt_s > most - _EDGE * range_s).mean(),
        **_losses(whole_s),
    }
    return {name: float(values[name]) for name in FEATURES}


def vector(values: dict[str, float]) -> NDArray[np.float64]:
    """The features in the order of ``FEATURES``, each on a scale on which a model is smooth.

    Seconds become the logarithm of milliseconds (at least 1 µs), ``asymmetry`` and ``peaked`` their logarithm, ``loss``
    its square root, because a TCP flow's window is inversely proportional to it (Mathis et al. 1997); the rest is
    unchanged.
    """
    return np.array([_scaled(name, values[name]) for name in FEATURES])


def _scaled(name: str, value: float) -> float:
    if name.endswith("_s"):
        return float(np.log(max(value * 1e3, 1e-3)))
    if name in ("asymmetry", "peaked"):
        return float(np.log(value))
    return float(np.sqrt(value)) if name == "loss" else value


def unscaled(name: str, scaled: NDArray[np.float64]) -> NDArray[np.float64]:
    """Inverse of ``vector`` for the feature ``name``."""
    if name.endswith("_s"):
        return np.asarray(np.exp(scaled) / 1e3)
    if name in ("asymmetry", "peaked"):
        return np.asarray(np.exp(scaled))
    return np.asarray(scaled**2) if name == "loss" else scaled


def _losses(rtt_s: NDArray[np.float64]) -> dict[str, float]:
    lost = np.isnan(rtt_s)
    share, count = float(lost.mean()), int(lost.sum())
    rank = np.full(len(rtt_s), np.nan)
    order = np.argsort(rtt_s[~lost], kind="stable")
    rank[~lost] = _ranks(order)
    beside = np.concatenate([rank[:-1][lost[1:]], rank[1:][lost[:-1]]])
    beside = beside[~np.isnan(beside)]
    return {
        "loss": share,
        "clump": (float((lost[1:] & lost[:-1]).sum()) + _PRIOR * share) / (count + _PRIOR),
        "near_loss": (float(beside.sum()) + _PRIOR / 2) / (len(beside) + _PRIOR),
    }


def _ranks(order: NDArray[np.int64]) -> NDArray[np.float64]:
    found = np.empty(len(order))
    found[order] = np.arange(len(order)) / max(1, len(order))
    return found


def _differences(rtt_s: NDArray[np.float64], order: int = 1) -> NDArray[np.float64]:
    """Differences of answered neighbors; NaN next to a lost probe."""
    found = np.diff(rtt_s, order)
    return found[~np.isnan(found)]


def _autocorrelation(rtt_s: NDArray[np.float64], lag: int) -> float:
    """Over pairs that were both answered, around the mean of the whole series."""
    centred = rtt_s - np.nanmean(rtt_s)
    products = centred[lag:] * centred[:-lag]
    known = products[~np.isnan(products)]
    return float(known.mean() / np.nanmean(centred**2)) if len(known) else 0.0
