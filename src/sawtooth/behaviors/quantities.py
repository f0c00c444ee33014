"""Quantities: what is measured of a run, each one number from its tables."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pandas import Series

    from sawtooth.run import Run


_BACK = 1
"""The transmitter of a catalogue's first link on the return path."""


@dataclass(frozen=True)
class Quantity:
    """``value``: NaN if the run has none. ``title`` has the unit."""

    name: str
    title: str
    value: Callable[[Run], float]


def _first(table: str, column: str) -> Callable[[Run], Series[Any]]:
    """The first flow's samples, where they are known."""

    def samples(run: Run) -> Series[Any]:
        rows = run.tables[table]
        if "flow" in rows:
            rows = rows[rows["flow"] == 0]
        return rows[column].dropna()

    return samples


def _mean(table: str, column: str, factor: float = 1.0) -> Callable[[Run], float]:
    samples = _first(table, column)
    return lambda run: float(samples(run).mean()) * factor


def _most(table: str, column: str, factor: float = 1.0) -> Callable[[Run], float]:
    samples = _first(table, column)
    return lambda run: float(samples(run).max()) * factor


def _last(table: str, column: str) -> Callable[[Run], float]:
    samples = _first(table, column)
    return lambda run: float(found.iloc[-1]) if len(found := samples(run)) else math.nan


def _counted(column: str) -> Callable[[Run], float]:
    """A host's counter over the whole run: kernels before 6.7 have none for each connection."""
    return lambda run: float(sum(host[column] for host in run.meta["hosts"].values()))


def _sum(table: str, column: str) -> Callable[[Run], float]:
    return lambda run: float(run.tables[table][column].sum())


def _of_queues(column: str, *, backward: bool = False, mean: bool = False) -> Callable[[Run], float]:
    """The sum or mean for the transmitter on the return path, or for all others."""

    def value(run: Run) -> float:
        rows = run.tables["queues"]
        samples = rows[(rows["transmitter"] == _BACK) == backward][column]
        return float(samples.mean() if mean else samples.sum())

    return value


def _goodput(run: Run) -> float:
    bytes_ = run.tables["flows"]["delivered_bytes"].sum()
    return float(bytes_) * 8 / run.end_s / 1e6


def _share(run: Run) -> float:
    rows = run.tables["flows"]
    return 100 * float(rows[rows["flow"] == 0]["delivered_bytes"].sum() / rows["delivered_bytes"].sum())


def _response(run: Run) -> float:
    return 1000 * float(run.tables["responses"]["response_s"].mean()) if "responses" in run.tables else math.nan


def _completion(run: Run) -> float:
    rows = run.tables["flows"]
    return float(rows["end_s"].max()) * 1000 if rows["completed"].all() else math.nan


QUANTITIES = {
    one.name: one
    for one in (
        Quantity("goodput", "goodput of all flows, Mbit/s", _goodput),
        Quantity("completion", "time to the last byte, ms", _completion),
        Quantity("response", "mean time of a response, ms", _response),
        Quantity("share", "the first flow's share, %", _share),
        Quantity("cwnd", "mean cwnd, segments", _mean("tcp_info", "cwnd_segments")),
        Quantity("cwnd_max", "largest cwnd, segments", _most("tcp_info", "cwnd_segments")),
        Quantity("cwnd_end", "last cwnd, segments", _last("tcp_info", "cwnd_segments")),
        Quantity("ssthresh_end", "last ssthresh, segments", _last("tcp_info", "ssthresh_segments")),
        Quantity("in_flight", "mean in flight, segments", _mean("tcp_info", "in_flight_segments")),
        Quantity("pacing", "mean pacing rate, Mbit/s", _mean("tcp_info", "pacing_bps", 1e-6)),
        Quantity("rtt", "mean smoothed RTT, ms", _mean("tcp_info", "srtt_s", 1e3)),
        Quantity("rto_max", "longest RTO, ms", _most("tcp_info", "rto_s", 1e3)),
        Quantity("marks", "segments whose mark was echoed", _last("tcp_info", "delivered_ce_segments")),
        Quantity("retransmits", "retransmitted segments", _sum("intervals", "retransmits")),
        Quantity("timeouts", "timeouts", _counted("timeouts")),
        Quantity("probes", "tail loss probes", _counted("tail_probes")),
        Quantity("window_probes", "probes of a closed window", _counted("window_probes")),
        Quantity("acks", "packets from the receiver", _of_queues("sent_packets", backward=True)),
        Quantity("queue", "mean queue of a transmitter, packets", _of_queues("mean_packets", mean=True)),
        Quantity("drops", "packets that queues dropped", _of_queues("drops")),
    )
}
