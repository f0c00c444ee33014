"""Axis: one varied field of a study, its values, and how they are named in the tables."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, localcontext
from typing import Annotated, Any

from pydantic import AfterValidator, Field, StringConstraints

from sawtooth.errors import InputError, suggestion
from sawtooth.sanitize import plain
from sawtooth.scenario.names import one_line
from sawtooth.scenario.units import Loss, Rate, Size, Span
from sawtooth.study.files import Table

MAX_VALUES = 10_000
LONGEST_NAME = 60
"""Characters of a value in a table. A longer value is shortened, and needs a label if two become equal."""

_AMOUNT = re.compile(r"\s*([+-]?(?:[0-9]{1,15}(?:\.[0-9]{0,12})?|\.[0-9]{1,12})(?:[eE][+-]?[0-9]{1,2})?)\s*(.*?)\s*")
_DIGITS = 250
"""Decimal digits, enough for any sum of two amounts."""

_OF_QUEUES = ("bdp", "packets")
"""Units that only queues have."""

Label = Annotated[str, Field(max_length=100), AfterValidator(one_line)]
ColumnName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,39}$")]


class Column(Table):
    """How a varied field appears in tables: as a number in ``unit``, by its ``labels``, or as written."""

    field: str = Field(description='the varied field, dotted: "chain.loss", "flows.0.cc"')
    title: Label = Field("", description='on axes and in legends: "packet loss, %"')
    unit: str | None = Field(None, description='print the value as a number in this unit: "%", "ms", "Mbit/s"')
    labels: dict[str, Label] = Field(default_factory=dict, description="value = what the tables call it")


@dataclass(frozen=True)
class Axis:
    """``field`` takes each of ``values`` in turn; ``column`` names it in tables."""

    field: str
    values: tuple[Any, ...]
    column: str
    naming: Column

    def name(self, value: Any) -> Any:
        """What tables show for ``value``: a number or short text. Raises SawtoothError ``unknown-unit``."""
        if self.naming.unit is not None:
            return in_unit(value, self.naming.unit, self.field)
        shown = text(value) if isinstance(value, (Mapping, list, tuple)) else value
        return self.naming.labels.get(str(shown), shown)

    @property
    def names(self) -> list[Any]:
        """The names of all values, in order."""
        return [self.name(value) for value in self.values]


def text(value: Any) -> str:
    """A value on one short line: ``{ every = 1000 }`` becomes "every 1000", lists are joined by "+", and a congestion
    control with a variant has the name that flows get, "bbr3-ecn"."""
    if isinstance(value, Mapping) and value.keys() == {"name", "variant"}:
        shown = f"{value['name']}-{value['variant']}"
    elif isinstance(value, Mapping):
        shown = ", ".join(f"{name} {text(one)}" for name, one in value.items())
    elif isinstance(value, (list, tuple)):
        shown = " + ".join(text(one) for one in value)
    else:
        shown = str(value).lower() if isinstance(value, bool) else str(value)
    return shown if len(shown) <= LONGEST_NAME else shown[: LONGEST_NAME - 1] + "…"


def expand(given: Any, field: str) -> tuple[Any, ...]:
    """The values of an axis: a list, or ``{from, to, step}`` with both ends included, computed exactly in decimal.

    Raises SawtoothError: ``wrong-type``, ``unknown-field``, ``missing-field``, ``bad-quantity``, ``out-of-range``,
    ``empty-axis``, ``too-many-points``, ``duplicate-name``.
    """
    if isinstance(given, Mapping):
        given = _range(given, field)
    if not isinstance(given, (list, tuple)):
        fix = 'write a list, ["0%", "1%"], or {from = "0%", to = "10%", step = "1%"}'
        raise InputError("wrong-type", "an axis is a list of values or a range", field=field, fix=fix)
    if not given:
        raise InputError(
            "empty-axis", "this list of values is empty", field=field, fix='add at least one value, like ["1%"]'
        )
    if len(given) > MAX_VALUES:
        message = f"{len(given)} values; at most {MAX_VALUES}"
        raise InputError("too-many-points", message, field=field, fix="remove values")
    seen: set[Any] = set()
    tables: list[Any] = []
    for value in given:
        try:
            twice = value in seen
            seen.add(value)
        except TypeError:
            # A table or a list.
            twice = value in tables
            tables.append(value)
        if twice:
            raise InputError(
                "duplicate-name", f'the value "{text(value)}" is listed twice', field=field, fix="remove one"
            )
    return tuple(given)


def in_unit(value: Any, unit: str, field: str) -> float:
    """A quantity as a number in ``unit``; plain numbers pass unchanged. Raises SawtoothError ``unknown-unit``."""
    if isinstance(value, (int, float)):
        return value
    if not isinstance(value, str):
        fix = "leave out the unit: the column then has names; labels give them others"
        raise InputError("unknown-unit", f'"{text(value)}" is no number of "{unit}"', field=field, fix=fix)
    written = _AMOUNT.fullmatch(value)
    if unit in _OF_QUEUES and written is not None and written[2] == unit:
        return float(written[1])
    for kind, attribute in ((Loss, "ppb"), (Span, "ns"), (Rate, "bps"), (Size, "bytes")):
        try:
            one = getattr(kind.parse(f"1{unit}" if unit == "%" else f"1 {unit}"), attribute)
        except InputError:
            continue
        try:
            number = Decimal(getattr(kind.parse(value), attribute)) / Decimal(one)
        except InputError as error:
            raise error.at(field=field) from error
        return int(number) if number == int(number) else float(number)
    raise InputError(
        "unknown-unit", f'"{unit}" is not a unit known here', field=field, fix='write one like "%" or "ms"'
    )


_LIKE = {"from": "0%", "to": "10%", "step": "1%"}
"""Fields of a range, with an example of each."""


def _range(given: Mapping[str, Any], field: str) -> list[str | int]:
    for name in given:
        if name not in _LIKE:
            raise InputError(
                "unknown-field", "a range has no such field", field=f"{field}.{name}", fix=suggestion(name, _LIKE)
            )
    ends: list[tuple[Decimal, str]] = []
    for name, like in _LIKE.items():
        if name not in given:
            fix = f'add {name}, like {name} = "{like}"'
            raise InputError("missing-field", "a range needs this field", field=f"{field}.{name}", fix=fix)
        ends.append(_amount(given[name], f"{field}.{name}"))
    (low, unit), (high, _), (step, _) = ends
    if len({unit for _, unit in ends}) > 1:
        raise InputError(
            "bad-quantity", "from, to and step have different units", field=field, fix="write all three in one unit"
        )
    if step <= 0:
        raise InputError(
            "out-of-range", "the step is not above 0", field=f"{field}.step", fix='write a step above 0, like "1%"'
        )
    if high < low:
        raise InputError("empty-axis", "the range ends before it begins", field=field, fix="swap from and to")
    with localcontext(prec=_DIGITS):
        if (high - low) / step >= MAX_VALUES:
            message = f"more than {MAX_VALUES} values"
            raise InputError("too-many-points", message, field=field, fix="choose a larger step")
        values = [low + step * at for at in range(int((high - low) / step) + 1)]
    if not unit and all(value == int(value) for value in values):
        return [int(value) for value in values]
    return [_amount_text(value, unit) for value in values]


def _amount(value: Any, field: str) -> tuple[Decimal, str]:
    if isinstance(value, int) and not isinstance(value, bool):
        return Decimal(value), ""
    found = _AMOUNT.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise InputError("bad-quantity", f'"{plain(value, 60)}" is not an amount', field=field, fix='write "1%" or 10')
    return Decimal(found[1]), found[2]


def _amount_text(value: Decimal, unit: str) -> str:
    digits = format(value, "f") if value else "0"
    digits = digits.rstrip("0").rstrip(".") if "." in digits else digits
    return f"{digits}{unit}" if unit == "%" else f"{digits} {unit}".rstrip()
