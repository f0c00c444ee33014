"""The sender's counters after the warm-up: retransmissions, timeouts, round-trip time, time limited by a buffer."""

from __future__ import annotations

import math
from collections import defaultdict

from sawtooth.io.table_store import Rows, groups
from sawtooth.run import Run
from sawtooth.stats.throughput import after_warmup

COUNTERS = ("segments_out", "retransmits", "timeouts", "tail_probes", "mean_srtt_ms", "rwnd_limited_percent")


def counters(run: Run) -> dict[str, float]:
    """The values of ``COUNTERS`` for a run: sums over flows and intervals, the mean smoothed RTT over samples and
    connections, and the share of time limited by the receive window (mean over connections). NaN: not in the run."""
    import numpy as np

    found = dict.fromkeys(COUNTERS, math.nan)
    sums: dict[str, float] = defaultdict(float)
    for part in groups(run.tables, "intervals"):
        intervals = after_warmup(run, part)
        for name in ("segments_out", "retransmits", "timeouts", "tail_probes"):
            if name in intervals:
                sums[name] += float(intervals[name].sum())
    found |= sums
    if "tcp_info" not in run.tables:
        return found
    rtts, ends = [], []
    for samples in groups(run.tables, "tcp_info", ("t_s", "flow", "connection", "srtt_s", "rwnd_limited_s")):
        rtt = after_warmup(run, samples)["srtt_s"]
        rtt = rtt[rtt > 0]
        rtts.append((float(rtt.sum()), len(rtt)))
        if "rwnd_limited_s" in samples and len(samples):
            ends.append(_largest(samples))
    if sum(count for _, count in rtts):
        found["mean_srtt_ms"] = sum(total for total, _ in rtts) / sum(count for _, count in rtts) * 1e3
    if ends:
        # Cumulative over a connection's life, like the kernel's counters, so the largest is the total.
        last = ends[0] if len(ends) == 1 else _largest(Rows.joined(ends))
        last = last[last["t_s"] > 0]
        share = last["rwnd_limited_s"] / last["t_s"]
        known = share[np.isfinite(share)]
        found["rwnd_limited_percent"] = float(known.mean() * 100) if known.size else math.nan
    return found


def _largest(samples: Rows) -> Rows:
    """The largest time and the largest ``rwnd_limited_s`` of each connection."""
    import numpy as np

    columns = ("flow", "connection", "t_s", "rwnd_limited_s")
    if len(samples) == 1:
        return samples.only(columns)
    flow, connection = samples["flow"].astype(np.int64), samples["connection"].astype(np.int64)
    order = np.lexsort((connection, flow))
    flow, connection = flow[order], connection[order]
    begins = np.flatnonzero(np.r_[True, (np.diff(flow) != 0) | (np.diff(connection) != 0)])
    largest = {name: np.fmax.reduceat(samples[name][order], begins) for name in columns[2:]}
    return Rows({"flow": flow[begins], "connection": connection[begins], **largest})
