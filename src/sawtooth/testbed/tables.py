"""Converts the source's output into a run's tables, with the columns of every engine (docs/reference/tables.md)."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sawtooth.testbed.traffic import sending_hosts

if TYPE_CHECKING:
    from pandas import DataFrame

    from sawtooth.scenario.compiled import Compiled

_READ = ("responses", "pages", "segments")
"""Tables of readers, which the source writes only if they have rows."""
_NO_SSTHRESH = 0x7FFFFFFF
_NO_MIN_RTT = 0xFFFFFFFF
_UNPACED_BYTES = 2**62
"""The kernel's "no limit" is all ones, whatever the field's width."""
TIMEOUTS_SINCE = (6, 7)
"""The first kernel whose tcp_info counts timeouts; before it, only hosts count them."""


def read(directory: Path, compiled: Compiled, kernel: tuple[int, int]) -> dict[str, DataFrame]:
    """The six tables, ``datagrams`` if flows send any, and those of readers. ``kernel``: major and minor version of the
    measured kernel.

    Linux counts tail loss probes per host, not per connection (neither tcp_info nor inet_diag has them), so they are
    NaN if several flows share a host.
    """
    raw = {
        name: _csv(directory, name) for name in ("intervals", "tcp_info", "queues", "links", "flows", "probes", "hosts")
    }
    intervals = _intervals(raw["intervals"], raw["hosts"], compiled, kernel)
    datagrams = any(flow.datagrams is not None for flow in compiled.flows)
    return {
        **({"datagrams": _datagrams(_csv(directory, "datagrams"))} if datagrams else {}),
        **{name: _read(directory, name) for name in _READ if (directory / f"{name}.csv").exists()},
        "intervals": intervals,
        "tcp_info": _tcp_info(raw["tcp_info"]),
        "queues": _queues(raw["queues"], compiled),
        # A link with a loss and a policer has a row for each.
        "links": _at_ends(raw["links"].groupby(["t_ns", "link"], as_index=False).sum()),
        "probes": _probes(raw["probes"], compiled),
        "flows": _flows(raw["flows"], intervals, compiled, kernel),
    }


def _read(directory: Path, name: str) -> DataFrame:
    """What readers received: in order of time, times in seconds."""
    table = _csv(directory, name)
    for column in [column for column in table.columns if column.endswith("_ns")]:
        table[column] = table[column] / 1e9
    table = table.rename(columns=lambda column: f"{column.removesuffix('_ns')}_s" if column.endswith("_ns") else column)
    return table.sort_values(["t_s", "flow", table.columns[2]], kind="stable", ignore_index=True)


def by_host(directory: Path, compiled: Compiled) -> dict[str, dict[str, int]]:
    """Timeouts and probes of each sending host's connections together, by host name."""
    counted = _csv(directory, "hosts").sort_values("t_ns")
    totals = {}
    for host in sending_hosts(compiled):
        mine = counted[counted["namespace"] == host]
        first, *_, last = mine[["timeouts", "tail_probes", "window_probes"]].to_dict("records")
        totals[compiled.hosts[host].name] = {str(name): last[name] - first[name] for name in last}
    return totals


def _csv(directory: Path, name: str) -> DataFrame:
    import pandas as pd

    return pd.read_csv(directory / f"{name}.csv")


def _at_ends(table: DataFrame) -> DataFrame:
    table.insert(0, "t_s", table.pop("t_ns") / 1e9)
    return table


def _length_s(t_ns: Any, compiled: Compiled) -> Any:
    """The length of the intervals that end at these times; the run's last one may be shorter."""
    return (t_ns - (t_ns - 1) // compiled.interval_ns * compiled.interval_ns) / 1e9


def _queues(raw: DataFrame, compiled: Compiled) -> DataFrame:
    """The mean delay follows from the mean queue by Little's law; the kernel does not report the wait of each
    packet."""
    waited_s = raw["mean_packets"] * _length_s(raw["t_ns"], compiled)
    raw["delay_mean_s"] = (waited_s / raw["sent_packets"]).where(raw["sent_packets"] > 0)
    for percent in (50, 95, 99):
        raw[f"delay_p{percent}_s"] = math.nan
    for name in ("overlimits", "new_flow_count", "new_flows", "old_flows"):
        raw[name] = raw.pop(name).where(lambda told: told >= 0).astype(float)
    return _at_ends(raw)


def _intervals(raw: DataFrame, hosts: DataFrame, compiled: Compiled, kernel: tuple[int, int]) -> DataFrame:
    table = _at_ends(raw.copy())
    table["goodput_bps"] = table.pop("bytes") * 8 / _length_s(raw["t_ns"], compiled)
    for counter in _counters(kernel):
        table[counter] = _by_host(counter, table, hosts, compiled)
    columns = "t_s flow goodput_bps segments_out retransmits timeouts tail_probes window_probes"
    return table[columns.split()]


def _counters(kernel: tuple[int, int]) -> tuple[str, ...]:
    """Counters that exist per host only."""
    probes = ("tail_probes", "window_probes")
    return probes if kernel >= TIMEOUTS_SINCE else (*probes, "timeouts")


def _by_host(counter: str, table: DataFrame, hosts: DataFrame, compiled: Compiled) -> Any:
    """A host's counter in each interval, for flows that are alone on their host."""
    import pandas as pd

    values = pd.Series(math.nan, index=table.index)
    for host in sending_hosts(compiled):
        flows = _flows_of(host, compiled)
        if len(flows) == 1:
            rows = hosts[hosts["namespace"] == host].sort_values("t_ns")
            values[table["flow"] == flows[0]] = rows[counter].diff().iloc[1:].to_numpy()
    return values.astype("int64") if values.notna().all() else values


def _flows_of(host: int, compiled: Compiled) -> list[int]:
    return [index for index, flow in enumerate(compiled.flows) if compiled.source(flow) == host]


def _tcp_info(raw: DataFrame) -> DataFrame:
    table = _at_ends(raw)
    for name in ("srtt", "min_rtt", "rto", "rwnd_limited", "sndbuf_limited"):
        values = table.pop(f"{name}_us")
        table[f"{name}_s"] = values.where(values != _NO_MIN_RTT) / 1e6
    pacing = table.pop("pacing_bytes").astype(float)
    table["pacing_bps"] = pacing.where(pacing < _UNPACED_BYTES) * 8
    delivery = table.pop("delivery_bytes").astype(float)
    table["delivery_bps"] = delivery.where(delivery > 0) * 8
    table["ssthresh_segments"] = table["ssthresh_segments"].where(table["ssthresh_segments"] < _NO_SSTHRESH, -1)
    columns = (
        "t_s flow connection cwnd_segments ssthresh_segments srtt_s min_rtt_s rto_s in_flight_segments pacing_bps "
    )
    columns += (
        "delivery_bps delivered_segments delivered_ce_segments lost_segments state rwnd_limited_s sndbuf_limited_s"
    )
    return table[columns.split()]


def _probes(raw: DataFrame, compiled: Compiled) -> DataFrame:
    """All probes due before the end; those without an answer are lost."""
    import numpy as np
    import pandas as pd

    tables = []
    for index, probe in enumerate(compiled.probes):
        due = -(-(compiled.duration_ns - probe.start_ns) // probe.interval_ns)
        count = min(probe.count, due)
        sent = (probe.start_ns + np.arange(count) * probe.interval_ns) / 1e9
        rtt = np.full(count, math.nan)
        answers = raw[(raw["probe"] == index) & (raw["number"] < count)]
        # Keeps an integer type even if empty.
        numbers = answers["number"].to_numpy(dtype="int64")
        rtt[numbers] = answers["rtt_ns"].to_numpy() / 1e9
        sent[numbers] = answers["sent_ns"].to_numpy() / 1e9
        tables.append(pd.DataFrame({"t_s": sent, "probe": index, "rtt_s": rtt}))
    if not tables:
        return pd.DataFrame({"t_s": np.empty(0), "probe": np.empty(0, dtype="int64"), "rtt_s": np.empty(0)})
    return pd.concat(tables, ignore_index=True).sort_values(["t_s", "probe"], ignore_index=True)


def _datagrams(raw: DataFrame) -> DataFrame:
    table = _at_ends(raw)
    table["delay_mean_s"] = table.pop("delay_sum_ns") / table["received"].where(table["received"] > 0) / 1e9
    for name in ("delay_p50", "delay_p95", "delay_p99", "delay_max", "jitter"):
        table[f"{name}_s"] = table.pop(f"{name}_ns") / 1e9
    return table


def _flows(raw: DataFrame, intervals: DataFrame, compiled: Compiled, kernel: tuple[int, int]) -> DataFrame:
    for end in ("start", "end"):
        raw[f"{end}_s"] = raw.pop(f"{end}_ns") / 1e9
    alone = raw["flow"].map(raw["flow"].value_counts()) == 1
    for counter in _counters(kernel):
        raw[counter] = raw["flow"].map(intervals.groupby("flow")[counter].sum(min_count=1)).where(alone)
    columns = "flow connection generation start_s end_s asked_bytes delivered_bytes segments_out retransmits timeouts "
    columns += "tail_probes completed window_probes"
    return raw[columns.split()].sort_values(["end_s", "flow", "connection"], ignore_index=True)
