"""Reads TOML from any origin: every failure has a plain message, and the cost is proportional to the size.

The standard library's parser takes time and memory with the square of a dotted key's parts, and stack for nested
brackets. Both are counted before it sees the text.
"""

from __future__ import annotations

import codecs
import json
import re
import tomllib
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from sawtooth.errors import InputError, nearest
from sawtooth.io.untrusted import deeper_than, read_bytes

LARGEST = 4 * 1024 * 1024
"""Bytes: more than ten thousand flows, each with all its fields."""
DEEPEST = 16
"""Most parts of a dotted key, nested brackets, and nested tables."""
_OF_TABLES = ("hosts", "cards")
"""Tables of tables: each has its own heading."""
LONGEST_WORD = 300
"""Characters of a key or number without quotes."""
_TWICE = ("Cannot overwrite", "Cannot declare", "Cannot redefine", "Cannot mutate", "Duplicate inline table key")
"""How the parser's message begins if a name is given twice."""

# Whole strings and comments, then what counts: dots, brackets, ends of keys and values, and words. Kinds of strings are
# tried longest quote first, as in the parser; an unclosed one ends the scan, and the parser reports it.
_TOKEN = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*"{3,5}'
    r"|'''(?:[^']|'(?!''))*'{3,5}"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'"
    r"|#[^\n]*"
    r"|(?P<open>[\[{])|(?P<close>[\]}])|(?P<dot>\.)|(?P<end>[=,\n])|(?P<broken>[\"'])"
    r"|(?P<word>[^\s\"'#\[\]{}.=,]+)"
    r"|[^\S\n]+",
    re.DOTALL,
)


def read_toml(path: str | PathLike[str]) -> dict[str, Any]:
    """The tables of a TOML file, "-" for standard input.

    Raises SawtoothError: ``file-not-found``, ``file-unreadable`` or ``not-toml``.
    """
    try:
        data = read_bytes(path, LARGEST)
    except InputError as error:
        near = _near_file(Path(path)) if error.code == "file-not-found" else None
        raise InputError(error.code, error.message, file=path, fix=near or error.fix) from None
    if len(data) > LARGEST:
        fix = "check that it is a scenario or a study"
        raise InputError("file-unreadable", f"it is larger than {LARGEST >> 20} MiB", file=path, fix=fix)
    try:
        return parse_toml(data.removeprefix(codecs.BOM_UTF8).decode())
    except UnicodeDecodeError as error:
        message = f"it is not UTF-8 text (byte {error.start})"
        raise InputError("not-toml", message, file=path, fix="save it as UTF-8") from None
    except InputError as error:
        raise error.at(file=path) from None


def parse_toml(text: str) -> dict[str, Any]:
    """The tables of a text. Raises SawtoothError ``not-toml``, also for nesting deeper than 16."""
    _check(text)
    try:
        tables = tomllib.loads(text)
    except ValueError as error:
        said, fix = str(error), 'text is quoted: rtt = "20 ms"'
        if said.startswith(_TWICE):
            said = f"a key or table is given twice {said[said.rfind('(at ') :]}"
            fix = "keep one of them; tables of a list have two brackets: [[flows]]"
        raise InputError("not-toml", f"it is not TOML: {said}", fix=fix) from None
    except RecursionError:
        raise _too_deep() from None
    if deeper_than(tables, DEEPEST):
        raise _too_deep()
    return tables


def toml_text(tables: Mapping[str, Any]) -> str:
    """Tables as a TOML file: values first, lists of tables as [[NAME]], their content on one line."""
    lines = [f"{_key(key)} = {_value(value)}" for key, value in tables.items() if not _is_table(value)]
    for key, value in tables.items():
        if isinstance(value, Mapping):
            inner = {name: one for name, one in value.items() if isinstance(one, Mapping) and key in _OF_TABLES}
            if len(inner) < len(value) or not value:
                lines += ["", f"[{_key(key)}]"]
            lines += [f"{_key(name)} = {_value(one)}" for name, one in value.items() if name not in inner]
            for name, table in inner.items():
                lines += ["", f"[{_key(key)}.{_key(name)}]"]
                lines += [f"{_key(field)} = {_value(one)}" for field, one in table.items()]
        elif _is_table(value):
            for table in value:
                lines += ["", f"[[{_key(key)}]]", *(f"{_key(name)} = {_value(one)}" for name, one in table.items())]
    return "\n".join(lines) + "\n"


def _is_table(value: Any) -> bool:
    return isinstance(value, Mapping) or (isinstance(value, list) and bool(value) and isinstance(value[0], Mapping))


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _value(key)


def _value(value: Any) -> str:
    """A value on one line. JSON's escapes of text are valid TOML."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f" {_key(key)} = {_value(one)}" for key, one in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(_value(one) for one in value) + "]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _too_deep(line: int | None = None) -> InputError:
    where = "" if line is None else f" (line {line})"
    return InputError(
        "not-toml", f"it is nested more than {DEEPEST} deep{where}", fix="write fewer tables inside each other"
    )


def _check(text: str) -> None:
    """Refuses text on which the parser would take long."""
    open_, dots = 0, 0
    for token in _TOKEN.finditer(text):
        kind = token.lastgroup
        if kind is None:
            continue
        if kind == "dot":
            dots += 1
        elif kind == "word":
            if token.end() - token.start() > LONGEST_WORD:
                line = text.count("\n", 0, token.start()) + 1
                message = f"a word of more than {LONGEST_WORD} characters (line {line})"
                raise InputError("not-toml", message, fix='put text in quotes: name = "…"')
        elif kind == "broken":
            return
        else:
            dots = 0
            open_ += (kind == "open") - (kind == "close")
        if dots >= DEEPEST or open_ > DEEPEST:
            raise _too_deep(text.count("\n", 0, token.start()) + 1)


def _near_file(path: Path) -> str | None:
    try:
        beside = [entry.name for entry in path.parent.iterdir() if entry.suffix == ".toml"]
    except (OSError, ValueError):
        return None
    near = nearest(path.name, beside)
    return f'did you mean "{path.parent / near}"?' if near else None
