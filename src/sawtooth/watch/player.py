"""Player: a recording's looks at any speed, forward and back."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sawtooth.watch.replay import Recorded

BEHIND = 200_000
"""Rows of looks that can be gone back to."""
SPEEDS = (1 / 16, 256.0)


class Player:
    """Gives the looks of a recording by its own clock, ``speed`` times as fast, and those behind again."""

    def __init__(self, looks: Iterator[Recorded], speed: float = 1.0) -> None:
        self._looks, self.speed = looks, speed
        self._kept: deque[Recorded] = deque()
        self._rows = 0
        self._behind = 0
        """How many of those that are kept come after the one that was given last."""
        self._clock_s = -math.inf
        self._ahead: Recorded | None = next(looks, None)

    @property
    def ended(self) -> bool:
        """Whether the last look was given."""
        return self._ahead is None and not self._behind

    def passed(self, seconds: float) -> Recorded | None:
        """The newest look that is due when so much time has passed; None where none is."""
        found = None
        if not self._kept:
            return self.forward()
        self._clock_s += seconds * self.speed
        while (due := self._next()) is not None and due.at_s <= self._clock_s:
            found = self._take()
        return found

    def forward(self) -> Recorded | None:
        """The next look, at once; None at the end."""
        return self._set(self._take())

    def back(self) -> Recorded | None:
        """The look before; None where none is kept."""
        if self._behind + 1 >= len(self._kept):
            return None
        self._behind += 1
        return self._set(self._kept[-1 - self._behind])

    def change(self, times: float) -> None:
        """Another speed, within ``SPEEDS``."""
        self.speed = min(SPEEDS[1], max(SPEEDS[0], self.speed * times))

    def _set(self, look: Recorded | None) -> Recorded | None:
        if look is not None:
            self._clock_s = look.at_s
        return look

    def _next(self) -> Recorded | None:
        return self._kept[-self._behind] if self._behind else self._ahead

    def _take(self) -> Recorded | None:
        found = self._next()
        if found is None:
            return None
        if self._behind:
            self._behind -= 1
            return found
        self._kept.append(found)
        self._rows += found.matching + 1
        while self._rows > BEHIND and len(self._kept) > 1:
            self._rows -= self._kept.popleft().matching + 1
        self._ahead = next(self._looks, None)
        return found
