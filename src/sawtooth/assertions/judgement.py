"""Judgement: the verdict on each expectation of a study."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sawtooth.assertions.combined_estimate import Estimate, Sample, estimate
from sawtooth.assertions.observations import Observations
from sawtooth.errors import InputError, SawtoothError
from sawtooth.scenario.expressions import NUMBER, Amount, Comparison, Dimension, Measure
from sawtooth.stats import Interval
from sawtooth.study.axis import Axis, text
from sawtooth.study.expectation import Expectation, read

if TYPE_CHECKING:
    from sawtooth.study import Dataset, StudyResult

HOLDS, FAILS, UNKNOWN, ABSENT = "holds", "fails", "inconclusive", "not asked"
"""Verdicts. ABSENT: ``--set`` removed the expectation's points from the study, so they were not run."""
ONE_SEED = "one seed gives no confidence interval: run the study with several"


@dataclass(frozen=True)
class Verdict:
    """The verdict on one case of an expectation. ``left`` and ``right`` are in the unit of ``dimension``, with their
    intervals."""

    name: str
    text: str
    case: dict[str, Any]
    """The values of the axes that the expectation does not set."""
    verdict: str
    left: Interval
    right: Interval
    margin: Interval
    """The margin: above 0 if the expectation holds."""
    dimension: Dimension
    seeds: int
    seeds_to_decide: int | None
    """If inconclusive, about how many seeds would decide. None: more than a thousand, or unknown."""
    reason: str
    """Why it is inconclusive, if not because of the interval; why it was not asked."""

    @property
    def title(self) -> str:
        """Its name, with its case."""
        case = ", ".join(f"{name} {text(value)}" for name, value in self.case.items())
        return f"{self.name} ({case})" if case else self.name

    def describe(self) -> dict[str, Any]:
        """As JSON values; unknown values are null. In bit/s, seconds and bits; a share of 1 is everything."""
        return {
            "name": self.name,
            "expectation": self.text,
            "case": self.case,
            "verdict": self.verdict,
            **{side: getattr(self, side).describe() for side in ("left", "right", "margin")},
            "seeds": self.seeds,
            "seeds_to_decide": self.seeds_to_decide,
            "reason": self.reason or None,
        }


@dataclass(frozen=True)
class Judgement:
    """All verdicts, in the order of the study file."""

    study: str
    source: str | None
    """The file that contains the expectations."""
    verdicts: tuple[Verdict, ...]

    def count(self, verdict: str) -> int:
        """How many have this verdict."""
        return sum(one.verdict == verdict for one in self.verdicts)

    def describe(self) -> dict[str, Any]:
        """As JSON values."""
        names = {"holds": HOLDS, "fails": FAILS, "cannot_tell": UNKNOWN, "not_asked": ABSENT}
        counts = {name: self.count(verdict) for name, verdict in names.items()}
        return {"study": self.study, **counts, "expectations": [one.describe() for one in self.verdicts]}


def judge(
    result: StudyResult | Dataset, wanted: Mapping[str, str] | None = None, *, source: Path | str | None = None
) -> Judgement:
    """Judges a result or a dataset by its study's expectations, or by ``wanted``: names and comparisons.

    A comparison holds if the whole 95% interval of its margin is on the right side, and fails if none of it is. Raises
    SawtoothError: as reading a study with this table ``[expect]`` does; ``missing-field`` without expectations; for a
    dataset ``not-a-result`` if it lacks rows, and ``unsupported`` for an expectation about a flow or probe.
    """
    seen = Observations.of(result)
    given = seen.study.expect if wanted is None else wanted
    if not given:
        fix = 'add --expect "mean_mbps > 50 Mbit/s", or a table [expect] to the study'
        raise InputError("missing-field", "the study has no table [expect]", field="expect", fix=fix)
    verdicts = [one for expected in read(given) for one in _verdicts(expected, seen)]
    origin = source if source is not None or wanted is not None else seen.study.origin
    return Judgement(seen.study.name, None if origin is None else str(origin), tuple(verdicts))


def _verdicts(expected: Expectation, seen: Observations) -> Iterable[Verdict]:
    try:
        expected.check(seen.axes, seen.scenario(seen.places[0]))
        cases = expected.cases(seen.axes)
    except SawtoothError as error:
        if not seen.changed:
            raise error.at(field=f"expect.{expected.name}") from None
        nothing = Interval(math.nan, math.nan, math.nan, 0)
        sides = nothing, nothing, nothing
        names = expected.name, expected.wanted.text
        yield Verdict(*names, {}, ABSENT, *sides, NUMBER, len(seen.seeds), None, error.message)
        return
    for case in cases:
        try:
            yield _verdict(expected, case, seen)
        except SawtoothError as error:
            raise error.at(field=f"expect.{expected.name}") from None


def _verdict(expected: Expectation, case: dict[str, Any], seen: Observations) -> Verdict:
    import numpy as np

    wanted = expected.wanted
    found = {_key(one): (one, *seen.sample(one, _case_of(case, seen.axes))) for one in wanted.measures}
    known = np.all([np.isfinite(sample.values) for _, sample, _ in found.values()], axis=0)
    samples = {name: Sample(sample.values[known], sample.within) for name, (_, sample, _) in found.items()}
    dimensions = {name: dimension for name, (_, _, dimension) in found.items()}
    unit = _side(wanted, dimensions, 0)(dict.fromkeys(found, 1.0)).dimension
    count = int(known.sum())
    left, right = (_estimated(_side(wanted, dimensions, at), samples, count) for at in (0, 1))
    margin = _estimated(_margin(wanted, dimensions), samples, count)
    verdict = _decided(margin.interval, wanted.sign)
    reason, needed = "", None
    if verdict == UNKNOWN:
        needed = margin.seeds_to_decide()
        empty = [str(one) for one, sample, _ in found.values() if not np.isfinite(sample.values).any()]
        if empty:
            reason = f"{empty[0]} has no value here"
        elif count < len(seen.seeds):
            reason = f"only {count} of {len(seen.seeds)} seeds have all values"
        elif math.isnan(margin.interval.low):
            reason = ONE_SEED if count == 1 else "a value is not finite"
    sides = left.interval, right.interval, margin.interval
    return Verdict(expected.name, wanted.text, case, verdict, *sides, unit, count, needed, reason)


def _decided(margin: Interval, sign: str) -> str:
    equal = sign.endswith("=")
    if margin.low > 0 or (equal and margin.low == 0):
        return HOLDS
    if margin.high < 0 or (not equal and margin.high == 0):
        return FAILS
    return UNKNOWN


def _side(wanted: Comparison, dimensions: Mapping[Any, Dimension], at: int) -> Callable[[Mapping[Any, float]], Amount]:
    """One side of the comparison, from means by measure."""
    return lambda means: wanted.sides(lambda one: Amount(means[_key(one)], dimensions[_key(one)]))[at]


def _margin(wanted: Comparison, dimensions: Mapping[Any, Dimension]) -> Callable[[Mapping[Any, float]], Amount]:
    def margin(means: Mapping[Any, float]) -> Amount:
        return Amount(wanted.margin(lambda one: Amount(means[_key(one)], dimensions[_key(one)])))

    return margin


def _estimated(value: Callable[[Mapping[Any, float]], Amount], samples: Mapping[Any, Sample], count: int) -> Estimate:
    if count == 0:
        return Estimate(Interval(math.nan, math.nan, math.nan, 0), math.nan)
    try:
        return estimate(lambda means: float(value(means).value), samples)
    except InputError as error:
        if error.code != "bad-expression":
            raise
        # The expression divides by a mean that is 0.
        return Estimate(Interval(math.nan, math.nan, math.nan, count), math.nan)


def _key(measure: Measure) -> tuple[Any, ...]:
    """Equal name and settings mean the same measure, wherever it appears."""
    return (measure.name, *((name, type(value).__name__, value) for name, value in measure.settings))


def _case_of(case: Mapping[str, Any], axes: list[Axis]) -> dict[str, Any]:
    """A study in which nothing varies has one point, whatever its name."""
    return dict(case) if axes else {}
