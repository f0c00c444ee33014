"""Several unknowns: traces the frontier of a question and checks it on another engine."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from sawtooth.errors import SawtoothError
from sawtooth.io.progress_bar import Bar
from sawtooth.search.answering import Check
from sawtooth.search.first_columns import Row
from sawtooth.search.frontier import Frontier, Minimum
from sawtooth.search.frontier_search import Tracing
from sawtooth.search.measuring import Measuring
from sawtooth.search.minimum import Cost
from sawtooth.search.question import AGAIN, Question, at, sample_tables
from sawtooth.search.samples import FIRST, SampledPoint
from sawtooth.search.space import Space, Values
from sawtooth.search.zero_crossing import SCAN

MOST_RUNS = {2: 1200, 3: 4000}
"""Default budget of runs, by the number of unknowns."""
_SCANNED = {2: 3, 3: 5}
"""Columns sampled over the whole range."""
_USUAL = {2: 200, 3: 500}
"""Typical number of runs, for the progress bar."""
GRID_SEEDS = 8
"""Seeds per point of the grid with which the cost is compared."""


def several(question: Question) -> Frontier:
    """The frontier of the goal."""
    space = at("vary", lambda: Space.parse(question.vary, question.scale, question.scenario))
    count = len(space.unknowns)
    most = question.budget(MOST_RUNS[count], _SCANNED[count] * SCAN * FIRST)
    with Bar(question.name, _USUAL[count], quiet=question.quiet) as bar:
        measuring = question.measuring(space, bar, _USUAL[count])
        cost = None
        if question.minimize is not None:
            text = question.minimize
            cost = at("minimize", lambda: Cost.parse(text, question.scenario, space))
        tracing = Tracing(
            space,
            measuring.margins,
            within=question.within,
            most=most,
            excess_losses=measuring.excess_losses,
            size=partial(_size, measuring),
        )
        try:
            traced = tracing.run()
        except KeyboardInterrupt:
            message = f"interrupted after {measuring.runs} runs"
            raise SawtoothError("interrupted", message, fix=AGAIN) from None
    least = None if cost is None else cost.least(tracing, traced)
    rows, samples = sample_tables(tracing.points, measuring, [one.field for one in space.unknowns])
    return Frontier(
        name=question.name,
        want=question.want.text,
        unknowns=space,
        engine=question.engine.name,
        holds="below" if traced.rows[0].holds_low else "above",
        frontier=_table(space, traced.rows),
        misfit=traced.misfit,
        carries=traced.carries,
        within=question.within,
        runs=measuring.runs,
        most=most * question.variants,
        grid_runs=_grid(space, question),
        seconds=measuring.seconds,
        dimension=question.want.sides(partial(measuring.amount, *next(iter(measuring.sides))))[0].dimension,
        table=rows,
        samples=samples,
        scenario=question.scenario.to_dict(),
        minimum=least,
        checks=_checked(question, space, traced.rows, least),
    )


def _size(measuring: Measuring, point: SampledPoint[Values]) -> float:
    """The size of both sides, without sign."""
    sides = [measuring.sides[point.value, point.first + number] for number in range(point.n)]
    return math.fsum(abs(left) + abs(right) for left, right in sides) / point.n


def _table(space: Space, rows: tuple[Row, ...]) -> Any:
    import pandas as pd

    found = []
    for row in rows:
        place = row.place if row.verdict == "found" else math.nan
        value, low, high = space.answered.ends(place, row.low, row.high, row.holds_low)
        given = {one.field: value for one, value in zip(space.given, row.given, strict=True)}
        found.append({**given, "verdict": row.verdict, "value": value, "low": low, "high": high, "enough": row.enough})
    return pd.DataFrame(found)


def _grid(space: Space, question: Question) -> int:
    """Runs of a grid with the same rows, in steps of the requested tolerance."""
    answered = space.answered
    place, end, steps = answered.place(answered.low), answered.place(answered.high), 1
    while place < end:
        place += answered.reach(place, question.within)
        steps += 1
    steps = min(steps, int(answered.high - answered.low) + 1) if answered.is_whole else steps
    return len(space.rows) * steps * GRID_SEEDS * question.variants


def _checked(question: Question, space: Space, rows: tuple[Row, ...], least: Minimum | None) -> tuple[Check, ...]:
    """Checks the minimum, or else the first, middle and last row with an answer, each there and at its interval's ends;
    the corners if nothing was found."""
    if question.checking is None:
        return ()
    answered = space.answered
    if least is not None:
        values = [(*least.values[:-1], one) for one in (least.interval[0], least.values[-1], least.interval[1])]
        return question.checked(space, [_possible(space, one) for one in values])
    found = [row for row in rows if row.verdict == "found"]
    chosen = {row.given: row for row in (found[0], found[len(found) // 2], found[-1])} if found else {}
    values = [
        (*row.given, answered.value(place)) for row in chosen.values() for place in (row.low, row.place, row.high)
    ]
    return question.checked(space, values or space.corners)


def _possible(space: Space, values: Values) -> Values:
    return tuple(one.value(one.place(value)) for one, value in zip(space.unknowns, values, strict=True))
