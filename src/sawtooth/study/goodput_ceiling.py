"""Goodput ceiling: refuses, before anything runs, a wanted goodput above the ceiling that packet headers leave."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sawtooth.errors import InputError
from sawtooth.scenario import Scenario
from sawtooth.scenario.expressions import RATE, Amount, Comparison, Measure
from sawtooth.stats import Ceiling, ceiling
from sawtooth.stats.path import slowest
from sawtooth.study.expectation import column_of, field_of, is_field, parts_of, point_of, read
from sawtooth.study.study import Point, Study

_MORE = 1.001
"""Tolerance: data that arrives within a run's seconds may have been sent just before them."""


def unattainable(
    wanted: Comparison, goodput: Measure, scenario: Scenario, resolve: Callable[[Measure], Amount]
) -> InputError | None:
    """The error for comparing the measure ``goodput`` with what ``resolve`` returns; None if the goal may be reachable.

    A rate that changes, or a shaper that saves up tokens, has no ceiling that holds in every second.
    """
    most = _ceiling(scenario)
    if most is None or [one for one in wanted.measures if one.name == goodput.name] != [goodput]:
        return None

    def margin(bps: float) -> float:
        return float(wanted.margin(lambda one: Amount(bps, RATE) if one is goodput else resolve(one)))

    nothing, best = margin(0.0), margin(most.goodput_bps * _MORE)
    if best >= 0 or nothing >= best:
        return None
    rate, left = RATE.show(most.rate_bps), RATE.show(most.goodput_bps)
    message = f"headers limit goodput to {left}, {100 * most.share:.1f}% of the rate of {rate}, so this cannot hold"
    percent = int(100 * most.share)
    fix = f"want at most {percent}% of the rate, or ask for the share of the line in use: utilization >= 97%"
    return InputError("out-of-range", message, fix=fix)


def refuse_unattainable(study: Study, points: Sequence[Point], overrides: Mapping[str, Any] | None) -> None:
    """Raises SawtoothError if the study expects more of a point than its line can carry.

    With ``overrides`` the expectations were written for another study; then the judgement after the run decides.
    """
    if overrides:
        return
    axes = study.axes()
    for expected in read(study.expect):
        measured = [one for one in expected.wanted.measures if not is_field(one)]
        if len(measured) != 1 or column_of(measured[0]) != "mean_mbps" or set(parts_of(measured[0])) - {"flow"}:
            continue
        for key in [point_of(measured[0], axes, case) for case in expected.cases(axes)]:
            point = next((one for one in points if all(one.key.get(name) == key[name] for name in key)), None)
            if point is None:
                continue

            def field(measure: Measure, scenario: Scenario = point.scenario) -> Amount:
                return field_of(scenario, measure.name)

            wrong = unattainable(expected.wanted, measured[0], point.scenario, field)
            if wrong is not None:
                raise wrong.at(field=f"expect.{expected.name}")


def _ceiling(scenario: Scenario) -> Ceiling | None:
    compiled = scenario.compile()
    line = slowest(compiled, compiled.flows[0].forward) if compiled.flows else None
    if line is None or line.pace is not None or (line.discipline is not None and line.discipline.kind == "tbf"):
        return None
    return ceiling(compiled)


def most_mbps(scenario: Scenario) -> float:
    """The highest possible mean goodput of all flows together, in Mbit/s; infinite without such a ceiling."""
    most = _ceiling(scenario)
    return math.inf if most is None else most.goodput_bps / 1e6
