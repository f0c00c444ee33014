"""Frontier: which value of one field is needed for given values of others, with intervals, cost, and the points
tried."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sawtooth.io.displayable import Displayable
from sawtooth.scenario.expressions import Dimension
from sawtooth.search.answering import Check, known, rounded
from sawtooth.search.remarks import remarks_of_several
from sawtooth.search.space import Space, Values

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas
    from pandas import DataFrame


@dataclass(frozen=True)
class Minimum:
    """The point of a frontier where ``expression`` is smallest. ``values`` has one value per unknown; ``interval`` is
    that of the answered one. ``cost`` is between ``low`` and ``high`` for that interval. ``as_good``: for each given
    unknown, the range in which the minimum may be, since the intervals of costs overlap.
    """

    expression: str
    values: Values
    interval: tuple[float, float]
    cost: float
    low: float
    high: float
    dimension: Dimension
    as_good: tuple[tuple[float, float], ...]


@dataclass(frozen=True, kw_only=True, repr=False)
class Frontier(Displayable):
    """An answer of ``find`` for two or three unknowns.

    - ``frontier``: one row for each of several values of the given unknowns, under their field names: ``verdict``
      ("found", "always", "never" or "unclear"), ``value`` of the last unknown, ``low`` and ``high`` of its 95% interval
      (NaN if nothing was found), and ``enough`` (it is as short as requested). Each interval holds separately.
    - ``holds``: the goal holds "below" or "above" the value.
    - ``table``: one row per point tried; ``samples``: one per point and seed; columns as in ``Threshold``.
    - ``carries``: whether the surface fits the means, tested by leaving each out. ``misfit``: the mean squared error of
      that test, 1 for a good fit.
    - ``runs`` of at most ``most`` were made, with ``seconds`` of work. ``grid_runs``: the runs of a grid with the same
      rows in steps of ``within`` and 8 seeds each.
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
        """ "found" if any row has a value; otherwise the verdict of all rows, or "unclear"."""
        verdicts = set(self.frontier["verdict"])
        return "found" if "found" in verdicts else verdicts.pop() if len(verdicts) == 1 else "unclear"

    @property
    def enough(self) -> bool:
        """Whether all intervals are as short as requested."""
        return bool(self.frontier["enough"].all())

    @property
    def fields(self) -> list[str]:
        """The fields of the unknowns, the answered one last."""
        return [one.field for one in self.unknowns.unknowns]

    @property
    def answer(self) -> str:
        """The answer in one sentence."""
        answered = self.unknowns.answered
        over = " and ".join(f"{one.field} {one.text(one.low)} … {one.text(one.high)}" for one in self.unknowns.given)
        if self.verdict != "found":
            low, high = answered.text(answered.low), answered.text(answered.high)
            sentences = {"always": "the condition holds everywhere", "never": "the condition holds nowhere"}
            begun = sentences.get(self.verdict, "inconclusive: these runs do not show where the condition holds")
            return f"{begun} from {low} to {high} of {answered.field}, over {over}"
        if self.minimum is not None:
            return self.least()
        found = self.frontier[self.frontier["verdict"] == "found"]
        ends = found.loc[[found["value"].idxmin(), found["value"].idxmax()]]
        side, more = ("up to", "") if self.holds == "below" else ("from", " on")
        ends_text = " … ".join(answered.text(rounded(value)) for value in ends["value"])
        return f"{answered.field} {side} {ends_text}{more}, over {over}"

    def least(self) -> str:
        """The minimum in one sentence; empty if none was requested or there is none."""
        found, space = self.minimum, self.unknowns
        if found is None:
            return ""
        places = space.named(tuple(rounded(one) for one in found.values))
        ends = " … ".join(space.answered.text(rounded(one)) for one in found.interval)
        cost, low, high = (found.dimension.show(one) for one in (found.cost, found.low, found.high))
        return f"{found.expression} is lowest at {places} (95% interval {ends}): {cost} ({low} … {high})"

    @property
    def remarks(self) -> list[str]:
        """Sentences to read with the answer."""
        return remarks_of_several(self)

    def rows(self) -> list[dict[str, Any]]:
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
        """The frontier with its intervals over the first unknown, with the points tried, as a matplotlib figure."""
        from sawtooth.figures.static import canvas
        from sawtooth.search.figure import contour

        return canvas(contour(self))
