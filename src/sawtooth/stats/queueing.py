"""The bottleneck's queue over a run: delays of the packets that left it, drops and marks.

A run has mean and percentiles of each interval. The percentiles of the whole run come from the intervals' distributions
together, each weighted by its number of packets. An interval's distribution is assumed uniform below its median, placed
so that the mean is right; longer delays fall exponentially from percentile to percentile and beyond.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sawtooth.io.table_store import Rows, groups
from sawtooth.run import Run
from sawtooth.stats.path import slowest
from sawtooth.stats.throughput import after_warmup

if TYPE_CHECKING:
    from numpy import ndarray

    Floats = ndarray[Any, Any]

SHARES = {"delay_p50_s": 0.5, "delay_p95_s": 0.95, "delay_p99_s": 0.99}
"""Delay columns of a run's table ``queues``, and the share of packets with a shorter delay."""
_STEPS = 1000
"""Number of delays at which the distributions are summed."""


@dataclass(frozen=True)
class Queueing:
    """Rows of ``queues`` for one transmitter after the warm-up. A column that the engine lacks is absent."""

    name: str
    table: Rows


def bottleneck(run: Run, columns: Sequence[str] | None = None) -> Queueing | None:
    """The queue of the bottleneck: before the lowest rate on the first flow's data path. None if there is none.

    ``columns`` are those of its table to read (default: all)."""
    compiled = run.scenario.compile()
    met = slowest(compiled, compiled.flows[0].forward) if compiled.flows else None
    if met is None or "queues" not in run.tables:
        return None
    index = next(at for at, one in enumerate(compiled.transmitters) if one is met)
    read = None if columns is None else ("t_s", "transmitter", *columns)
    parts = []
    for part in groups(run.tables, "queues", read):
        kept = after_warmup(run, part if read is None else part.only(read))
        parts.append(kept[kept["transmitter"] == index])
    return Queueing(met.name, Rows.joined(parts))


def total(seen: Sequence[Queueing], column: str) -> float:
    """The sum of a column over runs; NaN if a run does not have it."""
    if not seen or any(column not in one.table for one in seen):
        return math.nan
    return float(sum(one.table[column].sum() for one in seen))


def mean_delay_s(seen: Sequence[Queueing]) -> float:
    """The mean wait of packets in seconds, over runs; NaN if nothing left the queue or it is unknown."""
    if not seen or any("delay_mean_s" not in one.table for one in seen):
        return math.nan
    table = _sending(seen, ())
    packets = float(table["sent_packets"].sum())
    return float((table["delay_mean_s"] * table["sent_packets"]).sum()) / packets if packets else math.nan


def delays_s(seen: Sequence[Queueing], shares: Sequence[float]) -> list[float]:
    """Quantiles (``shares``) of the packets' delay in seconds, over all runs; NaN without percentiles.

    ``shares`` are between 0 and 0.99: the last hundredth of an interval is unknown.
    """
    import numpy as np

    if not seen or any(column not in one.table for one in seen for column in (*SHARES, "delay_mean_s")):
        return [math.nan for _ in shares]
    table = _sending(seen, tuple(SHARES))
    known = np.column_stack([table[column] for column in SHARES])
    if not known.size or not np.isfinite(known).all():
        return [math.nan for _ in shares]
    weights = table["sent_packets"] / float(table["sent_packets"].sum())
    at = np.unique(np.quantile(known, np.linspace(0, 1, _STEPS)))
    at = np.unique(np.concatenate([np.linspace(0, at[-1], _STEPS), at]))
    below = np.zeros(at.size)
    for percentiles, mean, weight in zip(known, table["delay_mean_s"], weights, strict=True):
        below += weight * _shorter(at, percentiles, mean)
    return [float(delay) for delay in np.interp(shares, below, at)]


def _sending(seen: Sequence[Queueing], columns: Sequence[str]) -> Rows:
    """The rows of all runs in which packets left: their number, mean delay and ``columns``."""
    parts = [Rows({name: one.table[name] for name in ("sent_packets", "delay_mean_s", *columns)}) for one in seen]
    return Rows.joined([part[part["sent_packets"] > 0] for part in parts])


def _shorter(at: Floats, percentiles: Floats, mean: float) -> Floats:
    """The share of an interval's delays that are at most each of ``at``."""
    import numpy as np

    left = np.log1p(-np.array(list(SHARES.values())))
    median = percentiles[0]
    spans, falls = np.diff(percentiles), -np.diff(left)
    # The integral of an exponential is its decrease divided by its rate; the last one has no end.
    above = median + 2 * float(
        (-np.diff(np.exp(left)) * spans / falls).sum() + np.exp(left[-1]) * spans[-1] / falls[-1]
    )
    first = min(max(2 * (2 * mean - above) - median, 0.0), median)
    low = np.clip((at - first) / (median - first), 0, 1) / 2 if first < median else np.zeros(at.size)
    log_left = np.interp(at, percentiles, left)
    beyond = np.maximum(at - percentiles[-1], 0.0)
    if spans[-1] > 0:
        log_left -= beyond * falls[-1] / spans[-1]
    else:
        log_left = np.where(at >= percentiles[-1], -np.inf, log_left)
    return np.where(at < median, low, -np.expm1(log_left))
