"""Throughput as iperf3's receiver reports it: one value per sampling interval, summed over the flows, in Mbit/s."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeVar

from sawtooth.io.table_store import Rows, groups, whole
from sawtooth.run import Run

if TYPE_CHECKING:
    from numpy import ndarray
    from numpy.typing import ArrayLike
    from pandas import DataFrame, Series

    Floats = ndarray[Any, Any]
    Table = TypeVar("Table", Rows, DataFrame)

STATISTICS = ("count", "mean_mbps", "std_mbps", "min_mbps", "q25_mbps", "q50_mbps", "q75_mbps", "max_mbps")
"""Statistics in the order of the published tables. ``std`` divides by n - 1; quantiles interpolate linearly, as in
pandas."""

_HALF_A_NANOSECOND = 5e-10


def after_warmup(run: Run, table: Table) -> Table:
    """Rows of intervals that began at or after the scenario's warm-up; ``t_s`` is the end of an interval."""
    import numpy as np

    from_s = run.scenario.warmup.seconds + run.scenario.interval.seconds
    # The last interval of a run may be shorter; its row always stays, because it ends later than the warm-up.
    kept = np.asarray(table["t_s"] >= from_s - _HALF_A_NANOSECOND)
    return table if kept.all() else table[kept]


def whole_intervals(run: Run, table: Table) -> Table:
    """Rows of ``intervals`` after the warm-up, without a last interval that the run's end cut short.

    Its rate covers less time than the others, so as one sample it would have too much weight and too much spread.
    """
    import numpy as np

    kept = after_warmup(run, table)
    end_ns = round(run.end_s * 1e9)
    rest_ns = end_ns % run.scenario.interval.ns
    return kept[np.asarray(kept["t_s"] < (end_ns - rest_ns / 2) / 1e9)] if rest_ns else kept


def throughput(run: Run) -> Series[float]:
    """``rates`` as a series with index ``t_s``."""
    import pandas as pd

    ends, mbps = rates(run)
    return pd.Series(mbps, pd.Index(ends, name="t_s"), name="throughput_mbps")


def rates(run: Run) -> tuple[Floats, Floats]:
    """Mbit/s at the receiving application in each of ``whole_intervals``, summed over flows: the ends of the intervals
    in seconds, and the rates."""
    import numpy as np

    parts = (whole_intervals(run, part) for part in groups(run.tables, "intervals", ("t_s", "goodput_bps")))
    each = [_summed(part["t_s"], part["goodput_bps"]) for part in parts]
    # The rows of one interval may be in two parts.
    ends, bps = each[0] if len(each) == 1 else _summed(*(np.concatenate(one) for one in zip(*each, strict=True)))
    return ends, bps / 1e6


def _summed(t_s: Floats, values: Floats) -> tuple[Floats, Floats]:
    """The different times in order, and the sum of the values at each."""
    import numpy as np

    if (t_s[1:] > t_s[:-1]).all():
        # One flow with one row per interval.
        return t_s, values.astype(float)
    ends, interval = np.unique(t_s, return_inverse=True)
    return ends, np.bincount(interval, values, len(ends))


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
    import numpy as np
    import pandas as pd

    rows = whole_intervals(run, whole(run.tables, "intervals", ("t_s", "flow", "goodput_bps")))
    seen = np.unique(rows["flow"].astype(np.int64))
    ends, bps = rates_by_flow(rows, int(seen.max(initial=-1)) + 1)
    return pd.DataFrame(bps[:, seen] / 1e6, pd.Index(ends, name="t_s"), pd.Index(seen, name="flow"))


def rates_by_flow(rows: Rows, flows: int) -> tuple[Floats, Floats]:
    """The ends of the intervals in seconds, and the goodput in bit/s by interval and flow; 0 without a row."""
    import numpy as np

    ends, interval = np.unique(rows["t_s"], return_inverse=True)
    at = interval * flows + rows["flow"].astype(np.int64)
    return ends, np.bincount(at, rows["goodput_bps"], len(ends) * flows).reshape(len(ends), flows)


def describe(samples: ArrayLike) -> dict[str, float]:
    """The ``STATISTICS`` of samples in Mbit/s; NaN if there are too few (none, or one for the deviation)."""
    import numpy as np

    values = np.asarray(samples, dtype=float)
    if values.size == 0:
        return {"count": 0} | dict.fromkeys(STATISTICS[1:], math.nan)
    if values.size == 1:
        return {"count": 1} | dict.fromkeys(STATISTICS[1:], float(values[0])) | {"std_mbps": math.nan}
    low, q25, q50, q75, high = np.quantile(values, (0, 0.25, 0.5, 0.75, 1)).tolist()
    deviation = float(values.std(ddof=1)) if values.size > 1 else math.nan
    found = (values.size, float(values.mean()), deviation, low, q25, q50, q75, high)
    return dict(zip(STATISTICS, found, strict=True))


def change_percent(value: float, baseline: float) -> float:
    """The difference of ``value`` from ``baseline`` in percent of it; NaN if ``baseline`` is not above 0."""
    return (value / baseline - 1) * 100 if baseline > 0 else math.nan
