"""How well each control's law explains a trace between its losses: the window after a loss, and the growth per round.

The laws are those of Linux 6.12's modules (``net/ipv4/tcp_*.c``), in segments and round trips, run open loop from the
window after a recovery. An error is the mean distance in segments; the feature is its excess over the best law's error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sawtooth.capture.identify.rounds import Rounds
from sawtooth.capture.identify.trace import Flags, Floats

_LONGEST = 120
"""Rounds of an epoch that are used."""
_SHORTEST = 3
"""Fewest rounds that show the growth per round."""
_NOISE = 0.15
"""Segments: smaller errors count as equal."""


@dataclass(frozen=True)
class Epochs:
    """Epochs: from a recovery's end to the next loss. One row per epoch; ``window`` and others have one column per
    round, NaN after the epoch's end.

    ``top`` is the window when the loss before it was noticed, ``reached`` that of the loss before that (NaN: none),
    ``delay_s`` the queueing delay then, ``queued`` the number of consecutive rounds in which the queue was at least an
    eighth of the base.
    """

    top: Floats
    reached: Floats
    delay_s: Floats
    queued: Floats
    window: Floats
    t_s: Floats
    rtt_s: Floats
    base_s: float
    """The shortest round trip; ``far_s`` is about the longest."""
    far_s: float
    bdp: float
    stretch: float
    """Segments per acknowledgement."""

    @property
    def low(self) -> Floats:
        """The window after the loss."""
        return self.window[:, 0]

    @property
    def queue(self) -> Floats:
        """Segments in the queue when the loss was noticed."""
        return self.top * self.delay_s / (self.base_s + self.delay_s)


def epochs(made: Rounds, bdp: float, stretch: float) -> Epochs:
    """The epochs with at least one round trip without a loss."""
    stops = np.flatnonzero(np.concatenate([made.recovery, [True]]))
    ends = stops[np.searchsorted(stops, made.ended)]
    kept = ends > made.ended
    begins, ends = made.ended[kept], np.minimum(ends[kept], made.ended[kept] + _LONGEST)
    width = max(int((ends - begins).max()), 1) if len(begins) else 1
    at = begins[:, None] + np.arange(width)
    outside = at >= ends[:, None]
    at = np.minimum(at, len(made) - 1)
    table = [np.where(outside, np.nan, values[at]) for values in (made.flight, made.t_s, made.rtt_s)]
    base_s = made.min_rtt_s
    before = np.maximum(made.noticed[kept] - 1, 0)
    waits = (made.rtt_s > 1.125 * base_s) | made.cut
    calm_since = np.maximum.accumulate(np.where(waits, -1, np.arange(len(made))))
    return Epochs(
        top=made.top[kept],
        reached=np.concatenate([[np.nan], made.top[:-1]])[kept] if len(made.top) else made.top,
        delay_s=np.maximum(made.rtt_s[before], made.rtt_s[np.maximum(before - 1, 0)]) - base_s,
        queued=(before - calm_since[before]).astype(float),
        window=table[0],
        t_s=table[1] - (table[1][:, :1] if len(begins) else 0),
        rtt_s=table[2],
        base_s=base_s,
        far_s=float(np.quantile(made.rtt_s, 0.98)),
        bdp=bdp,
        stretch=stretch,
    )


def law_features(seen: Epochs) -> dict[str, float]:
    """Features by name; NaN without a loss, or without three rounds between losses."""
    left = {name: _middle(np.abs(seen.low - law(seen))) for name, law in BACKOFF.items()}
    rounds_of = np.isfinite(seen.window).sum(axis=1)
    long = rounds_of >= _SHORTEST
    added = {name: _growth_error(seen, law, long, rounds_of) for name, law in GROWTH.items()}
    found = _compared("left", left) | _compared("added", added)
    both = {name: left[back] + (0 if np.isnan(added[grow]) else added[grow]) for name, (back, grow) in CONTROLS.items()}
    return found | _compared("law", both)


def _compared(kind: str, errors: dict[str, float]) -> dict[str, float]:
    least = min(errors.values())
    found = {f"{kind}_least": float(np.log(least + _NOISE))}
    return found | {
        f"{kind}_{name}": float(np.log((error + _NOISE) / (least + _NOISE))) for name, error in errors.items()
    }


def _middle(values: Floats) -> float:
    return float(np.median(values)) if len(values) else np.nan


def _growth_error(seen: Epochs, law: Callable[[Epochs, Floats, int], Floats], long: Flags, rounds_of: Floats) -> float:
    if not long.any():
        return np.nan
    predicted = np.full_like(seen.window, np.nan)
    predicted[:, 0] = seen.low
    for column in range(1, predicted.shape[1]):
        before = predicted[:, column - 1]
        predicted[:, column] = before + law(seen, before, column - 1)
    away = (seen.window - predicted)[long]
    # An error in the first window is not the law's fault.
    away -= np.nanmean(away, axis=1, keepdims=True)
    return float(np.average(np.nanmean(np.abs(away), axis=1), weights=rounds_of[long]))


def _half(seen: Epochs) -> Floats:
    return np.maximum(np.floor(seen.top / 2), 2)


def _table_left(seen: Epochs) -> Floats:
    """HighSpeed TCP's remaining share (RFC 3649, section 5) by its formula; a half up to 38 segments."""
    share = np.interp(np.log(np.maximum(seen.top, 1)), np.log([38.0, 83000.0]), [0.5, 0.1])
    return np.maximum(seen.top * (1 - share), 2)


def _htcp_left(seen: Epochs) -> Floats:
    return np.maximum(seen.top * _htcp_beta(seen), 2)


def _htcp_beta(seen: Epochs) -> float:
    return float(np.clip(seen.base_s / seen.far_s, 0.5, 0.8))


def _illinois_left(seen: Epochs) -> Floats:
    delay = seen.delay_s / max(seen.far_s - seen.base_s, 1e-6)
    share = np.interp(delay, [0.1, 0.8], [0.125, 0.5])
    return np.where(seen.top < 15, _half(seen), seen.top * (1 - share))


def _veno_left(seen: Epochs) -> Floats:
    return np.where(seen.queue < 3, np.floor(seen.top * 0.8), _half(seen))


def _yeah_left(seen: Epochs) -> Floats:
    half = np.maximum(np.floor(seen.top / 2), 2)
    return seen.top - np.where(seen.queued < 16, np.clip(seen.queue, np.floor(seen.top / 8), half), half)


BACKOFF: dict[str, Callable[[Epochs], Floats]] = {
    "half": _half,
    "cubic": lambda seen: np.floor(seen.top * 0.7),
    "bic": lambda seen: np.where(seen.top <= 14, _half(seen), np.floor(seen.top * 0.8)),
    "eighth": lambda seen: seen.top - np.floor(seen.top / 8),
    "highspeed": _table_left,
    "htcp": _htcp_left,
    "illinois": _illinois_left,
    "veno": _veno_left,
    "westwood": lambda seen: np.full_like(seen.top, max(seen.bdp, 2.0)),
    "yeah": _yeah_left,
    "none": lambda seen: seen.top,
}
"""The window after a loss, by law."""


def _cubic(seen: Epochs, window: Floats, column: int) -> Floats:
    """RFC 9438 with Linux's fast convergence (in units of 0.7 and 0.85) and its Reno-friendly window."""
    falling = seen.top < seen.reached
    most = np.where(falling, 0.85 * seen.top, seen.top)
    knee_s = np.cbrt(np.maximum(most - seen.low, 0) / 0.4)
    t_s = seen.t_s[:, column] + seen.rtt_s[:, column]
    target = 0.4 * (t_s - knee_s) ** 3 + np.maximum(most, seen.low)
    friendly = seen.low + 0.529 * (column + 1)
    return np.clip(np.maximum(target, friendly) - window, 0.01, 0.5 * window)


def _bic(seen: Epochs, window: Floats, column: int) -> Floats:
    most = np.where(seen.top < seen.reached, 0.9 * seen.top, seen.top)
    below = np.floor((most - window) / 4)
    over = window - most
    searching = np.where(below > 1, np.minimum(below, 16), 0.2)
    probing = np.where(over < 4, 0.2, np.minimum(over / 3, 16))
    return np.where(window <= 14, 1.0, np.where(over < 0, searching, probing))


def _htcp(seen: Epochs, window: Floats, column: int) -> Floats:
    since = np.maximum(seen.t_s[:, column] - 1, 0)
    factor = 1 + 10 * since + (since / 2) ** 2
    factor = np.maximum(factor / np.clip(0.1 / seen.base_s, 0.5, 10), 1)
    return np.asarray(2 * (1 - _htcp_beta(seen)) * factor)


def _highspeed(seen: Epochs, window: Floats, column: int) -> Floats:
    # RFC 3649's a(w), about: 1 up to 38 segments, 8 at 495, 20 at 2000. Linux counts acknowledgements.
    return np.maximum(0.078 * window**0.8 * 0.75, 1) / seen.stretch


def _illinois(seen: Epochs, window: Floats, column: int) -> Floats:
    most = max(seen.far_s - seen.base_s, 1e-6)
    delay = np.maximum(seen.rtt_s[:, column] - seen.base_s - most / 100, 0)
    return np.where(window < 15, 1.0, 10 * most / (most + delay * 9.7 / 0.3))


def _veno(seen: Epochs, window: Floats, column: int) -> Floats:
    return np.where(window * (1 - seen.base_s / seen.rtt_s[:, column]) < 3, 1.0, 0.5)


GROWTH: dict[str, Callable[[Epochs, Floats, int], Floats]] = {
    "one": lambda seen, window, column: np.ones_like(window),
    "cubic": _cubic,
    "bic": _bic,
    "htcp": _htcp,
    "highspeed": _highspeed,
    "hybla": lambda seen, window, column: np.full_like(window, max(seen.base_s / 0.025, 1) ** 2 / seen.stretch),
    "illinois": _illinois,
    "veno": _veno,
    "hundredth": lambda seen, window, column: np.maximum(window / 100, 1),
    "none": lambda seen, window, column: np.zeros_like(window),
}
"""The growth per round, from the window and the epoch's column, by law."""

CONTROLS = {
    "reno": ("half", "one"),
    "cubic": ("cubic", "cubic"),
    "bic": ("bic", "bic"),
    "htcp": ("htcp", "htcp"),
    "highspeed": ("highspeed", "highspeed"),
    "hybla": ("half", "hybla"),
    "illinois": ("illinois", "illinois"),
    "veno": ("veno", "veno"),
    "scalable": ("eighth", "hundredth"),
    "westwood": ("westwood", "one"),
    "yeah": ("yeah", "hundredth"),
    "vegas": ("half", "none"),
    "bbr": ("none", "none"),
}
"""The laws of back-off and of growth, by control."""
