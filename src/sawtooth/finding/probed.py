"""Probed: a place of a search with the margins of its seeds, and how more of them are asked for within a budget."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Generic, TypeVar

from sawtooth.finding.luck import Luck
from sawtooth.stats.interval import t_quantile

FIRST = 4
"""Seeds of a place at first: the fewest with which a t test says something."""
MOST = 1000
"""Seeds of one place."""
CLEAR = 0.995

V = TypeVar("V", float, tuple[float, ...])
Ask = Callable[[Sequence[tuple[V, int]]], Sequence[float]]
"""Gives the margins of values and seeds. May raise; what it raises leaves the search."""


@dataclass
class Probed(Generic[V]):
    """A value, or one of each unknown, and its margin for seeds from ``first`` on."""

    value: V
    place: V
    first: int = 1
    margins: list[float] = field(default_factory=list)
    lucks: list[Luck] = field(default_factory=list)
    floor: float = 0.0
    """The least variance that is believed."""

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
        """1: it clearly holds, -1: it clearly does not, 0: these seeds are inconclusive."""
        error = math.sqrt(max(self.variance, self.floor) / self.n)
        if error and abs(self.mean) <= t_quantile(self.n - 1, CLEAR) * error:
            return 0
        return 1 if self.mean > 0 else -1


class Probing(Generic[V]):
    """``within``: a share of the answer by which the interval's ends may differ from it; ``most``: margins in all;
    ``luck``: that of a value and a seed that was asked for. Each place has seeds of its own."""

    def __init__(self, ask: Ask[V], *, within: float, most: int, luck: Callable[[V, int], Luck] | None = None) -> None:
        self.ask: Ask[V] = ask
        self.within = within
        self.most = most
        self.luck: Callable[[V, int], Luck] | None = luck
        self.asked = 0
        self.spent = False
        """Whether the budget did not hold what was asked for last."""
        self.probed: dict[V, Probed[V]] = {}

    def place(self, value: V) -> V:
        """Where a value stands."""
        raise NotImplementedError

    @property
    def points(self) -> list[Probed[V]]:
        """All that was looked at, in order."""
        return sorted(self.probed.values(), key=lambda one: one.place)

    def first(self) -> int:
        """Seeds of a new value; one, where seeds change nothing."""
        return FIRST if not self.probed or any(one.variance for one in self.probed.values()) else 1

    def more(self, wanted: Mapping[V, int]) -> bool:
        """Asks for what is missing; false where the budget does not hold it, or nothing is."""
        tasks: list[tuple[V, int]] = []
        for value, count in wanted.items():
            one = self.probed.get(value) or Probed(value, self.place(value), len(self.probed) * MOST + 1)
            self.probed[value] = one
            tasks += [(value, one.first + number) for number in range(one.n, min(count, MOST))]
        self.spent = self.asked + len(tasks) > self.most
        if all(self.probed[value].n >= FIRST for value in wanted):
            tasks = tasks[: self.most - self.asked]
        if not tasks or self.asked + len(tasks) > self.most:
            self.probed = {value: one for value, one in self.probed.items() if one.n}
            return False
        for (value, seed), margin in zip(tasks, self.ask(tasks), strict=True):
            one = self.probed[value]
            one.margins.append(margin)
            if self.luck is not None:
                one.lucks.append(self.luck(value, seed))
        self.asked += len(tasks)
        return True


def grown(n: int) -> int:
    """Seeds of a place whose seeds are inconclusive."""
    return min(MOST, math.ceil(1.5 * n))


def crossed(points: Sequence[tuple[float, float, int]]) -> float:
    """Where the means cross 0 that never turn and lie nearest to the points' (pooled adjacent violators, Ayer 1955), of
    place, mean and seeds; the first and the last are clear, on different sides."""
    falls = points[0][1] > 0
    blocks: list[tuple[float, int, float]] = []
    for place, mean, seeds in points:
        while blocks and (blocks[-1][0] <= mean if falls else blocks[-1][0] >= mean):
            before, count, at = blocks.pop()
            total = count + seeds
            mean, place = (before * count + mean * seeds) / total, (at * count + place * seeds) / total
            seeds = total
        blocks.append((mean, seeds, place))
    for (before, _, at), (after, _, place) in pairwise(blocks):
        if before * after <= 0:
            return at + (place - at) * before / (before - after)
    return (points[0][0] + points[-1][0]) / 2
