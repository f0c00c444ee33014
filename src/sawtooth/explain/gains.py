"""What each change would give: other controls, as ``whatif`` answers, and the observed control on a changed path."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from sawtooth.explain.explanation import Gain
from sawtooth.whatif import Answer
from sawtooth.whatif.observation import CONTROLS
from sawtooth.whatif.replay import OPEN, Drawn, Replayed, Replays

LARGER = 4.0
"""How many times as long a larger buffer is."""
INSTEAD = "cubic"
"""The control that shows a change of the path where the sender's is unknown or not simulated."""


@dataclass(frozen=True)
class Change:
    """One change of the path: of a drawn path, and of fields of its scenario."""

    name: str
    of_path: Callable[[Drawn], Drawn] = lambda drawn: drawn
    fields: Mapping[str, Any] = field(default_factory=dict)


CHANGES = (
    Change("fq_codel at the bottleneck", fields={"path.queue": {"kind": "fq_codel", "ecn": False}}),
    Change("fq_codel with ECN", fields={"path.queue": {"kind": "fq_codel"}, "host.ecn": 1}),
    Change(f"a buffer {LARGER:g} times as large", lambda drawn: replace(drawn, queue=drawn.queue * LARGER)),
    Change("half the random loss", lambda drawn: replace(drawn, loss=drawn.loss / 2)),
)


def gains(found: Replays, observed_cc: str | None) -> tuple[Gain, ...]:
    """The answers for the controls, and the runs of each change on the same paths. Empty if the self-test fails."""
    if found.test.verdict == "fails":
        return ()
    cc = observed_cc if observed_cc in CONTROLS else INSTEAD
    told = [_of_answer(answer, found.results[answer.cc]) for answer in found.answers]
    at_present = next((answer for answer in found.answers if answer.cc == cc), None)
    for change in CHANGES:
        runs = found.runs.of([change.of_path(path) for path in found.paths], cc, change.fields)
        told.append(_of_runs(change.name, cc, runs, follows=at_present is not None and at_present.open))
    return tuple(told)


def _of_answer(answer: Answer, runs: Sequence[Replayed]) -> Gain:
    shown = answer.describe()
    rtt_low, rtt, rtt_high = _quantiles([one.rtt_mean_s for one in runs])
    why = "depends on the bottleneck's rate, of which only a lower bound is known" if answer.open else ""
    return Gain(
        answer.cc,
        answer.cc,
        why,
        shown["goodput_bps"],
        shown["low_bps"],
        shown["high_bps"],
        rtt,
        rtt_low,
        rtt_high,
    )


def _of_runs(name: str, cc: str, runs: Sequence[Replayed], *, follows: bool) -> Gain:
    low, median, high = _quantiles([one.goodput_bps for one in runs])
    rtt_low, rtt, rtt_high = _quantiles([one.rtt_mean_s for one in runs])
    if follows and high > OPEN * low:
        why = "depends on the bottleneck's rate, of which only a lower bound is known"
        return Gain(name, cc, why, None, low, None, rtt, rtt_low, rtt_high)
    return Gain(name, cc, "", median, low, high, rtt, rtt_low, rtt_high)


def _quantiles(values: Sequence[float]) -> tuple[float, float, float]:
    low, middle, high = np.quantile(values, (0.05, 0.5, 0.95)).tolist()
    return low, middle, high
