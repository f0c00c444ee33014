"""Frontier: what one field must be for values of others, with intervals, what it cost, and what was looked at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sawtooth.finding.answer import Check, known, rounded
from sawtooth.finding.remarks import remarks_of_several
from sawtooth.finding.space import Space, Values
from sawtooth.shown import Shown
from sawtooth.wanted import Dimension

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas
    from pandas import DataFrame


@dataclass(frozen=True)
class Minimum:
    """The point of a frontier at which ``expression`` is least. ``values`` are one of each unknown; ``interval`` is of
    the answered one there. ``cost`` is between ``low`` and ``high`` for that interval. ``as_good``: of each unknown
    that is given, from where to where the least may be, since the intervals of costs overlap."""

    expression: str
    values: Values
    interval: tuple[float, float]
    cost: float
    low: float
    high: float
    dimension: Dimension
    as_good: tuple[tuple[float, float], ...]


@dataclass(frozen=True, repr=False)
class Frontier(Shown):
    """An answer of ``find`` for two or three unknowns.

    ``frontier`` has a row for each of some values of the unknowns that are given, under the names of their fields:
    ``verdict`` ("found", "always", "never" or "unclear"), ``value`` of the last unknown, ``low`` and ``high`` of its
    95% interval, NaN where nothing was found, and whether that is as short as was asked for (``enough``). Each interval
    is for itself. ``holds``: the want holds "below" or "above" the value. ``table`` has a row for each place that was
    looked at, ``samples`` one for each of its seeds, as a ``Found`` has. ``carries`` says whether the surface carries
    the means, by leaving each out: ``misfit`` is the mean square of what it misses them by, 1 where it does. ``runs``
    of at most ``most`` were made, of ``seconds`` of work; a grid of the same rows in steps of ``within``, 8 seeds each,
    has ``grid_runs``.
    """

    name: str
    want: str
    unknowns: Space
    engine: str
    holds: str
    frontier: DataFrame
    misfit: float
    carries: bool
    within: float
    runs: int
    most: int
    grid_runs: int
    seconds: float
    dimension: Dimension
    table: DataFrame
    samples: DataFrame
    scenario: dict[str, Any]
    minimum: Minimum | None = None
    checks: tuple[Check, ...] = ()

    @property
    def verdict(self) -> str:
        """ "found", where any row has a value; else that of all rows, or "unclear"."""
        verdicts = set(self.frontier["verdict"])
        return "found" if "found" in verdicts else verdicts.pop() if len(verdicts) == 1 else "unclear"

    @property
    def enough(self) -> bool:
        """Whether all intervals are as short as was asked for."""
        return bool(self.frontier["enough"].all())

    @property
    def fields(self) -> list[str]:
        """Of the unknowns, the answered one last."""
        return [one.field for one in self.unknowns.unknowns]

    @property
    def answer(self) -> str:
        """In a sentence."""
        answered = self.unknowns.answered
        over = " and ".join(f"{one.field} {one.text(one.low)} … {one.text(one.high)}" for one in self.unknowns.given)
        if self.verdict != "found":
            low, high = answered.text(answered.low), answered.text(answered.high)
            said = {"always": "the condition holds everywhere", "never": "the condition holds nowhere"}
            begun = said.get(self.verdict, "inconclusive: these runs do not show where the condition holds")
            return f"{begun} from {low} to {high} of {answered.field}, over {over}"
        if self.minimum is not None:
            return self.least()
        found = self.frontier[self.frontier["verdict"] == "found"]
        ends = found.loc[[found["value"].idxmin(), found["value"].idxmax()]]
        side, more = ("up to", "") if self.holds == "below" else ("from", " on")
        told = " … ".join(answered.text(rounded(value)) for value in ends["value"])
        return f"{answered.field} {side} {told}{more}, over {over}"

    def least(self) -> str:
        """The minimum in a sentence; empty where none was asked for, or there is none."""
        found, space = self.minimum, self.unknowns
        if found is None:
            return ""
        places = space.named(tuple(rounded(one) for one in found.values))
        ends = " … ".join(space.answered.text(rounded(one)) for one in found.interval)
        cost, low, high = (found.dimension.show(one) for one in (found.cost, found.low, found.high))
        return f"{found.expression} is lowest at {places} (95% interval {ends}): {cost} ({low} … {high})"

    @property
    def remarks(self) -> list[str]:
        """What has to be known with the answer, in sentences."""
        return remarks_of_several(self)

    def told(self) -> list[dict[str, Any]]:
        """The answer as rows of a table."""
        more = {
            "unit": self.unknowns.answered.unit,
            "carries": self.carries,
            "runs": self.runs,
            "seconds": self.seconds,
        }
        return [{**row, **more} for row in self._rows()]

    def describe(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "name": self.name,
            "want": self.want,
            "unknowns": [
                {
                    "field": one.field,
                    "range": [one.text(one.low), one.text(one.high)],
                    "scale": one.scale,
                    "unit": one.unit,
                }
                for one in self.unknowns.unknowns
            ],
            "engine": self.engine,
            "verdict": self.verdict,
            "holds": self.holds,
            "within": self.within,
            "enough": self.enough,
            "carries": self.carries,
            "misfit": round(self.misfit, 3),
            "runs": self.runs,
            "most_runs": self.most,
            "grid_runs": self.grid_runs,
            "seconds": round(self.seconds, 3),
            "remarks": self.remarks,
            "frontier": [
                {
                    "at": {one.field: row[one.field] for one in self.unknowns.given},
                    "verdict": row["verdict"],
                    **{name: known(row[name]) for name in ("value", "low", "high")},
                    "enough": bool(row["enough"]),
                }
                for row in self._rows()
            ],
            "minimum": None if self.minimum is None else self._minimum(self.minimum),
            "points": self._points(),
            "checks": [vars(one) | {"value": dict(zip(self.fields, one.value, strict=True))} for one in self.checks],
            "scenario": self.scenario,
        }

    def _rows(self) -> list[dict[str, Any]]:
        rows: Any = self.frontier.to_dict("records")
        return list(rows)

    def _points(self) -> list[dict[str, Any]]:
        places: Any = self.table[self.fields].to_dict("records")
        rest: Any = self.table.drop(columns=self.fields).to_dict("records")
        return [{"at": place, **row} for place, row in zip(places, rest, strict=True)]

    def _minimum(self, found: Minimum) -> dict[str, Any]:
        given = [one.field for one in self.unknowns.given]
        return {
            "expression": found.expression,
            "at": dict(zip(self.fields, found.values, strict=True)),
            "low": found.interval[0],
            "high": found.interval[1],
            "cost": found.cost,
            "cost_low": found.low,
            "cost_high": found.high,
            "as_good": {field: list(ends) for field, ends in zip(given, found.as_good, strict=True)},
        }

    def plot(self) -> Canvas:
        """The frontier with its intervals over the first unknown, and what was looked at, as a figure of matplotlib."""
        from sawtooth.draw import lines
        from sawtooth.draw.saving import styled
        from sawtooth.finding.contour import contour

        drawn = contour(self)
        with styled(drawn.words):
            return lines.draw(drawn)
