"""Signs: numbers in which a capture shows the kind of queue, the loss process, and whether others used the bottleneck.

Delays are of a whole round trip above the smallest. What a capture does not show is NaN.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from pandas import DataFrame

    from sawtooth.capture.identify.trace import Floats

FEWEST_TRIPS = 100
"""Fewest round trips measured. With fewer, there is no answer."""
_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
_STANDING = 0.1
"""A queue stood throughout a bin if its least delay is above this share of the largest."""
_NEXT_TO = 5
"""Delays on each side of a loss that count as next to it."""
LEAST_S = 1e-6
"""The least base round trip in s: at the receiver an answer may pass within one tick of the capture's clock."""


def signs(facts: Mapping[str, Any], segments: DataFrame, losses: DataFrame, direction: int) -> dict[str, float] | None:
    """The signs of one direction of a connection, from its facts, all its segments, and its losses.

    Always the same names in the same order; None if fewer than ``FEWEST_TRIPS`` round trips were measured.
    """
    t_s, rtt_s = _trips(segments, direction)
    if len(t_s) < FEWEST_TRIPS:
        return None
    base = max(float(np.quantile(rtt_s, 0.001)), LEAST_S)
    delay = np.maximum(rtt_s - base, 0.0)
    top = max(float(np.quantile(delay, 0.99)), 1e-5)
    of = losses[losses["direction"] == direction] if len(losses) else losses
    lost_s, run = (of[name].to_numpy(dtype=float) for name in ("t_s", "run")) if len(of) else (np.zeros(0), np.zeros(0))
    found: dict[str, float] = {}
    with np.errstate(all="ignore"), warnings.catch_warnings():
        # All-NaN slices: the capture does not show this.
        warnings.simplefilter("ignore", RuntimeWarning)
        _delays(delay, base, top, found)
        _losses(facts, lost_s, run, base, found)
        _at_losses(t_s, delay, top, lost_s, run, found)
        _rates(segments, direction, t_s, delay, top, base, lost_s, found)
    return found


def _trips(segments: DataFrame, direction: int) -> tuple[Floats, Floats]:
    """When each packet was sent whose round trip is known, and that round trip: of data to its acknowledgement, or of
    an acknowledgement to the data that echoes it, whichever crosses the path."""
    own = segments["direction"].to_numpy() == direction
    t_s, rtt_s = segments["t_s"].to_numpy(dtype=float), segments["rtt_s"].to_numpy(dtype=float)
    known = np.isfinite(rtt_s)
    acks, data = known & ~own, known & own & (segments["length"].to_numpy() > 0)
    if not acks.any() and not data.any():
        return np.zeros(0), np.zeros(0)
    by_acks = not data.any() or (acks.any() and np.median(rtt_s[acks]) >= np.median(rtt_s[data]))
    chosen = acks if by_acks else data
    sent = t_s[chosen] - rtt_s[chosen] if by_acks else t_s[chosen]
    order = np.argsort(sent, kind="stable")
    return sent[order], rtt_s[chosen][order]


def _log(value: float, least: float) -> float:
    return float(np.log10(max(value, least)))


def _delays(delay: Floats, base: float, top: float, found: dict[str, float]) -> None:
    found["base"] = _log(base, 1e-5)
    for part, value in zip(_QUANTILES, np.quantile(delay, _QUANTILES).tolist(), strict=True):
        found[f"delay_{part}"] = _log(value, 5e-5)
        found[f"delay_{part}_of_top"] = value / top
    found["delay_most_of_top"] = float(delay.max()) / top
    found["delay_spread"] = float(delay.std() / max(delay.mean(), 1e-6))
    found["top_of_base"] = _log(top / base, 1e-4)
    found["near_top"] = float((delay > 0.85 * top).mean())
    found["near_none"] = float((delay < 0.1 * top).mean())


def _losses(facts: Mapping[str, Any], lost_s: Floats, run: Floats, base: float, found: dict[str, float]) -> None:
    loss, count = facts["loss"], float(run.sum())
    sent = max(float(facts["data_packets"]), 1.0)
    found["losses"] = _log(count, 0.5)
    found["loss_share"] = _log(count / sent, 1e-6)
    found["mean_run"] = count / len(run) if len(run) else np.nan
    found["single_runs"] = float((run == 1).mean()) if len(run) else np.nan
    found["longest_run"] = _log(float(run.max()), 1.0) if len(run) else np.nan
    found["runs_a_burst"] = len(run) / max(float(loss["bursts"]), 1.0) if len(run) else np.nan
    found["largest_burst_share"] = float(loss["largest_burst"]) / count if count else np.nan
    found["lost_again"] = float(loss["lost_copies"]) / count if count else np.nan
    found["timeouts"] = float(facts["timeouts"]) / max(len(run), 1)
    gaps = np.diff(lost_s)
    enough = len(gaps) > 2
    for part in (0.25, 0.5, 0.75):
        found[f"gap_{part}"] = _log(float(np.quantile(gaps, part)), 1e-5) if enough else np.nan
        found[f"gap_{part}_of_base"] = _log(float(np.quantile(gaps, part)) / base, 1e-4) if enough else np.nan
    found["gap_spread"] = float(gaps.std() / max(gaps.mean(), 1e-9)) if enough else np.nan
    found["gap_codel"] = float(((gaps > 0.015) & (gaps < 0.11)).mean()) if enough else np.nan
    found["gap_a_trip"] = float((gaps < base).mean()) if enough else np.nan
    shorter = gaps[1:] < gaps[:-1]
    found["gap_shrinks"] = float(shorter.mean()) if enough else np.nan
    lasted = max(float(facts["duration_s"]), 1e-3)
    counted, _ = np.histogram(lost_s, bins=max(4, min(200, int(lasted / max(2 * base, 0.05)))), weights=run)
    found["dispersion"] = _log(float(counted.var() / max(counted.mean(), 1e-9)), 1e-2) if count else np.nan
    found["last_loss"] = float(lost_s[-1] / lasted) if len(lost_s) else np.nan


def _at_losses(t_s: Floats, delay: Floats, top: float, lost_s: Floats, run: Floats, found: dict[str, float]) -> None:
    """How long packets waited that were sent just before and after one that was lost."""
    waited = np.full(len(lost_s), np.nan)
    for at, one in enumerate(np.searchsorted(t_s, lost_s)):
        around = delay[max(0, one - _NEXT_TO) : one + _NEXT_TO]
        waited[at] = around.max() if around.size else np.nan
    known = np.isfinite(waited)
    waited, run = waited[known], run[known]
    some = waited.size > 0
    rank = np.searchsorted(np.sort(delay), waited) / len(delay)
    for part in (0.1, 0.5, 0.9):
        value = float(np.quantile(waited, part)) if some else np.nan
        found[f"at_loss_{part}"] = _log(value, 5e-5) if some else np.nan
        found[f"at_loss_{part}_of_top"] = value / top
        found[f"at_loss_{part}_rank"] = float(np.quantile(rank, part)) if some else np.nan
    found["at_loss_spread"] = float(waited.std() / top) if waited.size > 1 else np.nan
    whole = float(run.sum()) if some else np.nan
    for name, chosen in (("low", waited < 0.3 * top), ("high", waited > 0.8 * top)):
        found[f"lost_{name}"] = float(run[chosen].sum() / whole) if some else np.nan
        found[f"lost_{name}_run"] = float(run[chosen].mean()) if chosen.any() else np.nan


def _rates(
    segments: DataFrame,
    direction: int,
    t_s: Floats,
    delay: Floats,
    top: float,
    base: float,
    lost_s: Floats,
    found: dict[str, float],
) -> None:
    """What was acknowledged in equal bins: whether it is steady while a queue stands, and how fast it was before a
    loss."""
    acks = (segments["direction"].to_numpy() != direction) & (segments["ack"].to_numpy() > 0)
    at, ack = segments["t_s"].to_numpy(dtype=float)[acks], np.maximum.accumulate(segments["ack"].to_numpy()[acks])
    width = max(0.1, 2 * (base + float(np.median(delay))))
    ends = np.arange(at[0], at[-1], width)
    place = np.searchsorted(at, ends, "right") - 1
    got = np.diff(ack[place].astype(float)) / width
    first, last = np.searchsorted(t_s, ends[:-1]), np.searchsorted(t_s, ends[1:])
    least = np.array([delay[a:b].min() if b > a else np.nan for a, b in zip(first, last, strict=True)])
    middle = np.array([np.median(delay[a:b]) if b > a else np.nan for a, b in zip(first, last, strict=True)])
    queued = (least > _STANDING * top) & (middle > 1e-3)
    most = float(np.quantile(got, 0.95)) if got.size else np.nan
    found["rate"] = _log(most, 1.0)
    found["rate_median"] = float(np.median(got) / most) if got.size else np.nan
    found["rate_low"] = float(np.quantile(got, 0.1) / most) if got.size else np.nan
    found["rate_spread"] = float(got.std() / max(got.mean(), 1e-9)) if got.size else np.nan
    found["stands"] = float(queued.mean()) if got.size else np.nan
    steady = got[queued]
    found["standing_spread"] = float(steady.std() / steady.mean()) if steady.size > 3 else np.nan
    for part in (0.1, 0.25, 0.75, 0.9):
        found[f"standing_{part}"] = float(np.quantile(steady, part) / np.median(steady)) if steady.size > 3 else np.nan
    whole = np.isfinite(middle)
    found["rate_by_delay"] = float(np.corrcoef(got[whole], middle[whole])[0, 1]) if whole.sum() > 5 else np.nan
    held = np.clip(np.searchsorted(ends, lost_s) - 1, 0, max(len(got) - 1, 0)).astype(int)
    rank = np.searchsorted(np.sort(got), got[held]) / max(len(got), 1) if got.size and len(lost_s) else np.zeros(0)
    found["rate_at_loss"] = float(rank.mean()) if rank.size else np.nan
    before = np.clip(held - 1, 0, None)
    found["rate_before_loss"] = float(np.mean(got[before]) / most) if rank.size else np.nan
    spent = np.diff(at)
    bytes_ = np.diff(ack.astype(float))
    pace = (spent / bytes_)[(bytes_ > 0) & (spent > 0)]
    some = pace.size > 20
    usual = float(np.median(pace)) if some else np.nan
    for part in (0.05, 0.25, 0.75, 0.95):
        found[f"pace_{part}"] = _log(float(np.quantile(pace, part)) / usual, 1e-3) if some else np.nan
    found["pace_same"] = float((np.abs(pace / usual - 1) < 0.03).mean()) if some else np.nan
    found["pace_least"] = float((pace < 0.5 * usual).mean()) if some else np.nan
