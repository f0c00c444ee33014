"""A number for the table of the live view, from at most two simulations: what the same congestion control would get
without its random loss.

It starts from the same estimate of the path as the whole answer (``expected.expect``), of which it takes the middle. It
does not fit the path, and has no interval.
"""

from __future__ import annotations

import math
from dataclasses import replace

from sawtooth.errors import SawtoothError
from sawtooth.watch.estimated import Expected, Range, untold
from sawtooth.whatif import Observed, estimate
from sawtooth.whatif.replay import BY_TOTALS, ROUGHLY
from sawtooth.whatif.runs import Runs, middle

UNLIKE = "no estimate: no path that the samples allow lets {} get near what was observed"


def rough(seen: Observed) -> Expected:
    """One number. If no estimate is possible, it has a reason."""
    try:
        return _rough(seen)
    except SawtoothError as error:
        return Expected(reason=error.message, rough=True)


def _rough(seen: Observed) -> Expected:
    """The median only; if the bottleneck was never full, the low end only, at the lowest rate that it may have.

    The whole answer refuses where the observed control gets far more or less than was observed on all paths that were
    tried. This refuses where it gets far less without loss, or far more with the most loss that is possible. Raises
    SawtoothError as ``estimate`` and the engine ``sim`` do.
    """
    if (hindrance := untold(seen)) is not None:
        return replace(hindrance, rough=True)
    assert seen.cc is not None
    assert seen.goodput_bps is not None
    path = estimate(seen)
    runs = Runs(seen, path)
    at_least = path.rate.bound == "at least"
    chosen = middle(path)
    if at_least:
        chosen = replace(chosen, rate_bps=path.rate.low)
    (free,) = runs.of([replace(chosen, loss=0.0)], seen.cc)
    without_loss = free.goodput_bps / seen.goodput_bps
    with_most_loss = without_loss
    if without_loss > 1 + ROUGHLY and path.loss.high > 0:
        (lossy,) = runs.of([replace(chosen, loss=path.loss.high)], seen.cc)
        with_most_loss = lossy.goodput_bps / seen.goodput_bps
    if without_loss * (1 + ROUGHLY) < 1 or with_most_loss > 1 + ROUGHLY:
        return Expected(reason=UNLIKE.format(seen.cc), rough=True)
    if at_least:
        low = free.goodput_bps * math.exp(-BY_TOTALS["another"][0])
        return Expected(lossless=Range(seen.cc, None, low, None), rough=True)
    return Expected(lossless=Range(seen.cc, free.goodput_bps, free.goodput_bps, free.goodput_bps), rough=True)
