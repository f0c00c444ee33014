"""The width of an interval in the model's deviations: split conformal prediction with scaled residuals (Lei et al.
2018). The scale is the process's own deviation times its error on the most similar held-out series, because a model is
too certain about some links and not certain enough about others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from sawtooth.link_estimate.gaussian import Floats

_ALIKE = 30
"""Similar series that determine a model's error."""
_PRIOR = 10
"""The errors of all series count as much as this many of those."""


@dataclass(frozen=True, eq=False)
class Reach:
    """``scores`` are the errors of the held-out series, in deviations, in the order of the process's rows; ``factor``
    is the interval's width as a multiple of their local root mean square."""

    scores: Floats
    factor: float

    @classmethod
    def learn(cls, apart: Floats, scores: Floats, counted: Floats, level: float) -> Self:
        """``apart`` are squared distances between all rows, infinite between two of one measurement; ``counted``
        selects the scores from which the share ``level`` is computed."""
        local = _local(apart, scores)
        ratios = (scores / local)[counted.astype(bool)]
        share = min(1.0, np.ceil((len(ratios) + 1) * level) / len(ratios))
        return cls(scores, float(np.quantile(ratios, share)))

    def deviations(self, apart: Floats) -> Floats:
        """For each row of squared distances to the training series."""
        return self.factor * _local(apart, self.scores)


def _local(apart: Floats, scores: Floats) -> Floats:
    some = min(_ALIKE, len(scores) - 1)
    nearest = np.argpartition(apart, some - 1, axis=1)[:, :some]
    alike = (scores[nearest] ** 2).sum(axis=1)
    return np.asarray(np.sqrt((alike + _PRIOR * (scores**2).mean()) / (some + _PRIOR)))
