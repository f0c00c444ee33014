"""Samples: a point of a search with the margins of its seeds, and requests for more within a budget."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Generic, TypeVar

from sawtooth.search.control_variate import ExcessLosses
from sawtooth.stats.interval import t_quantile

FIRST = 4
"""Seeds of a new point: the fewest for which a t test is meaningful."""
MOST = 1000
"""Most seeds of one point."""
CLEAR = 0.995

V = TypeVar("V", float, tuple[float, ...])
Ask = Callable[[Sequence[tuple[V, int]]], Sequence[float]]
"""Returns the margins for values and seeds. What it raises ends the search."""


@dataclass
class SampledPoint(Generic[V]):
    """A value (or one per unknown), and its margin for the seeds from ``first`` on."""

    value: V
    place: V
    first: int = 1
    margins: list[float] = field(default_factory=list)
    excess_losses: list[ExcessLosses] = field(default_factory=list)
    floor: float = 0.0
    """The smallest variance that is believed."""

    @property
    def n(self) -> int:
        return len(self.margins)

    @property
    def mean(self) -> float:
        return math.fsum(self.margins) / self.n

    @property
    def variance(self) -> float:
        """The variance of one seed; 0 if there is only one, as when seeds change nothing."""
        mean = self.mean
        return math.fsum((one - mean) ** 2 for one in self.margins) / (self.n - 1) if self.n > 1 else 0.0

    @property
    def sign(self) -> int:
        """1: it clearly holds; -1: it clearly does not; 0: these seeds are inconclusive."""
        error = math.sqrt(max(self.variance, self.floor) / self.n)
        if error and abs(self.mean) <= t_quantile(self.n - 1, CLEAR) * error:
            return 0
        return 1 if self.mean > 0 else -1


class Probing(Generic[V]):
    """Base of the searches. ``within``: tolerance for the interval's ends, as a share of the answer; ``most``: margins
    in all; ``luck``: the excess losses of a value and seed that were run. Each point has its own seeds."""

    def __init__(
        self, ask: Ask[V], *, within: float, most: int, excess_losses: Callable[[V, int], ExcessLosses] | None = None
    ) -> None:
        self.ask: Ask[V] = ask
        self.within = within
        self.most = most
        self.excess_losses: Callable[[V, int], ExcessLosses] | None = excess_losses
        self.sampled = 0
        self.spent = False
        """Whether the budget was too small for the last request."""
        self.probed: dict[V, SampledPoint[V]] = {}

    def place(self, value: V) -> V:
        """The position of a value on the scale of the search."""
        raise NotImplementedError

    @property
    def points(self) -> list[SampledPoint[V]]:
        """All points tried, in order."""
        return sorted(self.probed.values(), key=lambda one: one.place)

    def first(self) -> int:
        """Seeds of a new value; one if seeds change nothing."""
        return FIRST if not self.probed or any(one.variance for one in self.probed.values()) else 1

    def more(self, wanted: Mapping[V, int]) -> bool:
        """Requests the missing seeds; false if the budget is too small or nothing is missing."""
        tasks: list[tuple[V, int]] = []
        for value, count in wanted.items():
            one = self.probed.get(value) or SampledPoint(value, self.place(value), len(self.probed) * MOST + 1)
            self.probed[value] = one
            tasks += [(value, one.first + number) for number in range(one.n, min(count, MOST))]
        self.spent = self.sampled + len(tasks) > self.most
        if all(self.probed[value].n >= FIRST for value in wanted):
            tasks = tasks[: self.most - self.sampled]
        if not tasks or self.sampled + len(tasks) > self.most:
            self.probed = {value: one for value, one in self.probed.items() if one.n}
            return False
        for (value, seed), margin in zip(tasks, self.ask(tasks), strict=True):
            one = self.probed[value]
            one.margins.append(margin)
            if self.excess_losses is not None:
                one.excess_losses.append(self.excess_losses(value, seed))
        self.sampled += len(tasks)
        return True


def grown(n: int) -> int:
    """The number of seeds to grow to at an inconclusive point."""
    return min(MOST, math.ceil(1.5 * n))


def crossed(points: Sequence[tuple[float, float, int]]) -> float:
    """Where the monotone fit through the points crosses 0 (pool adjacent violators, Ayer 1955). Points are place, mean
    and seeds; the first and last are clear, on different sides."""
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
