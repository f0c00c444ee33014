"""The table of a study's results for a terminal."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sawtooth.study.result import StudyResult


def table(result: StudyResult) -> str:
    """One line a point, all seeds together; throughput in Mbit/s, the mean with its 95% interval."""
    keys = list(result.places[0].key)
    compared = result.published is not None
    header = [*keys, "mean", "95% interval", "std", "median", "change"]
    header += ["published", "ratio"] if compared else []
    lines = [header]
    before = None
    for row in result.records:
        group = [row[key] for key in keys if key != result.study.roles().x]
        if before is not None and group != before:
            lines.append([])
        before = group
        interval = "-" if math.isnan(row["ci_low_mbps"]) else f"{row['ci_low_mbps']:.2f} … {row['ci_high_mbps']:.2f}"
        cells = [*(plain(row[key]) for key in keys), _number(row["mean_mbps"]), interval]
        cells += [_number(row["std_mbps"]), _number(row["q50_mbps"]), _percent(row["change_percent"])]
        if compared:
            cells += [_number(row["published_mean_mbps"]), _number(row["ratio"])]
        lines.append(cells)
    widths = [max(len(line[at]) for line in lines if line) for at in range(len(header))]
    text_columns = {at for at, key in enumerate(keys) if isinstance(result.places[0].key[key], str)}
    body = [
        "  ".join(
            cell.ljust(width) if at in text_columns else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(line, widths, strict=False))
        ).rstrip()
        for line in lines
    ]
    title = result.study.title or result.study.name
    seeds = len({place.seed for place in result.places})
    about = f"throughput in Mbit/s; engine {result.engine}; {seeds} seed{'s' if seeds > 1 else ''} a point"
    return "\n".join([title, about, "", *body])


def plain(value: object) -> str:
    """A key column's value as people write it: 1, not 1.0."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.2f}"


def _percent(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:+.1f}%"
