"""A comparison as a table for a terminal."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any

from sawtooth.compare.comparison import OUTSIDE, Comparison

_HEADER = (
    *("point", "reference", "mean", "difference", "95% interval"),
    *("q25", "q50", "q75", "retransmitted %", "timeouts", "RTT ms", ""),
)


def words(found: Comparison) -> str:
    """One block for each subject that is compared with the reference; throughput in Mbit/s."""
    lines = [f"reference: {found.labels[0]} ({found.subjects[0].directory}); throughput and differences in Mbit/s"]
    for label, subject in zip(found.labels[1:], found.subjects[1:], strict=True):
        rows = found.table[found.table["against"] == label].to_dict("records")
        cells = [_HEADER, *(_cells(row) for row in rows)]
        widths = [max(len(row[at]) for row in cells) for at in range(len(_HEADER))]
        lines += ["", f"{label} ({subject.directory})"]
        for row in cells:
            numbers = [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
            lines.append("  ".join([row[0].ljust(widths[0]), *numbers]).rstrip())
    if found.differing:
        lines += ["", "the scenarios differ in:"]
        lines += [f"  {name}: {' | '.join(map(str, values))}" for name, values in found.differing.items()]
    for label, missing in found.alone.items():
        lines.append(f"not in {label}: {'; '.join(missing)}")
    total = len(found.table)
    verdict = f"{found.outside} of {total} outside" if found.outside else f"all {total} within"
    lines += ["", f"{verdict} {found.within * 100:g}% of the reference's mean"]
    return "\n".join(lines)


def _cells(row: dict[Hashable, Any]) -> tuple[str, ...]:
    low, high = row["difference_low_mbps"], row["difference_high_mbps"]
    percent = row["difference_percent"]
    apart = _number(row["difference_mbps"], sign=True) + ("" if math.isnan(percent) else f" ({percent:+.1f}%)")
    return (
        row["point"],
        _number(row["reference_mbps"]),
        _number(row["mean_mbps"]),
        apart,
        "-" if math.isnan(low) else f"{low:+.2f} … {high:+.2f}",
        *(_number(row[f"q{name}_difference_mbps"], sign=True) for name in ("25", "50", "75")),
        *(_pair(row, name) for name in ("retransmitted_percent", "timeouts", "mean_srtt_ms")),
        OUTSIDE if row["verdict"] == OUTSIDE else "",
    )


def _pair(row: dict[Hashable, Any], name: str) -> str:
    return f"{_short(row[f'reference_{name}'])} → {_short(row[name])}"


def _short(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.4g}"


def _number(value: float, *, sign: bool = False) -> str:
    if math.isnan(value):
        return "-"
    return f"{value:+.2f}" if sign else f"{value:.2f}"
