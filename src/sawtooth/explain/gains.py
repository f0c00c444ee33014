"""What each change would give: other controls, as ``whatif`` answers, and the observed control on a changed path."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from sawtooth.explain.explanation import Gain
from sawtooth.whatif import Answer
from sawtooth.whatif.observation import CONTROLS
from sawtooth.whatif.replay import Replays, interval
from sawtooth.whatif.runs import Drawn, Replayed
from sawtooth.whatif.shared import Given, learned

LARGER = 4.0
"""How many times as long a larger buffer is."""
INSTEAD = "cubic"
"""The control that shows a change of the path where the sender's is unknown or not simulated."""


@dataclass(frozen=True)
class Change:
    """One change of the path: of a drawn path, and of fields of its scenario. ``only_lossy``: it changes nothing where
    only the queue drops."""

    name: str
    of_path: Callable[[Drawn], Drawn] = lambda drawn: drawn
    fields: Mapping[str, Any] = field(default_factory=dict)
    only_lossy: bool = False


CHANGES = (
    Change("fq_codel at the bottleneck", fields={"path.queue": {"kind": "fq_codel", "ecn": False}}),
    Change("fq_codel with ECN", fields={"path.queue": {"kind": "fq_codel"}, "host.ecn": 1}),
    Change(f"a buffer {LARGER:g} times as large", lambda drawn: replace(drawn, queue=drawn.queue * LARGER)),
    Change("half the loss outside the queue", lambda drawn: replace(drawn, loss=drawn.loss / 2), only_lossy=True),
)


def gains(found: Replays, observed_cc: str | None, *, lossy: bool) -> tuple[Gain, ...]:
    """The answers for the controls, and the runs of each change on the same paths. Empty if the self-test fails. Where
    others may use the path, all were learned. ``lossy``: the path itself may lose data."""
    if found.test.verdict == "fails":
        return ()
    cc = observed_cc if observed_cc in CONTROLS else INSTEAD
    changes = [one for one in CHANGES if lossy or not one.only_lossy]
    if found.given:
        same = [_given(control, control, given) for control, given in found.given.items()]
        return (*same, *(_given(one.name, cc, learned().gives(found.runs.observed, cc, one.name)) for one in changes))
    told = [_gain(answer.cc, answer, found.results[answer.cc]) for answer in found.answers]
    for change in changes:
        paths = [change.of_path(path) for path in found.paths]
        runs = found.runs.some(paths, cc, change.fields, at_lowest=True)
        told.append(_gain(change.name, found.answer(cc, runs, paths, change.fields), runs))
    return tuple(told)


def _given(change: str, cc: str, given: Given) -> Gain:
    low, middle, high = given.goodput_bps
    trip_low, trip, trip_high = given.rtt_s
    return Gain(change, cc, "", middle, low, high, trip, trip_low, trip_high)


def _gain(change: str, answer: Answer, runs: Sequence[Replayed]) -> Gain:
    if answer.unknown:
        return Gain(change, answer.cc, answer.unknown)
    shown = answer.describe()
    trips = [one.rtt_mean_s for one in runs]
    low, high = interval(trips)
    why = "depends on the bottleneck's rate, of which only a lower bound is known" if answer.open else ""
    goodput = (shown["goodput_bps"], shown["low_bps"], shown["high_bps"])
    return Gain(change, answer.cc, why, *goodput, float(np.median(trips)), low, high)
