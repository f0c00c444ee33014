"""Coordinates: coordinates in which a frontier is nearly level, so that few points show what is smooth around it.

Only a parabola is subtracted, nothing that follows the frontier more closely: what is fitted to the crossings counts as
known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sawtooth.search.space import Space, Values
from sawtooth.search.zero_crossing import WINDOW

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Flat:
    """Coordinates: the given unknowns, and the distance of the answered one, in windows, from a parabola ``shape``
    through the crossings."""

    shape: NDArray[Any]
    space: Space
    within: float

    @classmethod
    def through(cls, space: Space, crossings: Mapping[Values, float], within: float) -> Flat:
        """With few crossings, the shortest parabola through them; with many, one that a few distant ones do not
        move."""
        import numpy as np
        from scipy.optimize import least_squares

        terms, places = _terms([space.at(one) for one in crossings]), np.array(list(crossings.values()))
        shape = np.linalg.lstsq(terms, places, rcond=1e-6)[0]
        if len(places) > terms.shape[1]:
            unit = cls(shape, space, within).window(float(np.median(places)))
            shape = least_squares(lambda one: (terms @ one - places) / unit, shape, loss="soft_l1", f_scale=0.5).x
        return cls(shape, space, within)

    def base(self, given: Sequence[tuple[float, ...]]) -> NDArray[Any]:
        """The value of the parabola."""
        import numpy as np

        return np.asarray(_terms(given) @ self.shape)

    def window(self, place: float) -> float:
        """How far from a crossing the margin is assumed to be smooth."""
        answered = self.space.answered
        low, high = answered.place(answered.low), answered.place(answered.high)
        return WINDOW * answered.reach(min(max(place, low), high), self.within)

    def coordinates(self, places: Sequence[tuple[float, ...]]) -> NDArray[Any]:
        """Coordinates of places: the given ones scaled to -1…1, and the answered one."""
        import numpy as np

        given = [one[:-1] for one in places]
        base = self.base(given)
        units = np.array([self.window(one) for one in base])
        return np.column_stack([np.array(given), (np.array([one[-1] for one in places]) - base) / units])


def _terms(given: Sequence[tuple[float, ...]]) -> NDArray[Any]:
    """The terms of a parabola over the given coordinates."""
    import numpy as np

    at = np.array(given, float)
    count = at.shape[1]
    products = [at[:, one] * at[:, other] for one in range(count) for other in range(one, count)]
    return np.column_stack([np.ones(len(at)), at, *products])
