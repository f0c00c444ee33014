"""Remarks: what has to be known with an answer, in sentences: a terminal, a page and JSON have the same."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from sawtooth.finding.answer import rounded
from sawtooth.finding.unknown import Unknown

if TYPE_CHECKING:
    from sawtooth.finding.found import Found
    from sawtooth.finding.frontier import Frontier

MOST_WITHIN = 0.5
"""The widest share that may be asked for."""
_ROUND = 100
"""Runs are advised in hundreds."""


def remarks(found: Found) -> list[str]:
    """Of one unknown."""
    said = []
    unknown = found.unknown
    if not found.monotone:
        pairs = "; ".join(" and ".join(unknown.text(one) for one in pair) for pair in found.changes)
        said.append(f"not monotone: it begins or ends to hold between {pairs}; the answer is the first of these")
    if found.contradictions:
        told = (
            f"{'holds' if one.holds == 'yes' else 'does not hold'} at {unknown.text(rounded(one.value))}"
            for one in found.contradictions
        )
        said.append(f"{found.checks[0].engine} says otherwise: there it {' and '.join(told)}")
    if found.verdict == "found" and abs(found.value) < unknown.least and not unknown.is_whole:
        said.append(
            f"the answer is below {unknown.text(unknown.least)}, {unknown.least_of}, which is hardly told from 0: "
            f"the interval is within {found.within * 100:g}% of {unknown.text(unknown.least)}, not of the answer"
            if found.enough
            else f"the answer is below {unknown.text(unknown.least)}, {unknown.least_of}, which is hardly told from 0"
        )
    if not found.enough:
        said.append(f"{_missed(found)}; {_advice(found)}")
    return said


def remarks_of_several(found: Frontier) -> list[str]:
    """Of two unknowns or three."""
    said = []
    if found.minimum is not None and found.verdict == "found":
        ends = zip(found.unknowns.given, found.minimum.as_good, strict=True)
        said += [f"as good: {', '.join(f'{one.field} {_range(one, pair)}' for one, pair in ends)}"]
    if not found.carries:
        missed = f"means that are left out are missed by {math.sqrt(found.misfit):.1f} times their error"
        said.append(f"the surface does not carry these means: {missed}; intervals are as much wider")
    if not found.enough:
        short = int((~found.frontier["enough"].astype(bool)).sum())
        said.append(
            f"{short} of {len(found.frontier)} rows have a wider interval than the {found.within * 100:g}% of "
            f"--within, or none, after {found.runs} of at most {found.most} runs; give --runs "
            f"{_rounded(2 * found.most)} or a wider --within"
        )
    return said


def _missed(found: Found) -> str:
    """What is not as it was asked for, and why."""
    runs = f"{found.runs} of at most {found.most} runs"
    why = f"after {runs}" if found.spent else f"no further seed of the values that were run tells more ({runs})"
    if found.verdict != "found":
        return f"the seeds of some values can't tell whether it holds there: {why}"
    return (
        f"the interval is wider than --within: an end is {_share(found.reached)} from the answer, where "
        f"{found.within * 100:g}% was asked for: {why}"
    )


def _advice(found: Found) -> str:
    if found.verdict != "found":
        return f"give --runs {_rounded(2 * found.most)}" if found.spent else "ask for a clearer difference in --want"
    wider = f"--within {_share(found.reached)}"
    if found.reached >= MOST_WITHIN:
        low, high = (found.unknown.text(rounded(one)) for one in found.interval)
        wider = f'--vary "{found.unknown.field}={low}..{high}"'
    if not found.spent:
        return f"give {wider}"
    # The error goes with the square root of the seeds.
    runs = max(2 * found.most, found.most * min(found.reached / found.within, 10) ** 2)
    return f"give --runs {_rounded(runs)}, or {wider}"


def _share(share: float) -> str:
    return f"{math.ceil(share * 100)}%" if math.isfinite(share) else "more than the answer"


def _rounded(runs: float) -> int:
    return _ROUND * math.ceil(runs / _ROUND)


def _range(unknown: Unknown, ends: tuple[float, float]) -> str:
    return " … ".join(dict.fromkeys(unknown.text(rounded(one)) for one in ends))
