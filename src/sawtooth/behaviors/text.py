"""What the terminal shows of compared kernels: the counts, and the largest changes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from sawtooth.behaviors.changes import FALSE_DISCOVERIES, VERDICTS, Change, Comparison
from sawtooth.io.text_table import aligned

MOST = 12
"""Changes that the terminal names. The page and kernels.csv have all."""

RULE = (
    "Same: equal tables for every seed, to the byte. Changed: the means over seeds differ by more than the tolerance; "
    f"on average at most {FALSE_DISCOVERIES:.0%} of them are false, where seeds vary. Equal: the 95% interval of the "
    "difference is within the tolerance."
)


def words(comparisons: Sequence[Comparison], width: int | None = None) -> str:
    first = comparisons[0].reference
    head = ["kernel", "Linux", *VERDICTS]
    rows = [
        [one.other.label, one.other.kernel.version, *(str(one.count(verdict)) for verdict in VERDICTS)]
        for one in comparisons
    ]
    heading = (
        f"{len(comparisons[0].changes)} behaviors, compared with {first.label} (Linux {first.kernel.version}), "
        f"tolerance {comparisons[0].tolerance}:"
    )
    parts = [f"{heading}\n" + "\n".join(aligned([head, *rows], (0, 1), width))]
    for one in comparisons:
        if found := one.changed:
            heading = f"changed in {one.other.label} ({min(MOST, len(found))} of {len(found)}):"
            lines = [["situation", "measure", "before", "after", "change"], *map(line, found[:MOST])]
            parts.append(f"{heading}\n" + "\n".join(aligned(lines, (0, 1), width)))
    failed = {side.label: len(side.failures) for side in (first, *(one.other for one in comparisons)) if side.failures}
    if failed:
        counts = ", ".join(f"{label} {count}" for label, count in failed.items())
        parts.append(f"Failed runs: {counts}. The page says why, and the same command runs them again.")
    return "\n\n".join([*parts, RULE])


def line(one: Change) -> list[str]:
    """A behavior as a row."""
    return [one.situation, one.title, number(one.before), number(one.after), effect(one)]


def number(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.4g}"


def effect(one: Change) -> str:
    """The difference in percent, or in the unit where the reference is 0, with its interval."""
    difference = one.after - one.before
    if math.isnan(difference):
        return "–"
    if one.before == 0:
        return f"{difference:+.4g}"
    low, high = (100 * bound / one.before for bound in (one.low, one.high))
    percent = f"{100 * difference / abs(one.before):+.1f}%"
    return percent if math.isnan(low) or low == high else f"{percent} ({min(low, high):+.1f} to {max(low, high):+.1f})"
