"""Application results in a study's table: response times, page times, videos, datagrams and call quality.

A point's columns are of the first flow of each kind in the file; the table ``applications`` has them for every flow.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sawtooth.stats.application import Application, delay_s, delays
from sawtooth.stats.completion import QUANTILES, quantile
from sawtooth.stats.queueing import SHARES
from sawtooth.study.shares import ALL

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True)
class Told:
    """How one kind of application appears in tables: its description, and its columns with headings and decimals."""

    title: str
    columns: Mapping[str, tuple[str, int]]


_HEADINGS = dict(zip(QUANTILES, ("median", "90%", "95%", "99%", "99.9%"), strict=True))


def _times(count: str, column: str) -> dict[str, tuple[str, int]]:
    return {count: (count, 0)} | {f"{column}_{name}": (heading, 1) for name, heading in _HEADINGS.items()}


KINDS = {
    "requests": Told("response times in ms", _times("responses", "response_ms")),
    "pages": Told("page times in ms", _times("pages", "page_ms")),
    "video": Told(
        "video: mean rate of its segments, time until it plays, number and share of time of stalls",
        {
            "video_segments": ("segments", 0),
            "video_mbps": ("Mbit/s", 2),
            "video_startup_s": ("startup, s", 2),
            "video_stalls": ("stalls", 0),
            "video_stalled_percent": ("stalled, %", 2),
        },
    ),
    "udp": Told(
        "datagrams: one-way delays and jitter in ms; for a call the mean opinion score and its 10th percentile",
        {
            "udp_delay_mean_ms": ("mean", 2),
            **{
                f"udp_{name.removesuffix('_s')}_ms": (f"{100 * share:g}%" if share > 0.5 else "median", 2)
                for name, share in SHARES.items()
            },
            "udp_jitter_ms": ("jitter", 2),
            "udp_lost_percent": ("lost, %", 2),
            "call_mos": ("MOS", 2),
            "call_mos_p10": ("MOS, 10%", 2),
        },
    ),
}
"""The kinds of ``source`` that a study reports."""
COLUMNS = tuple(name for told in KINDS.values() for name in told.columns)
"""Columns of a study's table; NaN without a flow of the kind, or with too few samples for a percentile."""
NAMES = ("application",)
"""Columns of the table ``applications`` besides the flow's name and ``COLUMNS``."""
TITLES = {
    **{f"response_ms_{name}": f"response time, {_HEADINGS[name]}, ms" for name in QUANTILES},
    **{f"page_ms_{name}": f"page time, {_HEADINGS[name]}, ms" for name in QUANTILES},
    "video_mbps": "mean rate of the video, Mbit/s",
    "video_startup_s": "startup of the video, s",
    "video_stalls": "stalls of the video per run",
    "video_stalled_percent": "time that the video is stalled, %",
    "udp_delay_mean_ms": "one-way delay, mean, ms",
    "udp_delay_p50_ms": "one-way delay, median, ms",
    "udp_delay_p95_ms": "one-way delay, 95th percentile, ms",
    "udp_delay_p99_ms": "one-way delay, 99th percentile, ms",
    "udp_jitter_ms": "jitter of datagrams, ms",
    "udp_lost_percent": "datagrams lost, %",
    "call_mos": "mean opinion score of the call",
    "call_mos_p10": "mean opinion score of the call, worst tenth",
}


def columns(seen: Sequence[Sequence[Application]]) -> dict[str, float]:
    """The values of ``COLUMNS``, from runs that differ only in their seeds."""
    row = dict.fromkeys(COLUMNS, math.nan)
    for kind in KINDS:
        firsts = [next((one for one in run if one.kind == kind), None) for run in seen]
        row |= _told(kind, [one for one in firsts if one is not None])
    return row


def rows(key: Mapping[str, Any], seed: int | str, seen: Sequence[Sequence[Application]]) -> list[dict[str, Any]]:
    """One row per flow, from one run or from several that differ only in their seeds."""
    empty = dict.fromkeys(sorted(COLUMNS, key=lambda name: name.endswith("_p95")), math.nan)
    found = []
    for each in zip(*seen, strict=True):
        about = {"flow": each[0].name, "application": each[0].kind}
        found.append({**key, "seed": seed, **about, **empty, **_told(each[0].kind, each)})
    return found


def tables(found: DataFrame) -> Iterator[tuple[Told, list[dict[str, Any]]]]:
    """For each kind in the table ``applications``: its description, and the rows of all seeds together."""
    together = found[found["seed"] == ALL] if len(found) else found
    for kind, told in KINDS.items():
        own = together[together["application"] == kind] if len(together) else together
        if len(own):
            yield told, [{str(name): value for name, value in row.items()} for row in own.to_dict("records")]


def _told(kind: str, each: Sequence[Application]) -> dict[str, float]:
    """The columns of one kind, from the same flow in several runs; empty without a run."""
    import numpy as np
    import pandas as pd

    if not each:
        return {}
    table = pd.concat([one.table for one in each])
    if kind == "udp":
        return _datagrams(each, table)
    if kind == "video":
        return _video(pd.concat([one.viewers for one in each]), table)
    count, *times = KINDS[kind].columns
    took_ms = np.concatenate([one.took_s for one in each]) * 1e3
    found = {count: float(len(table))}
    if took_ms.size:
        found |= {name: quantile(took_ms, share) for name, share in zip(times, QUANTILES.values(), strict=True)}
    return found


def _video(viewers: DataFrame, segments: DataFrame) -> dict[str, float]:
    watched_s = float(viewers["watched_s"].sum())
    return {
        "video_segments": float(len(segments)),
        "video_mbps": float(segments["rate_bps"].mean()) / 1e6,
        "video_startup_s": float(viewers["startup_s"].mean()),
        "video_stalls": float(viewers["stalls"].sum()),
        "video_stalled_percent": 100 * float(viewers["stalled_s"].sum()) / watched_s if watched_s else math.nan,
    }


def _datagrams(each: Sequence[Application], table: DataFrame) -> dict[str, float]:
    found = {"udp_delay_mean_ms": delay_s(each) * 1e3}
    for name, delay in zip(SHARES, delays(each, list(SHARES.values())), strict=True):
        found[f"udp_{name.removesuffix('_s')}_ms"] = delay * 1e3
    received, lost = float(table["received"].sum()), max(0.0, float(table["lost"].sum()))
    scores = table["mos"].dropna()
    return found | {
        "udp_jitter_ms": float(table.loc[table["received"] > 0, "jitter_s"].mean()) * 1e3,
        "udp_lost_percent": 100 * lost / (received + lost) if received + lost else math.nan,
        "call_mos": float(scores.mean()),
        "call_mos_p10": float(scores.quantile(0.1)),
    }
