"""What applications have of a path: answers, pages, videos and datagrams after the warm-up, by flow.

An answer or a page counts where it was asked for after the warm-up, a datagram where its interval began after it. What
has not come whole by the end has no row, so it is missing here, but for a video that stands still at the end.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sawtooth.rows import groups
from sawtooth.run import Run
from sawtooth.stats.call import call
from sawtooth.stats.queueing import Queueing, delays_s, mean_delay_s
from sawtooth.stats.throughput import after_warmup

if TYPE_CHECKING:
    from numpy import ndarray
    from pandas import DataFrame

    from sawtooth.compiled import Flow

    Floats = ndarray[Any, Any]

TABLES = {"requests": "responses", "pages": "pages", "video": "segments", "udp": "datagrams"}
"""Kinds of a ``source``, and the table of a run that has what such a flow did."""
_TOOK = {"requests": "response_s", "pages": "load_s", "video": "download_s"}
_SPEECH = (172, 68_800)
"""Payload and rate of a call by G.711 with 20 ms of speech in a datagram, which the E-model is reckoned for."""


@dataclass(frozen=True)
class Application:
    """A flow of one run, by its name in the file. ``table``: its rows in the run's table of that kind; those of
    datagrams with ``mos`` (NaN where it is no call). ``viewers`` of a video, else None: a row for each, with
    ``startup_s`` (NaN: before the warm-up), ``stalls``, ``stalled_s`` (both after the startup) and ``watched_s``.
    """

    name: str
    kind: str
    table: DataFrame
    viewers: DataFrame | None = None

    @property
    def took_s(self) -> Floats:
        """Seconds for each answer, page or segment."""
        return self.table[_TOOK[self.kind]].to_numpy(float)


def applications(run: Run) -> list[Application]:
    """Of each flow whose source is of such a kind, in the file's order; none of an engine without its table."""
    import pandas as pd

    flows = run.scenario.compile().flows
    parts: dict[str, list[int]] = {}
    for index, flow in enumerate(flows):
        kind = _kind(flow)
        if kind is not None and TABLES[kind] in run.tables:
            # A flow that is spread over the pairs of a dumbbell is compiled to one for each: NAME@s1 …
            parts.setdefault(flow.name.partition("@")[0], []).append(index)
    found = []
    for name, indices in parts.items():
        kind = _kind(flows[indices[0]])
        assert kind is not None
        read = groups(run.tables, TABLES[kind])
        table = pd.concat([part[part["flow"].isin(indices)] for part in read], ignore_index=True)
        viewers = _viewers(run, flows[indices[0]], table) if kind == "video" else None
        if kind == "udp":
            kept = after_warmup(run, _judged(run, flows, indices, table))
        else:
            kept = table[table["t_s"] - table[_TOOK[kind]] >= run.scenario.warmup.seconds]
        found.append(Application(name, kind, kept.reset_index(drop=True), viewers))
    return found


def delays(seen: Sequence[Application], shares: Sequence[float]) -> list[float]:
    """Seconds of one-way delay than which so large shares of the datagrams of all runs had less; NaN of none."""
    return delays_s(_received(seen), shares)


def delay_s(seen: Sequence[Application]) -> float:
    """Seconds of one-way delay, the mean of all datagrams received; NaN of none."""
    return mean_delay_s(_received(seen))


def _kind(flow: Flow) -> str | None:
    return "udp" if flow.datagrams is not None else flow.asks.kind if flow.asks is not None else None


def _received(seen: Sequence[Application]) -> list[Queueing]:
    """Datagrams as packets that left a queue: their delays are told the same way."""
    return [Queueing(one.name, one.table.rename(columns={"received": "sent_packets"})) for one in seen]


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
    """A video goes on until the run ends, or its flow: one that stands still then has stalled since it ran empty."""
    import pandas as pd

    warmup_s, end_s = run.scenario.warmup.seconds, run.scenario.duration.seconds
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
