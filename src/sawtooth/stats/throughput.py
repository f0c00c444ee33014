"""Throughput as iperf3's receiver reports it: one value per sampling interval, summed over the flows, in Mbit/s."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

from sawtooth.io.table_store import groups
from sawtooth.run import Run

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from pandas import DataFrame, Series

STATISTICS = ("count", "mean_mbps", "std_mbps", "min_mbps", "q25_mbps", "q50_mbps", "q75_mbps", "max_mbps")
"""Statistics in the order of the published tables. ``std`` divides by n - 1; quantiles interpolate linearly, as in
pandas."""

_HALF_A_NANOSECOND = 5e-10


def after_warmup(run: Run, table: DataFrame) -> DataFrame:
    """Rows of intervals that began at or after the scenario's warm-up; ``t_s`` is the end of an interval."""
    from_s = run.scenario.warmup.seconds + run.scenario.interval.seconds
    # The last interval of a run may be shorter; its row always stays, because it ends later than the warm-up.
    kept = (table["t_s"] >= from_s - _HALF_A_NANOSECOND).to_numpy()
    return table if kept.all() else table[kept]


def whole_intervals(run: Run, table: DataFrame) -> DataFrame:
    """Rows of ``intervals`` after the warm-up, without a last interval that the run's end cut short.

    Its rate covers less time than the others, so as one sample it would have too much weight and too much spread.
    """
    kept = after_warmup(run, table)
    end_ns = round(run.end_s * 1e9)
    rest_ns = end_ns % run.scenario.interval.ns
    return kept[kept["t_s"] < (end_ns - rest_ns / 2) / 1e9] if rest_ns else kept


def throughput(run: Run) -> Series[float]:
    """Mbit/s at the receiving application in each of ``whole_intervals``, summed over flows; index ``t_s``."""
    import pandas as pd

    parts = groups(run.tables, "intervals", ("t_s", "goodput_bps"))
    each = [whole_intervals(run, part).groupby("t_s", sort=True)["goodput_bps"].sum() for part in parts]
    for one, other in pairwise(range(len(each))):
        # The rows of one interval may be in two parts.
        if each[one].index[-1:].equals(each[other].index[:1]):
            each[other] = each[other].add(each[one].iloc[-1:], fill_value=0.0)
            each[one] = each[one].iloc[:-1]
    summed = pd.concat(each) if len(each) > 1 else each[0]
    return (summed / 1e6).rename("throughput_mbps")


def observed(run: Run) -> int | None:
    """How many samples of ``throughput`` were simulated; the others repeat some of them. None: all."""
    fast = run.meta.get("fast")
    return None if fast is None else max(0, round((fast["simulated_s"] - span(run)[0]) / run.scenario.interval.seconds))


def span(run: Run) -> tuple[float, float]:
    """The seconds since the run's start that ``throughput`` covers: from and to.

    The interval in which the warm-up ends is left out, and so is a last one that is cut short.
    """
    interval_ns = run.scenario.interval.ns
    first, last = -(-run.scenario.warmup.ns // interval_ns), round(run.end_s * 1e9) // interval_ns
    last = max(first, last)
    return first * interval_ns / 1e9, last * interval_ns / 1e9


def throughput_by_flow(run: Run) -> DataFrame:
    """Like ``throughput``, with one column per flow: its index in the compiled scenario."""
    table = whole_intervals(run, run.tables["intervals"]).pivot_table(
        index="t_s", columns="flow", values="goodput_bps", aggfunc="sum"
    )
    return table.fillna(0.0) / 1e6


def describe(samples: ArrayLike) -> dict[str, float]:
    """The ``STATISTICS`` of samples in Mbit/s; NaN if there are too few (none, or one for the deviation)."""
    import numpy as np

    values = np.asarray(samples, dtype=float)
    if values.size == 0:
        return {"count": 0} | dict.fromkeys(STATISTICS[1:], math.nan)
    low, q25, q50, q75, high = np.quantile(values, (0, 0.25, 0.5, 0.75, 1)).tolist()
    deviation = float(values.std(ddof=1)) if values.size > 1 else math.nan
    found = (values.size, float(values.mean()), deviation, low, q25, q50, q75, high)
    return dict(zip(STATISTICS, found, strict=True))


def change_percent(value: float, baseline: float) -> float:
    """The difference of ``value`` from ``baseline`` in percent of it; NaN if ``baseline`` is not above 0."""
    return (value / baseline - 1) * 100 if baseline > 0 else math.nan
