"""Ranges: any number of unknowns, of which a value may set some and leave the others as in the file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sawtooth.search.unknown import Unknown

Settings = tuple[tuple[str, float], ...]
"""The fields that differ from the file's scenario, with their values."""


@dataclass(frozen=True)
class Ranges:
    """The unknowns, with the interface of one."""

    unknowns: tuple[Unknown, ...]

    def settings(self, values: Settings) -> dict[str, Any]:
        by_field = {one.field: one for one in self.unknowns}
        return {name: by_field[name].setting(value) for name, value in values}

    def named(self, values: Settings) -> str:
        by_field = {one.field: one for one in self.unknowns}
        return ", ".join(by_field[name].named(value) for name, value in values) or "the file's scenario"

    @property
    def corners(self) -> list[Settings]:
        """All unknowns at one end, at the other, and the file's scenario."""
        return [*(tuple((one.field, one.corners[end]) for one in self.unknowns) for end in (0, 1)), ()]
