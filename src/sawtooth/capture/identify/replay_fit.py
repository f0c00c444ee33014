"""How likely a trace is under each of the core's congestion controls, given the same acknowledgements and losses.

The control's own code runs with the acknowledgements and losses of the trace (``crates/replay``). It returns the window
that it would have had when each segment left, and its pacing rate. The smaller of that window and of what the pacing
rate sends in a round trip is compared with the round's flight.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import lgamma, log, pi
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sawtooth import _core
from sawtooth.capture.identify.rounds import Rounds, rounds
from sawtooth.capture.identify.trace import Flags, Floats, Trace

_INITIAL_WINDOW = 10
_RANGE = 4.0
"""Logarithms of ratios beyond this count as equal."""
_FREEDOM = 4.0
"""Degrees of freedom of Student's t, whose tails absorb the rounds in which something other than the window was the
limit."""
_COUNTED = 0.7
"""Error in segments of a round's flight."""
_FAST = 1.25
"""Growth relative to the previous round: less is not slow start."""

Numbers = NDArray[np.uint64]


@dataclass(frozen=True)
class Noise:
    """The spread of a control's replayed windows around its own traces, in logarithms, from a third of the corpus's
    kernel paths (experiments/identify_noise.py): ``scale`` per round, ``anchor`` common to all rounds between two
    losses, since each loss sets the replayed window to the flight. ``least``: 95 of 100 of its own traces reach this
    log-likelihood per round, relative to perfect windows.
    """

    scale: float
    anchor: float
    least: float


NOISE = {
    "reno": Noise(0.02, 0.4, -2.19),
    "cubic": Noise(0.02, 0.4, -2.4),
    "bbr": Noise(0.2, 0.0, -4.0),
    "bbr3": Noise(0.2, 0.0, -2.39),
}


@dataclass(frozen=True)
class ReplayFit:
    """``off``: the median deviation of the windows of ``control`` outside recoveries, as larger over smaller minus one.
    ``log_likelihood``: the mean per round, natural. ``fits``: it is as high as in 95 of 100 of the control's own
    traces.
    """

    control: str
    off: float
    log_likelihood: float
    fits: bool

    def to_dict(self) -> dict[str, Any]:
        """As JSON values, without the name."""
        return {name: value for name, value in asdict(self).items() if name != "control"}


@dataclass(frozen=True)
class ReplayedRounds:
    """The rounds outside recoveries: the ``flight`` in segments, the ``epoch`` between losses, and for each control and
    start the logarithm of allowed window over flight (``away``)."""

    flight: Floats
    epoch: NDArray[np.intp]
    away: dict[str, list[Floats]]


def compare(trace: Trace) -> ReplayedRounds | None:
    """Compares a trace with all controls; None if no round shows a window."""
    made = rounds(trace)
    calm = ~made.recovery & ~made.cut
    if not calm.any():
        return None
    begins = np.searchsorted(trace.t_s, made.t_s)
    last = np.maximum(np.append(begins[1:], len(trace.t_s) - 1) - 1, begins)
    middle = (begins + last) // 2
    inputs = columns(trace)
    flight = np.maximum(made.flight[calm], 0.5)
    away: dict[str, list[Floats]] = {}
    for control in NOISE:
        away[control] = []
        for window, ssthresh in starts(control, made, calm):
            cwnd, pacing = _core.replay(control, *inputs, trace.mss, window, ssthresh)
            # A control that does not pace allows any number in no time.
            with np.errstate(invalid="ignore"):
                paced = np.nan_to_num(pacing[middle] / trace.mss * made.rtt_s, nan=np.inf, posinf=np.inf)
            allowed = np.maximum(np.minimum(cwnd[last], paced)[calm], 0.5)
            away[control].append(np.clip(np.log(allowed / flight), -_RANGE, _RANGE))
    return ReplayedRounds(flight, np.searchsorted(made.ended, np.flatnonzero(calm), side="right"), away)


def replay_fits(trace: Trace) -> tuple[ReplayFit, ...]:
    """The result for each control, likeliest first, each from its likeliest start; empty if no round shows a window."""
    seen = compare(trace)
    if seen is None:
        return ()
    found = []
    for control, noise in NOISE.items():
        likely, most, away = likeliest(seen, control, noise)
        off = float(np.expm1(np.median(np.abs(away))))
        found.append(ReplayFit(control, off, likely, likely - most >= noise.least))
    return tuple(sorted(found, key=lambda one: -one.log_likelihood))


def likeliest(seen: ReplayedRounds, control: str, noise: Noise) -> tuple[float, float, Floats]:
    """Over all starts, the best: the log-likelihood per round, that of perfect windows, and the deviation of each
    round."""
    likely, which = max(
        (log_likelihood(away, seen.flight, seen.epoch, noise), number) for number, away in enumerate(seen.away[control])
    )
    right = log_likelihood(np.zeros_like(seen.flight), seen.flight, seen.epoch, noise)
    return likely, right, seen.away[control][which]


def starts(control: str, made: Rounds, calm: Flags) -> list[tuple[int, int | None]]:
    """Initial windows and slow-start thresholds: those of a new connection; those of one that the capture finds midway;
    and for CUBIC, slow start that HyStart ended where the flight ceased to double."""
    first = max(round(float(made.flight[calm][0])), 2)
    known: tuple[int, int | None] = (_INITIAL_WINDOW, None)
    if control.startswith("bbr"):
        return [known, (first, None)]
    behind = (first, first)
    if control != "cubic":
        return [known, behind]
    slow = (made.flight[1:] < _FAST * np.maximum(made.flight[:-1], 0.5)) | made.recovery[1:]
    left = made.flight[np.argmax(slow)] if slow.any() else made.flight.max()
    return [known, behind, (_INITIAL_WINDOW, max(int(left), 2))]


def log_likelihood(away: Floats, flight: Floats, epoch: NDArray[np.intp], noise: Noise) -> float:
    """The mean over rounds, given ``away`` (the logarithm of the ratio), the flights in segments, and the ``epoch`` of
    each."""
    scale = np.sqrt(noise.scale**2 + (_COUNTED / np.maximum(flight, 1)) ** 2)
    if noise.anchor == 0:
        return float(_student(away, scale).mean())
    total = 0.0
    cuts = np.flatnonzero(np.diff(epoch)) + 1
    for ratios, scales in zip(np.split(away, cuts), np.split(scale, cuts), strict=True):
        # Few rounds say little about the common error of an epoch.
        common = np.median(ratios) * len(ratios) / (len(ratios) + 3)
        wide = np.hypot(noise.anchor, scales.mean())
        total += float(_student(ratios - common, scales).sum() + _student(common, wide) - _student(0.0, wide))
    return total / len(away)


def _student(away: Any, scale: Any) -> Any:
    """The logarithm of the density of Student's t."""
    constant = lgamma((_FREEDOM + 1) / 2) - lgamma(_FREEDOM / 2) - log(_FREEDOM * pi) / 2
    return constant - np.log(scale) - (_FREEDOM + 1) / 2 * np.log1p((away / scale) ** 2 / _FREEDOM)


def columns(trace: Trace) -> tuple[Numbers, Numbers, Numbers, Numbers, Flags]:
    """The arguments of ``_core.replay``. A segment leaves as soon as its acknowledgement allows it: the shortest such
    time is the loop from the capture point to the sender and back."""
    waited = trace.t_s - trace.known_s
    new = np.diff(trace.known, prepend=trace.known[0]) > 0
    loop_s = float(waited[new].min()) if new.any() else 0.0
    known_s = np.maximum.accumulate(np.minimum(trace.known_s + loop_s, trace.t_s))

    def nanoseconds(t_s: Floats) -> Numbers:
        return np.asarray(np.round(np.maximum(t_s - trace.t_s[0], 0) * 1e9), dtype=np.uint64)

    numbers = (trace.end.astype(np.uint64), trace.known.astype(np.uint64))
    return nanoseconds(trace.t_s), *numbers, nanoseconds(known_s), trace.again
