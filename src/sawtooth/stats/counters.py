"""The sender's counters after the warm-up: retransmissions, timeouts, round-trip time, time limited by a buffer."""

from __future__ import annotations

import math
from collections import defaultdict

from sawtooth.io.table_store import groups
from sawtooth.run import Run
from sawtooth.stats.throughput import after_warmup

COUNTERS = ("segments_out", "retransmits", "timeouts", "tail_probes", "mean_srtt_ms", "rwnd_limited_percent")


def counters(run: Run) -> dict[str, float]:
    """The values of ``COUNTERS`` for a run: sums over flows and intervals, the mean smoothed RTT over samples and
    connections, and the share of time limited by the receive window (mean over connections). NaN: not in the run."""
    import pandas as pd

    found = dict.fromkeys(COUNTERS, math.nan)
    sums: dict[str, float] = defaultdict(float)
    for part in groups(run.tables, "intervals"):
        intervals = after_warmup(run, part)
        for name in ("segments_out", "retransmits", "timeouts", "tail_probes"):
            if name in intervals:
                sums[name] += float(intervals[name].sum(skipna=False))
    found |= sums
    if "tcp_info" not in run.tables:
        return found
    rtts, lasts = [], []
    for samples in groups(run.tables, "tcp_info", ("t_s", "flow", "connection", "srtt_s", "rwnd_limited_s")):
        kept = after_warmup(run, samples)
        rtt = kept["srtt_s"][kept["srtt_s"] > 0]
        rtts.append((float(rtt.sum()), len(rtt)))
        if "rwnd_limited_s" in samples and not samples.empty:
            # Cumulative over a connection's life, like the kernel's counters, so the last sample is the total.
            lasts.append(samples.groupby(["flow", "connection"], sort=True)[["t_s", "rwnd_limited_s"]].max())
    if sum(count for _, count in rtts):
        found["mean_srtt_ms"] = sum(total for total, _ in rtts) / sum(count for _, count in rtts) * 1e3
    if lasts:
        last = lasts[0] if len(lasts) == 1 else pd.concat(lasts).groupby(["flow", "connection"], sort=True).max()
        share = last["rwnd_limited_s"] / last["t_s"]
        found["rwnd_limited_percent"] = float(share.mean() * 100)
    return found
