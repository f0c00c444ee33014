"""Estimates from the probes of a study's runs, compared window by window with what the TCP flows got."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from sawtooth.run import Run
from sawtooth.study import store

if TYPE_CHECKING:
    from pandas import DataFrame

    from sawtooth.link_estimate.estimate import Estimate
    from sawtooth.link_estimate.model import CongestionModel
    from sawtooth.link_estimate.series import RttSeries
    from sawtooth.scenario.compiled import Compiled
    from sawtooth.scenario.compiled_form import Probe
    from sawtooth.study.study import Study

ALL_FLOWS = "all"


class Place(Protocol):
    """Where a point's run is stored; see ``study.result.Place``."""

    @property
    def id(self) -> str: ...
    @property
    def key(self) -> dict[str, Any]: ...
    @property
    def seed(self) -> int: ...


def measured(study: Study, directory: Path, places: Sequence[Place]) -> DataFrame:
    """One row per run, series of probes, window of 1,000 probes, and flow named in ``report.flows``.

    Goodput is in Mbit/s and of one flow; ``probe_features`` is the input of the model.
    """
    import pandas as pd

    from sawtooth.link_estimate.inputs.run import read
    from sawtooth.link_estimate.model import CongestionModel
    from sawtooth.link_estimate.random_links import PROBES
    from sawtooth.link_estimate.series import difference

    model = CongestionModel.default()
    rows = []
    for place in places:
        where = store.point_directory(directory, place.id)
        run = Run.load(where, tables=("intervals",))
        compiled = run.scenario.compile()
        series = {one.label: one for one in read(where)}
        rates = {probe.name: _rate_bps(compiled, probe) for probe in compiled.probes}
        if {"near", "far"} <= set(series):
            series["far - near"] = difference(series["far"], series["near"])
            rates["far - near"] = rates["far"]
        for name, whole in series.items():
            for part in list(whole.windows(PROBES)) or [whole]:
                said = _estimated(part, model, rates[name])
                for flow in study.report.flows or [ALL_FLOWS]:
                    true_bps = _true_bps(run, compiled, flow, part)
                    rows.append({**place.key, "seed": place.seed, **_row(name, flow, part, said, true_bps)})
    return pd.DataFrame(rows)


@dataclass(frozen=True)
class _Estimated:
    """One estimate. ``estimate`` is None if the model was not trained on such links; ``values`` are the features;
    ``rate_bps`` is the link's rate as given to the model (None: it would have been refused)."""

    estimate: Estimate | None
    rate_bps: float | None
    values: dict[str, float] | None


def _estimated(part: RttSeries, model: CongestionModel, rate_bps: float | None) -> _Estimated:
    from sawtooth.errors import SawtoothError
    from sawtooth.link_estimate.estimate import estimate
    from sawtooth.link_estimate.features import features

    try:
        values = features(part)
    except ValueError:
        values = None
    for known in (rate_bps, None):
        try:
            return _Estimated(estimate(part, model, rate_bps=known)[0], known, values)
        except SawtoothError as error:
            # The link is outside the training data; any other problem is part of the estimate.
            if error.code != "out-of-range":
                raise
    return _Estimated(None, None, values)


def _rate_bps(compiled: Compiled, probe: Probe) -> float | None:
    """The rate of the slowest transmitter on the probe's path, there and back."""
    crossed = compiled.transmitters_of((*probe.forward, *probe.backward))
    return min((float(one.rate_bps) for one in crossed), default=None)


def _true_bps(run: Run, compiled: Compiled, flow: str, part: RttSeries) -> float:
    """What a flow got while it was probed: bits that arrived divided by seconds that connections lived. NaN: none
    did."""
    chosen = [index for index, one in enumerate(compiled.flows) if flow in (ALL_FLOWS, one.entry)]
    start_s, end_s = float(part.sent_s.min()), float(part.sent_s.max() + part.pace_s)
    lived_s = 0.0
    for index in chosen:
        one = compiled.flows[index]
        born_s = one.start_ns / 1e9
        gone_s = math.inf if one.duration_ns is None else born_s + one.duration_ns / 1e9
        lived_s += one.count * max(0.0, min(end_s, gone_s) - max(start_s, born_s))
    table = run.tables["intervals"]
    half_s = run.scenario.interval.seconds / 2
    during = table["flow"].isin(chosen) & (table["t_s"] > start_s + half_s) & (table["t_s"] <= end_s + half_s)
    bits = float(table.loc[during, "goodput_bps"].sum()) * run.scenario.interval.seconds
    return bits / lived_s if lived_s else math.nan


def _row(name: str, flow: str, part: RttSeries, said: _Estimated, true_bps: float) -> dict[str, Any]:
    import numpy as np

    values = said.values or {}
    found = said.estimate
    answer_bps = None if found is None else found.throughput_bps
    ends = (None, None) if found is None else (found.low_bps, found.high_bps)
    return {
        "flow": flow,
        "probe": name,
        "probe_from_s": float(part.sent_s[0]),
        "true_mbps": true_bps / 1e6,
        "probe_rtt_ms": float(np.nanmean(part.rtt_s)) * 1e3 if part.answered.any() else math.nan,
        "probe_std_ms": values.get("std_s", math.nan) * 1e3,
        "probe_increasing_percent": values.get("increasing", math.nan) * 100,
        "probe_lost_percent": part.loss * 100,
        "probe_state": "" if found is None or found.state is None else found.state,
        "probe_reason": "out-of-range" if found is None else found.reason or "",
        "probe_bound": "" if found is None or found.bound is None else found.bound,
        "probe_distance": math.nan if found is None or found.distance is None else found.distance,
        "probe_rate_mbps": math.nan if said.rate_bps is None else said.rate_bps / 1e6,
        "estimate_mbps": math.nan if answer_bps is None else answer_bps / 1e6,
        "low_mbps": math.nan if ends[0] is None else ends[0] / 1e6,
        "high_mbps": math.nan if ends[1] is None else ends[1] / 1e6,
        "probe_features": said.values,
    }
