"""Minimum: the point of a frontier where a cost is smallest, and the range in which it may be."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from sawtooth.errors import InputError
from sawtooth.sanitize import plain
from sawtooth.scenario import Scenario
from sawtooth.scenario.expressions import Amount, Expression, Measure, parse_expression
from sawtooth.search.first_columns import Row
from sawtooth.search.frontier import Minimum
from sawtooth.search.frontier_search import TracedFrontier, Tracing
from sawtooth.search.measuring import of_field
from sawtooth.search.space import Space, Values

_FINE = {1: 41, 2: 13}
"""Values of each given unknown among which the minimum is searched."""


@dataclass(frozen=True)
class Cost:
    """An ``expression`` of scenario fields. Values without a dimension (packets, bdp) are numbers."""

    text: str
    expression: Expression
    scenario: Scenario
    space: Space

    @classmethod
    def parse(cls, text: str, scenario: Scenario, space: Space) -> Cost:
        """Parses the expression. Raises SawtoothError: ``bad-expression``, ``unknown-name``, ``wrong-type``, as
        ``wanted.parse`` does."""
        expression = parse_expression(text)
        for measure in expression.measures:
            if "." not in measure.name or measure.settings:
                message = f"at character {measure.at}: {plain(str(measure), 60)} is no field of the scenario"
                fix = "a cost is made of fields, like path.queue or path.rate / 1 Mbit/s - path.loss / 1%"
                raise InputError("bad-expression", message, fix=fix)
        fields = [one.field for one in space.unknowns]
        if not any(measure.name in fields for measure in expression.measures):
            fix = f"name one of {', '.join(fields)}"
            raise InputError("bad-expression", "it names none of the fields that vary", fix=fix)
        cost = cls(text.strip(), expression, scenario, space)
        for corner in space.corners:
            cost.at(corner)
        return cost

    def at(self, values: Values) -> Amount:
        """The value of the expression."""
        there = self.scenario.set(self.space.settings(values))
        unknown = {one.field: one.amount(value) for one, value in zip(self.space.unknowns, values, strict=True)}

        def resolve(measure: Measure) -> Amount:
            return unknown.get(measure.name) or of_field(measure.name.split("."), there)

        return self.expression.amount_of(resolve)

    def least(self, tracing: Tracing, traced: TracedFrontier) -> Minimum | None:
        """The minimum on the frontier, also between its rows; None without a frontier."""
        space = self.space
        fine = itertools.product(*(one.evenly(_FINE[len(space.given)]) for one in space.given))
        rows = [row for row in (tracing.row(given, traced) for given in fine) if row.verdict == "found"]
        if not rows:
            return None
        costs = [self._between(row) for row in rows]
        best = min(range(len(rows)), key=lambda one: costs[one][1])
        surely = min(high for _, _, high in costs)
        good = [row.given for row, (low, _, _) in zip(rows, costs, strict=True) if low <= surely]
        low, cost, high = costs[best]
        row = rows[best]
        value, *ends = space.answered.ends(row.place, row.low, row.high, row.holds_low)
        return Minimum(
            self.text,
            (*row.given, value),
            (ends[0], ends[1]),
            cost,
            low,
            high,
            self.at(space.corners[0]).dimension,
            tuple(_ends([one[number] for one in good]) for number in range(len(space.given))),
        )

    def _between(self, row: Row) -> tuple[float, float, float]:
        """The smallest cost, the answer's cost and the largest cost within a row's interval."""
        answered = self.space.answered
        found = [float(self.at((*row.given, answered.value(place))).value) for place in (row.low, row.place, row.high)]
        return min(found), found[1], max(found)


def _ends(values: Sequence[float]) -> tuple[float, float]:
    return min(values), max(values)
