"""Converts pydantic's problems into one error of this package: file, field, message and fix."""

from __future__ import annotations

import re
import typing
from collections.abc import Sequence

from pydantic import BaseModel, ValidationError

from sawtooth import _core
from sawtooth.errors import InputError, SawtoothError, nearest, suggestion
from sawtooth.sanitize import plain

# For each of pydantic's types of problem: what is needed, and an example.
_TYPES = {
    "int_type": ("a whole number is needed", "write it without quotes, unit or decimals, like {last} = 10"),
    "int_from_float": ("a whole number is needed", "write it without decimals"),
    "bool_type": ("true or false is needed", "write {last} = true or {last} = false"),
    "string_type": ("text is needed", 'write it in quotes: {last} = "…"'),
    "tuple_type": ("a list is needed", "write it as a list: {last} = [ … ], or [[{last}]] for a list of tables"),
    "list_type": ("a list is needed", "write it as a list: {last} = [ … ]"),
    "model_type": ("a table is needed", "write it as a table: {last} = {{ FIELD = VALUE }}"),
    "dict_type": ("a table is needed", "write tables by name: [{last}.NAME]"),
}

_LENGTHS = {
    "too_short": ("{actual_length} given, and at least {min_length} needed", "give at least {min_length}"),
    "too_long": ("more than {max_length} given", "give at most {max_length}"),
    "string_too_long": ("more than {max_length} characters", "shorten it"),
    "int_parsing_size": ("a number of too many digits", "shorten it"),
}
"""The same for what is too long or too short."""


def first_problem(error: ValidationError, model: type[BaseModel], file: str | None) -> SawtoothError:
    """The first problem. Unknown fields come first, because a misspelt field often causes a missing one."""
    found = error.errors(include_url=False)
    problem = next((one for one in found if one["type"] == "extra_forbidden"), found[0])
    location = problem["loc"]
    field = ".".join(str(step)[:80] for step in location) or None
    context = problem.get("ctx", {})
    cause = context.get("error")
    if isinstance(cause, SawtoothError):
        inner = type(cause)(cause.code, cause.message, file=cause.file, fix=cause.fix)
        # A nested table's error only knows the fields of that table.
        return inner.at(file=file, field=".".join(part for part in (field, cause.field) if part) or None)

    def say(code: str, message: str, fix: str) -> InputError:
        return InputError(code, message, file=file, field=field, fix=fix)

    kind = problem["type"]
    if kind == "extra_forbidden":
        fields = _fields_at(model, location[:-1])
        near = nearest(str(location[-1]), fields)
        fix = f'did you mean "{near}"?' if near else f"fields here: {', '.join(fields)}"
        table = _table_with(model, str(location[-1])) if len(location) == 1 else None
        if table is not None:
            fix = f"move it below [{table[0]}]: {location[-1]} = {table[1]}"
        fix = _core.elsewhere([str(step) for step in location], fields) or fix
        return say("unknown-field", "there is no such field", fix)
    if kind == "missing":
        return say("missing-field", "this field is required", f'add the field "{location[-1]}"')
    if kind == "literal_error":
        known = _literals(str(context.get("expected", "")))
        given = plain(problem["input"], 60)
        quoted = isinstance(problem["input"], str)
        shown = f'"{given}"' if quoted else given
        fix = suggestion(given, known)
        if quoted and given in known and f"'{given}'" not in str(context.get("expected", "")):
            fix = f"write it without quotes: {location[-1]} = {given}"
        return say("unknown-name", f"{shown} is not known here", fix)
    if kind in ("greater_than_equal", "less_than_equal"):
        limit = f"at least {context['ge']}" if "ge" in context else f"at most {context['le']}"
        given = str(problem["input"]) if abs(problem["input"]) < 10**30 else "the value"
        return say("out-of-range", f"{given} is not {limit}", f"choose {limit}")
    if kind in _LENGTHS:
        message, fix = (text.format_map(context) for text in _LENGTHS[kind])
        return say("out-of-range", message, fix)
    if kind == "string_pattern_mismatch":
        fix = 'use letters, digits, "-", "_" and "+", at most 40'
        if location == ("name",):
            fix = "use 1 to 100 characters on one line"
        return say("bad-name", f'"{plain(problem["input"], 60)}" is not a name that can be used here', fix)
    message, fix = _TYPES.get(kind, (problem["msg"], "see docs/reference/scenario.md"))
    return say("wrong-type", message, fix.format(last=location[-1] if location else ""))


def _literals(expected: str) -> list[str]:
    """Names from pydantic's sentence "'a', 'b' or 'c'", or the numbers from "4 or 6"."""
    return [part for part in expected.split("'")[1::2] if part] or re.findall(r"-?\d+", expected)


def _table_with(model: type[BaseModel], field: str) -> tuple[str, str] | None:
    """The table of ``model`` that has this field, and the form of its value; None if none has, or only tables of which
    there may be several."""
    for name, one in model.model_fields.items():
        inner = model_in(one.annotation)
        if inner is not None and typing.get_origin(one.annotation) is not dict and field in _fields_at(inner, ()):
            fields = {known.alias or spelt: known.annotation for spelt, known in inner.model_fields.items()}
            return name, "[ … ]" if typing.get_origin(fields[field]) in (list, tuple) else "…"
    return None


def _fields_at(model: type[BaseModel], location: Sequence[int | str]) -> list[str]:
    """Fields of the table at ``location`` below ``model``, as the file spells them."""
    here: type[BaseModel] = model
    named = False
    for step in location:
        if named:
            # The name of one of several tables, which may also be a field's name.
            named = False
            continue
        below = [
            field for name, field in here.model_fields.items() if isinstance(step, str) and step in (name, field.alias)
        ]
        if below:
            here = model_in(below[0].annotation) or here
            named = typing.get_origin(below[0].annotation) is dict
    return [field.alias or name for name, field in here.model_fields.items()]


def model_in(annotation: object) -> type[BaseModel] | None:
    """The model inside ``Model``, ``Model | None``, ``tuple[Model, ...]`` or ``dict[str, Model]``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for argument in typing.get_args(annotation):
        if (found := model_in(argument)) is not None:
            return found
    return None
