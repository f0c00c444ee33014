"""The figures of a link: table, title and caption of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from sawtooth.figures import Panel, TableFigure
from sawtooth.link_estimate.estimate import Estimate
from sawtooth.link_estimate.model import CongestionModel
from sawtooth.link_estimate.random_links import PACE_S, PROBES
from sawtooth.link_estimate.report import panels
from sawtooth.link_estimate.report.link import Assumed, Link
from sawtooth.link_estimate.report.panels import CALIBRATION, QUANTILES, STATES

if TYPE_CHECKING:
    from numpy.typing import NDArray

EACH = 4000
"""Up to this many probes are drawn one by one."""
PARTS = 2000
"""Longer series are drawn as about this many parts, more than the figure has columns of pixels."""
BINS = 60
CUT = 99.9
"""Percentile of the queueing delay up to which the distribution is drawn; its table continues."""
DAY_S = 23 * 3600.0
"""A series this long has probes in all hours of a day; the last hour may be incomplete."""
ONE_SIDED = "A bar that reaches the edge is one-sided (at most, or at least): the model was not trained beyond it."
ALIKE = 1.65
"""Factor within which a trained series' RTT and rate count as near the assumed ones, as in the model."""


def figures(link: Link, model: CongestionModel, assumed: Assumed) -> list[TableFigure]:
    """The figures that the series allows."""
    found = []
    if link.drawable:
        found.append(_rtt(link))
        if float(np.nanmax(link.delay_ms)) > 0:
            found.append(_distribution(link))
        if is_long(link):
            found.append(_hours(link))
    if link.windows:
        found.append(_estimates(link, model.level))
    if any(one.measured for one in link.windows):
        found.append(_calibration(link, model, assumed))
    return found


def _figure(
    name: str, title: str, caption: str, table: pd.DataFrame, drawn: tuple[list[Panel], dict[str, Any]]
) -> TableFigure:
    return TableFigure.of(name, title, caption, table, drawn[0], **drawn[1])


def is_long(link: Link) -> bool:
    """Whether it covers all hours of a day."""
    return link.problem is None and link.series.duration_s >= DAY_S


def state_of(one: Estimate) -> str:
    """The state in words."""
    return one.state or "inconclusive"


def _rtt(link: Link) -> TableFigure:
    series = link.series
    size = 1 if len(series) <= EACH else -(-len(series) // PARTS)
    starts = np.arange(0, len(series), size)
    probes = np.diff(np.append(starts, len(series)))
    answered = np.add.reduceat(series.answered.astype(np.int64), starts)
    rtt_ms = series.rtt_s * 1e3
    least = np.fmin.reduceat(rtt_ms, starts)
    largest = np.fmax.reduceat(rtt_ms, starts)
    # A part without answers has no median, and numpy would warn about it.
    median = [_median(rtt_ms[start : start + size]) for start in starts]
    table = pd.DataFrame(
        {
            "t_s": link.since_s(series.sent_s[starts]),
            "probes": probes,
            "lost": probes - answered,
            "least_ms": least,
            "median_ms": median,
            "largest_ms": largest,
            "remarks": _remarks(link, starts),
        }
    )
    each = f"The band is the range of the RTTs of {size:,} probes; the line is their median."
    caption = "Each answered probe." if size == 1 else each
    lost = int(probes.sum() - answered.sum())
    caption += f" {lost:,} of {len(series):,} probes were lost; they are shown below." if lost else " None was lost."
    title = "Delay of the link (far minus near)" if series.difference else "Round-trip times"
    return _figure("rtt", title, caption, table, panels.rtt(link, table))


def _median(values: NDArray[np.float64]) -> float:
    known = values[~np.isnan(values)]
    return float(np.median(known)) if len(known) else float("nan")


def _remarks(link: Link, starts: NDArray[Any]) -> list[str]:
    """For each part, the codes of its remarks."""
    found = [""] * len(starts)
    for remark in link.series.remarks:
        if remark.at_s is not None:
            index = int(np.searchsorted(link.series.sent_s, remark.at_s))
            at = int(np.searchsorted(starts, index, side="right")) - 1
            found[at] = "; ".join(part for part in (found[at], remark.code) if part)
    return found


def _distribution(link: Link) -> TableFigure:
    delay_ms = link.delay_ms[link.series.answered]
    most = float(delay_ms.max())
    cut = float(np.percentile(delay_ms, CUT))
    cut = cut if most > 1.1 * cut > 0 else most
    counts, edges = np.histogram(delay_ms, BINS, (0.0, cut))
    ends = edges[1:]
    starts = edges[:-1]
    above = len(delay_ms) - int(counts.sum())
    if above:
        counts, starts, ends = np.append(counts, above), np.append(starts, cut), np.append(ends, most)
    share = 100 * counts / len(delay_ms)
    table = pd.DataFrame({"from_ms": starts, "to_ms": ends, "probes": counts, "share_percent": share})
    table["cumulative_percent"] = 100 * counts.cumsum() / len(delay_ms)
    what = "difference" if link.series.difference else "RTT"
    caption = f"Delay of {len(delay_ms):,} answered probes above the smallest {what}, {link.least_s * 1e3:.4g} ms."
    if above:
        caption += f" {above:,} of them are above the range of the figure; the largest is {most:.3g} ms."
    return _figure(
        "distribution", "Distribution of the queueing delay", caption, table, panels.distribution(link, table)
    )


def _hours(link: Link) -> TableFigure:
    series = link.series
    origin_s = 0.0 if series.clock == "unix" else float(series.sent_s[0])
    hour = _hour(series.sent_s - origin_s)
    middles = np.array([(one.start_s + one.end_s) / 2 for one in link.windows])
    window_hour = _hour(middles - origin_s)
    rows = []
    for number in range(24):
        probes = hour == number
        answered = probes & series.answered
        delays = (
            np.percentile(link.delay_ms[answered], QUANTILES) if answered.any() else [float("nan")] * len(QUANTILES)
        )
        row: dict[str, Any] = {"hour": number, "probes": int(probes.sum())}
        row["lost_percent"] = 100 * (1 - answered.sum() / probes.sum()) if probes.any() else float("nan")
        row |= {f"delay_p{q}_ms": value for q, value in zip(QUANTILES, delays, strict=True)}
        inside = [one for one, at in zip(link.windows, window_hour, strict=True) if at == number]
        row |= {f"{state} windows": sum(state_of(one) == state for one in inside) for state in STATES}
        throughputs_mbps = [one.throughput_bps / 1e6 for one in inside if one.throughput_bps is not None]
        flows = np.percentile(throughputs_mbps, [10, 50, 90]) if throughputs_mbps else [float("nan")] * 3
        row |= dict(zip(("flow_p10_mbps", "flow_p50_mbps", "flow_p90_mbps"), flows, strict=True))
        rows.append(row)
    clock = (
        "Hours are those of UTC." if series.clock == "unix" else "The source has no time of day: hours since the start."
    )
    caption = f"{clock} Queueing delay: median, 10th to 90th percentile shaded, 95th dotted, 99th dashed."
    if link.windows:
        caption += (
            " Middle: median of the estimates of congested windows, from the 10th to the 90th percentile. Below: what "
            "the windows were called."
        )
        if any(one.bound for one in link.windows):
            caption += " One-sided answers count with the model's number."
    table = pd.DataFrame(rows)
    return _figure("hours", "Over the hours of the day", caption, table, panels.hours(link, table))


def _hour(t_s: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.asarray(t_s // 3600 % 24).astype(np.int64)


def _estimates(link: Link, level: float) -> TableFigure:
    names = (
        "start_s",
        "end_s",
        "probes",
        "state",
        "reason",
        "bound",
        "throughput_bps",
        "low_bps",
        "high_bps",
        "distance",
    )
    table = pd.DataFrame([[getattr(one, name) for name in names] for one in link.windows], columns=list(names))
    table["state"] = [state_of(one) for one in link.windows]
    for name in names[6:]:
        table[name] = table[name].astype(float)
    caption = (
        f"A window is {PROBES:,} probes, {PROBES * PACE_S:g} s at the interval of the model. Bars are "
        f"{level:.0%} intervals. Only congested windows have a number; colors show the state of the others."
    )
    if table["bound"].notna().any():
        caption += f" {ONE_SIDED}"
    return _figure("estimates", "What a TCP flow gets, over time", caption, table, panels.estimates(link, table))


def _calibration(link: Link, model: CongestionModel, assumed: Assumed) -> TableFigure:
    learnt = model.trained()
    near = np.full(len(learnt), True)
    if assumed.rtt_s is not None:
        near &= np.abs(np.log(learnt["rtt_s"] / assumed.rtt_s)) < np.log(ALIKE)
    if assumed.rate_bps is not None:
        near &= np.abs(np.log(learnt["rate_bps"] / assumed.rate_bps)) < np.log(ALIKE)
    learnt["group"] = np.where(near, "trained, as assumed", "trained, other links")
    own = pd.DataFrame([one.measured for one in link.windows if one.measured])[list(CALIBRATION)]
    measured = [one for one in link.windows if one.measured]
    own["group"] = [f"this link, {state_of(one)}" for one in measured]
    for name in ("throughput_bps", "low_bps", "high_bps"):
        own[name] = [getattr(one, name) for one in measured]
    own["rtt_s"] = float("nan") if assumed.rtt_s is None else assumed.rtt_s
    own["rate_bps"] = float("nan") if assumed.rate_bps is None else assumed.rate_bps
    own["control"] = ""
    columns = ["group", "control", "rtt_s", "rate_bps", "throughput_bps", "low_bps", "high_bps", *CALIBRATION]
    table = pd.concat([learnt.reindex(columns=columns), own[columns].astype({"throughput_bps": float})])
    rate = "of any rate" if assumed.rate_bps is None else f"of about {assumed.rate_bps / 1e6:g} Mbit/s"
    flows = "any RTT" if assumed.rtt_s is None else f"about {assumed.rtt_s * 1e3:g} ms"
    caption = (
        f"Colored: training series of links {rate} and flows of {flows}. Pale gray: other training series. Diamonds: "
        "this link's windows at their estimated goodput. Dashed lines: median of its windows without a number, by "
        "state."
    )
    table = table.reset_index(drop=True)
    title = "Where the link sits on the calibration curves"
    return _figure("calibration", title, caption, table, panels.calibration(table))
