"""Flows in opposite directions: no line carries the sum of their goodputs, so each direction has a separate sum."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sawtooth.study.result import StudyResult


def opposite(result: StudyResult) -> list[list[str]]:
    """The names of the flows in each direction; empty if all go the same way."""
    scenario = result.study.first(overrides=result.overrides).scenario
    flows = scenario.compile().flows
    backward = {one.name: one.forward == flows[0].backward for one in flows}
    ways: dict[bool, list[str]] = {}
    for name in scenario.flow_names:
        if name in backward:
            ways.setdefault(backward[name], []).append(name)
    return list(ways.values()) if len(ways) > 1 else []


def flows_of(result: StudyResult, row: dict[str, Any]) -> list[dict[str, Any]]:
    """Each flow of a point, all seeds together."""
    return result.flows.get(tuple(row[key] for key in result.places[0].key), [])


def mean_of(result: StudyResult, row: dict[str, Any], names: list[str]) -> float:
    """The mean goodput in Mbit/s of these flows of a point together, all seeds."""
    return math.fsum(one["mean_mbps"] for one in flows_of(result, row) if one["flow"] in names)
