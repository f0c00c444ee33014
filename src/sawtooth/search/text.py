"""An answer as text for a terminal."""

from __future__ import annotations

import math

from sawtooth.io.text_table import aligned
from sawtooth.search.answering import rounded
from sawtooth.search.answers import Answers
from sawtooth.search.frontier import Frontier
from sawtooth.search.result import Threshold
from sawtooth.study.terminal import plain

_EVERYWHERE = {"always": "any", "never": "none", "unclear": "inconclusive"}
_SHORT = {"found": "", "always": "always", "never": "never", "unclear": "inconclusive"}


def words(found: Threshold | Frontier | Answers, width: int | None = None) -> str:
    """Several lines."""
    return _answers(found, width) if isinstance(found, Answers) else _found(found, width)


def _found(found: Threshold | Frontier, width: int | None) -> str:
    lines = [f"{found.want}", f"{unknowns(found)}; engine {found.engine}", "", f"answer: {found.answer}"]
    lines += found.remarks
    if isinstance(found, Frontier):
        keys = len(found.unknowns.given)
        lines += ["", *aligned(frontier(found), [keys + 2], width, keys=keys)]
    else:
        keys = 1
        lines += ["", *aligned(cells(found), [4], width, keys=1)]
    if found.checks:
        keys = len(found.fields) if isinstance(found, Frontier) else 1
        lines += ["", *aligned(checked(found), [keys + 3], width, keys=keys)]
    return "\n".join([*lines, "", cost(found)])


def unknowns(found: Threshold | Frontier) -> str:
    """The fields that are searched, and over which ranges."""
    if isinstance(found, Threshold):
        return f"unknown: {found.unknown.describe()}"
    over = "; ".join(one.describe() for one in found.unknowns.given)
    return f"unknown: {found.unknowns.answered.describe()}; over {over}"


def frontier(found: Frontier) -> list[list[str]]:
    """The value of the last unknown for values of the others, under headings."""
    space = found.unknowns
    text, side = space.answered.text, {"below": "up to", "above": "from"}[found.holds]
    lines = [[*(one.field for one in space.given), f"{space.answered.field} {side}", "95% interval", ""]]
    for row in found.frontier.to_dict("records"):
        known = row["verdict"] == "found"
        value = text(rounded(row["value"])) if known else _EVERYWHERE[row["verdict"]]
        ends = " … ".join(text(rounded(row[end])) for end in ("low", "high")) if known else ""
        remark = "" if row["enough"] else "wider than --within" if known else "inconclusive"
        lines.append([*(one.text(row[one.field]) for one in space.given), value, ends, remark])
    return lines


def cells(found: Threshold | Frontier) -> list[list[str]]:
    """The table of points tried, under headings."""
    show = found.dimension.show
    if isinstance(found, Frontier):
        lines = [[*found.fields, "left side", "right side", "seeds", "holds"]]
        for row in found.table.to_dict("records"):
            values = [one.text(row[one.field]) for one in found.unknowns.unknowns]
            lines.append([*values, show(row["left"]), show(row["right"]), str(row["seeds"]), row["holds"]])
        return lines
    text = found.unknown.text
    return [[found.unknown.field, "left side", "right side", "seeds", "holds"]] + [
        [text(row["value"]), show(row["left"]), show(row["right"]), str(row["seeds"]), row["holds"]]
        for row in found.table.to_dict("records")
    ]


def checked(found: Threshold | Frontier) -> list[list[str]]:
    """The other engine's results, under headings; empty if none was used."""
    if not found.checks:
        return []
    several = isinstance(found, Frontier)
    engine, show = f"on {found.checks[0].engine}", found.dimension.show
    heads = [f"{engine}: {found.fields[0]}", *found.fields[1:]] if isinstance(found, Frontier) else [engine]
    axes = found.unknowns.unknowns if isinstance(found, Frontier) else (found.unknown,)
    lines = [[*heads, "left side", "right side", "seeds", "holds"]]
    for one in found.checks:
        values = [axis.text(value) for axis, value in zip(axes, one.value if several else [one.value], strict=True)]
        lines.append([*values, show(one.left), show(one.right), str(one.seeds), one.holds])
    return lines


def _answers(found: Answers, width: int | None) -> str:
    first = found.found[0]
    keys = len(found.keys[0])
    if isinstance(first, Frontier):
        keys += len(first.unknowns.given)
    side = {"below": "up to", "above": "from"}[
        next((one.holds for one in found.found if one.verdict == "found"), "below")
    ]
    lines = [first.want, f"{unknowns(first)}; engine {first.engine}; the condition holds {side} the value", ""]
    lines += aligned(summed(found), [*range(keys), keys + 3], width, keys=keys)
    return "\n".join([*lines, "", cost(found)])


def summed(found: Answers) -> list[list[str]]:
    """One row per answer, under headings; with several unknowns one per row of the frontier."""
    first = found.found[0]
    given = first.unknowns.given if isinstance(first, Frontier) else ()
    answered = first.unknowns.answered if isinstance(first, Frontier) else first.unknown
    lines = [[*found.keys[0], *(one.field for one in given), answered.field, "95% interval", "runs", ""]]
    for key, one in zip(found.keys, found.found, strict=True):
        for row in one.rows():
            known = not math.isnan(row["value"])
            value = answered.text(rounded(row["value"])) if known else _SHORT[row["verdict"]]
            ends = " … ".join(answered.text(rounded(row[end])) for end in ("low", "high")) if known else ""
            monotone, carries = row.get("monotone", True), row.get("carries", True)
            remark = "not monotone" if not monotone else "wider than --within" if not row["enough"] else ""
            if isinstance(one, Threshold) and one.contradictions:
                remark = ", ".join(part for part in (remark, f"{one.checks[0].engine} disagrees") if part)
            cells = [*(plain(key[name]) for name in key), *(axis.text(row[axis.field]) for axis in given)]
            lines.append([*cells, value, ends, str(one.runs), remark or ("" if carries else "surface does not fit")])
    return lines


def cost(found: Threshold | Frontier | Answers) -> str:
    """The cost in runs and work; with several unknowns compared with a grid's."""
    text = f"cost: {found.runs} runs, {found.seconds:.1f} s of computation"
    each = found.found if isinstance(found, Answers) else (found,)
    grid = sum(one.grid_runs for one in each if isinstance(one, Frontier))
    within = f"{each[0].within * 100:g}%"
    return f"{text}; a grid with the same rows, steps of {within} and 8 seeds would take {grid} runs" if grid else text
