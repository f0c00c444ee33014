"""The result in words, for a terminal and as a Markdown page."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from sawtooth.compare.fidelity.differences import REFERENCE, TRIED
from sawtooth.compare.fidelity.measures import MEASURES, SHARE
from sawtooth.io.text_table import aligned

if TYPE_CHECKING:
    from pandas import DataFrame

    from sawtooth.compare.fidelity.fidelity import Fidelity

SHOWN = 10
_SHORT = (
    "mean_mbps",
    "std_mbps",
    "retransmits",
    "timeouts",
    "tail_probes",
    "mean_rtt_ms",
    "p95_rtt_ms",
    "queue_packets",
    "delay_ms",
    "p95_probe_ms",
    "drops",
    "marks",
    "fct_ms",
    "response_ms",
    "page_ms",
)
_UNITS = {
    "mean_mbps": "Mbit/s",
    "std_mbps": "Mbit/s",
    "mean_rtt_ms": "ms",
    "p95_rtt_ms": "ms",
    "queue_packets": "packets",
    "delay_ms": "ms",
    "p95_probe_ms": "ms",
    "fct_ms": "ms",
    "response_ms": "ms",
    "page_ms": "ms",
}
EXPLAINED = (
    "A difference is exp |ln(sim/kernel)| - 1. Noise is that of both sides: the 95% intervals of the means over seeds, "
    "added in squares. Counts up to 50 in all runs of the kernel, queues below 1 packet, delays in queues below 1 ms "
    "and deviations below 1% of the mean are left out."
)


def words(found: Fidelity, shown: int = SHOWN) -> str:
    """The summary, the points whose throughput differs most, and what is missing."""
    lines = [f"{found.grid}: {len(found.points)} points, sim against kernel", ""]
    lines += _aligned(_summary_rows(found.summary))
    lines += ["", "largest differences of throughput, Mbit/s:"]
    lines += _aligned(_worst_rows(found.differences, shown))
    lines += ["", EXPLAINED]
    if found.unmeasured:
        names = ", ".join(found.unmeasured[:3]) + (" …" if len(found.unmeasured) > 3 else "")
        lines.append(f"not in the kernel's record, so not compared: {len(found.unmeasured)} points ({names})")
    return "\n".join(lines)


def page(found: Fidelity) -> str:
    """The same as Markdown, with every point and the builds used."""
    lines = [
        "# The simulator beside the real kernel",
        "",
        f"{len(found.points)} points of `{found.grid.name}`. {EXPLAINED}",
        "",
        *_markdown(_summary_rows(found.summary)),
        "",
        "![Ratio of simulator to kernel at each point](fidelity.png)",
        "",
        "## Largest differences of throughput",
        "",
        *_markdown(_worst_rows(found.differences, 3 * SHOWN)),
        "",
        "## All points",
        "",
        "`kernel → sim`; in brackets the difference if it exceeds the noise.",
        "",
        *_markdown(_point_rows(found)),
        "",
        "## Builds",
        "",
        *_markdown([["build", "what it is"], *([digest, _build(about)] for digest, about in found.builds.items())]),
    ]
    if found.unmeasured:
        lines += ["", f"Not in the kernel's record: {', '.join(found.unmeasured)}."]
    return "\n".join(lines) + "\n"


def percent(size: float) -> str:
    """A fraction as percent: 0.0312 as 3.1%."""
    return "∞" if math.isinf(size) else f"{100 * size:.1f}%" if size < 1 else f"{100 * size:.0f}%"


def _summary_rows(summary: DataFrame) -> list[list[str]]:
    rows = [["measure", "points", "median", "p90", "worst", "within noise", "median noise", "goal", "", "worst point"]]
    for row in summary.to_dict("records"):
        verdict = {True: "met", False: "missed"}.get(row["met"], "")
        sizes = [percent(row[word]) for word in ("median", "p90", "worst")]
        cells = [row["title"], str(row["points"]), *sizes, str(row["in_noise"]), percent(row["noise"])]
        rows.append([*cells, row["goal"], verdict, row["worst_point"]])
    return rows


def _worst_rows(differences: DataFrame, shown: int) -> list[list[str]]:
    kept = differences[(differences["measure"] == MEASURES[0].name)]
    kept = kept.loc[kept["ln_ratio"].abs().sort_values(ascending=False, kind="stable").index[:shown]]
    rows = [["point", "kernel", "sim", "difference", "noise", ""]]
    for row in kept.to_dict("records"):
        cells = [str(row["point"]), _mean(row, REFERENCE), _mean(row, TRIED), _signed(row["ln_ratio"])]
        rows.append([*cells, percent(math.expm1(row["ln_noise"])), "within noise" if row["in_noise"] else ""])
    return rows


def _point_rows(found: Fidelity) -> list[list[str]]:
    titles = {measure.name: measure.title for measure in MEASURES}
    head = [titles[name] + (f", {_UNITS[name]}" if name in _UNITS else "") for name in _SHORT]
    rows = [["point", "runs × s", *head, SHARE.title]]
    runs = {(row["point"], row["engine"]): row for row in found.table.to_dict("records")}
    for name, group in found.differences.groupby("point", sort=False):
        sides = [runs[name, engine] for engine in (REFERENCE, TRIED)]
        made = " → ".join(str(side["runs"]) for side in sides) + f" × {sides[0]['seconds']:g}"
        by_measure = {row["measure"]: row for row in group.to_dict("records") if row["measure"] != SHARE.name}
        cells = [_cell(by_measure[measure]) if measure in by_measure else "–" for measure in _SHORT]
        shares = [f"{row['share_of']} {_cell(row)}" for row in group.to_dict("records") if row["measure"] == SHARE.name]
        rows.append([str(name), made, *cells, "; ".join(shares)])
    return rows


def _cell(row: dict[Any, Any]) -> str:
    text = f"{row[REFERENCE]:.3g} → {row[TRIED]:.3g}"
    return f"{text} ({_signed(row['ln_ratio'])})" if row["enough"] and not row["in_noise"] else text


def _mean(row: dict[Any, Any], side: str) -> str:
    return f"{row[side]:.4g} ± {row[f'{side}_error']:.2g} ({int(row[f'{side}_runs'])} runs)"


def _signed(ratio: float) -> str:
    return "−∞" if ratio == -math.inf else "+∞" if ratio == math.inf else f"{100 * math.expm1(ratio):+.1f}%"


def _build(about: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in about.items())


def _aligned(rows: list[list[str]]) -> list[str]:
    return aligned(rows, (0, len(rows[0]) - 1))


def _markdown(rows: list[list[str]]) -> list[str]:
    head, *body = rows
    return [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *body)]
