"""Changes: each behavior of two kernels compared, by intervals over seeds.

A behavior is *same* if the tables of its situation are equal to the byte for every seed. Otherwise the difference of
the two means over seeds is judged against a tolerance, relative to the reference. It is *changed* if the difference is
beyond the tolerance, by Welch's t (Welch 1947). The share of false ones among all changes is on average below 5% over
all behaviors of a comparison (Benjamini and Hochberg 1995, *Controlling the false discovery rate*, Journal of the Royal
Statistical Society B 57, 289-300), where seeds vary. It is *equal* if the 95% interval of the difference is within the
tolerance, and *inconclusive* otherwise, also where runs failed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sawtooth.behaviors.catalogue import Catalogue
from sawtooth.behaviors.measurements import Measured
from sawtooth.behaviors.quantities import QUANTITIES
from sawtooth.stats.interval import CONFIDENCE, Mean

if TYPE_CHECKING:
    from pandas import DataFrame

SAME, EQUAL, CHANGED, INCONCLUSIVE = "same", "equal", "changed", "inconclusive"
VERDICTS = (CHANGED, INCONCLUSIVE, EQUAL, SAME)
FALSE_DISCOVERIES = 0.05
"""Most false ones among the changes on average, as a share."""
_FLOOR = 1e-9
"""Differences below it, relative to the mean, are rounding."""


@dataclass(frozen=True)
class Change:
    """One behavior on the reference and on another kernel. ``low`` and ``high``: the interval of the difference of the
    means. ``p``: how probable a difference this large is if the kernels differ by the tolerance. The difference is NaN
    if a kernel has no value."""

    situation: str
    title: str
    quantity: str
    before: float
    after: float
    low: float
    high: float
    p: float
    verdict: str

    @property
    def name(self) -> str:
        return f"{self.situation}:{self.quantity}"

    @property
    def effect(self) -> float:
        """The difference relative to the reference; infinite from 0."""
        if self.after == self.before:
            return 0.0
        return (self.after - self.before) / self.before if self.before else math.copysign(math.inf, self.after)


@dataclass(frozen=True)
class Comparison:
    """All behaviors of one kernel, compared with the reference."""

    reference: Measured
    other: Measured
    within: float
    changes: tuple[Change, ...] = field(repr=False)

    def count(self, verdict: str) -> int:
        return sum(one.verdict == verdict for one in self.changes)

    @property
    def tolerance(self) -> str:
        """In percent."""
        return f"{100 * self.within:g}%"

    @property
    def changed(self) -> list[Change]:
        """Those that changed, the largest effect first."""
        found = [one for one in self.changes if one.verdict == CHANGED]
        return sorted(found, key=lambda one: -abs(one.effect))

    def table(self) -> DataFrame:
        """One row for each behavior."""
        import pandas as pd

        columns = ("situation", "quantity", "before", "after", "low", "high", "effect", "p", "verdict")
        rows = [{name: getattr(one, name) for name in columns} for one in self.changes]
        found = pd.DataFrame(rows, columns=columns)
        found.insert(0, "kernel", self.other.label)
        found.insert(0, "reference", self.reference.label)
        return found

    def describe(self) -> dict[str, Any]:
        """As JSON values; unknown ones are null."""

        def known(value: float) -> float | None:
            return value if math.isfinite(value) else None

        kernels = [
            {"name": one.label, "version": one.kernel.version, "digest": one.kernel.digest}
            for one in (self.reference, self.other)
        ]
        return {
            "reference": kernels[0],
            "kernel": kernels[1],
            "within": self.within,
            "counts": {verdict: self.count(verdict) for verdict in VERDICTS},
            "failed": {one.label: one.failures for one in (self.reference, self.other)},
            "behaviors": [
                {"situation": one.situation, "quantity": one.quantity, "verdict": one.verdict}
                | {name: known(getattr(one, name)) for name in ("before", "after", "low", "high", "effect", "p")}
                for one in self.changes
            ],
        }


def compared(reference: Measured, other: Measured, catalogue: Catalogue, within: float) -> Comparison:
    """Every behavior of ``other`` compared with ``reference``. ``within``: the tolerance, relative to its mean."""
    found: list[Change] = []
    for situation in catalogue.situations:
        tables = [{seed: one.get(situation.name) for seed, one in side.tables.items()} for side in (reference, other)]
        ran = all(None not in one.values() for one in tables)
        same = ran and tables[0] == tables[1]
        for quantity in situation.measures:
            before, after = (side.of(situation.name, quantity) for side in (reference, other))
            found.append(
                _change(situation.name, QUANTITIES[quantity].title, quantity, before, after, within, ran, same)
            )
    limit = _limit([one.p for one in found])
    judged = [
        Change(**vars(one) | {"verdict": CHANGED}) if one.verdict != SAME and one.p <= limit else one for one in found
    ]
    return Comparison(reference, other, within, tuple(judged))


def _change(
    situation: str,
    title: str,
    quantity: str,
    before: Sequence[float],
    after: Sequence[float],
    within: float,
    ran: bool,
    same: bool,
) -> Change:
    if not before or not after:
        # A kernel without a value cannot be compared.
        old_mean, new_mean = (math.fsum(some) / len(some) if some else math.nan for some in (before, after))
        verdict = SAME if same else EQUAL if ran and not before and not after else INCONCLUSIVE
        return Change(situation, title, quantity, old_mean, new_mean, math.nan, math.nan, 1.0, verdict)
    old, new = Mean.of(before), Mean.of(after)
    difference = Mean.total(new.value - old.value, [(1.0, new), (-1.0, old)])
    low, high = difference.bounds(CONFIDENCE)
    tolerance = max(within * abs(old.value), _FLOOR * max(abs(old.value), abs(new.value)))
    verdict = SAME if same else EQUAL if -tolerance <= low and high <= tolerance else INCONCLUSIVE
    p = 1.0 if same else _p(difference, tolerance)
    return Change(situation, title, quantity, old.value, new.value, low, high, p, verdict)


def _p(difference: Mean, tolerance: float) -> float:
    """Two-sided, that a difference of ``tolerance`` gives one this large."""
    from scipy.special import stdtr

    beyond = abs(difference.value) - tolerance
    if beyond <= 0 or math.isnan(difference.error):
        return 1.0
    if difference.error == 0:
        return 0.0
    return 2 * float(stdtr(difference.freedom, -beyond / difference.error))


def _limit(p: Sequence[float]) -> float:
    """The largest p that is a discovery, by Benjamini and Hochberg; negative if none is."""
    ordered = sorted(p)
    fine = [one for rank, one in enumerate(ordered, 1) if one <= FALSE_DISCOVERIES * rank / len(ordered)]
    return max(fine, default=-1.0)
