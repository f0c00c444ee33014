"""Level shifts: a route change midway raises every RTT by the same amount, at once and permanently; a queue does not.

The smallest RTT of each block of probes follows the path if the queue is sometimes short. If the queue stands, the
largest does, since a full tail-drop queue has constant length. Either may vary with the queue. So a step counts only if
it is large compared with the variation on both sides, if smallest, middle and largest move together, if it happens
within a block or two, and if both levels last.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sawtooth.link_estimate.series import Remark, RttSeries

BLOCKS = (20, 50)
"""Probes per block from which the smallest and largest are taken; more for long series. Short blocks find short-lived
levels, long ones ignore a queue's variation."""
_MOST_BLOCKS = 2000
_SHORTEST = 5
"""Blocks that a level must last on either side."""
_WINDOW = 50
"""Blocks examined together: beyond them a level cannot be distinguished from a queue's."""
_DEVIATIONS = 5.0
_LEAST_S = 2e-4
_LEAST_SHARE = 0.01
_ALIKE = 3.0
"""Largest ratio of the spreads on both sides for the same queue seen along another route."""


@dataclass(frozen=True)
class Shift:
    """The level changed by ``size_s`` at probe ``index``, sent at ``at_s``.

    ``alike``: RTTs have similar spread on both sides, so the route changed. Otherwise a queue appeared or disappeared
    too, or instead: RTTs alone cannot distinguish these.
    """

    index: int
    at_s: float
    size_s: float
    alike: bool

    def remark(self) -> Remark:
        """Always with doubt: a series over both sides is not from one path."""
        why = "the route changed" if self.alike else "the route changed, or a queue came or went at once"
        text = f"the RTT shifts by {self.size_s * 1e3:+.3g} ms from probe {self.index} on: {why}"
        return Remark("level-shift", text, doubt=True, at_s=self.at_s)


def level_shifts(series: RttSeries) -> list[Shift]:
    """In order of time; empty with fewer than ten blocks of answered probes."""
    answered = np.flatnonzero(series.answered)
    rtt_s = series.rtt_s[answered]
    shifts: list[Shift] = []
    for least in BLOCKS:
        size = max(least, -(-len(rtt_s) // _MOST_BLOCKS))
        blocks = len(rtt_s) // size
        cut = rtt_s[: blocks * size].reshape(blocks, size)
        curves = cut.min(axis=1), np.median(cut, axis=1), cut.max(axis=1)
        for curve in (curves[0], curves[2]):
            for split in _all_splits(curve, curves):
                first, step_s = _locate(rtt_s, curve, split, size)
                index = int(answered[first])
                # The other curve and other blocks find the same shift.
                if all(abs(index - one.index) > 2 * size for one in shifts):
                    alike = _alike(rtt_s, first, _SHORTEST * size)
                    shifts.append(Shift(index, float(series.sent_s[index]), step_s, alike))
    return sorted(shifts, key=lambda shift: shift.index)


def _locate(rtt_s: NDArray[np.float64], curve: NDArray[np.float64], split: int, size: int) -> tuple[int, float]:
    """The probe, in the two blocks around a split, where the step fits best; and the step."""
    step_s = _step(curve, split)
    start = (split - 1) * size
    near = rtt_s[start : (split + 1) * size]
    middles = [
        float(np.median(rtt_s[max(0, start - 2 * size) : start])),
        float(np.median(rtt_s[start + 2 * size :][: 2 * size])),
    ]
    half = sum(middles) / 2
    return start + _best_cut(near > half if step_s > 0 else near < half), step_s


def _alike(rtt_s: NDArray[np.float64], first: int, length: int) -> bool:
    sides = rtt_s[max(0, first - length) : first], rtt_s[first : first + length]
    spreads = [max(float(np.subtract(*np.percentile(side, [75, 25]))), 1e-6) for side in sides]
    return max(spreads) / min(spreads) < _ALIKE


_Curves = tuple[NDArray[np.float64], ...]


def _all_splits(curve: NDArray[np.float64], curves: _Curves) -> list[int]:
    """In windows that overlap by half; a shift found in two of them counts once."""
    starts = range(0, max(1, len(curve) - _WINDOW // 2), _WINDOW // 2)
    found: list[int] = []
    for start in (min(start, max(0, len(curve) - _WINDOW)) for start in starts):
        for split in _splits(curve, curves, start, min(start + _WINDOW, len(curve))):
            if all(abs(split - one) > 2 for one in found):
                found.append(split)
    return found


def _splits(curve: NDArray[np.float64], curves: _Curves, start: int, end: int) -> Iterator[int]:
    """Binary segmentation by the sum of absolute deviations from each side's median."""
    if end - start < 2 * _SHORTEST:
        return
    split = start + _cheapest(curve[start:end])
    if not _is_shift(curve[start:end], [one[start:end] for one in curves], split - start):
        return
    yield split
    yield from _splits(curve, curves, start, split)
    yield from _splits(curve, curves, split, end)


def _cheapest(values: NDArray[np.float64]) -> int:
    return min(range(_SHORTEST, len(values) - _SHORTEST + 1), key=lambda split: _cost(values, split))


def _cost(values: NDArray[np.float64], split: int) -> float:
    sides = values[:split], values[split:]
    return float(sum(np.abs(side - np.median(side)).sum() for side in sides))


def _is_shift(curve: NDArray[np.float64], curves: list[NDArray[np.float64]], split: int) -> bool:
    before, after = curve[:split], curve[split:]
    step_s = float(np.median(after) - np.median(before))
    wander_s = max(_deviation(before), _deviation(after))
    if abs(step_s) < max(_LEAST_S, _LEAST_SHARE * abs(float(np.median(curve))), _DEVIATIONS * wander_s):
        return False
    # At once: a ramp has most of its rise still ahead two blocks from its middle.
    if not 0.7 < _step(curve, split) / step_s < 1.4:
        return False
    # Overlapping levels are one that varies.
    low, high = (before, after) if step_s > 0 else (after, before)
    if np.quantile(low, 0.95) >= np.quantile(high, 0.05):
        return False
    moved = [float(np.median(one[split:]) - np.median(one[:split])) / step_s for one in curves]
    return all(0.5 < share < 1.8 for share in moved)


def _step(minima: NDArray[np.float64], split: int) -> float:
    """From the blocks just before a split to those just after; the block with the step is in neither."""
    before, after = minima[max(0, split - 3) : split], minima[split + 1 : split + 4]
    return float(np.median(after) - np.median(before))


def _deviation(values: NDArray[np.float64]) -> float:
    """The deviation of a normal distribution with the same median absolute deviation."""
    return 1.4826 * float(np.median(np.abs(values - np.median(values))))


def _best_cut(after: NDArray[np.bool_]) -> int:
    """The index before which most are False and from which most are True."""
    wrong = np.concatenate([[0], np.cumsum(after)]) + np.concatenate([np.cumsum(~after[::-1])[::-1], [0]])
    return min(int(np.argmin(wrong)), len(after) - 1)
