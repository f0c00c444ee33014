"""Series not made by a queue: noise of many kinds, and queues whose order in time is lost. The model must refuse
them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sawtooth.link_estimate.series import RttSeries

_SPREAD_S = (0.5e-3, 0.1)
_LOSS = 0.05
_REMEMBERS = 0.4
"""Autocorrelation at one pace above which shuffling makes a different series."""


def surrogates(
    made: Sequence[RttSeries], count: int, random: np.random.Generator, like: RttSeries
) -> Iterator[RttSeries]:
    """``count`` of them, with the times of ``like``; some are shuffled series from ``made`` with autocorrelation."""
    orderly = [one for one in made if _lag(one.rtt_s) > _REMEMBERS]
    for number in range(count):
        if number % 6 == 5 and orderly:
            one = orderly[int(random.integers(len(orderly)))]
            yield replace(one, rtt_s=random.permutation(one.rtt_s))
            continue
        low, high = np.log(_SPREAD_S)
        size_s = float(np.exp(random.uniform(low, high)))
        rtt_s = 0.005 + size_s * _noise(number % 6, len(like), random)
        if random.random() < 0.4:
            rtt_s[random.random(len(like)) < random.uniform(0, _LOSS)] = np.nan
        yield replace(like, rtt_s=rtt_s)


def _noise(kind: int, count: int, random: np.random.Generator) -> NDArray[np.float64]:
    """Noise of about unit spread, not negative."""
    if kind == 0:
        return random.random(count)
    if kind == 1:
        found = random.normal(size=count)
    elif kind == 2:
        found = np.where(random.random(count) < random.uniform(0.2, 0.8), 0.0, 1.0) + random.normal(0, 0.1, count)
    elif kind == 3:
        keep = random.uniform(0.3, 0.98)
        found = np.empty(count)
        found[0] = 0.0
        for at, push in enumerate(random.normal(0, (1 - keep**2) ** 0.5, count - 1), 1):
            found[at] = keep * found[at - 1] + push
    elif kind == 4:
        period = np.exp(random.uniform(np.log(3), np.log(300)))
        found = np.sin(np.arange(count) * 2 * np.pi / period) + random.normal(0, random.uniform(0.02, 0.5), count)
    else:
        found = random.triangular(0, random.random(), 1, count)
    return np.asarray(found - found.min())


def _lag(rtt_s: NDArray[np.float64]) -> float:
    centred = rtt_s - np.nanmean(rtt_s)
    return float(np.nanmean(centred[1:] * centred[:-1]) / np.nanmean(centred**2))
