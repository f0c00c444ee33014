"""Runs of the engine ``kernel`` that share a guest: a boot takes two seconds of processor time, a short run a tenth."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from sawtooth.engines.kernel import series
from sawtooth.run import Run
from sawtooth.scenario import Scenario

Key = TypeVar("Key")


def run_each(scenarios: Mapping[Key, Scenario]) -> dict[Key, Run]:
    """The runs, by the scenarios' keys. Raises SawtoothError if one failed."""
    found: dict[Key, Run] = {}
    for key, made in zip(scenarios, series(list(scenarios.values())), strict=True):
        if not isinstance(made, Run):
            raise made
        found[key] = made
    return found
