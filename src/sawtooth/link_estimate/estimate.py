"""Estimate: what a window of 1,000 probes says about a link, or why it says nothing."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sawtooth.errors import InputError, SawtoothError
from sawtooth.io.displayable import Displayable
from sawtooth.link_estimate.features import OF_LOSS, features
from sawtooth.link_estimate.model import CongestionModel
from sawtooth.link_estimate.random_links import PACE_S, PROBES
from sawtooth.link_estimate.series import RttSeries, span_text
from sawtooth.link_estimate.series_checks import check
from sawtooth.link_estimate.steady import BLOCK, Change, change

FARTHEST = 2.0
"""Largest distance to the training data for an answer, as a multiple of the usual one."""
_EDGE = 1.1
"""Factor within which an interval's end counts as having reached the edge of the training data."""
_PACE_WITHIN = 0.05
_MOST_LOSS = 0.01
"""Largest loss share of a link called idle or busy: without a full queue, nothing is lost."""
_SURELY_LOST = 5
"""Probes that almost all similar queues lose: if none is missing, the source does not record losses."""
_OTHER = 1.5
"""Factor between the estimates before and after a change of the queue that counts as a change of throughput."""
_WIDEST = 20.0
"""Largest ratio between the ends of an interval that still counts as an answer."""


@dataclass(frozen=True, repr=False)
class Estimate(Displayable):
    """The estimate for one window of probes.

    - ``sent_s``: times of the first and last probe.
    - ``state``: None if inconclusive; then ``reason`` is the code and ``text`` the sentence.
    - ``throughput_bps`` is a TCP flow's mean, with ``low_bps`` and ``high_bps``; None unless the link is congested.
    - ``bound``, ``edge_bps``: if the interval comes within a tenth of the lowest or highest throughput that the model
      knows for such links (``edge_bps``), the answer is one-sided: ``at-most`` with ``low_bps`` 0, or ``at-least`` with
      ``high_bps`` None. A ``throughput_bps`` beyond that edge is a guess.
    - ``changes_s``: when the throughput changed within the window, else None. The interval then covers both parts.
    - ``losses_known``: False if the source seems not to record lost probes; the answer then does not use losses.
    - ``distance``: the model's distance to its training data. ``measured``: the features.
    """

    source: str
    start_s: float
    end_s: float
    probes: int
    state: str | None
    throughput_bps: float | None = None
    low_bps: float | None = None
    high_bps: float | None = None
    bound: str | None = None
    edge_bps: float | None = None
    changes_s: float | None = None
    losses_known: bool = True
    distance: float | None = None
    reason: str | None = None
    text: str = ""
    measured: dict[str, float] | None = None

    def describe(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    @property
    def gets(self) -> str:
        """What a TCP flow gets, like "5.1 Mbit/s" or "at most 1.2 Mbit/s"; "" unless the link is congested."""
        if self.throughput_bps is None:
            return ""
        if self.bound is None:
            return _mbps(self.throughput_bps)
        end_bps = self.high_bps if self.bound == "at-most" else self.low_bps
        return f"{self.bound.replace('-', ' ')} {_mbps(end_bps)}"

    @property
    def factor(self) -> float:
        """From the lower to the upper end of the interval; infinite if it is one-sided, or there is none."""
        return self.high_bps / self.low_bps if self.high_bps and self.low_bps else math.inf

    @property
    def within(self) -> str:
        """The addition to ``gets``: the interval, or why it is one-sided; "" unless the link is congested."""
        if self.throughput_bps is None or self.low_bps is None:
            return ""
        if self.bound is None or self.edge_bps is None:
            return f"{self.low_bps / 1e6:.3g} … {_mbps(self.high_bps)}"
        below = self.bound == "at-most"
        known = f"the model was trained on no {'less' if below else 'more'} than {_mbps(self.edge_bps)}"
        inside = self.throughput_bps > self.edge_bps if below else self.throughput_bps < self.edge_bps
        return f"about {_mbps(self.throughput_bps)}; {known}" if inside else known


def estimate(
    series: RttSeries,
    model: CongestionModel | None = None,
    *,
    rtt_s: float | None = None,
    rate_bps: float | None = None,
    progress: Callable[[float], None] | None = None,
) -> list[Estimate]:
    """One estimate for each window of 1,000 probes; a rest is ignored. Never raises for a bad series: one that cannot
    be used gives a single estimate that says so.

    ``rtt_s`` is the mean base RTT of the link's TCP flows, ``rate_bps`` the link's rate, if known. ``progress`` is
    called with the finished share. Raises SawtoothError ``out-of-range`` if the model was not trained on such links.
    """
    chosen = CongestionModel.default() if model is None else model
    _check_assumed(chosen, rtt_s, rate_bps)
    name = " ".join(part for part in (series.source, series.label) if part)
    try:
        whole = check(series)
    except SawtoothError as error:
        return [_cannot(series, name, error.code, error.message)]
    if len(whole) < PROBES:
        text = f"{len(whole)} probes, but an estimate needs {PROBES}: probe longer"
        return [_cannot(series, name, "too-few-probes", text)]
    for remark in whole.remarks:
        if remark.code == "target-reached":
            return [_cannot(series, name, remark.code, remark.text)]
    if abs(whole.pace_s / PACE_S - 1) > _PACE_WITHIN:
        text = (
            f"a probe every {span_text(whole.pace_s)}, but the model needs {span_text(PACE_S)}: probe at that interval"
        )
        return [_cannot(series, name, "pace", text)]
    found = []
    for part in whole.windows(PROBES):
        found.append(_window(part, name, PathValues(chosen, rtt_s, rate_bps)))
        if progress is not None:
            progress(len(found) * PROBES / len(whole))
    return found


@dataclass(frozen=True)
class PathValues:
    """The model, and what is known about the link."""

    model: CongestionModel
    rtt_s: float | None
    rate_bps: float | None

    def row(self, values: dict[str, float], losses: bool = True) -> NDArray[np.float64]:
        """The model's input; ``losses``: whether the loss features are known."""
        features = {name: math.nan if name in OF_LOSS and not losses else value for name, value in values.items()}
        link = [math.nan if value is None else value for value in (self.rtt_s, self.rate_bps)]
        return np.array([[*features.values(), *link]])


def _window(part: RttSeries, name: str, path: PathValues) -> Estimate:
    try:
        # Remarks on the whole series would blame each window for events in another.
        checked = check(replace(part, remarks=()))
    except SawtoothError as error:
        return _cannot(part, name, error.code, error.message)
    for remark in checked.remarks:
        if remark.doubt:
            return _cannot(part, name, remark.code, remark.text)
    if checked.answered.sum() < PROBES / 2:
        return _cannot(part, name, "too-few-probes", f"only {checked.answered.sum()} of {PROBES} probes were answered")
    try:
        values = features(checked)
    except ValueError as error:
        return _cannot(part, name, "too-few-probes", str(error))
    return _judged(part, checked, values, name, path)


def _judged(part: RttSeries, checked: RttSeries, values: dict[str, float], name: str, path: PathValues) -> Estimate:
    """``values`` are the features of the window ``part``, which passed the checks as ``checked``."""
    model = path.model
    usual = model.usual_loss(path.row(values))[0] if values["loss"] == 0 else np.zeros(2)
    losses = bool(usual[0] * PROBES < _SURELY_LOST)
    row = path.row(values, losses)
    state, sure = model.states(row)[0]
    distance = float(model.distance(row)[0])
    found: dict[str, Any] = {"distance": distance, "measured": values}
    text = ""
    if state == "none":
        text = "the RTTs do not change like those of a queue: are they RTTs, in the order of sending?"
        return _cannot(part, name, "not-a-queue", text, **found)
    if sure < 1:
        text = f"between {state} and another state of the training data"
    elif state != "congested" and values["loss"] > _MOST_LOSS:
        text = f"{values['loss']:.1%} of the probes were lost, but no standing queue is visible"
    elif state == "congested" and distance > FARTHEST:
        text = f"unlike the training data: {distance:.1f} times the usual distance"
    if text:
        return _cannot(part, name, "unlike-training", text, **found)
    if state != "congested":
        text = "no traffic" if state == "idle" else "traffic, but no standing queue"
        return Estimate(name, *_ends(part), len(part), state, text=text, **found)
    text = "persistently congested"
    if not losses:
        text += f" (no probe is lost, but queues like this lose {usual[1]:.1%}: losses seem not to be recorded)"
        found["losses_known"] = False
    throughput_bps = float(model.predict(row)[0])
    low_bps, high_bps = (float(end) for end in model.predict_interval(row)[0])
    changed = change(checked)
    sides = [_side(side, path, losses) for side in _sides(checked, changed)] if changed else []
    if changed and not 1 / _OTHER < sides[0][0] / sides[1][0] < _OTHER:
        low_bps, high_bps = min(low_bps, *(one[1] for one in sides)), max(high_bps, *(one[2] for one in sides))
        at_s = changed.at_s - float(part.sent_s[0])
        text += f"; the queue changes at {at_s:.0f} s"
        text += f"; a flow gets about {_mbps(sides[0][0])} before and {_mbps(sides[1][0])} after"
        found["changes_s"] = changed.at_s
    widest = math.inf if "changes_s" in found else _WIDEST
    ends = bounded(path, throughput_bps, low_bps, high_bps, widest)
    if ends is None:
        text = f"anything from {_mbps(low_bps)} to {_mbps(high_bps)} per flow is possible"
        return _cannot(part, name, "unlike-training", text, **found)
    return Estimate(name, *_ends(part), len(part), state, text=text, **(found | ends))


def bounded(
    path: PathValues, throughput_bps: float, low_bps: float, high_bps: float, widest: float = _WIDEST
) -> dict[str, Any] | None:
    """The fields of an ``Estimate`` for an interval in bit/s, one-sided near an end of the training range; None if it
    reaches both ends, or its ends are more than a factor of ``widest`` apart."""
    least_bps, most_bps = path.model.ends(path.rtt_s, path.rate_bps)
    below, above = low_bps <= _EDGE * least_bps, high_bps >= most_bps / _EDGE
    if (below and above) or high_bps > widest * low_bps:
        return None
    found: dict[str, Any] = {"throughput_bps": throughput_bps, "low_bps": low_bps, "high_bps": high_bps}
    if below:
        # The model answers the same for everything beyond the edge, so the edge must stay inside the interval.
        found |= {"low_bps": 0.0, "high_bps": max(high_bps, least_bps), "bound": "at-most", "edge_bps": least_bps}
    elif above:
        found |= {"low_bps": min(low_bps, most_bps), "high_bps": None, "bound": "at-least", "edge_bps": most_bps}
    return found


def _sides(series: RttSeries, changed: Change) -> tuple[RttSeries, RttSeries]:
    """Without the block in which it changed."""
    last = min(changed.index + BLOCK, len(series) - 3 * BLOCK)
    return series.part(slice(0, changed.index)), series.part(slice(last, None))


def _side(series: RttSeries, path: PathValues, losses: bool) -> tuple[float, float, float]:
    row = path.row(features(series), losses)
    low_bps, high_bps = path.model.predict_interval(row)[0]
    return float(path.model.predict(row)[0]), float(low_bps), float(high_bps)


def _check_assumed(model: CongestionModel, rtt_s: float | None, rate_bps: float | None) -> None:
    for field, value, unit, scale in (("rtt_s", rtt_s, "ms", 1e3), ("rate_bps", rate_bps, "Mbit/s", 1e-6)):
        low, high = model.trained_on_[field]
        # A tenth beyond the ends still counts as near.
        if value is not None and not 0.9 * low <= value <= 1.1 * high:
            ends = f"{low * scale:.3g} … {high * scale:.3g} {unit}"
            message = f"{value * scale:g} {unit}, and the model was trained on {ends}, and answers up to a tenth beyond"
            fix = "correct or remove it; or make a model for it: sawtooth congestion calibrate"
            raise InputError("out-of-range", message, field=field, fix=fix)
    if not model.covers(rtt_s, rate_bps):
        link = "" if rate_bps is None else f" of about {rate_bps / 1e6:g} Mbit/s"
        flows = "" if rtt_s is None else f" with flows of about {rtt_s * 1e3:g} ms"
        fix = "remove one of the two; or make a model for it: sawtooth congestion calibrate"
        raise InputError("out-of-range", f"the model was not trained on a link{link}{flows}", field="rtt_s", fix=fix)


def _cannot(series: RttSeries, name: str, reason: str, text: str, **found: Any) -> Estimate:
    return Estimate(name, *_ends(series), len(series), None, reason=reason, text=text, **found)


def _ends(series: RttSeries) -> tuple[float, float]:
    return (float(series.sent_s[0]), float(series.sent_s[-1])) if len(series) else (0.0, 0.0)


def _mbps(value_bps: float | None) -> str:
    return "" if value_bps is None else f"{value_bps / 1e6:.3g} Mbit/s"
