"""Checks of a series: reasons not to use it, and remarks for the reader, about units, clocks, gaps, rate limits and
routes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from sawtooth.errors import InputError
from sawtooth.link_estimate.series import Remark, RttSeries
from sawtooth.link_estimate.shift import level_shifts

FEWEST = 100
"""Fewest answered probes for any statement about a link."""

LONGEST_PATH_S = 3.0
"""No path has a longer minimum round trip: a geostationary satellite takes 0.6 s there and back, and no queue stays at
seconds without ever being shorter."""
SHORTEST_PATH_S = 2e-6
"""No answer from another program, let alone another machine, comes faster."""
_LATEST_S = 3600.0
"""No probe waits longer for its answer."""
_LOCAL_S = 1e-3
_LAST_UNIX_S = 1e11
"""The year 5138: larger times since 1970 are not in s."""
_SWAPPED = 3
"""Consecutive probes that reordering may make late; more mean that a clock was set back."""
_HIGH_LOSS = 0.1
_LIMITED_LOSS = 0.15


def check(series: RttSeries, fewest: int = FEWEST) -> RttSeries:
    """The series in order of time, without duplicate rows, with remarks on everything odd.

    Raises SawtoothError: ``too-few-probes``, ``all-lost``, ``constant-series``, ``wrong-unit``, ``clock-step``.
    """
    if len(series) < fewest:
        raise say("too-few-probes", series, f"{len(series)} probes, at least {fewest} are needed", "probe longer")
    if not series.answered.any():
        fix = "see whether the router answers at all: another protocol, another hop; some never do"
        raise say("all-lost", series, f"none of {len(series)} probes was answered", fix)
    _check_units(series)
    series = _in_order(series)
    answered = int(series.answered.sum())
    if answered < fewest:
        message = f"{answered} of {len(series)} probes were answered, at least {fewest} are needed"
        raise say("too-few-probes", series, message, "probe longer, or slower where answers are limited")
    rtt_s = series.rtt_s[series.answered]
    if np.ptp(rtt_s) == 0:
        message = f"all {len(rtt_s)} RTTs are {rtt_s[0] * 1e3:g} ms: no clock measured that"
        raise say("constant-series", series, message, "give RTTs as they were measured, not rounded or averaged")
    return series.remarked(*_remarks(series))


def rate_limited(series: RttSeries) -> bool:
    """Whether losses are so regular that a rate limit on answers causes them, not a queue.

    A token bucket answers every n-th probe, or the first ones of every second. With random losses, distances between
    the rarer of losses and answers are geometric (deviation near the mean), and the pattern does not repeat. This only
    recognizes limits that nobody else uses at the same time.
    """
    answered = series.answered
    lost = float(1 - answered.mean())
    rarer = np.flatnonzero(answered if lost > 0.5 else ~answered)
    if lost < _LIMITED_LOSS or len(rarer) < 20:
        return False
    distance = np.diff(rarer)
    by_chance = np.sqrt(1 - min(lost, 1 - lost))
    if distance.std() / distance.mean() < 0.5 * by_chance:
        return True
    pattern = answered - answered.mean()
    lags = np.arange(2, min(201, len(pattern) // 4))
    again = [float(pattern[:-lag] @ pattern[lag:]) / (len(pattern) - lag) for lag in lags]
    # At lag 1 any outage looks periodic; a dissimilar pattern in between makes it a period.
    worst = np.minimum.accumulate(again) if again else np.array([])
    best = np.array(again) / pattern.var() if again else worst
    return bool(((best > 0.6) & (worst / pattern.var() < 0.2)).any())


def _check_units(series: RttSeries) -> None:
    size = float(np.abs(series.sent_s).max())
    if size > _LAST_UNIX_S:
        unit = "ms" if size < 1e14 else "µs" if size < 1e17 else "ns"
        since = f" since 1970: that looks like {unit}" if series.clock == "unix" else ": nothing lasts that long"
        message = f"a time of sending is {size:.4g} s{since}"
        raise say("wrong-unit", series, message, "name the unit in the header, as in sent_ms")
    rtt_s = series.rtt_s[series.answered]
    if (longest := float(np.abs(rtt_s).max())) > _LATEST_S:
        message = f"an RTT is {longest:.4g} s: nobody waits that long for an answer"
        raise say("wrong-unit", series, message, "name the unit in the header, as in rtt_ms; leave it empty where lost")
    if series.difference:
        return
    least, most = float(rtt_s.min()), float(rtt_s.max())
    if least < 0:
        message = f"an RTT is {least * 1e3:.4g} ms: the clock was set back while the probe was on its way"
        fix = "leave those probes out; where a negative number means lost, leave it empty"
        raise say("clock-step", series, message, fix)
    if least > LONGEST_PATH_S:
        message = f"no RTT is below {least:.4g} s: these look like ms that were read as s"
        raise say("wrong-unit", series, message, "name the unit in the header, as in rtt_ms")
    if most < SHORTEST_PATH_S:
        message = f"all RTTs are below {most * 1e6:.2g} µs: these look like s that were read as ms or µs"
        raise say("wrong-unit", series, message, "name the unit in the header, as in rtt_s")


def _in_order(series: RttSeries) -> RttSeries:
    """Sorts rows written in order of arrival, drops duplicates, and refuses a clock that was set back."""
    reached = np.maximum.accumulate(series.sent_s)
    behind = series.sent_s < reached
    if behind.any():
        run = _longest_run(behind)
        if run > _SWAPPED:
            first = int(np.flatnonzero(behind)[0])
            back_s = float(reached[first] - series.sent_s[first])
            message = f"the clock was set back by {back_s:.4g} s before probe {first} ({run} probes lie before others)"
            fix = "cut the file there, and use the parts by themselves"
            raise say("clock-step", series, message, fix)
        text = f"{int(behind.sum())} probes were not in order of sending; they are sorted now"
        series = series.part(np.argsort(series.sent_s, kind="stable")).remarked(Remark("reordered-rows", text))
    twice = np.concatenate([[False], np.diff(series.sent_s) == 0])
    if twice.any():
        text = f"{int(twice.sum())} probes have the same time as the previous one; they are left out"
        series = series.part(~twice).remarked(Remark("duplicate-rows", text))
    return series


def _remarks(series: RttSeries) -> Iterator[Remark]:
    yield from _on_pace(series)
    yield from _on_values(series)
    yield from _on_answers(series)
    yield from _on_routes(series)


def _on_pace(series: RttSeries) -> Iterator[Remark]:
    steps_s = np.diff(series.sent_s)
    odd = np.abs(steps_s - series.pace_s) > series.pace_s / 2
    gaps = np.flatnonzero(steps_s > max(10 * series.pace_s, 1.0))
    if len(gaps):
        largest = gaps[np.argmax(steps_s[gaps])]
        count = f"{len(gaps)} gap{'s' if len(gaps) > 1 else ''}"
        text = f"{count}, the longest of {steps_s[largest]:.4g} s: no probe was sent then, or the clock was set forward"
        yield Remark("gap", text, at_s=float(series.sent_s[largest]))
    if odd.mean() > 0.1:
        usual = f"the median distance is {np.median(steps_s):.4g} s"
        text = f"{odd.mean():.0%} of the probes are off the pace of {series.pace_s:g} s by half of it: {usual}"
        yield Remark("irregular-pace", text, doubt=odd.mean() > 0.5)


def _on_values(series: RttSeries) -> Iterator[Remark]:
    rtt_s = series.rtt_s[series.answered]
    different = len(np.unique(rtt_s))
    if different <= max(10, len(rtt_s) // 50):
        text = f"{len(rtt_s)} RTTs have {different} different values: they are rounded, which hides small changes"
        yield Remark("coarse", text, doubt=different <= 10)
    if not series.difference and rtt_s.max() < _LOCAL_S:
        text = f"no RTT is above {rtt_s.max() * 1e6:.3g} µs: plausible inside a building; otherwise s were read as ms"
        yield Remark("tiny-rtt", text)
    if not series.difference and rtt_s.min() > 1.0:
        yield Remark(
            "huge-rtt", f"no RTT is below {rtt_s.min():.3g} s: plausible over a satellite; otherwise the unit is wrong"
        )
    if series.difference and (rtt_s < 0).mean() > 0.05:
        share = f"{(rtt_s < 0).mean():.0%} of the differences are negative"
        text = f"{share}: the near router answers slowly, or its answers take another path"
        yield Remark("negative-difference", text)


def _on_answers(series: RttSeries) -> Iterator[Remark]:
    if rate_limited(series):
        text = (
            f"{series.loss:.0%} of the probes were lost in a regular pattern: the router limits its "
            "answers; probe slower"
        )
        yield Remark("rate-limited", text, doubt=True)
    elif series.loss > _HIGH_LOSS:
        yield Remark("high-loss", f"{series.loss:.0%} of the probes were lost")
    arrived = (series.sent_s + series.rtt_s)[series.answered]
    overtaken = int((arrived > np.minimum.accumulate(arrived[::-1])[::-1]).sum())
    if overtaken and not series.difference:
        yield Remark("reordered", f"{overtaken} answers came after that of a later probe")
    if series.duplicates is not None and (more := int(series.duplicates.sum())):
        yield Remark("duplicates", f"{more} answers came twice; the first one counts")
    if series.late_s is not None and len(series):
        late = float((np.nan_to_num(series.late_s) > series.pace_s / 10).mean())
        if late > 0.01:
            text = f"{late:.1%} of the probes were sent more than a tenth of the interval late: the machine is busy"
            yield Remark("late-probes", text)


def _on_routes(series: RttSeries) -> Iterator[Remark]:
    if series.address is not None:
        answers = np.flatnonzero(series.answered & (series.address != ""))
        changes = np.flatnonzero(series.address[answers][1:] != series.address[answers][:-1])
        if len(changes):
            first = answers[changes[0] + 1]
            text = (
                f"{len(set(series.address[answers]))} routers answered, {len(changes)} changes: the probes "
                "took several paths"
            )
            yield Remark("path-changed", text, doubt=True, at_s=float(series.sent_s[first]))
    yield from (shift.remark() for shift in level_shifts(series))


def _longest_run(true: NDArray[np.bool_]) -> int:
    edges = np.flatnonzero(np.diff(np.concatenate([[False], true, [False]]).astype(np.int8)))
    return int((edges[1::2] - edges[::2]).max())


def say(code: str, series: RttSeries, message: str, fix: str) -> InputError:
    """The error that says why the series cannot be used."""
    name = f"{series.label}: " if series.label else ""
    return InputError(code, name + message, file=series.source, fix=fix)
