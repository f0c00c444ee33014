"""The first step of a search for a frontier: at some values of the given unknowns, the answered one is narrowed.

Every second column of a coarse lattice is sampled over the whole range, at ``SCAN`` points. The columns in between
start at the parabola through the other crossings and go outward from there.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from itertools import pairwise

from sawtooth.search.coordinates import Flat
from sawtooth.search.samples import FIRST, Probing, SampledPoint, crossed, grown
from sawtooth.search.space import Space, Values
from sawtooth.search.zero_crossing import SCAN, WINDOW, Verdict

_UNCLEAR = 4 * FIRST
"""Seeds of a value that stays inconclusive, before the surface is fitted."""


@dataclass(frozen=True)
class Row:
    """The answer at the values ``given``: ``place`` between ``low`` and ``high``. If nothing was found these are NaN,
    and ``place`` is the last point sampled. ``holds_low``: the goal holds at the low end."""

    given: Values
    verdict: Verdict
    place: float
    low: float
    high: float
    holds_low: bool
    enough: bool


class Columns:
    """The columns of one tracing."""

    def __init__(self, tracing: Probing[Values], space: Space) -> None:
        self.tracing = tracing
        self.space = space
        self.answered = space.answered
        self.ends = self.answered.place(self.answered.low), self.answered.place(self.answered.high)
        self.anchors, self.between = _lattice(self.space.rows, len(self.space.given))

    @property
    def narrowed(self) -> list[Values]:
        """All narrowed columns."""
        return [*self.anchors, *self.between]

    def narrow(self) -> None:
        """Samples the columns; those in between come last."""
        steps = [self.answered.value(_mix(*self.ends, at / (SCAN - 1))) for at in range(SCAN)]
        self.tracing.more({(*given, value): FIRST for given in self.anchors for value in steps})
        self._until_narrow(self.anchors)
        crossings = self.crossings()
        if not crossings:
            return
        flat = Flat.through(self.space, crossings, self.tracing.within)
        for given in self.between:
            guess = float(flat.base([self.space.at(given)])[0])
            half = flat.window(guess) / 2
            middle = min(max(guess, self.ends[0] + half), self.ends[1] - half)
            values = [self.answered.value(middle + side * half) for side in (-1, 1)]
            self.tracing.more({(*given, value): self.tracing.first() for value in values})
        self._until_narrow(self.between)

    def _until_narrow(self, columns: list[Values]) -> None:
        while True:
            wanted: dict[Values, int] = {}
            for given in columns:
                wanted |= self._next(given)
            if not wanted or not self.tracing.more(wanted):
                return

    def also(self, given: Values, place: float) -> None:
        """Narrows one more column, starting at a place where the surface crosses."""
        self.between.append(given)
        if not self.points(given):
            self.tracing.more({(*given, self.answered.value(place)): self.tracing.first()})
        if self.points(given):
            self._until_narrow([given])

    def one_sided(self, given: Values) -> bool:
        """Whether a column clearly holds, or clearly does not, all the way to the end where it might cross."""
        points = self.points(given)
        if given not in self.narrowed or not points or self.changes(given):
            return False
        last = points[-1] if (points[0].sign > 0) == self.holds_low else points[0]
        return all(one.sign for one in points) and last.place[-1] in self.ends

    def points(self, given: Values) -> list[SampledPoint[Values]]:
        """The column's points in order of the answered unknown."""
        found = [one for one in self.tracing.probed.values() if one.value[:-1] == given]
        return sorted(found, key=lambda one: one.place[-1])

    @property
    def holds_low(self) -> bool:
        """Whether the goal holds at the low end, if it holds at only one end."""
        signs = [left.sign for given in self.narrowed for left, _ in self.changes(given)[:1]]
        return sum(signs) >= 0

    def changes(self, given: Values) -> list[tuple[SampledPoint[Values], SampledPoint[Values]]]:
        """Neighboring points that clearly differ."""
        clear = [one for one in self.points(given) if one.sign]
        return [(one, other) for one, other in pairwise(clear) if one.sign != other.sign]

    def crossings(self) -> dict[Values, float]:
        """The approximate crossing of each column that has one."""
        found = {}
        for given in self.narrowed:
            points, changes = self.points(given), self.changes(given)
            unclear = [one for one in points if not one.sign]
            if changes:
                left, right = changes[0]
                found[given] = crossed(
                    [
                        (one.place[-1], one.mean, one.n)
                        for one in points
                        if left.place[-1] <= one.place[-1] <= right.place[-1]
                    ]
                )
            elif unclear:
                found[given] = min(unclear, key=lambda one: abs(one.mean)).place[-1]
        return found

    def row(self, given: Values) -> Row:
        """The row of a one-sided column, or of a row where no column crosses."""
        points = self.points(given) or [one for column in self.anchors for one in self.points(column)]
        signs = {one.sign for one in points}
        verdict: Verdict = "always" if signs == {1} else "never" if signs == {-1} else "unclear"
        return Row(given, verdict, math.nan, math.nan, math.nan, self.holds_low, verdict != "unclear")

    def _next(self, given: Values) -> dict[Values, int]:
        """The points that would narrow a column, with their seeds."""
        points, changes = self.points(given), self.changes(given)
        if not points:
            # The budget was too small.
            return {}
        unclear = [one for one in points if not one.sign]
        if changes:
            left, right = (one.place[-1] for one in changes[0])
            guess = self.crossings()[given]
            between = [one for one in points if left < one.place[-1] < right]
            if between or right - left <= 2 * self._window(guess):
                return {}
            share = min(max((guess - left) / (right - left), 0.25), 0.75)
            return self._new(given, _mix(left, right, share))
        if unclear:
            return {one.value: grown(one.n) for one in unclear if one.n < _UNCLEAR}
        upwards = (points[0].sign > 0) == self.holds_low
        last = points[-1] if upwards else points[0]
        width = max(points[-1].place[-1] - points[0].place[-1], self._window(last.place[-1]))
        further = last.place[-1] + (2 * width if upwards else -2 * width)
        return self._new(given, min(max(further, self.ends[0]), self.ends[1]))

    def _window(self, place: float) -> float:
        return WINDOW * self.answered.reach(place, self.tracing.within)

    def _new(self, given: Values, place: float) -> dict[Values, int]:
        value = (*given, self.answered.value(place))
        return {} if value in self.tracing.probed else {value: self.tracing.first()}


def _lattice(rows: list[Values], count: int) -> tuple[list[Values], list[Values]]:
    """Columns to sample over the whole range, and those in between. With one given unknown: both ends and the middle,
    then the quarters. With two: the corners and the middle, then the middles of the edges."""
    axes = [sorted({row[at] for row in rows}) for at in range(count)]
    places = [_spaced(axis, 5 if count == 1 else 3) for axis in axes]
    anchors: list[Values] = []
    between: list[Values] = []
    for numbers in itertools.product(*(range(len(one)) for one in places)):
        given = tuple(axis[number] for axis, number in zip(places, numbers, strict=True))
        (anchors if sum(numbers) % 2 == 0 else between).append(given)
    return anchors, between


def _spaced(values: list[float], count: int) -> list[float]:
    """``count`` values at even distances, with both ends; all of them if there are fewer."""
    if len(values) <= count:
        return values
    return [values[round(at * (len(values) - 1) / (count - 1))] for at in range(count)]


def _mix(low: float, high: float, share: float) -> float:
    return low + (high - low) * share
