"""Remarks: sentences to read with an answer, the same in a terminal, on a page and in JSON."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from sawtooth.search.answering import rounded
from sawtooth.search.unknown import Unknown

if TYPE_CHECKING:
    from sawtooth.search.frontier import Frontier
    from sawtooth.search.result import Threshold

MOST_WITHIN = 0.5
"""The largest tolerance that may be requested."""
_ROUND = 100
"""Advised numbers of runs are rounded to this."""


def remarks(found: Threshold) -> list[str]:
    """Remarks for one unknown."""
    sentences = []
    unknown = found.unknown
    if not found.monotone:
        pairs = "; ".join(" and ".join(unknown.text(one) for one in pair) for pair in found.changes)
        sentences.append(
            f"not monotone: the condition starts or stops holding between {pairs}; the answer is the first of these"
        )
    if found.contradictions:
        disagreements = (
            f"{'holds' if one.holds == 'yes' else 'does not hold'} at {unknown.text(rounded(one.value))}"
            for one in found.contradictions
        )
        sentences.append(f"{found.checks[0].engine} disagrees: there the condition {' and '.join(disagreements)}")
    if found.verdict == "found" and abs(found.value) < unknown.least and not unknown.is_whole:
        sentences.append(
            f"the answer is below {unknown.text(unknown.least)}, {unknown.least_of}. That is hardly "
            "distinguishable from 0: "
            f"the interval is within {found.within * 100:g}% of {unknown.text(unknown.least)}, not of the answer"
            if found.enough
            else f"the answer is below {unknown.text(unknown.least)}, {unknown.least_of}. "
            "That is hardly distinguishable from 0"
        )
    if not found.enough:
        sentences.append(f"{_missed(found)}; {_advice(found)}")
    return sentences


def remarks_of_several(found: Frontier) -> list[str]:
    """Remarks for two or three unknowns."""
    said = []
    if found.minimum is not None and found.verdict == "found":
        ends = zip(found.unknowns.given, found.minimum.as_good, strict=True)
        said += [
            "equally good within the confidence intervals: "
            f"{', '.join(f'{one.field} {_range(one, pair)}' for one, pair in ends)}"
        ]
    if not found.carries:
        missed = f"leaving a mean out, it misses that mean by {math.sqrt(found.misfit):.1f} times its error"
        said.append(f"the fitted surface does not match the means: {missed}; the intervals are widened by that factor")
    if not found.enough:
        short = int((~found.frontier["enough"].astype(bool)).sum())
        said.append(
            f"{short} of {len(found.frontier)} rows have no confidence interval or one wider than --within "
            f"({found.within * 100:g}%), after {found.runs} of at most {found.most} runs; give --runs "
            f"{_rounded(2 * found.most)} or a wider --within"
        )
    return said


def _missed(found: Threshold) -> str:
    """What misses the request, and why."""
    runs = f"{found.runs} of at most {found.most} runs"
    why = f"after {runs}" if found.spent else f"more seeds at the values that were run would not help ({runs})"
    if found.verdict != "found":
        return f"at some values the seeds are inconclusive: {why}"
    return (
        f"the confidence interval is wider than --within: one end is {_share(found.reached)} from the answer, not "
        f"{found.within * 100:g}% ({why})"
    )


def _advice(found: Threshold) -> str:
    if found.verdict != "found":
        return (
            f"give --runs {_rounded(2 * found.most)}"
            if found.spent
            else "choose a value in --want that is further from the results"
        )
    wider = f"--within {_share(found.reached)}"
    if found.reached >= MOST_WITHIN:
        low, high = (found.unknown.text(rounded(one)) for one in found.interval)
        wider = f'--vary "{found.unknown.field}={low}..{high}"'
    if not found.spent:
        return f"give {wider}"
    # The error falls with the square root of the seeds.
    runs = max(2 * found.most, found.most * min(found.reached / found.within, 10) ** 2)
    return f"give --runs {_rounded(runs)}, or {wider}"


def _share(share: float) -> str:
    return f"{math.ceil(share * 100)}%" if math.isfinite(share) else "more than the answer"


def _rounded(runs: float) -> int:
    return _ROUND * math.ceil(runs / _ROUND)


def _range(unknown: Unknown, ends: tuple[float, float]) -> str:
    return " … ".join(dict.fromkeys(unknown.text(rounded(one)) for one in ends))
