"""The headline of a study of probes: a flow's goodput, the estimate from probes, and how often the estimate fits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pandas import DataFrame

NAMES = ("flow", "probe")
"""Columns of ``study.probed`` that distinguish the rows of one run; shown if there are several."""


@dataclass(frozen=True)
class Fit:
    """How well estimates fit. Of ``windows``, ``estimated`` have an estimate with the error |estimate / truth - 1|; for
    ``inside`` of these the 90% interval contains the truth. ``silent`` counts the others by reason."""

    windows: int
    estimated: int
    median_error: float
    worst_error: float
    inside: int
    silent: dict[str, int]

    @classmethod
    def of(cls, table: DataFrame) -> Fit:
        """From the rows of ``study.probed`` in which flows ran."""
        rows = table[table["true_mbps"] > 0]
        with_estimate = rows[rows["estimate_mbps"].notna()]
        error = (with_estimate["estimate_mbps"] / with_estimate["true_mbps"] - 1).abs()
        above = with_estimate["low_mbps"].isna() | (with_estimate["low_mbps"] <= with_estimate["true_mbps"])
        below = with_estimate["high_mbps"].isna() | (with_estimate["true_mbps"] <= with_estimate["high_mbps"])
        silent = rows[rows["estimate_mbps"].isna()]
        why = (silent["probe_reason"] + silent["probe_state"]).value_counts()
        return cls(
            len(rows),
            len(with_estimate),
            float(error.median()) if len(with_estimate) else math.nan,
            float(error.max()) if len(with_estimate) else math.nan,
            int((above & below).sum()),
            {str(name): int(count) for name, count in why.items()},
        )

    @property
    def words(self) -> str:
        """One sentence."""
        without = ", ".join(f"{count} {why}" for why, count in self.silent.items())
        if not self.estimated:
            return f"no estimate of {self.windows} ({without})"
        rest = f"; without one: {without}" if without else ""
        return (
            f"{self.estimated} of {self.windows} have an estimate, with an error of {self.median_error:.1%} in the "
            "median and "
            f"{self.worst_error:.0%} at worst; {self.inside} of {self.estimated} intervals contain the true value{rest}"
        )


def summary(table: DataFrame, keys: Sequence[str]) -> list[dict[str, Any]]:
    """One row per point, flow and series of probes: medians over windows and seeds, the 90% interval if there is one
    window only, and ``why`` there is no estimate. Rows in which no flow ran are left out."""
    rows = []
    for values, group in table[table["true_mbps"] > 0].groupby([*keys, *NAMES], sort=False):
        with_estimate = group[group["estimate_mbps"].notna()]
        row: dict[str, Any] = dict(zip([*keys, *NAMES], values, strict=True))
        single = len(group) == 1 and len(with_estimate) == 1
        rows.append(
            row
            | {
                "true_mbps": float(group["true_mbps"].median()),
                "estimate_mbps": float(with_estimate["estimate_mbps"].median()) if len(with_estimate) else math.nan,
                "low_mbps": float(with_estimate["low_mbps"].iloc[0]) if single else math.nan,
                "high_mbps": float(with_estimate["high_mbps"].iloc[0]) if single else math.nan,
                "ratio": float((with_estimate["estimate_mbps"] / with_estimate["true_mbps"]).median())
                if len(with_estimate)
                else math.nan,
                "single": single,
                "fit": Fit.of(group),
            }
        )
    return rows


def interval(row: dict[str, Any]) -> str:
    """The 90% interval of a row of ``summary``, or how many intervals contain the truth, or why there is none."""
    fit: Fit = row["fit"]
    if not fit.estimated:
        return ", ".join(fit.silent)
    if not row["single"]:
        return f"{fit.inside} of {fit.estimated} hold"
    low, high = row["low_mbps"], row["high_mbps"]
    if math.isnan(low):
        return f"at most {high:.4g}"
    return f"at least {low:.4g}" if math.isnan(high) else f"{low:.4g} … {high:.4g}"
