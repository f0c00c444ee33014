"""Expectation: what a study should find, as a comparison of measures at its points (docs/reference/expect.md).

    mean_mbps(cc='bbr', loss=1%) > 0.85 * mean_mbps(cc='bbr', loss=0%)

A measure is a column of the study's tables; its settings select the point. An axis that no measure sets takes each of
its values in turn, one case each.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sawtooth.errors import InputError, SawtoothError, suggestion
from sawtooth.sanitize import plain
from sawtooth.scenario import Scenario
from sawtooth.scenario.expressions import Amount, Comparison, Measure, parse
from sawtooth.scenario.units import Loss, Rate, Size, Span
from sawtooth.stats import COUNTERS, STATISTICS
from sawtooth.study.axis import Axis, text
from sawtooth.study.measures import ALIASES, MEASURES, measured
from sawtooth.study.shares import SHARE_COLUMNS

MOST = 1000
"""At most this many expectations per study, and cases per expectation."""
COLUMNS = (*STATISTICS, *COUNTERS, *MEASURES)
"""Measures of a whole point."""
PARTS = ("flow", "probe", "application", "bytes_from")
"""Settings that select a part of a point; they are columns of its tables."""
OF_PARTS = (*COLUMNS, *(name for name in SHARE_COLUMNS if name not in ("flow", "flow_cc")))
"""Measures that exist for parts."""
_AMOUNT = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,15})?)\s*(\S*)")


@dataclass(frozen=True)
class Expectation:
    """One line of the table ``[expect]``."""

    name: str
    wanted: Comparison

    @classmethod
    def read(cls, name: str, written: str) -> Expectation:
        """Parses a line. Raises SawtoothError as ``wanted.parse`` does, and ``bad-expression`` if it contains no
        measure."""
        wanted = parse(written)
        if not any(not is_field(one) for one in wanted.measures):
            fix = "name a column of the study's tables, like mean_mbps"
            raise InputError("bad-expression", "nothing that a study measures is in it", fix=fix)
        return cls(name, wanted)

    def check(self, axes: Sequence[Axis], scenario: Scenario) -> None:
        """Raises SawtoothError if the expectation does not fit the study.

        ``unknown-name``, ``conflict``, ``too-many-points``; ``missing-unit`` and ``bad-expression`` if its sides have
        different dimensions.
        """
        own = measured(scenario)
        for one in self.wanted.measures:
            known = OF_PARTS if parts_of(one) else (*COLUMNS, *own)
            if not is_field(one) and column_of(one) not in known:
                raise InputError("unknown-name", f"no table has a column {one.name}", fix=suggestion(one.name, known))
        self.wanted.sides(
            lambda one: field_of(scenario, one.name) if is_field(one) else Amount.of_column(column_of(one), 1.0)
        )
        for case in self.cases(axes):
            for one in self.wanted.measures:
                point_of(one, axes, case)

    def cases(self, axes: Sequence[Axis]) -> list[dict[str, Any]]:
        """The combinations of values of the axes that no measure sets. Raises SawtoothError ``conflict`` or
        ``too-many-points``."""
        measures = [one for one in self.wanted.measures if not is_field(one) or one.settings]
        set_in = [{axis_of(name, axes).column for name, _ in settings_of(one)} for one in measures]
        free = []
        for axis in axes:
            those = [one for one, columns in zip(measures, set_in, strict=True) if axis.column in columns]
            if those and len(those) < len(measures) and len(axis.names) > 1:
                other = next(one for one in measures if one not in those)
                fix = f"add {axis.column}=… to it, or leave it out of all: then it is each of its values in turn"
                message = f"{axis.column} is set for {those[0].name} and not for {plain(str(other))}"
                raise InputError("conflict", message, fix=fix)
            if not those and len(axis.names) > 1:
                free.append(axis)
        found = [
            dict(zip((axis.column for axis in free), names, strict=True))
            for names in itertools.islice(itertools.product(*(axis.names for axis in free)), MOST + 1)
        ]
        if len(found) > MOST:
            fix = "set more of the axes"
            raise InputError("too-many-points", f"more than {MOST} cases", fix=fix)
        return found


def read(given: Mapping[str, str] | None) -> list[Expectation]:
    """The expectations of a table ``[expect]``. Raises SawtoothError with the field."""
    found = []
    for name, written in (given or {}).items():
        try:
            found.append(Expectation.read(name, written))
        except SawtoothError as error:
            raise error.at(field=f"expect.{name}") from None
    return found


def is_field(measure: Measure) -> bool:
    """Whether the measure is a field of the scenario, such as ``path.rate``."""
    return "." in measure.name


def column_of(measure: Measure) -> str:
    """The measure's column in the tables."""
    return ALIASES.get(measure.name, measure.name)


def parts_of(measure: Measure) -> dict[str, Any]:
    """The settings that select a part of a point: a flow, a probe."""
    return {name: value for name, value in measure.settings if name in PARTS}


def settings_of(measure: Measure) -> list[tuple[str, Any]]:
    """The settings that select the point."""
    return [(name, value) for name, value in measure.settings if name not in PARTS]


def point_of(measure: Measure, axes: Sequence[Axis], case: Mapping[str, Any]) -> dict[str, Any]:
    """The key of a measure's point: each axis's column and name.

    Raises SawtoothError ``unknown-name`` (no such axis or value), ``conflict``.
    """
    key = dict(case)
    for name, value in settings_of(measure):
        axis = axis_of(name, axes)
        key[axis.column] = _name_of(value, axis)
    for axis in axes:
        if axis.column not in key and len(axis.names) == 1:
            key[axis.column] = axis.names[0]
    return {axis.column: key[axis.column] for axis in axes if axis.column in key}


def axis_of(name: str, axes: Sequence[Axis]) -> Axis:
    """The axis with that name: its column, its field, the field's last word, or the column without its unit."""
    for names in (_columns, _fields, _short):
        found = [axis for axis in axes if name in names(axis)]
        if len(found) == 1:
            return found[0]
        if found:
            fix = f"write {' or '.join(axis.column for axis in found)}"
            raise InputError("conflict", f"{name} is more than one axis", fix=fix)
    columns = [*(axis.column for axis in axes), *PARTS]
    raise InputError("unknown-name", f'this study does not vary "{plain(name, 40)}"', fix=suggestion(name, columns))


def field_of(scenario: Scenario, name: str) -> Amount:
    """The value of a scenario's field. Raises SawtoothError ``unknown-name`` if it is not set or not an amount."""
    found: Any = scenario.to_dict()
    for step in name.split("."):
        if isinstance(found, list):
            by_place = dict(zip(map(str, range(len(found))), found, strict=True))
            found = by_place | {str(one.get("name")): one for one in found if isinstance(one, dict)}
        found = found.get(step) if isinstance(found, dict) else None
    written = None if isinstance(found, bool) else _AMOUNT.fullmatch(str(found))
    if written is None:
        fix = "name an amount that the scenario's file sets, like path.rate"
        raise InputError("unknown-name", f"the scenario sets no amount {plain(name, 60)}", fix=fix)
    number, unit = float(written[1]), written[2]
    return Amount.of_unit(number, unit) if unit else Amount(number)


def _columns(axis: Axis) -> tuple[str, ...]:
    return (axis.column,)


def _fields(axis: Axis) -> tuple[str, ...]:
    return (axis.field,)


def _short(axis: Axis) -> Iterator[str]:
    yield axis.field.rpartition(".")[2]
    if axis.naming.unit is not None:
        yield axis.column.rpartition("_")[0]


def _name_of(value: Any, axis: Axis) -> Any:
    """What tables show for a value as somebody wrote it."""
    for one, name in zip(axis.values, axis.names, strict=True):
        if value in (name, one) or str(value) in (text(name), text(one)) or _is_same(value, one):
            return name
    shown = [text(name) for name in axis.names]
    raise InputError(
        "unknown-name", f"{axis.column} is never {text(value)} in this study", fix=suggestion(text(value), shown)
    )


def _is_same(left: Any, right: Any) -> bool:
    """Whether two texts are the same quantity in different notation."""
    if not isinstance(left, str) or not isinstance(right, str):
        return False
    for kind in (Loss, Span, Rate, Size):
        try:
            return bool(kind.parse(left) == kind.parse(right))
        except InputError:
            continue
    return False
