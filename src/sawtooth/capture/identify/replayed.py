"""How likely a trace is under each of the core's congestion controls, told the same as the sender of the trace.

The control's own code runs with the acknowledgements and losses of the trace (``crates/replay``): it tells the window
that it would have had when each segment left, and its pacing rate. The less of the window and of what that rate sends
in a round trip is compared with the round's flight.
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
"""Logarithms of ratios beyond are all the same."""
_FREEDOM = 4.0
"""Of Student's t, whose tails take the rounds in which something else than the window was the limit."""
_COUNTED = 0.7
"""Segments that a round's flight is read off wrong by."""
_FAST = 1.25
"""Of the round before: less is no slow start."""

Numbers = NDArray[np.uint64]


@dataclass(frozen=True)
class Noise:
    """Of a control's windows about what it sent itself, in logarithms, on a third of the kernel's paths of the corpus
    (tools/identify_noise.py): ``scale`` of a round, ``anchor`` of all between two losses, as each loss sets the
    replayed window to what was in flight; ``least`` is the log-likelihood a round, less that of windows all right, that
    95 in 100 of its own reach.
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
class Replayed:
    """``off``: the share by which the windows of ``control`` are off in the middle of the rounds outside recoveries,
    the larger of the two by the smaller less one; ``log_likelihood``: a round's, natural, in the mean of them;
    ``fits``: as that of 95 in 100 of what it sent itself.
    """

    control: str
    off: float
    log_likelihood: float
    fits: bool

    def to_dict(self) -> dict[str, Any]:
        """As JSON values, without the name."""
        return {name: value for name, value in asdict(self).items() if name != "control"}


@dataclass(frozen=True)
class Compared:
    """Of the rounds outside recoveries: the ``flight`` in segments, in which ``epoch`` between losses each is, and for
    each control, for each start, the logarithm of the ratio of what it would have allowed to the flight (``away``).
    """

    flight: Floats
    epoch: NDArray[np.intp]
    away: dict[str, list[Floats]]


def compared(trace: Trace) -> Compared | None:
    """None where no round shows a window."""
    made = rounds(trace)
    calm = ~made.recovery & ~made.cut
    if not calm.any():
        return None
    begins = np.searchsorted(trace.t_s, made.t_s)
    last = np.maximum(np.append(begins[1:], len(trace.t_s) - 1) - 1, begins)
    middle = (begins + last) // 2
    told = columns(trace)
    flight = np.maximum(made.flight[calm], 0.5)
    away: dict[str, list[Floats]] = {}
    for control in NOISE:
        away[control] = []
        for window, ssthresh in starts(control, made, calm):
            cwnd, pacing = _core.replay(control, *told, trace.mss, window, ssthresh)
            # What does not pace lets any number out in no time.
            with np.errstate(invalid="ignore"):
                paced = np.nan_to_num(pacing[middle] / trace.mss * made.rtt_s, nan=np.inf, posinf=np.inf)
            allowed = np.maximum(np.minimum(cwnd[last], paced)[calm], 0.5)
            away[control].append(np.clip(np.log(allowed / flight), -_RANGE, _RANGE))
    return Compared(flight, np.searchsorted(made.ended, np.flatnonzero(calm), side="right"), away)


def replayed(trace: Trace) -> tuple[Replayed, ...]:
    """Of each control, likeliest first, from the start that makes it likeliest; none where no round shows a window."""
    seen = compared(trace)
    if seen is None:
        return ()
    found = []
    for control, noise in NOISE.items():
        likely, most, away = likeliest(seen, control, noise)
        off = float(np.expm1(np.median(np.abs(away))))
        found.append(Replayed(control, off, likely, likely - most >= noise.least))
    return tuple(sorted(found, key=lambda one: -one.log_likelihood))


def likeliest(seen: Compared, control: str, noise: Noise) -> tuple[float, float, Floats]:
    """Of all starts: the log-likelihood a round, that of windows all right, and how far each round is away."""
    likely, which = max(
        (log_likelihood(away, seen.flight, seen.epoch, noise), number) for number, away in enumerate(seen.away[control])
    )
    right = log_likelihood(np.zeros_like(seen.flight), seen.flight, seen.epoch, noise)
    return likely, right, seen.away[control][which]


def starts(control: str, made: Rounds, calm: Flags) -> list[tuple[int, int | None]]:
    """Windows and slow-start thresholds to begin with: those of a new connection; those of one that the capture finds
    in the middle; and for CUBIC slow start that HyStart ended where the flight ceased to double.
    """
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
    """Mean over rounds that are ``away``, the logarithm of the ratio, from flights in segments, of ``epoch``s."""
    scale = np.sqrt(noise.scale**2 + (_COUNTED / np.maximum(flight, 1)) ** 2)
    if noise.anchor == 0:
        return float(_student(away, scale).mean())
    total = 0.0
    cuts = np.flatnonzero(np.diff(epoch)) + 1
    for ratios, scales in zip(np.split(away, cuts), np.split(scale, cuts), strict=True):
        # Few rounds do not tell what all of an epoch is off by.
        common = np.median(ratios) * len(ratios) / (len(ratios) + 3)
        wide = np.hypot(noise.anchor, scales.mean())
        total += float(_student(ratios - common, scales).sum() + _student(common, wide) - _student(0.0, wide))
    return total / len(away)


def _student(away: Any, scale: Any) -> Any:
    """Logarithm of the density of Student's t."""
    constant = lgamma((_FREEDOM + 1) / 2) - lgamma(_FREEDOM / 2) - log(_FREEDOM * pi) / 2
    return constant - np.log(scale) - (_FREEDOM + 1) / 2 * np.log1p((away / scale) ** 2 / _FREEDOM)


def columns(trace: Trace) -> tuple[Numbers, Numbers, Numbers, Numbers, Flags]:
    """What ``_core.replay`` takes. A segment leaves at once where its acknowledgement lets it: the shortest that this
    took is the loop from the point to the sender and back.
    """
    waited = trace.t_s - trace.known_s
    new = np.diff(trace.known, prepend=trace.known[0]) > 0
    loop_s = float(waited[new].min()) if new.any() else 0.0
    known_s = np.maximum.accumulate(np.minimum(trace.known_s + loop_s, trace.t_s))

    def nanoseconds(t_s: Floats) -> Numbers:
        return np.asarray(np.round(np.maximum(t_s - trace.t_s[0], 0) * 1e9), dtype=np.uint64)

    numbers = (trace.end.astype(np.uint64), trace.known.astype(np.uint64))
    return nanoseconds(trace.t_s), *numbers, nanoseconds(known_s), trace.again
