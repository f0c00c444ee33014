"""Space: several unknowns together. The last is the one that is answered, for places of those before it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sawtooth.errors import InputError
from sawtooth.finding.unknown import Unknown
from sawtooth.plain import plain
from sawtooth.scenario import Scenario

MOST = 3
ROWS = {1: 9, 2: 5}
"""Values of each unknown that is given, by how many those are."""

Values = tuple[float, ...]


@dataclass(frozen=True)
class Space:
    """``unknowns``: two or three, the answered one last."""

    unknowns: tuple[Unknown, ...]

    @classmethod
    def parse(cls, texts: Sequence[str], scale: str | None = None, scenario: Scenario | None = None) -> Space:
        """Of ``path.queue=0.1..4bdp`` and others. Raises SawtoothError as ``Unknown.parse``, ``duplicate-name``,
        ``out-of-range``."""
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
        """Those that are chosen."""
        return self.unknowns[:-1]

    @property
    def answered(self) -> Unknown:
        return self.unknowns[-1]

    @property
    def rows(self) -> list[Values]:
        """Values of those that are given for which the answer is told, evenly over their ranges."""
        return list(itertools.product(*(one.evenly(ROWS[len(self.given)]) for one in self.given)))

    def at(self, given: Values) -> Values:
        """Where values stand of those that are given: each from -1 to 1 over its range."""
        found = []
        for unknown, value in zip(self.given, given, strict=True):
            low, high = unknown.place(unknown.low), unknown.place(unknown.high)
            found.append(2 * (unknown.place(value) - low) / (high - low) - 1)
        return tuple(found)

    # What measuring asks of an unknown, of all of them at once.

    def settings(self, values: Values) -> dict[str, Any]:
        """What fields are set to."""
        return {
            field: setting
            for one, value in zip(self.unknowns, values, strict=True)
            for field, setting in one.settings(value).items()
        }

    def named(self, values: Values) -> str:
        """With their fields, in words."""
        return ", ".join(one.named(value) for one, value in zip(self.unknowns, values, strict=True))

    @property
    def corners(self) -> list[Values]:
        """Values of all ends."""
        return list(itertools.product(*(one.corners for one in self.unknowns)))
