"""Cases: points of a study that are listed one by one, where they are not all combinations of some values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from pydantic import Field

from sawtooth.errors import InputError
from sawtooth.study.axis import MAX_VALUES, Axis, Column, ColumnName
from sawtooth.study.files import Table


class Case(Table):
    """One point: the values of its key columns, and the scenario's fields that it sets."""

    key: dict[ColumnName, str | bool | int | float] = Field(min_length=1, description="column = value in the tables")
    set: dict[str, Any] = Field(default_factory=dict, description="dotted field = value")


def axes_of(cases: Sequence[Case]) -> list[Axis]:
    """One axis per key column, with its different values in the order in which they appear.

    Raises SawtoothError: ``conflict``, ``out-of-range``, ``too-many-points``, ``duplicate-name``.
    """
    names = list(cases[0].key)
    seen: set[tuple[Any, ...]] = set()
    for at, case in enumerate(cases):
        if list(case.key) != names:
            fix = f"give every case the columns {', '.join(names)}, in this order"
            raise InputError("conflict", "has other columns than the first case", field=f"cases.{at}.key", fix=fix)
        for name, value in case.key.items():
            if isinstance(value, float) and not math.isfinite(value):
                # NaN is equal to nothing, and JSON has no such numbers.
                fix = f'write it as text: {name} = "{value}"'
                field = f"cases.{at}.key.{name}"
                raise InputError("out-of-range", f"is {value}, not a finite number", field=field, fix=fix)
        values = tuple(case.key.values())
        if values in seen:
            fix = "remove one, or add a column in which they differ"
            raise InputError("duplicate-name", "two cases have the same key", field=f"cases.{at}.key", fix=fix)
        seen.add(values)
    found = []
    for name in names:
        values = tuple(dict.fromkeys(case.key[name] for case in cases))
        if len(values) > MAX_VALUES:
            message = f"{len(values)} values of {name}; at most {MAX_VALUES}"
            raise InputError("too-many-points", message, field="cases", fix="remove cases")
        found.append(Axis(name, values, name, Column(field=name)))
    return found
