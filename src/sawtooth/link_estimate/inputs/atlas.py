"""RIPE Atlas ping results as the service delivers them: a JSON array, or one object per line (firmware 4400 and
later)."""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np

from sawtooth.link_estimate.inputs.record import Record, bad
from sawtooth.link_estimate.series import Remark, RttSeries

_BETWEEN_S = 1.0
"""Seconds between packets of a result, unless another interval was requested, which results do not show."""
_UNSURE_S = 3600
"""A probe that set its clock longer ago counts as uncertain."""


def read(records: list[Record], source: str) -> list[RttSeries]:
    """One series per measurement, probe and address. Raises SawtoothError ``not-a-series``."""
    groups: dict[tuple[str, str, str], list[Record]] = defaultdict(list)
    others = 0
    for record in records:
        if record.text("type") not in ("ping", "") or "result" not in record.values:
            others += 1
            continue
        target = record.text("dst_addr") or record.text("dst_name") or record.text("addr")
        groups[record.text("msm_id"), record.text("prb_id"), target].append(record)
    if not groups:
        raise bad("none of its results is a ping's with its packets", records[0].line)
    found = []
    for (measurement, probe, target), results in groups.items():
        series = _series(results, source, f"measurement {measurement}, probe {probe}", target)
        if others:
            series = series.remarked(Remark("other-results", f"{others} results are not pings: left out"))
        found.append(series)
    return found


def _series(results: list[Record], source: str, label: str, target: str) -> RttSeries:
    sent_s: list[float] = []
    rtt_s: list[float] = []
    duplicates: list[int] = []
    reply: list[str] = []
    unsure = 0
    # Early firmware may deliver results in another order.
    for result in sorted(results, key=lambda one: one.number("timestamp")):
        unsure += not 0 <= result.number("lts", 0) <= _UNSURE_S
        start_s = result.number("timestamp")
        count = 0
        for packet in result.records("result"):
            if packet.values.get("dup"):
                if count and duplicates:
                    duplicates[-1] += 1
                continue
            sent_s.append(start_s + count * _BETWEEN_S)
            rtt_s.append(packet.number("rtt") / 1e3 if "rtt" in packet.values else math.nan)
            reply.append("" if "rtt" in packet.values else packet.text("error"))
            duplicates.append(0)
            count += 1
    if not sent_s:
        raise results[0].wrong("no result has a packet")
    steps_s = np.diff(sent_s)
    pace_s = float(np.median(steps_s[steps_s > 0])) if (steps_s > 0).any() else _BETWEEN_S
    remarks = [
        Remark("assumed-times", f"packets of one result are taken to be {_BETWEEN_S:g} s apart: results do not say")
    ]
    if unsure:
        remarks.append(
            Remark("unsure-clock", f"{unsure} results are of a probe that did not set its clock for an hour")
        )
    return RttSeries(
        np.array(sent_s),
        np.array(rtt_s),
        pace_s,
        source,
        label=label,
        target=target,
        reply=np.array(reply, dtype=object),
        duplicates=np.array(duplicates, dtype=np.int64),
        remarks=tuple(remarks),
    )
