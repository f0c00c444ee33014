"""Summary: what each flow of one run got, in a few numbers, for a shell, a notebook and a terminal."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from sawtooth.io.table_store import groups
from sawtooth.run import Run
from sawtooth.stats.completion import quantile, transfers
from sawtooth.stats.throughput import after_warmup, span

if TYPE_CHECKING:
    from pandas import DataFrame

FLOW = (
    *("flow", "cc", "connections", "mean_mbps", "mean_srtt_ms", "retransmits", "timeouts"),
    *("transfers", "fct_ms_p50", "fct_ms_p90", "fct_ms_p99", "fct_ms_p95"),
)
"""Columns of ``summary``."""
_TIMES = {"fct_ms_p50": 0.5, "fct_ms_p90": 0.9, "fct_ms_p99": 0.99, "fct_ms_p95": 0.95}


def summary(run: Run) -> DataFrame:
    """One row per flow of the scenario, after the warm-up; its connections between several pairs of hosts count
    together.

    ``mean_mbps`` is goodput over the run, ``transfers`` the number started and completed, ``fct_ms_…`` quantiles of
    their completion times. NaN: nothing to compute it from, or not in the engine's tables.
    """
    import numpy as np
    import pandas as pd

    compiled = run.scenario.compile()
    names = [flow.entry for flow in compiled.flows]
    first, last = span(run)
    bits = dict.fromkeys(names, 0.0)
    sums: dict[str, dict[str, float]] = {name: {} for name in names}
    for part in groups(run.tables, "intervals"):
        kept = after_warmup(run, part)
        kept = kept[kept["t_s"] <= last + 5e-10]
        lengths = run.scenario.interval.seconds
        for index in np.unique(kept["flow"]):
            own, name = kept[kept["flow"] == index], names[index]
            bits[name] += float(own["goodput_bps"].sum()) * lengths
            for column in ("retransmits", "timeouts"):
                if column in own:
                    sums[name][column] = sums[name].get(column, 0.0) + float(own[column].sum())
    rtts = sampled_means(run, "srtt_s")
    done = transfers(run)
    rows = []
    for name in dict.fromkeys(names):
        flows = [flow for flow, known in zip(compiled.flows, names, strict=True) if known == name]
        times = done["fct_s"][done["flow"] == name] * 1e3
        rows.append(
            {
                "flow": name,
                "cc": flows[0].cc,
                "connections": sum(flow.count for flow in flows),
                "mean_mbps": bits[name] / (last - first) / 1e6 if last > first else math.nan,
                "mean_srtt_ms": rtts[name] * 1e3,
                "retransmits": sums[name].get("retransmits", math.nan),
                "timeouts": sums[name].get("timeouts", math.nan),
                "transfers": len(times),
                **{key: quantile(times, share) if times.size else math.nan for key, share in _TIMES.items()},
            }
        )
    return pd.DataFrame(rows, columns=list(FLOW))


def sampled_means(run: Run, column: str) -> dict[str, float]:
    """For each flow the mean of a column of ``tcp_info`` after the warm-up, over samples above 0; NaN without any."""
    import numpy as np

    names = [flow.entry for flow in run.scenario.compile().flows]
    sums = {name: [0.0, 0.0] for name in names}
    if "tcp_info" in run.tables:
        for part in groups(run.tables, "tcp_info", ("t_s", "flow", column)):
            if column not in part:  # an earlier version's run
                continue
            kept = after_warmup(run, part)
            kept = kept[kept[column] > 0]
            for index in np.unique(kept["flow"]):
                own, found = kept[column][kept["flow"] == index], sums[names[index]]
                found[0] += float(own.sum())
                found[1] += len(own)
    return {name: total / count if count else math.nan for name, (total, count) in sums.items()}
