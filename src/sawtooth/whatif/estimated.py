"""Estimated: one quantity with its 90% interval, and in a sentence how it was got."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import numpy as np

Z90 = 1.6448536269514722
"""Standard deviations from the middle of a normal distribution to either end of its middle 90%."""
NONE_COUNTED = 1e-3
"""Where none was counted, shares from this part of the high end up to it are taken, all powers of ten alike."""
Bound = Literal["", "at least", "at most"]


@dataclass(frozen=True)
class Estimated:
    """``low`` to ``high`` is a 90% interval around ``value``. With a ``bound`` only one end of it was measured; the
    other says how far the replay tries.
    """

    value: float
    low: float
    high: float
    how: str
    bound: Bound = ""

    @classmethod
    def exact(cls, value: float, how: str) -> Estimated:
        """Something that was told, or has no spread."""
        return cls(value, value, value, how)

    def draw(self, rng: np.random.Generator) -> float:
        """One value at random: log-normal, each side with its own width; log-uniform where there is only a bound."""
        if self.low == self.high:
            return self.value
        if self.low <= 0:
            return self._from_zero(rng)
        if self.bound:
            return math.exp(rng.uniform(math.log(self.low), math.log(self.high)))
        z = float(rng.normal())
        end = self.high if z > 0 else self.low
        return self.value * math.exp(math.log(end / self.value) * abs(z) / Z90)

    def _from_zero(self, rng: np.random.Generator) -> float:
        """A share that may be nothing: uniform where only bounded; log-uniform where none was counted; else normal
        with its own width on each side, never below 0.
        """
        if self.bound:
            return float(rng.uniform(self.low, self.high))
        if self.value == 0:
            return self.high * math.exp(rng.uniform(math.log(NONE_COUNTED), 0))
        z = float(rng.normal())
        end = self.high if z > 0 else self.low
        return max(0.0, self.value + abs(z) / Z90 * (end - self.value))

    def toward(self, other: Estimated, part: float) -> Estimated:
        """Between this and ``other``, each of its ends by its logarithm: this at 0, the other one at 1."""
        if part <= 0 or part >= 1:
            return other if part >= 1 else self
        pairs = ((self.value, other.value), (self.low, other.low), (self.high, other.high))
        value, low, high = (math.exp((1 - part) * math.log(one) + part * math.log(two)) for one, two in pairs)
        return Estimated(
            value, low, high, f"{other.how}, as far as that is certain ({part:.0%})", self.bound or other.bound
        )

    def above(self, floor: float) -> Estimated:
        """The same where nothing of it may be below ``floor``."""
        return replace(self, value=max(self.value, floor), low=max(self.low, floor), high=max(self.high, floor))

    def describe(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)
