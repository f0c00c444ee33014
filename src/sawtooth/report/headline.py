"""Headline: the main measure of a study. The first sentence of the report and its cards compare it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sawtooth.figures.layout import value_text
from sawtooth.report.number_text import number, short, signed
from sawtooth.report.points import setting_text
from sawtooth.stats import change_percent
from sawtooth.study.directions import flows_of, mean_of
from sawtooth.study.result import StudyResult
from sawtooth.study.study import SHARE, THROUGHPUT

_SENTENCE = 3
"""Number of comparisons in the first sentence."""


@dataclass(frozen=True)
class HeadlineChange:
    """The headline of one series and panel at the baseline and at the highlighted value. ``before`` and ``after`` are
    these rows of the study's table."""

    who: str
    low: float
    high: float
    before: dict[str, Any]
    after: dict[str, Any]

    @property
    def change(self) -> float:
        """Change in percent; NaN if the baseline is 0."""
        return change_percent(self.high, self.low)


def name_and_unit(column: str, titles: Mapping[str, str]) -> tuple[str, str]:
    """ "latency under load, median" and "ms"."""
    title = "share of the first flow, %" if column == SHARE else titles[column]
    name, _, unit = title.rpartition(", ")
    return (name, unit) if name and " " not in unit and unit not in ("median", "mean") else (title, "")


def measure(result: StudyResult) -> tuple[str, str]:
    """The headline's name and unit. A share names its flow if that is the same everywhere."""
    name, unit = name_and_unit(result.study.headline, result.study.titles)
    if result.study.headline == SHARE:
        firsts = {flows[0]["flow"] for row in result.records if (flows := flows_of(result, row))}
        name += f" ({firsts.pop()})" if len(firsts) == 1 else ""
    return name, unit


def amount(value: float, unit: str) -> str:
    """A value with its unit: 32.1 ms, 45%."""
    digits = number(value, 1) if unit in ("Mbit/s", "%") else short(float(f"{value:.3g}"))
    return f"{digits}{unit}" if unit == "%" else f"{digits} {unit}".strip()


def compared(result: StudyResult, who: Any) -> list[HeadlineChange]:
    """Compare the baseline with the first highlighted value, for each series and panel that has the headline at both.
    ``who`` names a row."""
    roles = result.study.roles()
    keys = [name for name in result.places[0].key if name != roles.x]
    column = result.study.headline
    base = {tuple(row[key] for key in keys): row for row in result.records if row[roles.x] == roles.baseline}
    found = []
    for row in result.records:
        before = base.get(tuple(row[key] for key in keys))
        if row[roles.x] != roles.detail or before is None:
            continue
        low, high = (_value(result, one, column) for one in (before, row))
        if not math.isnan(low) and not math.isnan(high):
            found.append(HeadlineChange(who(result, row), low, high, before, row))
    return found


def _value(result: StudyResult, row: dict[str, Any], column: str) -> float:
    if column != SHARE:
        return float(row[column])
    flows = flows_of(result, row)
    return float(flows[0]["share_percent"]) if len(flows) > 1 else math.nan


def places(result: StudyResult) -> tuple[str, str]:
    """The baseline and the highlighted value, in words."""
    roles = result.study.roles()
    if isinstance(roles.baseline, (int, float)):
        title = result.study.title_of(roles.x)
        return value_text(title, roles.baseline), value_text(title, roles.detail)
    return _place(result, roles.x, roles.baseline), _place(result, roles.x, roles.detail)


def _place(result: StudyResult, name: str, value: Any) -> str:
    """ "20 ms queue", but "fq_codel": a quantity says little without what it is of."""
    text = setting_text(result, name, value)
    return f"{text} {result.study.title_of(name)}" if isinstance(value, str) and text[:1].isdigit() else text


def sentence(result: StudyResult, found: list[HeadlineChange]) -> str:
    """The study's result in one sentence; empty if nothing is compared."""
    if not found:
        return ""
    name, unit = measure(result)
    at, to = places(result)
    changes = [
        f"{one.who}: {amount(one.low, unit)} → {amount(one.high, unit)}"
        + ("" if math.isnan(one.change) or unit == "%" else f" ({signed(one.change)})")
        for one in found[:_SENTENCE]
    ]
    more = f"; {len(found) - _SENTENCE} more below" if len(found) > _SENTENCE else ""
    return f"{name[0].upper()}{name[1:]}, from {at} to {to}: {'; '.join(changes)}{more}."


def goodput(result: StudyResult, before: dict[str, Any], after: dict[str, Any]) -> str:
    """The cost in throughput, in words. Flows in opposite directions are listed separately, because no link carries
    their sum."""
    ways = result.opposite
    if not ways:
        ends = " → ".join(number(row["mean_mbps"], 1) for row in (before, after))
        return f"goodput {ends} Mbit/s"
    changes = []
    for names in ways:
        ends = " → ".join(number(mean_of(result, row, names), 1) for row in (before, after))
        changes.append(f"{' + '.join(names)} {ends}")
    return f"goodput {', '.join(changes)} Mbit/s"


__all__ = [
    "SHARE",
    "THROUGHPUT",
    "HeadlineChange",
    "amount",
    "compared",
    "goodput",
    "measure",
    "name_and_unit",
    "sentence",
]
