"""Writes a scenario's types for Python: its tables (``tables.py``), from what crates/scenario declares, and its
compiled form (``compiled_form.py``), from crates/net/src/scenario. Run it after changing a field; a test compares.
"""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Any

from sawtooth import _core

ROOT = Path(__file__).resolve().parents[1]
FORM = ROOT / "crates" / "net" / "src" / "scenario"

HEAD = '''"""Tables of a scenario, with their fields. What has a unit is a quantity.

Written by tools/scenario_tables.py from crates/scenario; a test compares. Do not edit.
"""

from __future__ import annotations

from typing import Literal

from sawtooth.scenario.part import Flowing, Labelled, Part
from sawtooth.scenario.units import Burst, Loss, Queue, Rate, Size, Span
'''

FORM_HEAD = '''"""The compiled form of a scenario: the core's JSON. crates/net/src/scenario describes its fields.
``from_`` is ``from`` there; a value of one of several kinds has a field for each.

Written by tools/scenario_tables.py; a test compares. Do not edit.
"""

from __future__ import annotations

from sawtooth.scenario.record import Choice, OfFlow, OfTransmitter, Record
'''

QUANTITIES = ("Rate", "Span", "Size", "Loss", "Burst", "Queue")
BASES = {"Flow": "Flowing", "Module": "Labelled", "Variant": "Labelled"}
FORM_BASES = {"Flow": "OfFlow", "Transmitter": "OfTransmitter"}
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
    ("Transmitter", "discipline"): "Choice | None",
}
"""Fields that can be written in several ways in a file, with their one Python type."""
TEXT_OR_TABLE = ("jitter", "reorder", "duplicate", "corrupt")
"""Fields for which text is short for a table. Their type is the table."""
SIMPLE = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}

FORM_FILES = ("mod", "link", "traffic", "paced", "arrivals", "datagrams", "application")
ABOUT = r"(?P<about>(?: *///.*\n)*)"
"""Here and below: Rust as rustfmt writes it."""
TYPE = re.compile(
    rf"^{ABOUT}#\[derive.*Deserialize.*\n#\[serde\((?!try_from).*\n"
    r"pub(?:\(super\))? (?P<kind>struct|enum) (?P<name>\w+) \{\n(?P<body>(?s:.*?))^\}",
    re.MULTILINE,
)
FIELD = re.compile(r"(?P<attributes>(?:^ *#\[.*\n)*)^ +(?:pub )?(?P<name>\w+): (?P<type>.+),$", re.MULTILINE)
VARIANT = re.compile(
    rf"^{ABOUT} {{4}}(?P<name>[A-Z]\w*)(?:\((?P<type>.+?)\)| \{{(?P<body>(?s:.+?))\}}),$", re.MULTILINE
)
RUST_TYPES = {
    r"\b[iu]\d+\b|\busize\b": "int",
    "String|Rule": "str",
    r"\[int; 2\]|\(int, int\)": "tuple[int, int]",
    r"Option<(.+)>": r"\1 | None",
    r"Vec<(.+)>": r"tuple[\1, ...]",
}


def page() -> str:
    """The whole file."""
    schema = _core.Scenario.schema()
    tables = {name: table for name, table in schema["$defs"].items() if name not in QUANTITIES}
    parts = [_table(name, table) for name, table in sorted(tables.items())]
    return "\n\n".join([HEAD.rstrip() + "\n", *parts, _table("Scenario", schema)])


def form_page() -> str:
    """The whole file of the compiled form."""
    texts = [(FORM / f"{name}.rs").read_text(encoding="utf-8") for name in FORM_FILES]
    types = [one for text in texts for one in TYPE.finditer(text) if one["name"] != "Rule"]
    parts, kinds = list[str](), dict[str, str]()

    def add(name: str, about: str, fields: list[tuple[str, str, str]], base: str = "Record") -> None:
        lines = [f"class {name}({base}):"]
        lines += [*_docstring(about.replace("///", "").replace("`", "``")), ""] if about else []
        for field, kind, otherwise in fields:
            seen = SEEN.get((name, field)) or _of_rust(kind)
            lines.append(f"    {_attribute(field)}: {seen}{otherwise}")
            kinds.update((field, word) for word in re.findall(r"\b[A-Z]\w+", seen) if word != "None")
        parts.append("\n".join(lines) + "\n")

    for one in types:
        if one["kind"] == "struct":
            name = {"Fields": "Flow"}.get(one["name"], one["name"])
            fields = [(field["name"], field["type"], _default(field)) for field in FIELD.finditer(one["body"])]
            add(name, one["about"], fields, FORM_BASES.get(name, "Record"))
            continue
        choices = []
        for variant in VARIANT.finditer(one["body"]):
            if variant["body"]:
                fields = re.findall(r"(\w+): ([^,\n]+)", re.sub("///.*", "", variant["body"]))
                add(variant["name"], variant["about"], [(*field, "") for field in fields])
            word = re.sub(r"\B([A-Z])", r"_\1", variant["name"]).lower()
            choices.append((word, f"Option<{variant['type'] or variant['name']}>", " = None"))
        add(one["name"], one["about"], choices, "Choice")
    tables = "".join(f'    "{field}": {kind},\n' for field, kind in sorted(kinds.items()))
    return "\n\n".join([FORM_HEAD.rstrip() + "\n", *parts, f"KINDS = {{\n{tables}}}\n"])


def _of_rust(kind: str) -> str:
    for rust, python in RUST_TYPES.items():
        kind = re.sub(rust, python, kind)
    return kind


def _default(field: re.Match[str]) -> str:
    """The value of a field that is not in the JSON."""
    if "skip_serializing_if" not in field["attributes"]:
        return ""
    return {"bool": " = False", "Vec": " = ()", "u": " = 0"}.get(re.split(r"[<\d]", field["type"])[0], " = None")


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


PYTHON = ROOT / "src" / "sawtooth" / "scenario"
PAGES = {PYTHON / "tables.py": page, PYTHON / "compiled_form.py": form_page}

if __name__ == "__main__":
    for file, made in PAGES.items():
        file.write_text(made(), encoding="utf-8")
