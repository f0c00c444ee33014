"""Writes src/sawtooth/scenario/tables.py from what crates/scenario declares: the types of a scenario's tables, for
editors and type checkers. Run it after changing a field; a test compares.
"""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

from sawtooth import _core

FILE = Path(__file__).resolve().parents[1] / "src" / "sawtooth" / "scenario" / "tables.py"

HEAD = '''"""Tables of a scenario, with their fields. What has a unit is a quantity.

Written by tools/scenario_tables.py from crates/scenario; a test compares. Do not edit.
"""

from __future__ import annotations

from typing import Literal

from sawtooth.scenario.part import Flowing, Labelled, Part
from sawtooth.scenario.units import Burst, Loss, Queue, Rate, Size, Span
'''

QUANTITIES = ("Rate", "Span", "Size", "Loss", "Burst", "Queue")
BASES = {"Flow": "Flowing", "Module": "Labelled", "Variant": "Labelled"}
SEEN = {
    ("Dumbbell", "rtt"): "tuple[Span, ...]",
    ("Change", "rate"): "tuple[Rate, ...] | None",
    ("Change", "delay"): "tuple[Span, ...] | None",
    ("Change", "loss"): "tuple[Loss, ...] | None",
    ("Module", "source"): "tuple[str, ...]",
    ("Module", "parameters"): "dict[str, int | bool | str]",
    ("Host", "gro"): "Span | None",
    ("Host", "ecn"): "int",
    ("Cake", "rtt"): "Span",
}
"""Fields that can be written in several ways in a file, with their one Python type."""
TEXT_OR_TABLE = ("jitter", "reorder", "duplicate", "corrupt")
"""Fields for which text is short for a table. Their type is the table."""
SIMPLE = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}


def page() -> str:
    """The whole file."""
    schema = _core.Scenario.schema()
    tables = {name: table for name, table in schema["$defs"].items() if name not in QUANTITIES}
    parts = [_table(name, table) for name, table in sorted(tables.items())]
    return "\n\n".join([HEAD.rstrip() + "\n", *parts, _table("Scenario", schema)])


def _table(name: str, table: dict[str, Any]) -> str:
    lines = [f"class {name}({BASES.get(name, 'Part')}):", *_docstring(table["description"].replace("`", "``")), ""]
    for field, told in table["properties"].items():
        lines.append(f"    {_attribute(field)}: {SEEN.get((name, field)) or _type(field, told)}")
        lines += _docstring(told["description"])
    return "\n".join(lines) + "\n"


def _attribute(field: str) -> str:
    return {"from": "from_", "parking-lot": "parking_lot"}.get(field, field)


def _docstring(text: str) -> list[str]:
    first, _, rest = text.partition("\n\n")
    lines = textwrap.wrap(" ".join(first.split()), 112)
    lines += ["", *textwrap.wrap(" ".join(rest.split()), 114)] if rest else []
    lines = [line.replace("\\", "\\\\") for line in lines]
    if len(lines) == 1 and not lines[0].endswith('"'):
        return [f'    """{lines[0]}"""']
    return [f'    """{lines[0]}', *(f"    {line}" if line else "" for line in lines[1:]), '    """']


def _type(field: str, told: dict[str, Any]) -> str:
    if "anyOf" in told:
        choices = told["anyOf"]
        if field in TEXT_OR_TABLE:
            inner = choices[0].get("anyOf", choices)
            return f"{_type('', inner[-1])} | None"
        found = [one for choice in choices for one in _type(field, choice).split(" | ")]
        return " | ".join(dict.fromkeys(found))
    if "$ref" in told:
        return str(told["$ref"].rpartition("/")[2])
    if "const" in told:
        return f'Literal["{told["const"]}"]'
    if "enum" in told:
        return f"Literal[{', '.join(_word(one) for one in told['enum'])}]"
    if told["type"] == "array":
        item = _type("", told["items"])
        return f"tuple[{item}, {item}]" if told.get("minItems") == told.get("maxItems", -1) else f"tuple[{item}, ...]"
    if told["type"] == "object":
        return f"dict[str, {_type('', told['additionalProperties'])}]"
    return SIMPLE[told["type"]]


def _word(one: object) -> str:
    return f'"{one}"' if isinstance(one, str) else str(one)


if __name__ == "__main__":
    FILE.write_text(page(), encoding="utf-8")
