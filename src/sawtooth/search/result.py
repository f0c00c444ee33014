"""Result: an answer, its interval, its cost, and every value that was tried."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sawtooth.io.displayable import Displayable
from sawtooth.scenario.expressions import Dimension
from sawtooth.search.answering import Check, known, rounded
from sawtooth.search.remarks import remarks
from sawtooth.search.unknown import Unknown

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas
    from pandas import DataFrame


@dataclass(frozen=True, kw_only=True, repr=False)
class Threshold(Displayable):
    """An answer of ``find``.

    - ``verdict``: "found", "always" or "never" (within the range), or "unclear" (too few runs).
    - ``value`` and ``interval`` are in ``unit``; NaN if nothing was found. ``holds``: the goal holds "below" or "above"
      the value.
    - ``table``: one row per value tried, with the means of both sides (bit/s, seconds, bits or plain numbers), and
      whether the goal clearly holds. ``samples``: one row per value and seed.
    - ``scenario``: the scenario as in its file, with some value for the unknown.
    - ``runs`` were made, ``seconds`` is their work; ``most`` were allowed.
    - ``enough``: the interval is within ``within`` of the value. ``spent``: it is not, because the allowed runs were
      used up.
    """

    name: str
    want: str
    unknown: Unknown
    engine: str
    verdict: str
    value: float
    interval: tuple[float, float]
    holds: str
    changes: tuple[tuple[float, float], ...]
    enough: bool
    spent: bool
    within: float
    runs: int
    most: int
    seconds: float
    dimension: Dimension
    table: DataFrame
    samples: DataFrame
    scenario: dict[str, Any]
    checks: tuple[Check, ...] = ()

    @property
    def unit(self) -> str:
        """The unit of ``value``: "%", "packets"; empty for a plain number."""
        return self.unknown.unit

    @property
    def monotone(self) -> bool:
        """Whether the goal begins or ceases to hold only once, as far as values were tried."""
        return len(self.changes) <= 1

    @property
    def reached(self) -> float:
        """The distance of the interval's further end from the value, as a share of the value. 0 if the next whole
        number is the end; NaN if nothing was found. Below the smallest value that differs measurably from 0, as a share
        of that.
        """
        if self.verdict != "found":
            return math.nan
        far = max(self.value - self.interval[0], self.interval[1] - self.value)
        if self.unknown.is_whole and far <= 1:
            return 0.0
        size = max(abs(self.value), self.unknown.least)
        return far / size if size else math.inf

    @property
    def answer(self) -> str:
        """The answer in one sentence."""
        unknown = self.unknown
        low, high = unknown.text(unknown.low), unknown.text(unknown.high)
        if self.verdict == "always":
            return f"the condition holds everywhere from {low} to {high}"
        if self.verdict == "never":
            return f"the condition holds nowhere from {low} to {high}"
        if self.verdict == "unclear":
            return f"inconclusive: these runs do not show where the condition holds from {low} to {high}"
        ends = " … ".join(unknown.text(rounded(one)) for one in self.interval)
        side = "up to" if self.holds == "below" else "from"
        more = "" if self.holds == "below" else " on"
        return f"{unknown.field} {side} {unknown.text(rounded(self.value))}{more} (95% interval {ends})"

    @property
    def contradictions(self) -> tuple[Check, ...]:
        """Results of the other engine that clearly contradict: no where the goal should hold, or yes where it should
        not."""
        if self.verdict != "found":
            other = {"always": "no", "never": "yes"}.get(self.verdict)
            return tuple(one for one in self.checks if one.holds == other)
        # The values as they were run.
        low, high = (self.unknown.value(self.unknown.place(one)) for one in self.interval)
        beside = 1 if self.unknown.is_whole else 0
        sign = 1 if self.holds == "below" else -1
        inside, outside = (low, high + beside) if sign > 0 else (high, low - beside)
        no = {one.value for one in self.checks if one.holds == "no" and sign * (one.value - inside) <= 0}
        yes = {one.value for one in self.checks if one.holds == "yes" and sign * (one.value - outside) >= 0}
        return tuple(one for one in self.checks if one.value in no | yes)

    @property
    def remarks(self) -> list[str]:
        """Sentences to read with the answer: where it misses the request, and what to do."""
        return remarks(self)

    def describe(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "name": self.name,
            "want": self.want,
            "field": self.unknown.field,
            "range": [self.unknown.text(self.unknown.low), self.unknown.text(self.unknown.high)],
            "scale": self.unknown.scale,
            "engine": self.engine,
            "verdict": self.verdict,
            "value": known(self.value),
            "low": known(self.interval[0]),
            "high": known(self.interval[1]),
            "unit": self.unit,
            "holds": self.holds,
            "within": self.within,
            "reached": known(self.reached),
            "enough": self.enough,
            "monotone": self.monotone,
            "changes": [list(pair) for pair in self.changes],
            "runs": self.runs,
            "most_runs": self.most,
            "seconds": round(self.seconds, 3),
            "remarks": self.remarks,
            "points": self.table.to_dict("records"),
            "checks": [vars(one) for one in self.checks],
            "contradicted": bool(self.contradictions),
            "scenario": self.scenario,
        }

    def rows(self) -> list[dict[str, Any]]:
        """The answer as a row of a table."""
        return [
            {
                "verdict": self.verdict,
                "value": self.value,
                "low": self.interval[0],
                "high": self.interval[1],
                "unit": self.unit,
                "monotone": self.monotone,
                "enough": self.enough,
                "reached": self.reached,
                "runs": self.runs,
                "seconds": self.seconds,
            }
        ]

    def plot(self) -> Canvas:
        """Both sides of the comparison over the unknown, with the answer, as a matplotlib figure."""
        from sawtooth.figures.static import canvas
        from sawtooth.search.figure import sides

        return canvas(sides(self))
