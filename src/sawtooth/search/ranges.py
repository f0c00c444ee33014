"""Ranges: any number of unknowns, of which a value may set some and leave the others as in the file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sawtooth.errors import InputError
from sawtooth.sanitize import plain
from sawtooth.scenario import Scenario
from sawtooth.search import series
from sawtooth.search.series import Ends, LostPackets, OverTime
from sawtooth.search.unknown import Unknown

Settings = tuple[tuple[str, Any], ...]
"""The fields that differ from the file's scenario, with their values."""


@dataclass(frozen=True)
class Ranges:
    """The unknowns, with the interface of one."""

    unknowns: tuple[Unknown | LostPackets | OverTime, ...]

    @classmethod
    def parse(cls, texts: Sequence[str], scale: str | None, scenario: Scenario) -> Ranges:
        """Raises SawtoothError as ``Unknown.parse`` does, and ``duplicate-name``."""
        unknowns = tuple(
            series.parse(text, scale, scenario) or series.range_of(text, scale, scenario) for text in texts
        )
        fields = [one.field for one in unknowns]
        for at, field in enumerate(fields):
            for other in fields[:at]:
                first, second = sorted((field, other), key=len)
                if f"{second}.".startswith(f"{first}."):
                    message = f"{plain(second, 80)} is given to --vary twice"
                    raise InputError("duplicate-name", message, fix=f"give one --vary for {plain(first, 80)}")
        return cls(unknowns)

    def settings(self, values: Settings) -> dict[str, Any]:
        by_field = {one.field: one for one in self.unknowns}
        found: dict[str, Any] = {}
        for field, value in values:
            for name, setting in by_field[field].settings(value).items():
                # Two fields over time are one list of changes.
                found[name] = [*found[name], *setting] if name in found else setting
        return found

    def named(self, values: Settings) -> str:
        by_field = {one.field: one for one in self.unknowns}
        return ", ".join(by_field[name].named(value) for name, value in values) or "the file's scenario"

    @property
    def spans(self) -> list[Ends]:
        """The ends of each number that the search chooses."""
        return [span for one in self.unknowns for span in one.spans]

    def values(self, places: Sequence[float]) -> Settings:
        """All unknowns, from the numbers that the search chose."""
        left, found = list(places), []
        for one in self.unknowns:
            count = len(one.spans)
            found.append((one.field, one.value(*left[:count])))
            left = left[count:]
        return tuple(found)

    @property
    def corners(self) -> list[Settings]:
        """All unknowns at one end, at the other, and the file's scenario."""
        return [*(tuple((one.field, one.corners[end]) for one in self.unknowns) for end in (0, 1)), ()]
