"""One answer for all windows of a link, and what would narrow it.

The error of a window has two parts. One is the chance of that window: it averages out over several. The other is common
to all windows of the link, since different links look alike: it stays, however long one probes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sawtooth.link_estimate.estimate import Estimate, PathValues, bounded
from sawtooth.link_estimate.model import CongestionModel

LONG = 6
"""Windows in ten minutes, the longest series of which the accuracy was measured."""
_LEAST_GAIN = 0.97
"""Largest ratio of the logarithms of two intervals that is worth a measurement."""


def together(
    windows: Sequence[Estimate],
    model: CongestionModel,
    *,
    rtt_s: float | None = None,
    rate_bps: float | None = None,
) -> Estimate | None:
    """The answer for all windows of one series, as ``estimate`` gave them, with an interval that is narrower than that
    of one.

    None if fewer than two windows have a number, or fewer than half of all. None if a window is not congested, or
    changes, or if two windows' intervals do not overlap. None if it was not measured what several windows give
    (``CongestionModel.chance_`` is empty, as after ``calibrate``).
    """
    told = [one for one in windows if one.throughput_bps is not None]
    if len(told) < max(2, len(windows) / 2) or not model.chance_:
        return None
    if any(one.state not in ("congested", None) or one.changes_s is not None for one in windows):
        return None
    path = PathValues(model, rtt_s, rate_bps)
    middle, half = _answers(told, path)
    if (middle - half).max() > (middle + half).min():
        return None
    mean, width = float(middle.mean()), float(half.mean()) * _shrinks(path, len(told))
    ends = bounded(path, *(math.exp(one) for one in (mean, mean - width, mean + width)))
    if ends is None:
        return None
    first, last = windows[0], windows[-1]
    probes = sum(one.probes for one in told)
    text = f"persistently congested in {len(told)} windows that agree"
    losses = all(one.losses_known for one in told)
    return Estimate(
        first.source, first.start_s, last.end_s, probes, "congested", text=text, losses_known=losses, **ends
    )


@dataclass(frozen=True)
class Narrower:
    """A measurement that would narrow an interval: ``measure`` is ``rate``, ``rtt`` or ``ten-minutes``; ``factor`` is
    about what the interval would have from its lower to its upper end, ``now`` is what it has."""

    measure: str
    factor: float
    now: float

    def describe(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


_TEXTS = {
    "rate": "the link's rate (--rate)",
    "rtt": "the mean base RTT of its flows (--assumed-rtt)",
    "ten-minutes": "ten minutes of probes",
}


def narrower(
    windows: Sequence[Estimate],
    whole: Estimate | None,
    model: CongestionModel,
    *,
    rtt_s: float | None = None,
    rate_bps: float | None = None,
) -> list[Narrower]:
    """What would narrow the answer for a series, most useful first; empty if nothing would, or there is no interval.

    ``whole`` is what ``together`` gave; without it the window with the widest interval counts. For a rate that is not
    known, the model answers for each of those of the most similar links, and the median width counts. Ten minutes of
    probes are named for a shorter series of one window, or of several that agree.
    """
    told = [one for one in windows if one.throughput_bps is not None and one.changes_s is None]
    said = whole or max((one for one in told if one.bound is None), key=lambda one: one.factor, default=None)
    if said is None or not math.isfinite(said.factor):
        return []
    chosen, now = (told, said.factor) if whole else ([said], said.factor)
    path = PathValues(model, rtt_s, rate_bps)
    found = []
    for measure, known in (("rate", rate_bps), ("rtt", rtt_s)):
        if known is None:
            shrunk = _shrunk(chosen, path, measure)
            found.append(Narrower(measure, now**shrunk, now))
    # Where several windows differ, or were as many before, more of them promise no narrower answer.
    if model.chance_ and len(windows) < LONG and (whole or len(windows) == 1):
        shrunk = _shrinks(path, LONG) / _shrinks(path, len(chosen))
        found.append(Narrower("ten-minutes", now**shrunk, now))
    useful = [one for one in found if math.log(one.factor) < _LEAST_GAIN * math.log(now)]
    return sorted(useful, key=lambda one: one.factor)


def narrower_text(found: Sequence[Narrower]) -> str:
    """One sentence; "" if nothing narrows the answer."""
    if not found:
        return ""
    parts = [f"with {_TEXTS[one.measure]} the interval would be a factor of about {one.factor:.1f}" for one in found]
    head = f"{parts[0]} instead of {found[0].now:.1f}"
    return "; ".join([head, *(f"with {_TEXTS[one.measure]} {one.factor:.1f}" for one in found[1:])])


def _answers(told: Sequence[Estimate], path: PathValues) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Logarithm of each window's estimate, and half the width of its interval."""
    rows = np.concatenate([path.row(one.measured or {}, one.losses_known) for one in told])
    middle = np.log(path.model.predict(rows))
    return middle, np.log(path.model.predict_interval(rows)[:, 1]) - middle


def _shrinks(path: PathValues, windows: int) -> float:
    # More windows than were measured are not trusted to narrow it further.
    count = min(windows, LONG)
    return path.model.shrinks(count, rtt=path.rtt_s is not None, rate=path.rate_bps is not None)


def _shrunk(told: Sequence[Estimate], path: PathValues, measure: str) -> float:
    """Ratio of the interval's logarithmic widths with and without the measure."""
    column = -1 if measure == "rate" else -2
    ratios = []
    # A day has hundreds of windows, and six say enough about a width.
    for one in told[:: math.ceil(len(told) / LONG)]:
        row = path.row(one.measured or {}, one.losses_known)
        links = path.model.alike(row)
        rows = np.repeat(row, len(links), axis=0)
        rows[:, column] = links[:, column]
        with_it = np.log(path.model.predict_interval(rows)) @ [-1, 1]
        ratios.append(np.median(with_it) / (np.log(path.model.predict_interval(row)) @ [-1, 1])[0])
    return float(np.mean(ratios))
