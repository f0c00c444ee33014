"""Search: where a noisy margin crosses zero, with an interval that holds the place 95 times in 100.

The margin is above 0 where a want holds. The range is looked at in ``SCAN`` places, then narrowed between two places
of which one is clearly above and one clearly below (Student's t over seeds, at ``CLEAR``), until the margin is nearly
straight between them. Then places next to the crossing get seeds until the interval is short enough. The interval is
what the two clear places enclose where that is short enough, which needs no more than that the margin falls (or rises)
all along. Else it is the set of places at which the line through all means between the two does not differ from 0 by
Student's t (inverse regression, Fieller 1954); its error is that of the seeds, or that of the means about the line
where they lie further from it. Each place has seeds of its own, so that their errors do not depend on each other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal, Protocol

from sawtooth.stats.interval import t_quantile

SCAN = 7
"""Places at first, both ends among them."""
FIRST = 4
"""Seeds of a place at first: the fewest with which a t test says something."""
LEAST = 16
"""Seeds between the clear places, before their line is believed."""
MOST = 200
"""Seeds of one place."""
CLEAR = 0.995
EACH_LOOK = 0.98
"""Confidence of each interval that may end the search: of several looks one may err, so that all hold 95%."""
_STRAIGHT = 4
"""Times the tolerance: between places so near to each other the margin is taken as straight."""
BENT = 3.0
"""Times what the seeds say: where the means lie so far from their line, it is drawn without the farthest."""
_ASIDE = 0.75
"""Of the tolerance: so far from the crossing are the places beside it."""
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


Ask = Callable[[Sequence[tuple[float, int]]], Sequence[float]]
"""Gives the margins of values and seeds. May raise; what it raises leaves the search."""


@dataclass
class Probed:
    """A value, and its margin for seeds from ``first`` on."""

    value: float
    place: float
    first: int = 1
    margins: list[float] = field(default_factory=list)

    @property
    def n(self) -> int:
        return len(self.margins)

    @property
    def mean(self) -> float:
        return math.fsum(self.margins) / self.n

    @property
    def variance(self) -> float:
        """Of one seed; 0 where there is one only, which is asked for where seeds change nothing."""
        mean = self.mean
        return math.fsum((one - mean) ** 2 for one in self.margins) / (self.n - 1) if self.n > 1 else 0.0

    @property
    def sign(self) -> int:
        """1: it clearly holds, -1: it clearly does not, 0: these seeds can't tell."""
        error = math.sqrt(self.variance / self.n)
        if error and abs(self.mean) <= t_quantile(self.n - 1, CLEAR) * error:
            return 0
        return 1 if self.mean > 0 else -1


@dataclass(frozen=True)
class Crossing:
    """What was found. ``holds_low``: the want holds at the low end. ``changes``: the pairs of values between which it
    clearly begins or ends to hold; more than one: it is not monotone, and the answer is the first of them.
    ``enough``: the interval is as short as was asked for."""

    verdict: Verdict
    value: float
    low: float
    high: float
    holds_low: bool
    changes: tuple[tuple[float, float], ...]
    enough: bool


class Search:
    """``within``: a share of the answer by which the interval's ends may differ from it; ``most``: margins in all."""

    def __init__(self, unknown: Range, ask: Ask, *, within: float, most: int) -> None:
        self.unknown = unknown
        self.ask = ask
        self.within = within
        self.most = most
        self.asked = 0
        self.probed: dict[float, Probed] = {}
        self.stalled = 0

    @property
    def points(self) -> list[Probed]:
        """All that was looked at, in order."""
        return sorted(self.probed.values(), key=lambda one: one.place)

    def run(self) -> Crossing:
        """Asks until the answer is good enough, or the budget is used up."""
        start, end = self.unknown.place(self.unknown.low), self.unknown.place(self.unknown.high)
        steps = [start + (end - start) * at / (SCAN - 1) for at in range(SCAN)]
        self._look([self.unknown.value(place) for place in steps])
        while True:
            found, wanted = self._next()
            if found.enough or not wanted or not self._more(wanted):
                return found

    def _next(self) -> tuple[Crossing, dict[float, int]]:
        """The answer so far, and how many seeds of which values would better it."""
        points = self.points
        clear = [one for one in points if one.sign]
        unclear = [one for one in points if not one.sign]
        changes = [(one, other) for one, other in pairwise(clear) if one.sign != other.sign]
        if not changes:
            return self._one_sided(points, clear, unclear)
        left, right = changes[0]
        between = [one for one in points if left.place <= one.place <= right.place]
        low, guess, high = _inverted(between)
        reach = self.unknown.reach(guess, self.within)
        near = max(guess - low, high - guess) <= reach
        told = [(one.value, other.value) for one, other in changes]
        inner = between[1:-1]
        done = right.place - left.place <= 2 * reach or (self.unknown.is_whole and right.value - left.value <= 1)
        if done and not inner:
            low, high = left.place, right.place
        elif not (near and inner and sum(one.n for one in between) >= LEAST):
            done = False
        else:
            done = True
        crossing = self._found(guess, low, high, left, told, done)
        return crossing, {} if done else self._better(between, guess, reach)

    def _found(
        self,
        guess: float,
        low: float,
        high: float,
        left: Probed,
        changes: list[tuple[float, float]],
        done: bool,
    ) -> Crossing:
        back = (lambda place: math.exp(place)) if self.unknown.place(math.e) == 1.0 else (lambda place: place)
        value, ends = back(guess), (back(low), back(high))
        if self.unknown.is_whole:
            # The last one that holds is the answer, and the interval's ends are numbers that there are.
            ends = (float(math.floor(ends[0] + 1e-9)), float(math.ceil(ends[1] - 1e-9)))
            value = float(math.floor(value + 1e-9) if left.sign > 0 else math.ceil(value - 1e-9))
            value = min(max(value, ends[0]), ends[1])
        return Crossing("found", value, *ends, left.sign > 0, tuple(changes), done)

    def _one_sided(
        self, points: list[Probed], clear: list[Probed], unclear: list[Probed]
    ) -> tuple[Crossing, dict[float, int]]:
        wanted = {one.value: _grown(one.n) for one in unclear if one.n < MOST}
        holds = points[0].mean > 0
        verdict: Verdict = "unclear" if unclear else "always" if holds else "never"
        return Crossing(verdict, math.nan, math.nan, math.nan, holds, (), not unclear), wanted

    def _better(self, between: list[Probed], guess: float, reach: float) -> dict[float, int]:
        """New values where neighbours are far apart, more seeds where they are near."""
        left, right = between[0], between[-1]
        straight = _STRAIGHT * reach
        if len(between) == 2:
            width = right.place - left.place
            middle = left.place + width * min(max((guess - left.place) / width, 0.25), 0.75)
            places = [guess - _ASIDE * reach, guess + _ASIDE * reach]
            self.stalled = 0 if width > straight else self.stalled + 1
            if width > straight or self.stalled > 3:
                places = [middle]
            asked = {self.unknown.value(place): self._first() for place in places}
            inside = {one: n for one, n in asked.items() if left.value < one < right.value}
            if inside:
                return inside
            nearest = self.unknown.value((left.place + right.place) / 2)
            return {nearest: self._first()} if left.value < nearest < right.value else {}
        # Those which can't tell stand between clear ones that are too far away to be joined by straight lines.
        for one, other in ((left, between[1]), (between[-2], right)):
            if other.place - one.place > straight:
                value = self.unknown.value((one.place + other.place) / 2)
                if value not in self.probed:
                    return {value: self._first()}
        value = self.unknown.value(guess)
        if value not in self.probed and min(abs(one.place - guess) for one in between) > reach:
            return {value: self._first()}
        at = min(max(1, sum(one.place < guess for one in between)), len(between) - 1)
        pair = between[at - 1 : at + 1]
        fewest = min(one.n for one in pair)
        return {one.value: _grown(one.n) for one in pair if one.n <= 1.5 * fewest and one.n < MOST}

    def _first(self) -> int:
        """Seeds of a new value; one, where seeds change nothing."""
        return FIRST if any(one.variance for one in self.probed.values()) else 1

    def _look(self, values: Sequence[float]) -> bool:
        return self._more(dict.fromkeys(values, FIRST))

    def _more(self, wanted: dict[float, int]) -> bool:
        """Asks for what is missing; false where the budget does not hold it, or nothing is."""
        tasks = []
        for value, count in wanted.items():
            one = self.probed.get(value) or Probed(value, self.unknown.place(value), len(self.probed) * MOST + 1)
            self.probed[value] = one
            tasks += [(value, one.first + number) for number in range(one.n, min(count, MOST))]
        if not tasks or self.asked + len(tasks) > self.most:
            self.probed = {value: one for value, one in self.probed.items() if one.n}
            return False
        for (value, _), margin in zip(tasks, self.ask(tasks), strict=True):
            one = self.probed[value]
            one.margins.append(margin)
        self.asked += len(tasks)
        return True


def _grown(n: int) -> int:
    return min(MOST, math.ceil(1.5 * n))


def _inverted(points: list[Probed]) -> tuple[float, float, float]:
    """Low end, crossing and high end by a line through the means of ``points``, of which the first and the last are
    clear, on different sides. By the clear ones only, where the line does not lead from one side to the other."""
    first, last = points[0], points[-1]
    total = sum(one.n for one in points)
    freedom = total - len(points)
    middle = (first.place + last.place) / 2
    if first.mean * last.mean < 0:
        middle = first.place + (last.place - first.place) * first.mean / (first.mean - last.mean)
    pooled = math.fsum(one.variance * (one.n - 1) for one in points) / freedom if freedom else 0.0
    centre = math.fsum(one.n * one.place for one in points) / total
    level = math.fsum(one.n * one.mean for one in points) / total
    spread = math.fsum(one.n * (one.place - centre) ** 2 for one in points)
    slope = math.fsum(one.n * (one.place - centre) * one.mean for one in points) / spread
    if not pooled or slope * (last.mean - first.mean) <= 0 or first.mean * last.mean >= 0:
        return first.place, middle, last.place
    guess = min(max(centre - level / slope, first.place), last.place)
    if len(points) > 2:
        off = math.fsum(one.n * (one.mean - level - slope * (one.place - centre)) ** 2 for one in points)
        off /= len(points) - 2
        inner = points[1:] if guess - first.place > last.place - guess else points[:-1]
        if off > BENT * pooled and len(inner) > 2 and inner[0].place < guess < inner[-1].place:
            low, guess, high = _inverted(inner)
            if inner[0].place < low and high < inner[-1].place:
                return low, guess, high
        # As the ratio of Birge (1932): never less than what the seeds say.
        pooled = max(pooled, off)
    # level + slope d = ± t sqrt(pooled (1/total + d²/spread)), solved for d.
    t = t_quantile(freedom, EACH_LOOK)
    square = slope**2 - t**2 * pooled / spread
    if square <= 0:
        return first.place, guess, last.place
    root = t * math.sqrt(pooled * (square / total + level**2 / spread))
    low, high = ((-level * slope + sign * root) / square + centre for sign in (-1, 1))
    return max(low, first.place), guess, min(high, last.place)
