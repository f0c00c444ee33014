"""Zero crossing: where a noisy margin crosses zero, with an interval that contains the crossing 95 times in 100.

The margin is above 0 where the goal holds. The range is sampled at ``SCAN`` points, then narrowed between two points of
which one is clearly above 0 and one clearly below (Student's t over seeds, at ``CLEAR``). Narrowing ends when they are
near, or when what is between cannot be distinguished from 0. Then points around the crossing get more seeds, each time
the one that most reduces the error at the ends of the requested interval, until both ends are near enough. If the two
clear points are near enough, they are the interval, which only assumes that the margin falls (or rises) throughout.
Otherwise the interval comes from a parabola through the means around the crossing; see ``curve``. Each point has its
own seeds, so their errors are independent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, Protocol

from sawtooth.search.control_variate import ExcessLosses, steadied
from sawtooth.search.curve import Curve, through
from sawtooth.search.samples import FIRST, MOST, Ask, Probing, SampledPoint, crossed, grown

SCAN = 7
"""Points at first, both ends included."""
LEAST = 16
"""Seeds around the crossing, before their parabola is believed."""
EACH_LOOK = 0.97
"""Confidence of each interval that may end the search: one of several tests may err, so that 95% remain overall."""
WINDOW = 5
"""Multiple of the tolerance within which the margin is modeled as a parabola."""
_NEXT, _BESIDE = 0.6, 3.5
"""Multiples of the tolerance: the distance from the crossing of points that locate it, and of those that show the
slope."""
_TURNS, _STILL = 4, 0.02
"""The parabola is refitted around the crossing of the previous one, until that moves by no more than this part of the
window."""
Verdict = Literal["found", "always", "never", "unclear"]


class Range(Protocol):
    """What the search uses of the unknown; see ``unknown.Unknown``."""

    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...
    @property
    def is_whole(self) -> bool: ...
    def place(self, value: float) -> float: ...
    def value(self, place: float) -> float: ...
    def reach(self, place: float, within: float) -> float: ...
    def ends(self, place: float, low: float, high: float, holds_low: bool) -> tuple[float, float, float]: ...


@dataclass(frozen=True)
class Crossing:
    """The result. ``holds_low``: the goal holds at the low end. ``changes``: pairs of values between which it clearly
    begins or ceases to hold; with more than one it is not monotone, and the answer is the first. ``enough``: the
    interval is as short as requested; ``spent``: it is not, because the budget was used up.
    """

    verdict: Verdict
    value: float
    low: float
    high: float
    holds_low: bool
    changes: tuple[tuple[float, float], ...]
    enough: bool
    spent: bool = False


class Search(Probing[float]):
    """The search with one unknown."""

    def __init__(
        self,
        unknown: Range,
        ask: Ask[float],
        *,
        within: float,
        most: int,
        excess_losses: Callable[[float, int], ExcessLosses] | None = None,
    ) -> None:
        super().__init__(ask, within=within, most=most, excess_losses=excess_losses)
        self.unknown = unknown

    def place(self, value: float) -> float:
        return self.unknown.place(value)

    def run(self) -> Crossing:
        """Requests runs until the answer is good enough or the budget is used up."""
        start, end = self.unknown.place(self.unknown.low), self.unknown.place(self.unknown.high)
        steps = [start + (end - start) * at / (SCAN - 1) for at in range(SCAN)]
        self._measure([self.unknown.value(place) for place in steps])
        while True:
            found, wanted = self._next()
            if found.enough or not wanted:
                return found
            if not self.more(wanted):
                return replace(found, spent=self.spent)

    def _next(self) -> tuple[Crossing, dict[float, int]]:
        """The answer so far, and which further seeds of which values would improve it."""
        points = self.points
        for before, one, after in zip(points, points[1:], points[2:], strict=False):
            one.floor = math.sqrt(before.variance * after.variance)
        clear = [one for one in points if one.sign]
        unclear = [one for one in points if not one.sign]
        changes = [(one, other) for one, other in pairwise(clear) if one.sign != other.sign]
        if not changes:
            return self._one_sided(points, clear, unclear)
        left, right = changes[0]
        guess, low, high, curve = self._crossing(points, left, right)
        reach = self.unknown.reach(guess, self.within)
        pairs = [(one.value, other.value) for one, other in changes]
        close = max(right.place - guess, guess - left.place) <= reach
        if close or (self.unknown.is_whole and right.value - left.value <= 1):
            return self._found(guess, left.place, right.place, left, pairs, True), {}
        half = max(guess - low, high - guess)
        about = [one for one in points if abs(one.place - guess) <= WINDOW * reach]
        wanted = self._places(points, about, left, right, guess, reach)
        middle = (left.place + right.place) / 2
        if not wanted and right.place - left.place <= 2 * self.unknown.reach(middle, self.within):
            # No further point near the crossing helps, for example because the margin jumps.
            return self._found(middle, left.place, right.place, left, pairs, True), {}
        if wanted or curve is None:
            return self._found(guess, low, high, left, pairs, False), wanted or _evened(about)
        if half <= reach and sum(one.n for one in about) >= LEAST:
            return self._found(guess, low, high, left, pairs, True), {}
        return self._found(guess, low, high, left, pairs, False), _seeds(about, curve, guess, reach, half)

    def _crossing(
        self, points: list[SampledPoint[float]], left: SampledPoint[float], right: SampledPoint[float]
    ) -> tuple[float, float, float, Curve | None]:
        """The crossing and its interval by a parabola through the points around it; without one, by the monotone fit,
        with the clear points as ends."""
        begun = guess = _monotone([one for one in points if left.place <= one.place <= right.place])
        curve = None
        for _ in range(_TURNS):
            window = WINDOW * self.unknown.reach(guess, self.within)
            about = [one for one in points if abs(one.place - guess) <= window]
            curve = through(steadied(about), window / WINDOW / self.within)
            if curve is None:
                break
            low, high = max(left.place, about[0].place), min(right.place, about[-1].place)
            crossed = curve.crossing(low, high) if low < high else None
            if crossed is None or float(curve.at([low])[0][0]) * left.sign <= 0:
                curve = None
                break
            moved, guess = abs(crossed - guess), crossed
            if moved < _STILL * window:
                break
        if curve is None:
            return begun, left.place, right.place, None
        ends = curve.interval(guess, low, high, EACH_LOOK)
        # An interval that reaches the outermost points may reach beyond them.
        return guess, left.place if ends[0] <= low else ends[0], right.place if ends[1] >= high else ends[1], curve

    def _found(
        self,
        guess: float,
        low: float,
        high: float,
        left: SampledPoint[float],
        changes: list[tuple[float, float]],
        done: bool,
    ) -> Crossing:
        value, *ends = self.unknown.ends(guess, low, high, left.sign > 0)
        return Crossing("found", value, ends[0], ends[1], left.sign > 0, tuple(changes), done)

    def _one_sided(
        self, points: list[SampledPoint[float]], clear: list[SampledPoint[float]], unclear: list[SampledPoint[float]]
    ) -> tuple[Crossing, dict[float, int]]:
        wanted = {one.value: grown(one.n) for one in unclear if one.n < MOST}
        holds = points[0].mean > 0
        verdict: Verdict = "unclear" if unclear else "always" if holds else "never"
        return Crossing(verdict, math.nan, math.nan, math.nan, holds, (), not unclear), wanted

    def _places(
        self,
        points: list[SampledPoint[float]],
        about: list[SampledPoint[float]],
        left: SampledPoint[float],
        right: SampledPoint[float],
        guess: float,
        reach: float,
    ) -> dict[float, int]:
        """New values, if there are too few around the crossing."""
        width = right.place - left.place
        between = [one for one in points if left.place < one.place < right.place]
        if not between and (width > 2 * WINDOW * reach or not any(one.variance for one in (left, right))):
            middle = left.place + width * min(max((guess - left.place) / width, 0.25), 0.75)
            return self._new([middle], left, right) or self._new([(left.place + right.place) / 2], left, right)
        places = []
        for side in (-1, 1):
            far = [side * (one.place - guess) for one in about]
            if not any(0 <= one <= 2 * _NEXT * reach for one in far):
                places.append(guess + side * _NEXT * reach)
            if not any(one > _BESIDE * reach / 2 for one in far):
                places.append(guess + side * _BESIDE * reach)
        return self._new(places, left, right)

    def _new(self, places: Sequence[float], left: SampledPoint[float], right: SampledPoint[float]) -> dict[float, int]:
        """The places that are new values between the two."""
        values = [self.unknown.value(place) for place in places]
        return {one: self.first() for one in values if left.value < one < right.value and one not in self.probed}

    def _measure(self, values: Sequence[float]) -> bool:
        return self.more(dict.fromkeys(values, FIRST))


def _evened(about: list[SampledPoint[float]]) -> dict[float, int]:
    """More seeds for the points with the fewest."""
    fewest = min((one.n for one in about), default=MOST)
    return {one.value: grown(one.n) for one in about if one.n <= 1.5 * fewest < MOST}


def _seeds(about: list[SampledPoint[float]], curve: Curve, guess: float, reach: float, half: float) -> dict[float, int]:
    """More seeds for the point next to the crossing that most reduces the error at the requested interval's ends: as
    many as make ``half`` the interval as short as ``reach``, but at most half as many as exist. Points further away
    would show the slope too, but not that the margin jumps.
    """
    more = math.ceil(sum(one.n for one in about) * min(max((half / reach) ** 2 - 1, 0.1), 0.5))
    ends = (guess - reach, guess + reach)
    growing = [one for one in about if one.n < MOST and abs(one.place - guess) <= 2 * _NEXT * reach]
    best = max(growing, key=lambda one: curve.gain(one.place, more, ends), default=None)
    return {} if best is None else {best.value: best.n + max(more, FIRST)}


def _monotone(points: Sequence[SampledPoint[float]]) -> float:
    return crossed([(one.place, one.mean, one.n) for one in points])
