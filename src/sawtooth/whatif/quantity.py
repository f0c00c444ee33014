"""What is known of a path: a quantity with its 90% interval, or one of several kinds, and how it was obtained."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import numpy as np

Z90 = 1.6448536269514722
"""Standard deviations from the center of a normal distribution to either end of its middle 90%."""
NONE_COUNTED = 1e-3
"""If no event was counted, shares are drawn log-uniformly from this part of the high end up to it."""
Bound = Literal["", "at least", "at most"]


@dataclass(frozen=True)
class Estimated:
    """``low`` to ``high`` is a 90% interval around ``value``. With a ``bound`` only one end was measured; the other is
    how far the replay tries."""

    value: float
    low: float
    high: float
    how: str
    bound: Bound = ""

    @classmethod
    def exact(cls, value: float, how: str) -> Estimated:
        """A value that was given, or that has no spread."""
        return cls(value, value, value, how)

    @property
    def rare(self) -> bool:
        """Whether it is a share that may be none, of which only the high end is known."""
        return self.bound == "at most" and self.low <= 0 < self.high

    def draw(self, rng: np.random.Generator) -> float:
        """Draws one value: log-normal with a separate width on each side; log-uniform if there is only a bound."""
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
        """Draws a share that may be zero: uniform if only bounded; log-uniform if none was counted; otherwise normal
        with a separate width on each side, never below 0."""
        if self.bound:
            return float(rng.uniform(self.low, self.high))
        if self.value == 0:
            return self.high * math.exp(rng.uniform(math.log(NONE_COUNTED), 0))
        z = float(rng.normal())
        end = self.high if z > 0 else self.low
        return max(0.0, self.value + abs(z) / Z90 * (end - self.value))

    def toward(self, other: Estimated, part: float) -> Estimated:
        """Interpolates between this (``part`` 0) and ``other`` (1), each end on a logarithmic scale."""
        if part <= 0 or part >= 1:
            return other if part >= 1 else self
        pairs = ((self.value, other.value), (self.low, other.low), (self.high, other.high))
        value, low, high = (math.exp((1 - part) * math.log(one) + part * math.log(two)) for one, two in pairs)
        return Estimated(
            value, low, high, f"{other.how}, as far as that is certain ({part:.0%})", self.bound or other.bound
        )

    def above(self, floor: float) -> Estimated:
        """The same estimate, with nothing below ``floor``."""
        return replace(self, value=max(self.value, floor), low=max(self.low, floor), high=max(self.high, floor))

    def describe(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)


@dataclass(frozen=True)
class Choice:
    """One of several kinds. ``answer`` is None if it is unknown, and ``why`` says the reason or the evidence;
    ``shares`` has the probability of each kind, likeliest first, if there are any."""

    answer: str | None
    why: str
    shares: tuple[tuple[str, float], ...] = ()

    @property
    def probability(self) -> float | None:
        return next((share for name, share in self.shares if name == self.answer), None)

    def describe(self) -> dict[str, Any]:
        """As JSON values."""
        return {"answer": self.answer, "why": self.why, "probabilities": dict(self.shares)}
