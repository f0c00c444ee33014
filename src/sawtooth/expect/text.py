"""A judgement as lines for a terminal."""

from __future__ import annotations

import math

from sawtooth.expect.judgement import ABSENT, FAILS, HOLDS, ONE_SEED, UNKNOWN, Judgement, Verdict
from sawtooth.plain import plain, sentence
from sawtooth.stats import Interval
from sawtooth.wanted import Dimension


def words(found: Judgement) -> str:
    """A line a case with its verdict, below it both sides with their intervals, and a last line that counts."""
    lines = []
    for one in found.verdicts:
        lines.append(f"{one.verdict:10}  {plain(one.title)}")
        lines.append(f"            {said(one) if one.name != one.text else sides(one)}")
    return "\n".join([*lines, counted(found)])


def said(one: Verdict) -> str:
    """The expectation, and what ``sides`` says."""
    return f"{plain(one.text)}: {sides(one)}"


def sides(one: Verdict, several: str = "--seeds 5") -> str:
    """Both sides; of what can't be told why, and what would tell. ``several`` is how seeds are asked for here."""
    if math.isnan(one.margin.mean):
        return sentence(one.reason or "no value to judge by")
    told = f"{amount(one.left, one.dimension)} against {amount(one.right, one.dimension)}"
    if one.verdict == UNKNOWN:
        why = one.reason or f"the confidence interval of the margin is {bounds(one.margin, one.dimension)}"
        why += f", {several}" if one.reason == ONE_SEED else ""
        return f"{told}; {sentence(why)}{needed(one)}"
    return told


def needed(one: Verdict) -> str:
    """How many seeds would tell, as the end of a sentence; empty where that is not known."""
    return "" if one.seeds_to_decide is None else f"; you need about {one.seeds_to_decide} seeds"


def amount(one: Interval, dimension: Dimension) -> str:
    """A value with its 95% interval, where it has one that is not the value itself."""
    if math.isnan(one.low) or one.low == one.high:
        return dimension.show(one.mean)
    return f"{dimension.show(one.mean)} {bounds(one, dimension)}"


def bounds(one: Interval, dimension: Dimension) -> str:
    """An interval in brackets."""
    return f"[{dimension.show(one.low)}, {dimension.show(one.high)}]"


def counted(found: Judgement) -> str:
    """How many hold, fail, and can't be told."""
    counts = {
        "hold": found.count(HOLDS),
        "fail": found.count(FAILS),
        UNKNOWN: found.count(UNKNOWN),
        ABSENT: found.count(ABSENT),
    }
    return "expectations: " + ", ".join(f"{count} {word}" for word, count in counts.items() if count or word == "hold")
