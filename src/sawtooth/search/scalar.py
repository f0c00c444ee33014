"""One unknown: searches the answer to its question and checks it on another engine."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

from sawtooth.errors import SawtoothError
from sawtooth.io.progress_bar import Bar
from sawtooth.sanitize import plain
from sawtooth.search.answering import Check
from sawtooth.search.question import AGAIN, Question, at, sample_tables
from sawtooth.search.result import Threshold
from sawtooth.search.samples import FIRST
from sawtooth.search.unknown import Unknown
from sawtooth.search.zero_crossing import SCAN, Crossing, Search

MOST_RUNS = 400
_USUAL = SCAN * FIRST + 24
"""Typical number of runs of a search, for the progress bar."""


def one(question: Question) -> Threshold:
    """The value at which the goal begins or ceases to hold."""
    unknown = at("vary", lambda: Unknown.parse(question.vary[0], question.scale, question.scenario))
    most = question.budget(MOST_RUNS, SCAN * FIRST)
    with Bar(question.name, _USUAL, quiet=question.quiet) as bar:
        measuring = question.measuring(unknown, bar, _USUAL)
        search = Search(
            unknown, measuring.margins, within=question.within, most=most, excess_losses=measuring.excess_losses
        )
        try:
            crossing = search.run()
        except KeyboardInterrupt:
            raise SawtoothError("interrupted", _so_far(search, unknown, measuring.runs), fix=AGAIN) from None
    rows, samples = sample_tables(search.points, measuring, ["value"])
    return Threshold(
        name=question.name,
        want=question.want.text,
        unknown=unknown,
        engine=question.engine.name,
        verdict=crossing.verdict,
        value=crossing.value,
        interval=(crossing.low, crossing.high),
        holds="below" if crossing.holds_low else "above",
        changes=crossing.changes,
        enough=crossing.enough,
        spent=crossing.spent,
        within=question.within,
        runs=measuring.runs,
        most=most * question.variants,
        seconds=measuring.seconds,
        dimension=question.want.sides(partial(measuring.amount, *next(iter(measuring.sides))))[0].dimension,
        table=rows,
        samples=samples,
        scenario=question.scenario.to_dict(),
        checks=_checked(question, unknown, crossing),
    )


def _checked(question: Question, unknown: Unknown, crossing: Crossing) -> tuple[Check, ...]:
    """Checks the answer and its interval's ends; for whole numbers the neighbors of the last that may hold; the range's
    ends if nothing was found."""
    if crossing.verdict == "found":
        low, high = crossing.low, crossing.high
        if unknown.is_whole:
            low, high = (low, high + 1) if crossing.holds_low else (low - 1, high)
        places = [low, crossing.value, high]
    else:
        places = unknown.corners
    return question.checked(unknown, [unknown.value(unknown.place(value)) for value in places])


def _so_far(search: Search, unknown: Unknown, runs: int) -> str:
    clear = [one for one in search.points if one.n and one.sign]
    for one, other in pairwise(clear):
        if one.sign != other.sign:
            between = f"between {unknown.text(one.value)} and {unknown.text(other.value)}"
            return f"interrupted after {runs} runs; the answer so far: {plain(between)}"
    return f"interrupted after {runs} runs"
