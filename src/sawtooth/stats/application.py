"""Application results of a run, by flow: answers, pages, videos and datagrams after the warm-up.

An answer or a page counts if it was requested after the warm-up; a datagram if its interval began after it. What is
incomplete at the run's end has no row and is missing here, except for a video that is stalled at the end.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sawtooth.io.table_store import Rows, groups
from sawtooth.run import Run
from sawtooth.stats.call import call
from sawtooth.stats.queueing import Queueing, delays_s, mean_delay_s
from sawtooth.stats.throughput import after_warmup

if TYPE_CHECKING:
    from numpy import ndarray
    from pandas import DataFrame

    from sawtooth.scenario.compiled_form import Flow

    Floats = ndarray[Any, Any]

TABLES = {"requests": "responses", "pages": "pages", "video": "segments", "udp": "datagrams"}
"""The run's table for each kind of ``source``."""
_TOOK = {"requests": "response_s", "pages": "load_s", "video": "download_s"}
_SPEECH = (172, 68_800)
"""Payload and rate of a G.711 call with 20 ms of speech per datagram, for which the E-model is computed."""


@dataclass(frozen=True)
class Application:
    """One flow of one run, by its name in the file.

    ``table``: its rows in the run's table of that kind; those of datagrams have ``mos`` (NaN if the flow is not a
    call). ``viewers``: for a video one row per viewer, with ``startup_s`` (NaN: before the warm-up), ``stalls``,
    ``stalled_s`` (both after the startup) and ``watched_s``; otherwise None.
    """

    name: str
    kind: str
    table: DataFrame
    viewers: DataFrame | None = None

    @property
    def took_s(self) -> Floats:
        """Seconds per answer, page or segment."""
        return self.table[_TOOK[self.kind]].to_numpy(float)


def applications(run: Run) -> list[Application]:
    """The applications of a run, in the file's order. Empty if the engine lacks the table."""
    import numpy as np

    flows = run.scenario.compile().flows
    parts: dict[str, list[int]] = {}
    for index, flow in enumerate(flows):
        kind = _kind(flow)
        if kind is not None and TABLES[kind] in run.tables:
            # A flow spread over the pairs of a dumbbell is compiled into one flow per pair: NAME@s1 …
            parts.setdefault(flow.entry, []).append(index)
    found = []
    for name, indices in parts.items():
        kind = _kind(flows[indices[0]])
        assert kind is not None
        read = groups(run.tables, TABLES[kind])
        table = Rows.joined([part[np.isin(part["flow"], indices)] for part in read]).frame()
        viewers = _viewers(run, flows[indices[0]], table) if kind == "video" else None
        if kind == "udp":
            kept = after_warmup(run, _judged(run, flows, indices, table))
        else:
            kept = table[table["t_s"] - table[_TOOK[kind]] >= run.scenario.warmup.seconds]
        found.append(Application(name, kind, kept.reset_index(drop=True), viewers))
    return found


def delays(seen: Sequence[Application], shares: Sequence[float]) -> list[float]:
    """Quantiles (``shares``) of the one-way delay in seconds, over the datagrams of all runs; NaN if there are none."""
    return delays_s(_received(seen), shares)


def delay_s(seen: Sequence[Application]) -> float:
    """The mean one-way delay in seconds of all received datagrams; NaN if there are none."""
    return mean_delay_s(_received(seen))


def _kind(flow: Flow) -> str | None:
    return "udp" if flow.datagrams is not None else flow.asks.kind if flow.asks is not None else None


def _received(seen: Sequence[Application]) -> list[Queueing]:
    """Datagrams in the form of packets that left a queue, so that the same code computes their delays."""
    return [Queueing(one.name, Rows.of(one.table.rename(columns={"received": "sent_packets"}))) for one in seen]


def _judged(run: Run, flows: Sequence[Flow], indices: Sequence[int], table: DataFrame) -> DataFrame:
    import numpy as np

    found = table.assign(mos=np.nan)
    for index in indices:
        sends = flows[index].datagrams
        own = found["flow"] == index
        if sends is not None and (sends.bytes, sends.rate_bps) == _SPEECH and not sends.poisson and own.any():
            found.loc[own, "mos"] = call(run, index)["mos"].to_numpy()
    return found


def _viewers(run: Run, flow: Flow, segments: DataFrame) -> DataFrame:
    """One row per viewer. A video lasts until the run or its flow ends; a viewer stalled then has been so since its
    buffer ran empty."""
    import pandas as pd

    warmup_s, end_s = run.scenario.warmup.seconds, run.end_s
    if flow.duration_ns is not None:
        end_s = min(end_s, (flow.start_ns + flow.duration_ns) / 1e9)
    rows = []
    for _, own in segments.groupby(["flow", "connection"], sort=True):
        first, last = own.iloc[0], own.iloc[-1]
        later = own[(own["number"] > 0) & (own["t_s"] > warmup_s)]
        stalled_s = later["stalled_s"].clip(upper=later["t_s"] - warmup_s)
        empty_s = max(0.0, end_s - max(last["t_s"] + last["buffer_s"], warmup_s))
        rows.append(
            {
                "startup_s": first["stalled_s"] if first["t_s"] - first["stalled_s"] >= warmup_s else math.nan,
                "stalls": int((stalled_s > 0).sum()) + (empty_s > 0),
                "stalled_s": float(stalled_s.sum()) + empty_s,
                "watched_s": max(0.0, end_s - max(first["t_s"], warmup_s)),
            }
        )
    return pd.DataFrame(rows, columns=["startup_s", "stalls", "stalled_s", "watched_s"])
