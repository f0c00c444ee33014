"""How many of a model's deviations an interval reaches: split conformal prediction with scaled residuals (Lei et al.
2018). The scale is the process's own deviation times how wrong it was about the held-out series most like this one:
a model is surer of some links than it should be, and less sure of others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from sawtooth.congestion.gaussian import Floats

_ALIKE = 30
"""Series that say how wrong a model is about one like them."""
_PRIOR = 10
"""What all series say counts as much as so many of those."""


@dataclass(frozen=True, eq=False)
class Reach:
    """``scores`` are the errors of the held-out series, in deviations, in the order of the process's rows; ``factor``
    is how many times the local mean square of them an interval reaches."""

    scores: Floats
    factor: float

    @classmethod
    def learn(cls, apart: Floats, scores: Floats, counted: Floats, level: float) -> Self:
        """``apart`` are squared distances between all rows, infinite where two are of one measurement; ``counted`` says
        which scores the share ``level`` is taken of."""
        local = _local(apart, scores)
        ratios = (scores / local)[counted.astype(bool)]
        share = min(1.0, np.ceil((len(ratios) + 1) * level) / len(ratios))
        return cls(scores, float(np.quantile(ratios, share)))

    def deviations(self, apart: Floats) -> Floats:
        """For each row of squared distances to the series that were learnt from."""
        return self.factor * _local(apart, self.scores)


def _local(apart: Floats, scores: Floats) -> Floats:
    some = min(_ALIKE, len(scores) - 1)
    nearest = np.argpartition(apart, some - 1, axis=1)[:, :some]
    alike = (scores[nearest] ** 2).sum(axis=1)
    return np.asarray(np.sqrt((alike + _PRIOR * (scores**2).mean()) / (some + _PRIOR)))
