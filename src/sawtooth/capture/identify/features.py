"""Features that distinguish congestion controls, independent of the path's rate, delay and segment size if possible.

Windows are in segments or shares of the path's bandwidth-delay product, times in round trips or seconds. What a trace
does not show (no loss, so no back-off) is NaN.
"""

from __future__ import annotations

import warnings

import numpy as np

from sawtooth.capture.identify.laws import Epochs, epochs, law_features
from sawtooth.capture.identify.rounds import Rounds, rounds
from sawtooth.capture.identify.trace import Flags, Floats, TooLittle, Trace

_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
_GRID = np.array([0.15, 0.3, 0.5, 0.7, 0.85])
_WIDE, _WIDE_QUANTILES = 5, (0.1, 0.3, 0.5, 0.7, 0.9)
"""Rounds over which a step of the window is taken, and the quantiles of all such steps."""
_FALL = 0.85
"""A window that falls below this share outside a recovery has been lowered."""


def features(trace: Trace) -> dict[str, float]:
    """Features by name, always the same names in the same order. Raises TooLittle for fewer than ten whole round
    trips."""
    made = rounds(trace)
    if (~made.cut).sum() < 10:
        raise TooLittle("less than ten round trips are seen")
    bdp = max(made.rate * made.min_rtt_s, 1.0)
    found: dict[str, float] = {}
    with np.errstate(all="ignore"), warnings.catch_warnings():
        # All-NaN slices: the trace does not show this.
        warnings.simplefilter("ignore", RuntimeWarning)
        _path(trace, made, bdp, found)
        _levels(made, bdp, found)
        _start(made, bdp, found)
        lasted = epochs(made, bdp, trace.stretch)
        _epochs(lasted, bdp, found)
        found |= law_features(lasted)
        _falls(made, found)
        _growth(made, bdp, found)
        _cycles(trace, made, found)
    return found


def _path(trace: Trace, made: Rounds, bdp: float, found: dict[str, float]) -> None:
    found["log_bdp"] = float(np.log(bdp))
    found["log_rtt"] = float(np.log(made.min_rtt_s))
    found["log_rounds"] = float(np.log(len(made)))
    found["log_loss"] = float(np.log(trace.again.mean() + 1e-5))
    found["loss_events_a_round"] = float(_begins(made.recovery).sum() / len(made))
    found["recovery_share"] = float(made.recovery.mean())
    found["queue_ratio"] = float(np.quantile(made.rtt_s, 0.98) / made.min_rtt_s)
    found["use"] = float(made.acked.sum() / max(trace.duration_s * made.rate, 1e-9))


def _levels(made: Rounds, bdp: float, found: dict[str, float]) -> None:
    calm = ~made.recovery
    flight = made.flight[calm] if calm.sum() > 4 else made.flight
    later = flight[len(flight) // 4 :]
    delay = made.rtt_s[len(made) // 4 :] / made.min_rtt_s
    middle = float(np.median(later))
    for share in _QUANTILES:
        found[f"flight_bdp_{share}"] = float(np.quantile(later, share) / bdp)
        found[f"flight_{share}"] = float(np.log(max(np.quantile(later, share), 0.5)))
        found[f"delay_{share}"] = float(np.quantile(delay, share))
    found["flight_spread"] = float(later.std() / max(later.mean(), 1e-9))
    found["delay_spread"] = float(delay.std() / delay.mean())
    found["low_share"] = float((later < 0.4 * middle).mean())
    found["tiny_share"] = float((later <= 5).mean())
    steps = np.abs(np.diff(later))
    found["still_share"] = float((steps < 0.6).mean())
    found["one_step_share"] = float(((steps >= 0.6) & (steps < 1.6)).mean())
    queued = later - bdp
    found["queued_median"] = float(np.median(queued))


def _start(made: Rounds, bdp: float, found: dict[str, float]) -> None:
    """Slow start: from the first round to the first fall or recovery."""
    flight = made.flight
    peak = np.maximum.accumulate(flight)
    ended = np.flatnonzero(made.recovery | (flight < _FALL * peak))
    first = max(int(ended[0]), 1) if len(ended) else len(flight)
    ratio = flight[1:] / np.maximum(flight[:-1], 0.5)
    fast = np.flatnonzero(ratio[:first] < 1.25)
    fast_end = int(fast[0]) if len(fast) else first
    exit_at = min(fast_end, len(flight) - 1)
    found["start_rounds"] = float(min(first, 200))
    found["start_share"] = first / len(flight)
    found["start_fast_rounds"] = float(min(fast_end, 50))
    found["start_ratio"] = float(np.median(ratio[: max(fast_end, 1)]))
    found["start_ratio_max"] = float(ratio[: max(first, 1)].max())
    found["start_exit_bdp"] = float(flight[exit_at] / bdp)
    found["start_exit_delay"] = float(made.rtt_s[exit_at] / made.min_rtt_s)
    peak_at = min(first, len(flight)) - 1
    found["start_peak_bdp"] = float(flight[: peak_at + 1].max() / bdp)
    lost = np.flatnonzero(made.recovery)
    found["first_loss_round"] = float(lost[0]) if len(lost) else np.nan
    found["first_loss_s"] = float(made.t_s[lost[0]] - made.t_s[0]) if len(lost) else np.nan
    found["first_loss_bdp"] = float(flight[max(lost[0] - 1, 0)] / bdp) if len(lost) else np.nan
    after = first + 1 + int(np.argmin(made.recovery[first:])) if first < len(flight) else len(flight) - 1
    found["start_fall"] = float(flight[min(after, len(flight) - 1)] / max(peak[max(peak_at, 0)], 1))


def _epochs(seen: Epochs, bdp: float, found: dict[str, float]) -> None:
    """Between recoveries: back-off, growth and its shape, as quantiles over epochs."""
    backoff = seen.low / np.maximum(seen.top, 1)
    found["epochs"] = float(np.log1p(len(backoff)))
    for name, values in (
        ("backoff", backoff),
        ("before_bdp", seen.top / bdp),
        ("after_bdp", seen.low / bdp),
        ("before", np.log(np.maximum(seen.top, 1))),
        # H-TCP and Westwood reduce the window to the share of the round trip that is not queueing.
        ("backoff_delay", backoff * (1 + seen.delay_s / seen.base_s)),
    ):
        _summary(name, values, found, quartiles=True)
    slope, log_slope, length, seconds, shape, early, late = ([] for _ in range(7))
    for number, (row, t_s) in enumerate(zip(seen.window, seen.t_s, strict=True)):
        own = row[np.isfinite(row)]
        if number < len(seen.top) - 1:
            length.append(len(own))
            seconds.append(t_s[len(own) - 1])
        if len(own) < 5:
            continue
        run = np.arange(len(own), dtype=float)
        slope.append(_slope(run, own))
        log_slope.append(_slope(run, np.log(np.maximum(own, 0.5))))
        third = max(len(own) // 3, 2)
        early.append(float((own[third - 1] - own[0]) / (third - 1)))
        late.append(float((own[-1] - own[-third]) / (third - 1)))
        if len(own) >= 8 and own[-1] > own[0] + 2:
            shape.append(np.interp(_GRID, run / run[-1], (own - own[0]) / (own[-1] - own[0])))
    _summary("epoch_rounds", np.log(np.array(length) + 1e-9), found)
    _summary("epoch_s", np.log(np.array(seconds) + 1e-3), found)
    _summary("slope", np.array(slope), found, quartiles=True)
    _summary("log_slope", np.array(log_slope), found)
    _summary("early", np.array(early), found)
    _summary("late", np.array(late), found)
    found["late_early"] = float(np.median(late) - np.median(early)) if early else np.nan
    found["stretch"] = float(np.log(seen.stretch))
    shapes = np.median(shape, axis=0) if shape else np.full(len(_GRID), np.nan)
    for share, value in zip(_GRID, shapes, strict=True):
        found[f"shape_{share}"] = float(value)
    large = seen.top > 15
    found["backoff_large"] = float(np.median(backoff[large])) if large.any() else np.nan


def _falls(made: Rounds, found: dict[str, float]) -> None:
    """Windows lowered without a loss: delay-based controls, and BBR's probe of the minimum RTT."""
    flight, calm = made.flight, ~made.recovery
    falls, depth = [], []
    for begin, end in _spans(calm):
        at, top = begin + 1, flight[begin] if begin < len(flight) else 0.0
        while at < end:
            top = max(top, flight[at - 1])
            if flight[at] < _FALL * top and flight[at] < top - 1.5:
                low = at
                while low + 1 < end and flight[low + 1] < flight[low]:
                    low += 1
                falls.append(low)
                depth.append(flight[low] / top)
                top, at = flight[low], low + 1
            else:
                at += 1
    seconds = max(float(made.t_s[-1] - made.t_s[0]), 1e-9)
    found["falls_a_round"] = len(falls) / len(made)
    found["falls_a_second"] = len(falls) / seconds
    _summary("fall", np.array(depth), found, quartiles=True)
    gaps = np.diff(made.t_s[falls]) if len(falls) > 1 else np.zeros(0)
    _summary("fall_gap_s", np.log(gaps + 1e-3), found)
    deep = np.array(falls, dtype=int)[np.array(depth) < 0.4] if falls else np.zeros(0, dtype=int)
    deep_gaps = np.diff(made.t_s[deep]) if len(deep) > 1 else np.zeros(0)
    found["deep_falls"] = len(deep) / seconds * 10
    found["deep_near_10_s"] = float(((deep_gaps > 9) & (deep_gaps < 12)).sum())
    # BBR stays at four segments for 200 ms once in ten seconds.
    small = _spans((flight <= 5) & (np.arange(len(flight)) > 5))
    when = np.array([made.t_s[begin] for begin, _ in small])
    found["sits_at_four"] = float(((np.diff(when) > 9) & (np.diff(when) < 12.5)).sum()) if len(when) > 1 else 0.0


def _growth(made: Rounds, bdp: float, found: dict[str, float]) -> None:
    """Growth of the window per round, by queueing delay and by window."""
    calm = ~made.recovery[1:] & ~made.recovery[:-1]
    calm[: min(len(calm) // 5, 12)] = False
    flight = _smooth(made.flight)
    step = np.diff(flight)[calm]
    delay = (made.rtt_s / made.min_rtt_s)[:-1][calm]
    window = flight[:-1][calm]
    if len(step) < 8:
        for name in (
            "step",
            "step_q25",
            "step_q75",
            "step_low",
            "step_high",
            "step_delay",
            "step_window",
            "log_step",
            "up_share",
            *(f"wide_step_{share}" for share in _WIDE_QUANTILES),
        ):
            found[name] = np.nan
        return
    found["step"] = float(np.median(step))
    found["step_q25"], found["step_q75"] = (float(value) for value in np.quantile(step, (0.25, 0.75)))
    middle = np.quantile(delay, (0.33, 0.67))
    found["step_low"] = float(_trimmed(step[delay <= middle[0]]))
    found["step_high"] = float(_trimmed(step[delay >= middle[1]]))
    found["step_delay"] = _correlation(step, delay)
    found["step_window"] = _correlation(step, window)
    found["log_step"] = float(_trimmed(step / np.maximum(window, 1)))
    found["up_share"] = float((step > 0.4).mean())
    # Over five rounds the effect of bursts is gone.
    wide = (made.flight[_WIDE:] - made.flight[:-_WIDE]) / _WIDE
    whole = np.convolve(calm, np.ones(_WIDE), mode="valid") > _WIDE - 0.5
    wide = wide[whole[: len(wide)]]
    for share in _WIDE_QUANTILES:
        found[f"wide_step_{share}"] = float(np.quantile(wide, share)) if len(wide) else np.nan


def _cycles(trace: Trace, made: Rounds, found: dict[str, float]) -> None:
    """Periodicity of the sending rate, in round trips of the empty path, and of the window, in round trips."""
    step = max(made.min_rtt_s, 1e-4)
    bins = ((trace.t_s - trace.t_s[0]) / step).astype(int)
    sent = np.bincount(bins[bins < 20_000]).astype(float)
    sent = sent[len(sent) // 4 :]
    if len(sent) > 40:
        smooth = np.convolve(sent, np.ones(9) / 9, mode="same")
        rest = sent - smooth
        power = float((rest**2).mean())
        for lag in (1, 2, 3, 4, 6, 8, 10, 16):
            found[f"again_{lag}"] = (
                float((rest[:-lag] * rest[lag:]).mean() / power) if power > 0 and len(rest) > lag else 0.0
            )
        found["sent_spread"] = float(np.sqrt(power) / max(sent.mean(), 1e-9))
        found["sent_high"] = float(np.quantile(sent, 0.9) / max(np.median(sent), 1e-9))
        found["sent_low"] = float(np.quantile(sent, 0.1) / max(np.median(sent), 1e-9))
    else:
        for name in (*(f"again_{lag}" for lag in (1, 2, 3, 4, 6, 8, 10, 16)), "sent_spread", "sent_high", "sent_low"):
            found[name] = np.nan
    width = min(15, len(made))
    flight = made.flight - np.convolve(made.flight, np.ones(width) / width, mode="same")
    spread = float((flight**2).mean())
    for lag in (1, 2, 4, 8):
        found[f"flight_again_{lag}"] = float((flight[:-lag] * flight[lag:]).mean() / spread) if spread > 0 else 0.0


def _summary(name: str, values: Floats, found: dict[str, float], *, quartiles: bool = False) -> None:
    found[name] = float(np.median(values)) if len(values) else np.nan
    found[f"{name}_deviation"] = float(values.std()) if len(values) > 1 else np.nan
    if quartiles:
        for share in (0.25, 0.75):
            found[f"{name}_{share}"] = float(np.quantile(values, share)) if len(values) else np.nan


def _smooth(values: Floats) -> Floats:
    """Median of three neighbors: removes a burst and keeps a step."""
    padded = np.concatenate([values[:1], values, values[-1:]])
    return np.asarray(np.median([padded[:-2], padded[1:-1], padded[2:]], axis=0))


def _trimmed(values: Floats) -> float:
    """Mean of the middle 80%."""
    if not len(values):
        return np.nan
    low, high = np.quantile(values, (0.1, 0.9))
    return float(values[(values >= low) & (values <= high)].mean())


def _slope(x: Floats, y: Floats) -> float:
    """The slope of the least-squares line."""
    away = x - x.mean()
    return float(away @ y / (away @ away))


def _correlation(one: Floats, other: Floats) -> float:
    if one.std() == 0 or other.std() == 0:
        return 0.0
    return float(np.corrcoef(one, other)[0, 1])


def _spans(inside: Flags) -> list[tuple[int, int]]:
    """Runs of true values: begin and end."""
    edges = np.diff(np.concatenate([[0], inside.astype(np.int8), [0]]))
    return list(zip(np.flatnonzero(edges == 1).tolist(), np.flatnonzero(edges == -1).tolist(), strict=True))


def _begins(inside: Flags) -> Flags:
    return np.asarray(inside & ~np.concatenate([[False], inside[:-1]]))
