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
from sawtooth.study.measure import Measure
from sawtooth.study.shares import ALL

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True)
class ApplicationKind:
    """How one kind of application appears in tables: its description, its measures, and what these are of."""

    title: str
    measures: tuple[Measure, ...]
    meaning: str

    @property
    def columns(self) -> dict[str, tuple[str, int]]:
        """Headings and decimals by column."""
        return {one.name: (one.heading, one.digits) for one in self.measures}


_HEADINGS = dict(zip(QUANTILES, ("median", "90%", "95%", "99%", "99.9%"), strict=True))


def _times(count: str, column: str, title: str) -> tuple[Measure, ...]:
    return (
        Measure(count, counts=True, heading=count),
        *(
            Measure(
                f"{column}_{name}",
                f"{title}, {heading}, ms",
                heading=heading,
                digits=1,
                last=name == "p95",
            )
            for name, heading in _HEADINGS.items()
        ),
    )


_DELAYS = {"p50_s": "median", "p95_s": "95th percentile", "p99_s": "99th percentile"}
KINDS = {
    "requests": ApplicationKind(
        "response times in ms",
        _times("responses", "response_ms", "response time"),
        "answers of the first flow of requests",
    ),
    "pages": ApplicationKind(
        "page times in ms", _times("pages", "page_ms", "page time"), "pages of the first flow of pages"
    ),
    "video": ApplicationKind(
        "video: mean rate of its segments, time until it plays, number and share of time of stalls",
        (
            Measure("video_segments", counts=True, heading="segments"),
            Measure("video_mbps", "mean rate of the video, Mbit/s", heading="Mbit/s", digits=2),
            Measure("video_startup_s", "startup of the video, s", heading="startup, s", digits=2),
            Measure("video_stalls", "stalls of the video per run", counts=True, heading="stalls"),
            Measure("video_stalled_percent", "time that the video is stalled, %", heading="stalled, %", digits=2),
        ),
        "the first flow of video: segments and their mean rate, time until it plays (mean over viewers), then the "
        "number of stalls and the share of time stalled",
    ),
    "udp": ApplicationKind(
        "datagrams: one-way delays and jitter in ms; for a call the mean opinion score and its 10th percentile",
        (
            Measure("udp_delay_mean_ms", "one-way delay, mean, ms", heading="mean", digits=2),
            *(
                Measure(
                    f"udp_{name.removesuffix('_s')}_ms",
                    f"one-way delay, {_DELAYS[name.removeprefix('delay_')]}, ms",
                    heading=f"{100 * share:g}%" if share > 0.5 else "median",
                    digits=2,
                )
                for name, share in SHARES.items()
            ),
            Measure("udp_jitter_ms", "jitter of datagrams, ms", heading="jitter", digits=2),
            Measure("udp_lost_percent", "datagrams lost, %", heading="lost, %", digits=2),
            Measure("call_mos", "mean opinion score of the call", aliases=("mos",), heading="MOS", digits=2),
            Measure("call_mos_p10", "mean opinion score of the call, worst tenth", heading="MOS, 10%", digits=2),
        ),
        "the first flow of datagrams, one way; if it is a call, its mean opinion score, mean and 10th percentile over "
        "the intervals",
    ),
}
"""The kinds of ``source`` that a study reports."""
COLUMNS = tuple(name for kind in KINDS.values() for name in kind.columns)
"""Columns of a study's table; NaN without a flow of the kind, or with too few samples for a percentile."""
_UNKNOWN = dict.fromkeys(sorted(COLUMNS, key=lambda name: name.endswith("_p95")), math.nan)
NAMES = ("application",)
"""Columns of the table ``applications`` besides the flow's name and ``COLUMNS``."""


def of_kind(kind: str, seen: Sequence[Sequence[Application]]) -> dict[str, float]:
    """The values of a kind's measures, from runs that differ only in their seeds; empty without a flow of it."""
    firsts = [next((one for one in run if one.kind == kind), None) for run in seen]
    return _values_of_kind(kind, [one for one in firsts if one is not None])


def rows(key: Mapping[str, Any], seed: int | str, seen: Sequence[Sequence[Application]]) -> list[dict[str, Any]]:
    """One row per flow, from one run or from several that differ only in their seeds."""
    table = []
    for each in zip(*seen, strict=True):
        about = {"flow": each[0].name, "application": each[0].kind}
        table.append({**key, "seed": seed, **about, **_UNKNOWN, **_values_of_kind(each[0].kind, each)})
    return table


def tables(found: DataFrame) -> Iterator[tuple[ApplicationKind, list[dict[str, Any]]]]:
    """For each kind in the table ``applications``: its description, and the rows of all seeds together."""
    together = found[found["seed"] == ALL] if len(found) else found
    for name, kind in KINDS.items():
        own = together[together["application"] == name] if len(together) else together
        if len(own):
            yield kind, [{str(name): value for name, value in row.items()} for row in own.to_dict("records")]


def _values_of_kind(kind: str, each: Sequence[Application]) -> dict[str, float]:
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
