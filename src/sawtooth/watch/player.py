"""Player: plays a recording's samples at any speed, forward and backward."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sawtooth.watch.replay import RecordedMoment

BEHIND = 200_000
"""Number of rows that are kept for stepping back."""
SPEEDS = (1 / 16, 256.0)


class Player:
    """Gives the samples of a recording at ``speed`` times their original pace; can step back."""

    def __init__(self, samples: Iterator[RecordedMoment], speed: float = 1.0) -> None:
        self._samples, self.speed = samples, speed
        self._kept: deque[RecordedMoment] = deque()
        self._rows = 0
        self._behind = 0
        """Number of kept samples that follow the current one."""
        self._clock_s = -math.inf
        self._ahead: RecordedMoment | None = next(samples, None)

    @property
    def ended(self) -> bool:
        """Whether the last sample was given."""
        return self._ahead is None and not self._behind

    def passed(self, seconds: float) -> RecordedMoment | None:
        """The newest sample due after this many seconds; None if none is due."""
        found = None
        if not self._kept:
            return self.forward()
        self._clock_s += seconds * self.speed
        while (due := self._next()) is not None and due.at_s <= self._clock_s:
            found = self._take()
        return found

    def forward(self) -> RecordedMoment | None:
        """The next sample, immediately; None at the end."""
        return self._set(self._take())

    def back(self) -> RecordedMoment | None:
        """The previous sample; None if it is not kept."""
        if self._behind + 1 >= len(self._kept):
            return None
        self._behind += 1
        return self._set(self._kept[-1 - self._behind])

    def change(self, times: float) -> None:
        """Multiply the speed, within ``SPEEDS``."""
        self.speed = min(SPEEDS[1], max(SPEEDS[0], self.speed * times))

    def _set(self, sample: RecordedMoment | None) -> RecordedMoment | None:
        if sample is not None:
            self._clock_s = sample.at_s
        return sample

    def _next(self) -> RecordedMoment | None:
        return self._kept[-self._behind] if self._behind else self._ahead

    def _take(self) -> RecordedMoment | None:
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
        self._ahead = next(self._samples, None)
        return found
