"""Changes within a window: whether the flows' rates stay the same while a link is probed.

When flows join or leave, the queue behaves differently from then on. Blocks of probes show it in the location, spread
and step size of their delays; blocks before and after a change differ by more than blocks on one side.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sawtooth.link_estimate.series import RttSeries

BLOCK = 50
_SHORTEST = 4
"""Blocks on either side of a change."""
LARGE = 5.0
"""Standard errors between the sides that a steady link does not reach: 99 of 100 of the training series, all steady,
stay below."""
_LEAST_S = 1e-6
_MOST_ALIKE = 0.8


@dataclass(frozen=True)
class Change:
    """The queue differs from probe ``index`` on, sent at ``at_s``, by ``errors`` standard errors."""

    index: int
    at_s: float
    errors: float


def change(series: RttSeries) -> Change | None:
    """The clearest change, if there is one. Lost probes are skipped; a block without answers takes its neighbors'
    values."""
    count = len(series) // BLOCK
    if count < 2 * _SHORTEST:
        return None
    blocks = series.rtt_s[: count * BLOCK].reshape(count, BLOCK)
    enough = (~np.isnan(blocks)).sum(axis=1) > BLOCK // 10
    if not enough.all():
        return None
    splits = [_clearest(curve) for curve in _curves(blocks)]
    split, errors = max(splits, key=lambda one: one[1])
    if errors < LARGE:
        return None
    return Change(split * BLOCK, float(series.sent_s[split * BLOCK]), errors)


def _curves(blocks: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    steps = np.abs(np.diff(blocks, axis=1))
    bare = np.isnan(steps).all(axis=1)
    steps[bare] = _LEAST_S
    return [
        np.nanmedian(blocks, axis=1),
        np.nanpercentile(blocks, 10, axis=1),
        np.log(np.nanstd(blocks, axis=1) + _LEAST_S),
        np.log(np.nanmean(steps, axis=1) + _LEAST_S),
    ]


def _clearest(curve: NDArray[np.float64]) -> tuple[int, float]:
    """The split whose sides differ by the most standard errors, with that number.

    Consecutive blocks resemble each other on a link with long-lived flows, so they count as fewer (the variance of a
    mean of a first-order autoregressive series).
    """
    best = (0, 0.0)
    for split in range(_SHORTEST, len(curve) - _SHORTEST + 1):
        before, after = curve[:split], curve[split:]
        left = np.concatenate([before - before.mean(), after - after.mean()])
        square = float((left**2).sum())
        if square == 0:
            continue
        alike = min(max(float(left[1:] @ left[:-1]) / square, 0.0), _MOST_ALIKE)
        variance = square / (len(curve) - 2) * (1 / split + 1 / (len(curve) - split)) * (1 + alike) / (1 - alike)
        errors = abs(float(before.mean() - after.mean())) / variance**0.5
        if errors > best[1]:
            best = split, errors
    return best
