"""A comparison as a table for a terminal."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any

from sawtooth.compare.comparison import INSIDE, OUTSIDE, UNKNOWN, Comparison
from sawtooth.io.text_table import aligned, cell
from sawtooth.sanitize import plain, sentence, where
from sawtooth.study.interval_text import of_time

HEADER = (
    *("point", "reference", "mean", "difference", "95% interval"),
    *("Δ q25", "Δ q50", "Δ q75", "retransmitted %", "timeouts", "RTT ms", ""),
)


def words(found: Comparison, width: int | None = None) -> str:
    """One block for each subject that is compared with the reference; goodput in Mbit/s.

    ``width`` is the terminal's, in characters: columns that do not fit follow in a second table below.
    """
    lines = about(found)
    for label, subject in zip(found.labels[1:], found.subjects[1:], strict=True):
        cells = [HEADER, *rows(found, label)]
        lines += ["", f"{plain(label)} ({where(subject.directory)})"]
        lines += aligned(cells, (0, len(HEADER) - 1), width)
    if found.differing:
        lines += ["", "the scenarios differ in:"]
        lines += [f"  {plain(name)}: {' | '.join(map(plain, values))}" for name, values in found.differing.items()]
    lines += alone(found)
    lines += ["", *(f"note: {sentence(note)}" for note in found.notes), verdict(found)]
    return "\n".join(lines)


def about(found: Comparison) -> list[str]:
    """What the others are compared with, and what the numbers are."""
    return [
        f"reference: {plain(found.labels[0])} ({where(found.subjects[0].directory)})",
        f"goodput in Mbit/s, {_times(found)}; the 95% interval and Δ q25 … Δ q75 are those of the difference",
    ]


def rows(found: Comparison, label: str) -> list[tuple[str, ...]]:
    """The cells below ``HEADER``, one row for each point of the subject with this label."""
    return [_cells(row) for row in found.table[found.table["against"] == label].to_dict("records")]


def alone(found: Comparison) -> list[str]:
    """For each subject, the points that only the others have."""
    return [f"not in {plain(label)}: {'; '.join(map(plain, missing))}" for label, missing in found.alone.items()]


def _times(found: Comparison) -> str:
    """Which seconds the means cover."""
    if len(set(found.spans)) == 1:
        return f"means of {of_time(*found.spans[0])}"
    each = (f"{label} of {of_time(*one)}" for label, one in zip(found.labels, found.spans, strict=True))
    return f"means over DIFFERENT times ({'; '.join(each)}); use --omit to make them equal"


def verdict(found: Comparison) -> str:
    """How many points are within the limit, and how many seeds would decide the others."""
    counts = {
        INSIDE: len(found.table) - found.outside - found.unknown,
        OUTSIDE: found.outside,
        f"{UNKNOWN} with these runs": found.unknown,
    }
    summary = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
    summary = f"within {found.within * 100:g}% of the reference's mean: {summary}"
    if not found.unknown:
        return summary
    needed = found.table.loc[found.table["verdict"] == UNKNOWN, "seeds_to_decide"]
    if needed.isna().all():
        return f"{summary}: the difference is close to the limit, or runs are too short for a confidence interval"
    some = "" if needed.notna().all() else f", for {needed.notna().sum()} of them"
    return f"{summary}; you need about {int(needed.max())} seeds on each side{some}"


def _cells(row: dict[Hashable, Any]) -> tuple[str, ...]:
    low, high = row["difference_low_mbps"], row["difference_high_mbps"]
    percent = row["difference_percent"]
    apart = cell(row["difference_mbps"], "+.2f") + ("" if math.isnan(percent) else f" ({percent:+.1f}%)")
    return (
        plain(row["point"]),
        cell(row["reference_mbps"]),
        cell(row["mean_mbps"]),
        apart,
        "-" if math.isnan(low) or low == high else f"{low:+.2f} … {high:+.2f}",
        *(cell(row[f"q{name}_difference_mbps"], "+.2f") for name in ("25", "50", "75")),
        *(_pair(row, name) for name in ("retransmitted_percent", "timeouts", "mean_srtt_ms")),
        "" if row["verdict"] == INSIDE else row["verdict"],
    )


def _pair(row: dict[Hashable, Any], name: str) -> str:
    return f"{cell(row[f'reference_{name}'], '.4g')} → {cell(row[name], '.4g')}"
