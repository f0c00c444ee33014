"""The words about a link: the verdict, its basis, and what was checked."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

from sawtooth.link_estimate.estimate import FARTHEST, Estimate
from sawtooth.link_estimate.model import CongestionModel
from sawtooth.link_estimate.random_links import PACE_S, PROBES
from sawtooth.link_estimate.report.figures import DAY_S, is_long, state_of
from sawtooth.link_estimate.report.link import Assumed, Link
from sawtooth.link_estimate.report.panels import STATES
from sawtooth.link_estimate.series import span_text

_CHECKS = {
    "clock": (
        ("clock-step", "gap", "reordered-rows", "duplicate-rows"),
        "no step back, no gap, no probe out of order or duplicated",
    ),
    "pace": (("irregular-pace", "late-probes"), ""),
    "level shifts": (("level-shift",), "none found"),
    "route": (("path-changed",), ""),
    "losses": (("all-lost", "rate-limited", "high-loss"), "no regular pattern, so no rate limit on answers"),
    "values": (
        ("wrong-unit", "constant-series", "coarse", "tiny-rtt", "huge-rtt", "negative-difference"),
        "plausible for their unit, not rounded",
    ),
}
"""What is checked, the codes that belong to it, and the text if none of them occurred."""
_MOST_REMARKS = 5


@dataclass(frozen=True)
class Check:
    """``what`` was checked and what was ``found``; ``odd`` if the reader should take a look."""

    what: str
    found: str
    odd: bool = False


def verdict(link: Link, level: float) -> str:
    """The state, a flow's throughput if there is one, and what would narrow its interval."""
    more = f"{link.narrower[:1].upper()}{link.narrower[1:]}." if link.narrower else ""
    return f"{_state(link, level)} {more}".rstrip()


def _state(link: Link, level: float) -> str:
    windows = link.windows
    if not windows:
        return _inconclusive(link.estimates[0])
    if len(windows) == 1:
        return _one(windows[0], level)
    counts = Counter(map(state_of, windows))
    length = f"{len(windows)} windows of {PROBES * PACE_S:g} s"
    parts = [f"{state} in {counts[state]}" for state in STATES[:3] if counts[state]]
    if not parts:
        return f"Inconclusive in all of {length}: {_reasons(windows)}."
    text = f"In {length}: {', '.join(parts)}"
    if counts[STATES[3]]:
        text += f"; inconclusive in {counts[STATES[3]]} ({_reasons(windows)})"
    return f"{text}. {_throughput(link)}".rstrip()


def _one(window: Estimate, level: float) -> str:
    if window.state is None:
        return _inconclusive(window)
    if window.throughput_bps is None:
        return f"{window.state.capitalize()}: {window.text}."
    interval = f"{level:.0%} interval " if window.bound is None else ""
    return f"Persistently congested: a TCP flow gets {window.gets} ({interval}{window.within})."


def _inconclusive(window: Estimate) -> str:
    return f"Inconclusive ({window.reason}): {window.text}."


def _reasons(windows: tuple[Estimate, ...]) -> str:
    found = Counter(str(one.reason) for one in windows if one.state is None)
    return ", ".join(f"{reason}: {count}" for reason, count in found.most_common())


def _throughput(link: Link) -> str:
    windows = sorted(link.numbers, key=lambda one: one.throughput_bps or 0.0)
    if not windows:
        return "No window is congested, so there is no goodput to estimate."
    middle = windows[len(windows) // 2]
    interval = "its interval " if middle.bound is None else ""
    ends = f"over all congested windows, {windows[0].gets} to {windows[-1].gets}"
    text = f"In the median congested window a TCP flow gets {middle.gets} ({interval}{middle.within}); {ends}."
    if link.whole is not None:
        interval = "interval " if link.whole.bound is None else ""
        text += (
            f" The windows agree: over all of them a TCP flow gets {link.whole.gets} ({interval}{link.whole.within})."
        )
    return text


def assumption(assumed: Assumed, model: CongestionModel) -> str:
    """The assumption, and the direction in which a wrong one errs."""
    rate = f"a link of unknown rate, one of {_ends(model.trained_on_['rate_bps'])} Mbit/s"
    if assumed.rate_bps is not None:
        rate = f"a link of {assumed.rate_bps / 1e6:,g} Mbit/s"
    flows = "TCP flows of any base RTT"
    if assumed.rtt_s is not None:
        flows = f"TCP flows with a base RTT of {assumed.rtt_s * 1e3:g} ms"
    return f"Assumed: {flows}, {rate}, one FIFO queue with tail drop. If the rate or RTT is wrong, so is the answer."


def training(link: Link, model: CongestionModel) -> str:
    """What the model was trained on, and the link's distance from it."""
    ranges = model.trained_on_
    text = (
        f"The model was trained on {ranges['series']} congested series: {_ends(ranges['throughput_bps'])} Mbit/s per "
        f"flow, rates of {_ends(ranges['rate_bps'])} Mbit/s, base RTTs of {_ends(ranges['rtt_s'], 1e-3)} ms."
    )
    compared = [one for one in link.windows if one.state in ("congested", None)]
    distances = sorted(one.distance for one in compared if one.distance is not None)
    if not distances:
        return f"{text} No window is congested, so none is compared with them."
    middle, most = distances[len(distances) // 2], distances[-1]
    text_of_distance = f"{middle:.2g} times the usual distance from the nearest of them"
    if len(distances) > 1:
        usual = sum(distance <= 1 for distance in distances)
        refused = sum(distance > FARTHEST for distance in distances)
        text_of_distance += f" (median; at most {most:.2g}): {usual} of {len(distances)} within the usual distance"
        text_of_distance += f", {len(distances) - usual - refused} at up to {FARTHEST:g} times that"
        text_of_distance += f"; {refused} are further, and have no estimate" if refused else ""
        return f"{text} Distance of this link's windows: {text_of_distance}."
    return f"{text} Distance of this link: {text_of_distance}; beyond {FARTHEST:g} there is no answer."


def _ends(values: list[float], unit: float = 1e6) -> str:
    low, high = (f"{value / unit:.3g}" if value < 1000 * unit else f"{value / unit:,.0f}" for value in values)
    return low if low == high else f"{low} … {high}"


def checks(link: Link) -> list[Check]:
    """The checks with their results; all remarks of the series are included."""
    series = link.series
    answered = int(series.answered.sum())
    loss = "" if math.isnan(series.loss) else f", {100 * series.loss:.3g}% lost"
    count = f"{len(series):,} sent over {span_text(series.duration_s)}, {answered:,} answered{loss}"
    results = [Check("probes", count, odd=link.estimates[0].reason == "too-few-probes")]
    left = list(series.remarks)
    for what, (codes, fine) in _CHECKS.items():
        texts = [remark.text for remark in left if remark.code in codes]
        left = [remark for remark in left if remark.code not in codes]
        if link.problem and link.problem.code in codes:
            results.append(Check(what, f"{link.problem.message}: {link.problem.fix}", odd=True))
        elif texts:
            results.append(Check(what, _joined(texts), odd=True))
        elif link.problem is None:
            # Everything except the pace and the route has the same text for every series.
            own = {"pace": f"a probe every {span_text(series.pace_s)}, regular", "route": _route(link)}
            results.append(Check(what, own.get(what, fine), odd=what == "pace" and link.estimates[0].reason == "pace"))
    results += [Check("more", remark.text, odd=True) for remark in left]
    if link.problem:
        results.append(Check("the rest", "not checked: the series allows no estimate", odd=True))
    return results


def _joined(texts: list[str]) -> str:
    more = f"; and {len(texts) - _MOST_REMARKS} more" if len(texts) > _MOST_REMARKS else ""
    return "; ".join(texts[:_MOST_REMARKS]) + more


def _route(link: Link) -> str:
    has_addresses = link.series.address is not None and (link.series.address != "").any()
    if not has_addresses:
        return "the source does not say which router answered; only a level shift would show a change"
    return "one router answered throughout"


def notes(link: Link) -> list[str]:
    """What is not drawn, and why."""
    series = link.series
    found = []
    if link.problem is not None and not link.drawable:
        why = "they would mislead" if series.answered.any() else "no probe was answered"
        found.append(f"The RTTs are not drawn: {why}.")
    if not is_long(link) and link.problem is None:
        found.append(
            "The pattern over the hours of the day is not drawn: the series is too short, "
            f"{span_text(series.duration_s)} and the figure needs {DAY_S / 3600:g} h."
        )
    if left := len(series) - PROBES * len(link.windows):
        if link.windows:
            found.append(f"The last {left:,} probes do not fill a window and have no estimate.")
        else:
            found.append("There is no whole window, so there is no estimate and no place on the calibration curves.")
    if link.windows and not any(one.measured for one in link.windows):
        found.append("No window has features to compare with the calibration curves.")
    if any(remark.code in ("level-shift", "path-changed") for remark in series.remarks):
        found.append(
            "The series crosses more than one path. Queue delays count from the smallest RTT of all, so they include "
            "the difference between paths. Estimates do not: a window with a level shift has none."
        )
    return found
