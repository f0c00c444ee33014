"""Finding: a question of a scenario or of a study's points, searched for, and checked on another engine."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

from sawtooth import engines
from sawtooth.bar import Bar
from sawtooth.engines import Engine
from sawtooth.errors import InputError, SawtoothError
from sawtooth.finding.found import Answers, Check, Found
from sawtooth.finding.measuring import Measuring
from sawtooth.finding.search import FIRST, SCAN, Probed, Search
from sawtooth.finding.unknown import Unknown
from sawtooth.plain import plain
from sawtooth.scenario import Loss, Scenario
from sawtooth.stats.interval import independent
from sawtooth.study import Study
from sawtooth.wanted import parse
from sawtooth.work import Workers

WITHIN = "10%"
MOST_RUNS = 400
CHECK_SEEDS = 4
_USUAL = 24
"""Places and rounds beyond the scan, times seeds: what a search takes as a rule, for the bar."""


def find(
    what: Scenario | Study,
    *,
    vary: str | None = None,
    want: str | None = None,
    scale: str | None = None,
    within: str | None = None,
    most: int | None = None,
    engine: str | Engine = "sim",
    check: str | Engine | None = None,
    jobs: int | None = None,
    executor: Executor | Workers | None = None,
    overrides: Mapping[str, Any] | None = None,
    quiet: bool = True,
) -> Found | Answers:
    """The value of a field from which on, or up to which, a want holds; see ``verbs.find``."""
    given: dict[str, Any] = dict(what.find.given()) if isinstance(what, Study) and what.find is not None else {}
    stated = {"vary": vary, "want": want, "scale": scale, "within": within, "most": most}
    given |= {name: value for name, value in stated.items() if value is not None}
    for name, example in (("vary", "path.loss=0.0001%..5%"), ("want", "goodput >= 90% of path.rate")):
        if name not in given:
            raise InputError("missing-field", "is missing", field=name, fix=f'give it, like "{example}"')
    points: list[tuple[dict[str, Any], Scenario]] = (
        [({}, what.set(overrides or {}))]
        if isinstance(what, Scenario)
        else [(point.key, point.scenario) for point in what.points(seeds=[1], overrides=overrides)]
    )
    chosen = engines.get(engine) if isinstance(engine, str) else engine
    checking = engines.get(check) if isinstance(check, str) else check
    several = isinstance(what, Study) and bool(what.vary)
    found = []
    for key, scenario in points:
        name = f"{what.name} ({', '.join(str(one) for one in key.values())})" if several else what.name
        found.append(_one(name, scenario, given, chosen, checking, jobs, executor, quiet))
    if several:
        return Answers(what.name, tuple(key for key, _ in points), tuple(found))
    return found[0]


def _one(
    name: str,
    scenario: Scenario,
    given: Mapping[str, Any],
    engine: Engine,
    checking: Engine | None,
    jobs: int | None,
    executor: Executor | Workers | None,
    quiet: bool,
) -> Found:
    unknown, want = (
        _at("vary", lambda: Unknown.parse(given["vary"], given.get("scale"))),
        _at("want", lambda: parse(given["want"])),
    )
    within = _at("within", lambda: Loss.parse(given.get("within", WITHIN)).probability)
    most = given.get("most", MOST_RUNS)
    if not 0.001 <= within <= 0.5:
        raise InputError("out-of-range", "is not between 0.1% and 50%", field="within", fix="give e.g. 10%")
    if most < SCAN * FIRST:
        message = f"{most} runs are fewer than the first look takes"
        raise InputError("out-of-range", message, field="runs", fix=f"give {SCAN * FIRST} or more")
    with Bar(name, SCAN * FIRST + _USUAL, quiet=quiet) as bar:
        # How many there will be is not known: the bar comes to nine tenths, and waits there.
        usual = (SCAN * FIRST + _USUAL) * _variants(want, scenario)
        measuring = Measuring(
            scenario,
            unknown,
            want,
            engine,
            jobs,
            executor,
            lambda runs: bar.show((SCAN * FIRST + _USUAL) * min(0.9, runs / usual)),
        )
        _at("want", measuring.check)
        most_margins = most // _variants(want, scenario)
        search = Search(unknown, measuring.margins, within=within, most=most_margins, luck=measuring.luck)
        try:
            crossing = search.run()
        except KeyboardInterrupt:
            raise SawtoothError("interrupted", _so_far(search, unknown, measuring.runs), fix=_AGAIN) from None
    rows, samples = _tables(search, measuring)
    found = Found(
        name,
        want.text,
        unknown,
        engine.name,
        crossing.verdict,
        crossing.value,
        (crossing.low, crossing.high),
        "below" if crossing.holds_low else "above",
        crossing.changes,
        crossing.enough,
        within,
        measuring.runs,
        measuring.seconds,
        want.sides(partial(measuring.amount, *next(iter(measuring.sides))))[0].dimension,
        rows,
        samples,
        scenario.to_dict(),
    )
    return found if checking is None else replace(found, checks=_checked(found, measuring, checking))


_AGAIN = "give the same command again, with a wider --within or fewer values if it takes too long"


def _at(field: str, what: Callable[[], Any]) -> Any:
    try:
        return what()
    except SawtoothError as error:
        raise error.at(field=field) from None


def _variants(want: Any, scenario: Scenario) -> int:
    """Runs for each value and seed: one for each set of changes that a measure makes for itself."""
    return max(1, len({one.settings for one in want.measures if "." not in one.name}))


def _tables(search: Search, measuring: Measuring) -> tuple[Any, Any]:
    import pandas as pd

    rows, samples = [], []
    for point in search.points:
        sides = [measuring.sides[point.value, seed] for seed in range(point.first, point.first + point.n)]
        left, right = (independent([one[side] for one in sides]) for side in (0, 1))
        rows.append(
            {
                "value": point.value,
                "seeds": point.n,
                "left": left.mean,
                "left_low": left.low,
                "left_high": left.high,
                "right": right.mean,
                "holds": _HOLDS[point.sign],
            }
        )
        samples += [
            {"value": point.value, "seed": seed, "left": one[0], "right": one[1]}
            for seed, one in enumerate(sides, point.first)
        ]
    return pd.DataFrame(rows), pd.DataFrame(samples)


_HOLDS = {1: "yes", 0: "unclear", -1: "no"}


def _checked(found: Found, measuring: Measuring, engine: Engine) -> tuple[Check, ...]:
    """The want on another engine at the answer and at its interval's ends; at the range's where nothing was found."""
    unknown = found.unknown
    given = (found.interval[0], found.value, found.interval[1])
    places = [one for one in given if not math.isnan(one)] or [unknown.low, unknown.high]
    values = list(dict.fromkeys(unknown.value(unknown.place(one)) for one in places))
    there = Measuring(measuring.scenario, unknown, measuring.want, engine, measuring.jobs, measuring.executor)
    there.check()
    tasks = [(value, seed) for value in values for seed in range(1, CHECK_SEEDS + 1)]
    margins = dict(zip(tasks, there.margins(tasks), strict=True))
    checks = []
    for value in values:
        seeds = range(1, CHECK_SEEDS + 1)
        sides = [there.sides[value, seed] for seed in seeds]
        left, right = (math.fsum(one[side] for one in sides) / CHECK_SEEDS for side in (0, 1))
        sign = Probed(value, 0.0, margins=[margins[value, seed] for seed in seeds]).sign
        checks.append(Check(engine.name, value, left, right, CHECK_SEEDS, _HOLDS[sign]))
    return tuple(checks)


def _so_far(search: Search, unknown: Unknown, runs: int) -> str:
    clear = [one for one in search.points if one.n and one.sign]
    for one, other in pairwise(clear):
        if one.sign != other.sign:
            between = f"between {unknown.text(one.value)} and {unknown.text(other.value)}"
            return f"interrupted after {runs} runs; so far the answer is {plain(between)}"
    return f"interrupted after {runs} runs"
