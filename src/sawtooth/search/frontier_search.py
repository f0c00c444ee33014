"""Frontier search: a frontier of several unknowns where a noisy margin crosses zero, with an interval for each row.

First, columns are narrowed: at a few values of the given unknowns, the answered one is sampled over its range until the
margin's sign changes within ``WINDOW`` tolerances (``columns``). Then a surface is fitted to the means around the
crossings (``surface``), in coordinates in which the frontier is nearly flat: the given unknowns, and the distance of
the answered one from a parabola through the crossings. The answer is where the surface is 0; the interval is the range
next to it in which it does not differ from 0 by Student's t. Seeds go where the surface says that they shorten the long
intervals most (Lyu, Binois and Ludkovski 2021 compare such designs), some each time, until all are short enough. The
set of points around a crossing moves with it, and so do the coordinates.

A row that the surface does not reach, because the frontier bends away there, is searched separately, like a single
unknown. So is the row with the largest misfit, if means are further from the prediction by the others than their errors
allow. This is done for a few rows; if it does not help, a remark says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sawtooth.search.control_variate import ExcessLosses, steadied
from sawtooth.search.coordinates import Flat
from sawtooth.search.first_columns import Columns, Row
from sawtooth.search.noise import Noise
from sawtooth.search.samples import FIRST, MOST, Ask, Probing, SampledPoint
from sawtooth.search.space import Space, Values
from sawtooth.search.surface import Surface
from sawtooth.search.zero_crossing import EACH_LOOK, LEAST, Search, Verdict
from sawtooth.stats.interval import t_quantile

if TYPE_CHECKING:
    from numpy.typing import NDArray

_NEXT, _BESIDE = 0.6, 3.5
"""Multiples of the tolerance: the distance of new points from a crossing."""
_TURNS, _STILL = 4, 0.05
"""The surface is refitted around the crossings of the previous one, until none moves by more than this part of its
window."""
_FAR = 2.0
"""Windows from the parabola beyond which a crossing is searched separately."""
_STEPS = 61
"""Points on a row at which the surface is evaluated."""
_SHARE = 0.25
"""Share of the existing seeds that is added before the surface is fitted again."""
_ASIDE = 3
"""Rows that may be searched separately if the surface then fits the means of the others."""
_SURE = 0.99
"""Confidence of the test whether the surface fits the means."""


@dataclass(frozen=True)
class TracedFrontier:
    """``misfit``: the mean square of the surface's leave-one-out errors in standard errors, 1 for a good fit;
    ``carries``: whether it is no more than chance allows. ``surface`` and ``flat`` are None without a crossing."""

    rows: tuple[Row, ...]
    misfit: float
    carries: bool
    surface: Surface | None = None
    flat: Flat | None = None


class Tracing(Probing[Values]):
    """``size``: the size of the two sides at some values and seeds, by which margins are divided (None: by nothing). It
    only weights points relative to each other, so that a rate's range does not make half of it look flat."""

    def __init__(
        self,
        space: Space,
        ask: Ask[Values],
        *,
        within: float,
        most: int,
        excess_losses: Callable[[Values, int], ExcessLosses] | None = None,
        size: Callable[[SampledPoint[Values]], float] | None = None,
    ) -> None:
        super().__init__(ask, within=within, most=most, excess_losses=excess_losses)
        self.space = space
        self.size = size
        self.centres: dict[Values, float] = {}
        self.aside: dict[Values, Row] = {}

    def place(self, value: Values) -> Values:
        return (*self.space.at(value[:-1]), self.space.answered.place(value[-1]))

    def run(self) -> TracedFrontier:
        """Requests runs until the answer is good enough or the budget is used up."""
        columns = Columns(self, self.space)
        columns.narrow()
        self.centres = columns.crossings()
        while True:
            traced, wanted = self._next(columns)
            if not wanted or not self.more(wanted):
                return traced

    def row(self, given: Values, traced: TracedFrontier) -> Row:
        """The surface's answer between the reported rows."""
        known = next((row for row in traced.rows if row.given == given), None)
        if known is not None:
            return known
        if traced.surface is None or traced.flat is None:
            return replace(traced.rows[0], given=given)
        return self._row(given, traced.surface, traced.flat, Columns(self, self.space))

    def _next(self, columns: Columns) -> tuple[TracedFrontier, dict[Values, int]]:
        if not self.centres or not self._about(self._flat(), columns):
            if self.centres and self.sampled < self.most:
                # No surface is left to fit: the other rows were searched separately.
                self._aside(next(iter(self.centres)))
                return self._next(columns)
            return TracedFrontier(
                tuple(self.aside.get(given) or columns.row(given) for given in self.space.rows), 1.0, True
            ), {}
        surface, flat, about, noise, rows = self._laid(columns)
        far = {row.given: self._far(row, flat) for row in rows}
        astray = [given for given, windows in far.items() if windows > _FAR]
        strange = [given for given in astray if given not in columns.narrowed]
        if astray and self.sampled < self.most:
            for given in strange:
                columns.also(given, self._centre(given, flat))
            if strange:
                self.centres |= {given: place for given, place in columns.crossings().items() if given in strange}
            else:
                self._aside(max(astray, key=lambda given: far[given]))
            return self._next(columns)
        freedom = sum(one.n - 1 for one in about)
        carries = surface.misfit <= _limit(len(about))
        if not carries and len(self.aside) < _ASIDE and self.sampled < self.most:
            self._aside(_worst(surface, about))
            return self._next(columns)
        known = {row.given: row for row in rows} | self.aside
        all_rows = tuple(known.get(given) or columns.row(given) for given in self.space.rows)
        traced = TracedFrontier(all_rows, surface.misfit, carries, surface, flat)
        short = [row for row in rows if not row.enough]
        if short:
            return traced, self._nearer(short, flat, noise) or self._seeds(surface, flat, about, noise, short)
        if noise.level and freedom < LEAST:
            return traced, {one.value: one.n + FIRST for one in about}
        return traced, {}

    def _far(self, row: Row, flat: Flat) -> float:
        """The distance of a row's crossing from the parabola, in windows; infinite if none was found."""
        if row.verdict != "found":
            return math.inf if row.verdict == "unclear" else 0.0
        return abs(row.place - float(flat.base([self.space.at(row.given)])[0])) / flat.window(row.place)

    def _aside(self, given: Values) -> None:
        """Searches a row separately."""
        excess_losses = self.excess_losses
        search = Search(
            self.space.answered,
            lambda tasks: self.ask([((*given, value), seed) for value, seed in tasks]),
            within=self.within,
            most=self.most - self.sampled,
            excess_losses=None if excess_losses is None else lambda value, seed: excess_losses((*given, value), seed),
        )
        found = search.run()
        self.sampled += search.sampled
        for one in search.points:
            value = (*given, one.value)
            self.probed.setdefault(
                value, SampledPoint(value, self.place(value), one.first, one.margins, one.excess_losses)
            )
        ends = [self.space.answered.place(end) for end in (found.value, found.low, found.high)]
        self.aside[given] = Row(given, found.verdict, ends[0], ends[1], ends[2], found.holds_low, found.enough)
        self.centres.pop(given, None)

    def _laid(self, columns: Columns) -> tuple[Surface, Flat, list[SampledPoint[Values]], Noise, list[Row]]:
        """The surface through the points around the frontier, where the surface is 0, and its rows."""
        open_ = [given for given in self.space.rows if given not in self.aside and not columns.one_sided(given)]
        for _ in range(_TURNS):
            flat = self._flat()
            about = self._about(flat, columns)
            surface, noise = self._surface(flat, about)
            rows = [self._row(given, surface, flat, columns) for given in open_]
            moved = [self._moved(row, flat) for row in rows if row.verdict == "found"]
            if max(moved, default=0.0) <= _STILL:
                break
        return surface, flat, about, noise, rows

    def _flat(self) -> Flat:
        return Flat.through(self.space, self.centres, self.within)

    def _centre(self, given: Values, flat: Flat) -> float:
        """Where the frontier is expected on a row, within the range."""
        answered = self.space.answered
        found = self.centres.get(given)
        if found is None:
            found = float(flat.base([self.space.at(given)])[0])
        return min(max(found, answered.place(answered.low)), answered.place(answered.high))

    def _about(self, flat: Flat, columns: Columns) -> list[SampledPoint[Values]]:
        found = []
        for one in self.points:
            if one.value[:-1] in self.aside or columns.one_sided(one.value[:-1]):
                continue
            centre = self._centre(one.value[:-1], flat)
            if abs(one.place[-1] - centre) <= flat.window(centre) * (1 + 1e-9):
                found.append(one)
        return found

    def _surface(self, flat: Flat, about: list[SampledPoint[Values]]) -> tuple[Surface, Noise]:
        import numpy as np

        places = flat.coordinates([one.place for one in about])
        sizes = self._sizes(places, about)
        scaled = [replace(one, margins=[x / size for x in one.margins]) for one, size in zip(about, sizes, strict=True)]
        means = steadied(scaled, [one[:-1] for one in places])
        seeds = np.array([one.n for one in means], float)
        variances = np.array([one.variance for one in means])
        noise = Noise.of(places, variances, seeds - 1)
        margins = np.array([one.mean for one in means])
        return Surface.through(places, margins, noise.at(places) / seeds), noise

    def _sizes(self, places: NDArray[Any], about: list[SampledPoint[Values]]) -> NDArray[Any]:
        """Smooth over places, since dividing a mean by itself would bias it."""
        import numpy as np

        if self.size is None:
            return np.ones(len(about))
        sizes = np.array([self.size(one) for one in about])
        if not (sizes > 0).all():
            return np.ones(len(about))
        terms = np.column_stack([np.ones(len(about)), places])
        return np.asarray(np.exp(terms @ np.linalg.lstsq(terms, np.log(sizes), rcond=None)[0]))

    def _row(self, given: Values, surface: Surface, flat: Flat, columns: Columns) -> Row:
        import numpy as np

        answered = self.space.answered
        ends = answered.place(answered.low), answered.place(answered.high)
        centre = self._centre(given, flat)
        width = flat.window(centre)
        places = np.linspace(max(ends[0], centre - width), min(ends[1], centre + width), _STEPS)
        at = self.space.at(given)
        margins, errors = surface.at(flat.coordinates([(*at, float(one)) for one in places]))
        t = t_quantile(max(1, sum(one.n for one in self.points) - len(self.points)), EACH_LOOK)
        clear = np.abs(margins) > t * errors
        changes = np.flatnonzero(np.sign(margins[:-1]) * np.sign(margins[1:]) <= 0)
        falls = columns.holds_low
        right_way = [one for one in changes if (margins[one] > margins[one + 1]) == falls]
        if not right_way:
            return self._uncrossed(given, places, margins, clear, ends, falls)
        first = min(right_way, key=lambda one: abs(places[one] - centre))
        step = float(margins[first] / (margins[first] - margins[first + 1])) if margins[first] else 0.0
        place = float(places[first] + step * (places[first + 1] - places[first]))
        below, above = np.flatnonzero(clear[: first + 1]), np.flatnonzero(clear[first + 1 :])
        outside = [(one.place[-1], other.place[-1]) for one, other in columns.changes(given)]
        outer = next((pair for pair in outside if pair[0] <= place <= pair[1]), ends)
        low = float(places[below[-1]]) if len(below) else outer[0]
        high = float(places[first + 1 + above[0]]) if len(above) else outer[1]
        reach = answered.reach(place, self.within)
        gaps = self._gaps(given)
        low, high = max(ends[0], min(low, place - gaps[0])), min(ends[1], max(high, place + gaps[1]))
        step = float(places[1] - places[0])
        # An interval that ends at the range's end is no longer than the range.
        enough = place - low <= reach + step and high - place <= reach + step
        return Row(given, "found", place, low, high, falls, enough)

    def _gaps(self, given: Values) -> tuple[float, float]:
        """How far below and above the crossing nothing was sampled, on the nearest row with points on both sides. No
        surface knows whether the margin is smooth there or jumps."""
        at = self.space.at(given)
        beside: dict[Values, list[float]] = {}
        for one in self.points:
            row = one.value[:-1]
            if row in self.centres:
                beside.setdefault(row, []).append(one.place[-1] - self.centres[row])
        for row in sorted(beside, key=lambda row: math.dist(self.space.at(row), at)):
            below = [-far for far in beside[row] if far <= 0]
            above = [far for far in beside[row] if far >= 0]
            if below and above:
                return min(below), min(above)
        return 0.0, 0.0

    def _nearer(self, rows: Sequence[Row], flat: Flat, noise: Noise) -> dict[Values, int]:
        """Points to sample near crossings where nothing near enough was sampled: seeds elsewhere would not help."""
        bare = [
            row
            for row in rows
            if row.verdict == "found"
            and max(self._gaps(row.given)) > self.space.answered.reach(self._centre(row.given, flat), self.within)
        ]
        values = [value for row in bare for value in self._beside(row.given, flat, (_NEXT,))]
        return {value: FIRST if noise.level else 1 for value in values if value not in self.probed}

    def _uncrossed(
        self,
        given: Values,
        places: NDArray[Any],
        margins: NDArray[Any],
        clear: NDArray[Any],
        ends: tuple[float, float],
        falls: bool,
    ) -> Row:
        """A row without a crossing in its sampled part: the frontier is further on, or beyond the range."""
        holds = bool(margins[len(margins) // 2] > 0)
        further = 1 if holds == falls else -1
        end = places[-1] if further > 0 else places[0]
        outside = abs(end - ends[further > 0]) < 1e-9
        sure = bool(clear[-1] if further > 0 else clear[0])
        verdict: Verdict = "unclear" if not (outside and sure) else "always" if holds else "never"
        return Row(given, verdict, float(end), math.nan, math.nan, falls, verdict != "unclear")

    def _moved(self, row: Row, flat: Flat) -> float:
        """How far the row's crossing moved from its expected place, in windows; it is expected there from now on."""
        before = self._centre(row.given, flat)
        self.centres[row.given] = row.place
        return abs(row.place - before) / flat.window(before)

    def _seeds(
        self, surface: Surface, flat: Flat, about: list[SampledPoint[Values]], noise: Noise, rows: list[Row]
    ) -> dict[Values, int]:
        """More seeds, each time for the value that most reduces the surface's variance at the requested intervals'
        ends, summed over rows, relative to the allowed variance."""
        import numpy as np

        seeds = FIRST if noise.level else 1
        values = self._candidates(flat, rows) + [one.value for one in about if one.n + seeds <= MOST and noise.level]
        values = list(dict.fromkeys(values))
        if not noise.level:
            values = [one for one in values if one not in self.probed]
        aims = [self._aims(row, flat) for row in rows]
        if not values:
            return {}
        spots = flat.coordinates([self.place(one) for one in values])
        ends = flat.coordinates([place for aim in aims for place in aim])
        count = len(ends)
        margins, _ = surface.at(ends)
        t = t_quantile(max(1, sum(one.n - 1 for one in about)), EACH_LOOK)
        # A margin that hardly changes between the two ends would take all seeds.
        changes = np.abs(margins[1::2] - margins[::2]) / 2
        allowed = np.repeat((np.maximum(changes, 0.2 * np.median(changes)) / t) ** 2, 2)
        # If the margin hardly changes, no number of seeds is enough.
        needed = noise.at(ends) * surface.widened / np.repeat((changes / t) ** 2 + 1e-300, 2)
        hopeless = needed > self.most - self.sampled
        if hopeless.all():
            return {}
        together = surface.covariance(np.concatenate([ends, spots]))
        costs = noise.at(spots) * surface.widened / seeds + 1e-12 * surface.unit**2
        wanted: dict[Values, int] = {}
        most = max(2, math.ceil(_SHARE * sum(one.n for one in about) / seeds))
        for _ in range(most):
            open_ = (np.diagonal(together)[:count] > allowed) & ~hopeless
            if not open_.any() and wanted:
                break
            across = together[:count, count:]
            weights = np.where(open_ if open_.any() else ~hopeless, 1 / allowed, 0)
            gain = weights @ across**2 / (np.diagonal(together)[count:] + costs)
            best = int(np.argmax(gain))
            value = values[best]
            known = self.probed.get(value)
            wanted[value] = wanted.get(value, known.n if known else 0) + seeds
            column = together[:, count + best].copy()
            together = together - np.outer(column, column) / (column[count + best] + costs[best])
            if not noise.level:
                costs[best] = 1e6
        return wanted

    def _aims(self, row: Row, flat: Flat) -> list[tuple[float, ...]]:
        """The ends of the requested interval."""
        centre = self._centre(row.given, flat)
        reach = self.space.answered.reach(centre, self.within)
        at = self.space.at(row.given)
        return [(*at, centre - reach), (*at, centre + reach)]

    def _candidates(self, flat: Flat, rows: list[Row]) -> list[Values]:
        return [value for row in rows for value in self._beside(row.given, flat, (_NEXT, _BESIDE))]

    def _beside(self, given: Values, flat: Flat, distances: Sequence[float]) -> list[Values]:
        """Values on both sides of a row's crossing, at these distances in tolerances."""
        answered = self.space.answered
        centre = self._centre(given, flat)
        reach = answered.reach(centre, self.within)
        found = [(*given, answered.value(centre + side * far * reach)) for far in distances for side in (-1, 1)]
        return list(dict.fromkeys(found))


def _worst(surface: Surface, about: Sequence[SampledPoint[Values]]) -> Values:
    """The row with the largest misfit."""
    missed: dict[Values, list[float]] = {}
    for one, residual in zip(about, surface.residuals, strict=True):
        missed.setdefault(one.value[:-1], []).append(float(residual) ** 2)
    return max(missed, key=lambda given: math.fsum(missed[given]) - len(missed[given]))


def _limit(means: int) -> float:
    """The largest mean square that this many standard errors have by chance."""
    from scipy.special import chdtri

    return float(chdtri(means, 1 - _SURE)) / means
