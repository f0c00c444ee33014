"""What the sender counted after the warm-up: retransmissions, timeouts, round-trip time, time limited by a buffer."""

from __future__ import annotations

import math

from sawtooth.run import Run
from sawtooth.stats.throughput import after_warmup

COUNTERS = ("segments_out", "retransmits", "timeouts", "tail_probes", "mean_srtt_ms", "rwnd_limited_percent")


def counters(run: Run) -> dict[str, float]:
    """``COUNTERS`` of a run: sums over flows and intervals, the mean smoothed RTT over samples and connections, and
    the share of the time in which the receive window was the limit (mean over connections). NaN: not in the run."""
    found = dict.fromkeys(COUNTERS, math.nan)
    intervals = after_warmup(run, run.tables["intervals"])
    for name in ("segments_out", "retransmits", "timeouts", "tail_probes"):
        if name in intervals:
            found[name] = float(intervals[name].sum(skipna=False))
    samples = run.tables.get("tcp_info")
    if samples is None or samples.empty:
        return found
    kept = after_warmup(run, samples)
    rtt = kept["srtt_s"][kept["srtt_s"] > 0]
    if not rtt.empty:
        found["mean_srtt_ms"] = float(rtt.mean() * 1e3)
    if "rwnd_limited_s" in samples:
        # Cumulative over a connection's life, like the kernel's: the last sample tells.
        last = samples.groupby(["flow", "connection"], sort=True)[["t_s", "rwnd_limited_s"]].max()
        share = last["rwnd_limited_s"] / last["t_s"]
        found["rwnd_limited_percent"] = float(share.mean() * 100)
    return found
