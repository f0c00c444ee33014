"""Answers: the results of ``find`` for a study, one per point."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sawtooth.io.displayable import Displayable
from sawtooth.search.frontier import Frontier
from sawtooth.search.result import Threshold

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True, repr=False)
class Answers(Displayable):
    """The answers for a study, one per point. ``keys`` are the points' values of the key columns."""

    name: str
    keys: tuple[dict[str, Any], ...]
    found: tuple[Threshold | Frontier, ...]

    @property
    def enough(self) -> bool:
        """Whether all intervals are as short as requested."""
        return all(one.enough for one in self.found)

    @property
    def runs(self) -> int:
        return sum(one.runs for one in self.found)

    @property
    def seconds(self) -> float:
        return math.fsum(one.seconds for one in self.found)

    @property
    def table(self) -> DataFrame:
        """One row per answer; with several unknowns one per row of the frontier."""
        import pandas as pd

        return pd.DataFrame([key | row for key, one in zip(self.keys, self.found, strict=True) for row in one.rows()])

    def describe(self) -> dict[str, Any]:
        """As JSON values."""
        answers = [{"key": key} | one.describe() for key, one in zip(self.keys, self.found, strict=True)]
        return {"name": self.name, "runs": self.runs, "seconds": round(self.seconds, 3), "answers": answers}
