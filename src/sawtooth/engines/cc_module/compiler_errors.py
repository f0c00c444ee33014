"""Turns the messages of a C compiler into one error: file, line, what is missing, and what the interface offers
instead."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from sawtooth.engines.cc_module import interface
from sawtooth.errors import InputError, nearest
from sawtooth.sanitize import plain

_AT = re.compile(r"^(?P<file>[^:\n]+):(?P<line>\d+):(?:\d+:)? (?:fatal )?error: (?P<text>.*)$", re.MULTILINE)
_NO_HEADER = re.compile(r"^'?([\w/.-]+)'?(?:: No such file| file not found)")
_NO_MEMBER = re.compile(r"'(?:const )?(?:volatile )?((?:struct|union) \w+)[^']*' has no member named '(\w+)'")
_NO_MEMBER_CLANG = re.compile(r"no member named '(\w+)' in '((?:struct|union) \w+)'")
_NO_NAME = re.compile(
    r"implicit declaration of function '(\w+)'|'(\w+)' undeclared|unknown type name '(\w+)'"
    r"|undeclared (?:function|identifier) '(\w+)'"
)
_NO_SYMBOL = re.compile(r"undefined (?:reference to|symbol:?) [`'\"]?(\w+)")
_OWN = "see docs/reference/module.md for all that the interface has"
_MORE = 2
"""Number of further messages that are given in short form."""


def refused(said: str, sources: Sequence[str]) -> InputError:
    """The error for a failed compiler with the messages ``said``."""
    found = [(match["file"], int(match["line"]), match["text"]) for match in _AT.finditer(said)]
    if not found:
        symbol = _NO_SYMBOL.search(said)
        if symbol:
            message = f"it uses {symbol[1]}, which is not defined"
            fix = f'if another of its files defines it, name both: source = ["{Path(sources[0]).name}", "…"]; {_OWN}'
            return InputError("compile-failed", message, file=sources[0], fix=fix)
        lines = said.strip().splitlines() or ["it said nothing"]
        words = plain(next((line for line in lines if " error: " in line), lines[-1]), 200)
        return InputError("compile-failed", f"the compiler failed: {words}", file=sources[0], fix="correct the source")
    file, line, text = found[0]
    message = f"line {line}: {plain(text, 200)}"
    others = [f"line {line}: {plain(text, 80)}" for other, line, text in found[1:] if other == file]
    if others:
        message += f"; {'; '.join(others[:_MORE])}"
        message += f"; and {len(others) - _MORE} more" if len(others) > _MORE else ""
    return InputError("compile-failed", message, file=file, fix=_fix(text))


def _fix(text: str) -> str:
    if missing := _NO_HEADER.search(text):
        near = nearest(missing[1], interface.headers())
        return f"{f'did you mean <{near}>? ' if near else ''}headers here: {', '.join(interface.headers())}"
    if member := _NO_MEMBER.search(text):
        return _fields(member[1], member[2])
    if member := _NO_MEMBER_CLANG.search(text):
        return _fields(member[2], member[1])
    if name := _NO_NAME.search(text):
        missing_name = next(one for one in name.groups() if one)
        near = nearest(missing_name, interface.everything())
        has = f'the nearest that the interface has is "{near}"' if near else "the interface has nothing like it"
        return f"{has}; {_OWN}"
    return "correct the source"


def _fields(structure: str, field: str) -> str:
    fields = interface.structures().get(structure, ())
    if not fields:
        return _OWN
    near = nearest(field, fields)
    return f"{f'did you mean {near}? ' if near else ''}{structure} has {', '.join(fields)}"
