"""Space: several unknowns together. The last one is answered for given values of the others."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sawtooth.errors import InputError
from sawtooth.sanitize import plain
from sawtooth.scenario import Scenario
from sawtooth.search.unknown import Unknown

MOST = 3
ROWS = {1: 9, 2: 5}
"""Values of each given unknown, by the number of given unknowns."""

Values = tuple[float, ...]


@dataclass(frozen=True)
class Space:
    """``unknowns``: two or three, the answered one last."""

    unknowns: tuple[Unknown, ...]

    @classmethod
    def parse(cls, texts: Sequence[str], scale: str | None = None, scenario: Scenario | None = None) -> Space:
        """Parses texts such as ``path.queue=0.1..4bdp``. Raises SawtoothError as ``Unknown.parse`` does, and
        ``duplicate-name``, ``out-of-range``."""
        unknowns = tuple(Unknown.parse(text, scale, scenario) for text in texts)
        fields = [one.field for one in unknowns]
        if len(unknowns) > MOST:
            message = f"{len(unknowns)} fields vary; at most {MOST} can"
            raise InputError(
                "out-of-range", message, field="vary", fix="remove --vary of some, and give those a value by --set"
            )
        for field in fields:
            if fields.count(field) > 1:
                message = f"{plain(field, 80)} is given to --vary twice"
                raise InputError("duplicate-name", message, field="vary", fix="give one --vary for it")
        return cls(unknowns)

    @property
    def given(self) -> tuple[Unknown, ...]:
        """The given unknowns."""
        return self.unknowns[:-1]

    @property
    def answered(self) -> Unknown:
        return self.unknowns[-1]

    @property
    def rows(self) -> list[Values]:
        """The values of the given unknowns for which the answer is reported, evenly over their ranges."""
        return list(itertools.product(*(one.evenly(ROWS[len(self.given)]) for one in self.given)))

    def at(self, given: Values) -> Values:
        """Coordinates of values of the given unknowns: each from -1 to 1 over its range."""
        found = []
        for unknown, value in zip(self.given, given, strict=True):
            low, high = unknown.place(unknown.low), unknown.place(unknown.high)
            found.append(2 * (unknown.place(value) - low) / (high - low) - 1)
        return tuple(found)

    # The interface of an unknown, for all of them at once.

    def settings(self, values: Values) -> dict[str, Any]:
        """The settings of the fields."""
        return {
            field: setting
            for one, value in zip(self.unknowns, values, strict=True)
            for field, setting in one.settings(value).items()
        }

    def named(self, values: Values) -> str:
        """The values with their fields, in words."""
        return ", ".join(one.named(value) for one, value in zip(self.unknowns, values, strict=True))

    @property
    def corners(self) -> list[Values]:
        """The values at all corners of the ranges."""
        return list(itertools.product(*(one.corners for one in self.unknowns)))
