"""Changes within a window: whether what flows get stays the same while a link is probed.

When flows join or leave, the queue moves otherwise from then on. Blocks of probes tell by where their delays lie, how
far they spread and how far they step; the blocks before and after a change differ by more than blocks on one side do.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sawtooth.congestion.series import RttSeries

BLOCK = 50
_SHORTEST = 4
"""Blocks on either side of a change."""
LARGE = 5.0
"""Standard errors between the sides that a steady link does not reach: of the series that the shipped model is trained
on, all steady, 99 of 100 stay below."""
_LEAST_S = 1e-6
_MOST_ALIKE = 0.8


@dataclass(frozen=True)
class Change:
    """From probe ``index`` on, sent at ``at_s``, the queue is another; by ``errors`` standard errors."""

    index: int
    at_s: float
    errors: float


def change(series: RttSeries) -> Change | None:
    """The clearest, if any is. Lost probes are passed over; a block without answers counts as its neighbours."""
    count = len(series) // BLOCK
    if count < 2 * _SHORTEST:
        return None
    blocks = series.rtt_s[: count * BLOCK].reshape(count, BLOCK)
    told = (~np.isnan(blocks)).sum(axis=1) > BLOCK // 10
    if not told.all():
        return None
    found = [_clearest(curve) for curve in _curves(blocks)]
    split, errors = max(found, key=lambda one: one[1])
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
    """The split whose sides differ by the most standard errors, and by how many.

    Blocks that follow each other are alike on a link whose flows live long: they count as fewer (the variance of a mean
    of a first-order autoregressive series).
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
