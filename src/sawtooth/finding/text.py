"""An answer as a terminal shows it."""

from __future__ import annotations

import math

from sawtooth.columns import aligned
from sawtooth.finding.found import Answers, Found, _rounded
from sawtooth.study.terminal import plain

_SHORT = {"found": "", "always": "always", "never": "never", "unclear": "can't tell"}


def words(found: Found | Answers, width: int | None = None) -> str:
    """Several lines."""
    return _answers(found, width) if isinstance(found, Answers) else _found(found, width)


def _found(found: Found, width: int | None) -> str:
    unknown = found.unknown
    told = [f"{found.want}", f"unknown: {unknown.told()}; engine {found.engine}", "", f"answer: {found.answer}"]
    told += remarks(found)
    told += ["", *aligned(cells(found), [4], width, keys=1)]
    if found.checks:
        told += ["", *aligned(checked(found), [4], width, keys=1)]
    return "\n".join([*told, "", cost(found)])


def cells(found: Found) -> list[list[str]]:
    """The table of values that were looked at, under its heads."""
    text, show = found.unknown.text, found.dimension.show
    return [[found.unknown.field, "left side", "right side", "seeds", "holds"]] + [
        [text(row["value"]), show(row["left"]), show(row["right"]), str(row["seeds"]), row["holds"]]
        for row in found.table.to_dict("records")
    ]


def checked(found: Found) -> list[list[str]]:
    """What another engine says, under its heads; empty where none was asked."""
    text, show = found.unknown.text, found.dimension.show
    heads = [[f"on {found.checks[0].engine}", "left side", "right side", "seeds", "holds"]] if found.checks else []
    return heads + [
        [text(one.value), show(one.left), show(one.right), str(one.seeds), one.holds] for one in found.checks
    ]


def remarks(found: Found) -> list[str]:
    """What is to be known with the answer."""
    said = []
    if not found.monotone:
        pairs = "; ".join(" and ".join(found.unknown.text(one) for one in pair) for pair in found.changes)
        said.append(f"not monotone: it begins or ends to hold between {pairs}; the answer is the first of these")
    if not found.enough:
        said.append(
            f"the runs did not suffice for an interval within {found.within * 100:g}%: --runs gives more of them"
        )
    return said


def _answers(found: Answers, width: int | None) -> str:
    first = found.found[0]
    keys = len(found.keys[0])
    side = {"below": "up to", "above": "from"}[
        next((one.holds for one in found.found if one.verdict == "found"), "below")
    ]
    told = [first.want, f"unknown: {first.unknown.told()}; engine {first.engine}; it holds {side} the value", ""]
    told += aligned(summed(found), [*range(keys), keys + 3], width, keys=keys)
    return "\n".join([*told, "", cost(found)])


def summed(found: Answers) -> list[list[str]]:
    """A row an answer, under its heads."""
    first = found.found[0]
    keys = list(found.keys[0])
    lines = [[*keys, first.unknown.field, "95% interval", "runs", ""]]
    for key, one in zip(found.keys, found.found, strict=True):
        text = one.unknown.text
        known = not math.isnan(one.value)
        value = text(_rounded(one.value)) if known else _SHORT[one.verdict]
        ends = " … ".join(text(_rounded(end)) for end in one.interval) if known else ""
        remark = "not monotone" if not one.monotone else "" if one.enough else "too few runs"
        lines.append([*(plain(key[name]) for name in keys), value, ends, str(one.runs), remark])
    return lines


def cost(found: Found | Answers) -> str:
    """In runs and work."""
    return f"cost: {found.runs} runs, {found.seconds:.1f} s of work"
