"""A judgement as lines for a terminal."""

from __future__ import annotations

import math

from sawtooth.assertions.judgement import ABSENT, FAILS, HOLDS, ONE_SEED, UNKNOWN, Judgement, Verdict
from sawtooth.sanitize import plain, sentence
from sawtooth.scenario.expressions import Dimension
from sawtooth.stats import Interval


def words(found: Judgement) -> str:
    """One line per case with its verdict, both sides with their intervals below it, and a last line with the counts."""
    lines = []
    for one in found.verdicts:
        lines.append(f"{one.verdict:10}  {plain(one.title)}")
        lines.append(f"            {expectation_text(one) if one.name != one.text else sides(one)}")
    return "\n".join([*lines, counted(found)])


def expectation_text(one: Verdict) -> str:
    """The expectation, followed by ``sides``."""
    return f"{plain(one.text)}: {sides(one)}"


def sides(one: Verdict, several: str = "--seeds 5") -> str:
    """Both sides; if inconclusive, why, and what would decide. ``several`` is how to request more seeds here."""
    if math.isnan(one.margin.mean):
        return sentence(one.reason or "no value to judge by")
    both = f"{amount(one.left, one.dimension)} against {amount(one.right, one.dimension)}"
    if one.verdict == UNKNOWN:
        why = one.reason or f"the confidence interval of the margin is {bounds(one.margin, one.dimension)}"
        why += f", {several}" if one.reason == ONE_SEED else ""
        return f"{both}; {sentence(why)}{needed(one)}"
    return both


def needed(one: Verdict) -> str:
    """How many seeds would decide, as the end of a sentence; empty if unknown."""
    return "" if one.seeds_to_decide is None else f"; you need about {one.seeds_to_decide} seeds"


def amount(one: Interval, dimension: Dimension) -> str:
    """A value with its 95% interval, if it has one with a width."""
    if math.isnan(one.low) or one.low == one.high:
        return dimension.show(one.mean)
    return f"{dimension.show(one.mean)} {bounds(one, dimension)}"


def bounds(one: Interval, dimension: Dimension) -> str:
    """An interval in brackets."""
    return f"[{dimension.show(one.low)}, {dimension.show(one.high)}]"


def counted(found: Judgement) -> str:
    """How many hold, fail, and are inconclusive."""
    counts = {
        "hold": found.count(HOLDS),
        "fail": found.count(FAILS),
        UNKNOWN: found.count(UNKNOWN),
        ABSENT: found.count(ABSENT),
    }
    return "expectations: " + ", ".join(f"{count} {word}" for word, count in counts.items() if count or word == "hold")
