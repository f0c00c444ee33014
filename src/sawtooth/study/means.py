"""What the means and intervals of a study's table are of, in words, for a terminal and for a page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sawtooth.scenario import Span
from sawtooth.stats import settling
from sawtooth.stats.interval import SAME, SEEDS, WITHIN

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

COUNTED = "counts are means per run"
THE_SAME = "the same for every seed"


def of_time(from_s: float, to_s: float) -> str:
    """What seconds a mean is of: "60 s from the start, slow start included"."""
    if from_s == 0:
        return f"{to_s:g} s from the start, slow start included"
    return f"{to_s - from_s:g} s, the first {from_s:g} s omitted"


def means(rows: Sequence[Mapping[str, Any]]) -> str:
    """The same of rows of a study's table: "means of 60 s …"."""
    spans = {(row["from_s"], row["to_s"]) for row in rows}
    if len(spans) > 1:
        return "means of different times: from_s to to_s in table.csv"
    return f"means of {of_time(*spans.pop())}"


def intervals(rows: Sequence[Mapping[str, Any]]) -> str:
    """What the 95% intervals in rows of a study's table are of; empty where there are none."""
    of = {row["ci_of"]: row["ci_n"] for row in rows if not _open(row)}
    if SEEDS in of:
        return f"95% interval: of the means of {of[SEEDS]} seeds"
    if WITHIN in of:
        return "95% interval: within the run, by batch means; how far seeds differ, --seeds tells"
    return ""


def interval(row: Mapping[str, Any], form: str = ".2f") -> str:
    """The 95% interval of a row: "5.11 … 6.71", that there is none to have, or "-"."""
    if row["ci_of"] == SAME:
        return THE_SAME
    return "-" if _open(row) else f"{row['ci_low_mbps']:{form}} … {row['ci_high_mbps']:{form}}"


@dataclass(frozen=True)
class Course:
    """The runs of one point over time, in Mbit/s, one series a seed, from ``from_s`` on in steps of ``interval``."""

    name: str
    series: Sequence[ArrayLike]
    from_s: float
    interval: Span


def beginnings(courses: Sequence[Course]) -> list[str]:
    """A sentence where the beginning of runs changes their mean: at how many points, and at which most."""
    found = [(course, here) for course in courses if (here := settling(course.series)) is not None]
    if not found:
        return []
    course, most = max(found, key=lambda one: one[1].change)
    until = max(Span(round(one.from_s * 1e9) + here.samples * one.interval.ns) for one, here in found)
    first = f"first {Span(most.samples * course.interval.ns)}"
    if course.from_s:
        first += f" after {course.from_s:g} s"
    sentence = (
        f"the {first} differ from the rest (slow start, or a flow that begins late): the mean is {most.whole:.4g} "
        f'Mbit/s with them, {most.rest:.4g} without; --omit "{until}" leaves them out of all statistics'
    )
    if len(courses) == 1:
        return [sentence]
    points = f"{len(found)} of {len(courses)} points"
    return [f"the beginning changes the mean by 1% or more at {points}, most at {course.name or 'all'}: {sentence}"]


def _open(row: Mapping[str, Any]) -> bool:
    return math.isnan(row["ci_low_mbps"])
