"""The table of a study's results for a terminal."""

from __future__ import annotations

import math

from sawtooth.study.means import interval, intervals, means
from sawtooth.study.result import ALL, StudyResult


def table(result: StudyResult) -> str:
    """One line a point, all seeds together; throughput in Mbit/s, the mean with its 95% interval."""
    keys = list(result.places[0].key)
    compared = result.published is not None
    header = [*keys, "mean", "95% interval", "std", "median", "change"]
    header += ["published", "ratio"] if compared else []
    lines = [header]
    x = result.study.roles().x
    before = None
    for row in result.records:
        group = [row[key] for key in keys if key != x]
        if before is not None and group != before:
            lines.append([])
        before = group
        cells = [*(plain(row[key]) for key in keys), _number(row["mean_mbps"]), interval(row)]
        cells += [_number(row["std_mbps"]), _number(row["q50_mbps"]), _percent(row["change_percent"])]
        if compared:
            cells += [_number(row["published_mean_mbps"]), _number(row["ratio"])]
        lines.append(cells)
    title = result.study.title or result.study.name
    seeds = len({place.seed for place in result.places})
    about = f"throughput in Mbit/s, {means(result.records)}; engine {result.engine}; "
    about += f"{seeds} seed{'s' if seeds > 1 else ''} a point"
    words = [at for at, key in enumerate(keys) if isinstance(result.places[0].key[key], str)]
    notes = [line for line in (about, intervals(result.records)) if line]
    return "\n".join([title, *notes, "", *_aligned(lines, words), *_shares(result, keys, words)])


def _shares(result: StudyResult, keys: list[str], words: list[int]) -> list[str]:
    """What each flow of a point gets, where there are several."""
    if result.shares.empty:
        return []
    lines = [[*keys, "flow", "mean", "std", "share", "Jain's index"]]
    for row in result.shares[result.shares["seed"] == ALL].to_dict("records"):
        share = "-" if math.isnan(row["share_percent"]) else f"{row['share_percent']:.1f}%"
        cells = [*(plain(row[key]) for key in keys), row["flow"], _number(row["mean_mbps"]), _number(row["std_mbps"])]
        lines.append([*cells, share, "-" if math.isnan(row["jain"]) else f"{row['jain']:.3f}"])
    return ["", "each flow, and Jain's index over its connections", "", *_aligned(lines, [*words, len(keys)])]


def _aligned(lines: list[list[str]], words: list[int]) -> list[str]:
    """Columns side by side; those in ``words`` are text, to the left. An empty line stays one."""
    widths = [max(len(line[at]) for line in lines if line) for at in range(len(lines[0]))]
    return [
        "  ".join(
            cell.ljust(width) if at in words else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(line, widths, strict=False))
        ).rstrip()
        for line in lines
    ]


def plain(value: object) -> str:
    """A key column's value as people write it: 1, not 1.0."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.2f}"


def _percent(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:+.1f}%"
