"""Describes in words what the means and intervals of a study's table are computed from, for a terminal and for a
page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sawtooth.scenario import Span
from sawtooth.stats import settling
from sawtooth.stats.interval import SAME, SEEDS, WITHIN
from sawtooth.stats.outliers import RULE, outliers

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

COUNTED = "counts are means per run"
THE_SAME = "same for every seed"


def of_time(from_s: float, to_s: float) -> str:
    """Which seconds a mean covers: "60 s from the start, slow start included"."""
    if from_s == 0:
        return f"{to_s:g} s from the start, slow start included"
    return f"{to_s - from_s:g} s, the first {from_s:g} s omitted"


def means(rows: Sequence[Mapping[str, Any]]) -> str:
    """The same for rows of a study's table: "means of 60 s …"."""
    spans = {(row["from_s"], row["to_s"]) for row in rows}
    if len(spans) > 1:
        return "means over different times: see from_s and to_s in table.csv"
    return f"means of {of_time(*spans.pop())}"


def intervals(rows: Sequence[Mapping[str, Any]]) -> str:
    """What the 95% intervals in rows of a study's table are computed from; empty if there are none."""
    of = {row["ci_of"]: row["ci_n"] for row in rows if not _open(row)}
    if SEEDS in of:
        return f"95% interval and min … max: over the means of {of[SEEDS]} seeds"
    if WITHIN in of:
        return "95% interval: from batch means within one run; use --seeds to see the spread between runs"
    return ""


def interval(row: Mapping[str, Any], form: str = ".2f", by_start: Sequence[float] = ()) -> str:
    """The 95% interval of a row: "5.11 … 6.71", a note that there is none, or "-".

    If seeds change nothing, ``by_start`` (means in Mbit/s with other starts of the flows) is shown: "by start 5 … 6".
    """
    if row["ci_of"] == SAME:
        return f"by start {ends(by_start)}" if len(set(by_start)) > 1 else THE_SAME
    return "-" if _open(row) else f"{row['ci_low_mbps']:{form}} … {row['ci_high_mbps']:{form}}"


def ends(means: Sequence[float]) -> str:
    """The lowest and the highest mean of the seeds, with three digits: "98.2 … 185"; "-" if all are equal."""
    low, high = min(means), max(means)
    return f"{_three(low)} … {_three(high)}" if low < high else "-"


def _three(value: float) -> str:
    """Three digits, or all digits before the decimal point."""
    return f"{value:.{max(0, 2 - math.floor(math.log10(value)))}f}" if value > 0 else "0"


@dataclass(frozen=True)
class Course:
    """The runs of one point over time, in Mbit/s, one series per seed, starting at ``from_s`` in steps of
    ``interval``."""

    name: str
    series: Sequence[ArrayLike]
    from_s: float
    interval: Span
    seeds: Sequence[int] = ()


def outlying(courses: Sequence[Course]) -> list[str]:
    """A sentence if seeds are far from all others at their point: which ones, by what rule, and their effect."""
    import numpy as np

    found = []
    for course in courses:
        samples = [np.asarray(series, dtype=float) for series in course.series]
        means = [float(one.mean()) if one.size else math.nan for one in samples]
        far = outliers(means)
        rest = [mean for at, mean in enumerate(means) if at not in far]
        if far and len(course.seeds) == len(means):
            change = abs(math.fsum(means) / len(means) - math.fsum(rest) / len(rest))
            found.append((change, course, far, means, rest))
    if not found:
        return []
    _, course, far, means, rest = max(found, key=lambda one: one[0])
    several = len(far) > 1
    named = ", ".join(f"{course.seeds[at]} ({means[at]:.4g} Mbit/s)" for at in far[:5]) + " …" * (len(far) > 5)
    sentence = (
        f"seed{'s' * several} {named} {'are outliers' if several else 'is an outlier'} among {len(means)} by {RULE}: "
        f"the others gave {min(rest):.4g} … {max(rest):.4g}, {math.fsum(rest) / len(rest):.4g} on average; "
        "the mean includes all seeds; run more --seeds to see how often this happens"
    )
    if len(courses) == 1:
        return [sentence]
    return [f"outliers at {len(found)} of {len(courses)} points, most at {course.name or 'all'}: {sentence}"]


@dataclass(frozen=True)
class MovedStarts:
    """The goodput of one point's flows when they start at other times: means in Mbit/s by flow, the original starts
    first."""

    point: str
    """The point in words; empty if it is the only one."""
    later_ms: float
    means: Mapping[str, Sequence[float]]

    def percent(self, flow: str, whole: str) -> list[float]:
        """A flow's share of ``whole`` in each run, except where ``whole`` is 0."""
        pairs = zip(self.means[flow], self.means[whole], strict=True)
        return [mean / total * 100 for mean, total in pairs if total > 0]

    def most(self) -> tuple[str, float, float, float]:
        """The flow that changes most relative to its own mean: its name, lowest and highest mean, and the change."""
        changes = {
            flow: (max(means) - min(means)) / means[0] if means[0] > 0 else 0.0 for flow, means in self.means.items()
        }
        flow = max(changes, key=lambda name: changes[name])
        return flow, min(self.means[flow]), max(self.means[flow]), changes[flow]


def by_start(points: Sequence[MovedStarts | None]) -> str:
    """What the ranges "by start" in a table mean; empty if there are none."""
    moved = [one for one in points if one is not None]
    if not moved:
        return ""
    runs = max(len(means) for one in moved for means in one.means.values()) - 1
    return (
        f"by start: every seed gives the same, so {runs} more runs reverse the flows' order or start them up to "
        f"{max(one.later_ms for one in moved):g} ms later; lowest … highest mean"
    )


def unchanging(rows: Sequence[Mapping[str, Any]], several: bool, moved: Sequence[MovedStarts]) -> list[str]:
    """A sentence if seeds change nothing at a point: this is not certainty, and what other starts change.

    ``several``: such a point has several flows.
    """
    same = [row for row in rows if row["ci_of"] == SAME]
    if not same:
        return []
    where = "here" if len(same) == len(rows) else f"at {len(same)} of {len(rows)} points"
    sentence = f"seeds change nothing {where}: the runs have no randomness, so {same[0]['ci_n']} seeds are one sample"
    if moved:
        one = max(moved, key=lambda each: each.most()[-1])
        flow, low, high, change = one.most()
        starts = f"in reverse order or when flows start up to {one.later_ms:g} ms later"
        if change < 0.01:
            return [f"{sentence}. No flow's goodput changes by 1% {starts}"]
        at = f" at {one.point}" if one.point else ""
        return [
            f"{sentence}. The result depends on the order or the starts of the flows: {flow} gets {_three(low)} … "
            f"{_three(high)} Mbit/s{at} {starts}, a range of {100 * change:.0f}%; all such runs are in starts.csv; "
            '--set "host.processing=20 us" gives each packet a random time at hosts, as real ones do'
        ]
    return [sentence + ("; other start times of the flows were not tried" if several else "")]


def beginnings(courses: Sequence[Course]) -> list[str]:
    """A sentence if the beginning of runs changes their mean: at how many points, and where most."""
    found = [(course, here) for course in courses if (here := settling(course.series)) is not None]
    if not found:
        return []
    course, most = max(found, key=lambda one: one[1].change)
    until = max(Span(round(one.from_s * 1e9) + here.samples * one.interval.ns) for one, here in found)
    first = f"first {Span(most.samples * course.interval.ns)}"
    if course.from_s:
        first += f" after {course.from_s:g} s"
    sentence = (
        f"the {first} differ from the rest (slow start, or a flow that starts late): the mean is {most.whole:.4g} "
        f'Mbit/s with them, {most.rest:.4g} without; --omit "{until}" discards them'
    )
    if len(courses) == 1:
        return [sentence]
    points = f"{len(found)} of {len(courses)} points"
    return [
        f"the start of the run changes the mean by 1% or more at {points}, most at {course.name or 'all'}: {sentence}"
    ]


def _open(row: Mapping[str, Any]) -> bool:
    return math.isnan(row["ci_low_mbps"])
