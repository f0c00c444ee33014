"""What the terminal shows of a comparison: how many figures agree, and those that differ most."""

from __future__ import annotations

import math
from collections.abc import Sequence

from sawtooth.figures.palette import shown
from sawtooth.io.text_table import aligned
from sawtooth.replication.evaluation import LEAST, SPREADS, Evaluation, Row

MOST = 10
"""Rows of cells that the terminal shows. The page and cells.csv have all."""

RULE = (
    f"inside: within {SPREADS} standard deviations of the authors' runs, or {LEAST:.0%} where that is more; "
    "chance: outside, by no more than seeds differ here; perfect: how many a perfect simulator would have inside"
)


def words(judged: Evaluation, width: int | None = None) -> str:
    """Two tables and what was left out."""
    parts = [summary([judged], width)]
    worst = judged.worst[:MOST]
    if worst:
        keys = list(judged.replication.keys)
        head = [*keys, "compared", "published", "ours", "difference", "cause"]
        lines = [
            [*(shown(row.cell[key]) for key in keys), judged.title(row.compared), *_figures(row), row.cause]
            for row in worst
        ]
        text = {*range(len(keys) + 1), len(head) - 1}
        title = f"farthest from the published figures ({len(worst)} of {len(judged.worst)} outside):"
        parts.append(f"{title}\n" + "\n".join(aligned([head, *lines], sorted(text), width, keys=len(keys))))
    if judged.replication.left_out:
        count = len(judged.replication.left_out)
        reasons = dict.fromkeys(why for _, why in judged.replication.left_out)
        parts.append(f"left out: {count} cell{'s' if count > 1 else ''}: {'; '.join(reasons)}")
    return "\n\n".join(parts)


def summary(found: Sequence[Evaluation], width: int | None = None) -> str:
    """One line per compared column of every replication."""
    head = ["replication", "compared", "figures", "inside", "chance", "share", "perfect", "median", "90%"]
    lines = []
    for judged in found:
        for row in judged.summary():
            cells, inside = row["cells"], row["inside"]
            share = f"{inside / cells:.1%}" if cells else "–"
            apart = [percent(row[name]) for name in ("median_percent", "p90_percent")]
            counts = [str(cells), str(inside), str(row["chance"])]
            perfect = f"{row['attainable']:.0f}"
            lines.append([judged.replication.name, row["compared"], *counts, share, perfect, *apart])
    total, within = sum(len(one.rows) for one in found), sum(one.inside for one in found)
    if len(lines) > 1 and total:
        chance = str(sum(one.chance for one in found))
        perfect = f"{sum(one.attainable for one in found):.0f}"
        lines.append(["all", "", str(total), str(within), chance, f"{within / total:.1%}", perfect, "", ""])
    return "\n".join([*aligned([head, *lines], (0, 1), width, keys=2), RULE])


def percent(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.1f}%"


def plus_minus(value: float, spread: float) -> str:
    """A figure with its standard deviation, if it has one."""
    if math.isnan(value):
        return "–"
    return f"{value:.4g}" if math.isnan(spread) else f"{value:.4g} ± {spread:.2g}"


def _figures(row: Row) -> list[str]:
    difference = "–" if math.isnan(row.difference) or math.isnan(row.ours) else f"{100 * row.difference:+.1f}%"
    return [plus_minus(row.published, row.spread), plus_minus(row.ours, row.ours_sd), difference]
