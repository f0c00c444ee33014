"""Flows in opposite directions: no line carries the sum of their goodputs, so each direction has a separate sum."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from sawtooth.study.shares import ALL

if TYPE_CHECKING:
    from sawtooth.study.result import StudyResult


def directions(result: StudyResult) -> dict[str, int]:
    """The direction of each flow, by name: 0 like the first flow, 1 opposite."""
    scenario = result.study.points(overrides=result.description["overrides"])[0].scenario
    flows = scenario.compile().flows
    names = scenario.flow_names
    ways = {one.name: int(one.forward == flows[0].backward) for one in flows}
    return {name: ways[name] for name in names if name in ways}


def opposite(result: StudyResult) -> list[list[str]]:
    """The names of the flows in each direction; empty if all go the same way."""
    ways = directions(result)
    both = list(dict.fromkeys(ways.values()))
    return [[name for name, its in ways.items() if its == way] for way in both] if len(both) > 1 else []


def flows_of(result: StudyResult, row: dict[str, Any]) -> list[dict[str, Any]]:
    """Each flow of a point, all seeds together."""
    if result.shares.empty:
        return []
    keys = list(result.places[0].key)
    shares: Any = result.shares[result.shares["seed"] == ALL].to_dict("records")
    return [one for one in shares if all(one[key] == row[key] for key in keys)]


def mean_of(result: StudyResult, row: dict[str, Any], names: list[str]) -> float:
    """The mean goodput in Mbit/s of these flows of a point together, all seeds."""
    return math.fsum(one["mean_mbps"] for one in flows_of(result, row) if one["flow"] in names)
