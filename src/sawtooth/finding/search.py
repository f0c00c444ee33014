"""Search: where a noisy margin crosses zero, with an interval that holds the place 95 times in 100.

The margin is above 0 where a want holds. The range is looked at in ``SCAN`` places, then narrowed between two places
of which one is clearly above and one clearly below (Student's t over seeds, at ``CLEAR``), until they are near, or what
is between them cannot be told apart from 0. Then the places about the crossing get seeds, each time the one that most
lessens the error at the ends of the interval that was asked for, until both are so near to the crossing. The interval
is what the two clear places enclose where they are near enough, which needs no more than that the margin falls (or
rises) all along.
Else it is that of a parabola through the means about the crossing; see ``curve``. Each place has seeds of its own, so
that their errors do not depend on each other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, Protocol

from sawtooth.finding.curve import Curve, through
from sawtooth.finding.luck import Luck, steadied
from sawtooth.finding.probed import FIRST, MOST, Ask, Probed, Probing, crossed, grown

SCAN = 7
"""Places at first, both ends among them."""
LEAST = 16
"""Seeds about the crossing, before their parabola is believed."""
EACH_LOOK = 0.97
"""Confidence of each interval that may end the search: of several looks one may err, so that all hold 95%."""
WINDOW = 5
"""Times the tolerance: so far from the crossing the margin is taken as a parabola."""
_NEXT, _BESIDE = 0.6, 3.5
"""Times the tolerance: so far from the crossing are the places that tell where it is, and those that tell the slope."""
_TURNS, _STILL = 4, 0.02
"""Parabolas are drawn about the crossing of the one before, until that moves by no more than so much of the window."""
Verdict = Literal["found", "always", "never", "unclear"]


class Range(Protocol):
    """What the search knows of the unknown; see ``unknown.Unknown``."""

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
    """What was found. ``holds_low``: the want holds at the low end. ``changes``: the pairs of values between which it
    clearly begins or ends to hold; more than one: it is not monotone, and the answer is the first of them.
    ``enough``: the interval is as short as was asked for; ``spent``: it is not because the budget was used up."""

    verdict: Verdict
    value: float
    low: float
    high: float
    holds_low: bool
    changes: tuple[tuple[float, float], ...]
    enough: bool
    spent: bool = False


class Search(Probing[float]):
    """One unknown."""

    def __init__(
        self,
        unknown: Range,
        ask: Ask[float],
        *,
        within: float,
        most: int,
        luck: Callable[[float, int], Luck] | None = None,
    ) -> None:
        super().__init__(ask, within=within, most=most, luck=luck)
        self.unknown = unknown

    def place(self, value: float) -> float:
        return self.unknown.place(value)

    def run(self) -> Crossing:
        """Asks until the answer is good enough, or the budget is used up."""
        start, end = self.unknown.place(self.unknown.low), self.unknown.place(self.unknown.high)
        steps = [start + (end - start) * at / (SCAN - 1) for at in range(SCAN)]
        self._look([self.unknown.value(place) for place in steps])
        while True:
            found, wanted = self._next()
            if found.enough or not wanted:
                return found
            if not self.more(wanted):
                return replace(found, spent=self.spent)

    def _next(self) -> tuple[Crossing, dict[float, int]]:
        """The answer so far, and how many seeds of which values would better it."""
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
        told = [(one.value, other.value) for one, other in changes]
        close = max(right.place - guess, guess - left.place) <= reach
        if close or (self.unknown.is_whole and right.value - left.value <= 1):
            return self._found(guess, left.place, right.place, left, told, True), {}
        half = max(guess - low, high - guess)
        about = [one for one in points if abs(one.place - guess) <= WINDOW * reach]
        wanted = self._places(points, about, left, right, guess, reach)
        middle = (left.place + right.place) / 2
        if not wanted and right.place - left.place <= 2 * self.unknown.reach(middle, self.within):
            # About the crossing no further place tells more, as where the margin jumps.
            return self._found(middle, left.place, right.place, left, told, True), {}
        if wanted or curve is None:
            return self._found(guess, low, high, left, told, False), wanted or _evened(about)
        if half <= reach and sum(one.n for one in about) >= LEAST:
            return self._found(guess, low, high, left, told, True), {}
        return self._found(guess, low, high, left, told, False), _seeds(about, curve, guess, reach, half)

    def _crossing(
        self, points: list[Probed[float]], left: Probed[float], right: Probed[float]
    ) -> tuple[float, float, float, Curve | None]:
        """The crossing and its interval's ends by a parabola through what is about it; where there is none, by the
        straight lines that never turn, and the clear places are the ends."""
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
        # What reaches to the outermost places may reach beyond.
        return guess, left.place if ends[0] <= low else ends[0], right.place if ends[1] >= high else ends[1], curve

    def _found(
        self,
        guess: float,
        low: float,
        high: float,
        left: Probed[float],
        changes: list[tuple[float, float]],
        done: bool,
    ) -> Crossing:
        value, *ends = self.unknown.ends(guess, low, high, left.sign > 0)
        return Crossing("found", value, ends[0], ends[1], left.sign > 0, tuple(changes), done)

    def _one_sided(
        self, points: list[Probed[float]], clear: list[Probed[float]], unclear: list[Probed[float]]
    ) -> tuple[Crossing, dict[float, int]]:
        wanted = {one.value: grown(one.n) for one in unclear if one.n < MOST}
        holds = points[0].mean > 0
        verdict: Verdict = "unclear" if unclear else "always" if holds else "never"
        return Crossing(verdict, math.nan, math.nan, math.nan, holds, (), not unclear), wanted

    def _places(
        self,
        points: list[Probed[float]],
        about: list[Probed[float]],
        left: Probed[float],
        right: Probed[float],
        guess: float,
        reach: float,
    ) -> dict[float, int]:
        """New values, where there are none yet about the crossing."""
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

    def _new(self, places: Sequence[float], left: Probed[float], right: Probed[float]) -> dict[float, int]:
        """What of it is a value between the two that was not looked at."""
        values = [self.unknown.value(place) for place in places]
        return {one: self.first() for one in values if left.value < one < right.value and one not in self.probed}

    def _look(self, values: Sequence[float]) -> bool:
        return self.more(dict.fromkeys(values, FIRST))


def _evened(about: list[Probed[float]]) -> dict[float, int]:
    """More seeds of those places that have the fewest."""
    fewest = min((one.n for one in about), default=MOST)
    return {one.value: grown(one.n) for one in about if one.n <= 1.5 * fewest < MOST}


def _seeds(about: list[Probed[float]], curve: Curve, guess: float, reach: float, half: float) -> dict[float, int]:
    """More seeds of the place next to the crossing that most lessens the error at the ends of the interval that was
    asked for; as many as make ``half`` of it as short as ``reach``, if no more than half of those that there are.
    Places further off would tell the slope, too, but not that the margin jumps."""
    more = math.ceil(sum(one.n for one in about) * min(max((half / reach) ** 2 - 1, 0.1), 0.5))
    ends = (guess - reach, guess + reach)
    growing = [one for one in about if one.n < MOST and abs(one.place - guess) <= 2 * _NEXT * reach]
    best = max(growing, key=lambda one: curve.gain(one.place, more, ends), default=None)
    return {} if best is None else {best.value: best.n + max(more, FIRST)}


def _monotone(points: Sequence[Probed[float]]) -> float:
    return crossed([(one.place, one.mean, one.n) for one in points])
