"""The interface: all names that the headers offer to modules."""

from __future__ import annotations

import functools
import re
from pathlib import Path

HEADERS = Path(__file__).parent / "include"
RUNTIME = Path(__file__).parent / "runtime.c"

_OURS = "sawtooth_"
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_STRUCT = re.compile(r"^(?:typedef )?(struct|union) (\w+) \{\n(.*?)^\}", re.DOTALL | re.MULTILINE)
_DEFINE = re.compile(r"^#define (\w+)(\()?", re.MULTILINE)
_FUNCTION = re.compile(r"^(?!#|typedef|return|\t)[\w][\w \*]*?\b\*?(\w+)\([^;{]*\)[^;{=]*[;{\n]", re.MULTILINE)
_TYPE = re.compile(r"^typedef [^;]*?\b(\w+);", re.MULTILINE)
_ENUM = re.compile(r"^enum(?: \w+)? \{(.*?)\}", re.DOTALL | re.MULTILINE)
_KIND = re.compile(r"^SAWTOOTH_KIND\((\w+),", re.MULTILINE)
_POINTER = re.compile(r"\(\*(\w+)\)")


@functools.cache
def _text() -> str:
    parts = [path.read_text(encoding="utf-8") for path in sorted((HEADERS / "sawtooth").glob("*.h"))]
    return _COMMENT.sub("", "\n".join(parts))


@functools.cache
def headers() -> tuple[str, ...]:
    """Headers that can be included, like ``linux/module.h``."""
    found = (str(path.relative_to(HEADERS)) for path in HEADERS.rglob("*.h"))
    return tuple(sorted(name for name in found if not name.startswith("sawtooth/")))


@functools.cache
def structures() -> dict[str, tuple[str, ...]]:
    """``struct tcp_sock`` and the other structures, with their fields."""
    found = {}
    for kind, name, body in _STRUCT.findall(_text()):
        if not name.startswith(_OURS):
            found[f"{kind} {name}"] = tuple(field for field in _fields(body) if not field.startswith(_OURS))
    return found


def _fields(body: str) -> list[str]:
    names: list[str] = []
    for line in body.replace("\n", " ").split(";"):
        hook = _POINTER.search(line)
        if hook:
            names.append(hook[1])
            continue
        words = re.sub(r"\[[^\]]*\]", "", line).replace("struct {", "").replace("}", "").strip()
        if words:
            first, *others = words.split(",")
            names += [re.findall(r"\w+", one)[-1] for one in (first, *others) if re.findall(r"\w+", one)]
    return names


@functools.cache
def functions() -> tuple[str, ...]:
    """Functions, and macros that are called like functions."""
    macros = {name for name, called in _DEFINE.findall(_text()) if called}
    named = set(_FUNCTION.findall(_text())) | macros
    # These macros have no parameters in the headers, but are names of functions.
    named |= {name for name, called in _DEFINE.findall(_text()) if not called and name in ("div64_ul", "div64_long")}
    return tuple(sorted(name for name in named if _is_offered(name)))


@functools.cache
def constants() -> tuple[str, ...]:
    """Constants, variables and attributes."""
    plain = {name for name, called in _DEFINE.findall(_text()) if not called}
    for body in _ENUM.findall(_text()):
        plain.update(re.findall(r"\w+", one)[0] for one in body.split(",") if re.findall(r"\w+", one))
    return tuple(sorted({name for name in plain | {"jiffies"} if _is_offered(name)} - set(functions())))


@functools.cache
def types() -> tuple[str, ...]:
    """Names of types, except structures."""
    return tuple(sorted({name for name in _TYPE.findall(_text()) if _is_offered(name)}))


@functools.cache
def parameter_types() -> tuple[str, ...]:
    """The types that ``module_param`` accepts."""
    return tuple(sorted(_KIND.findall(_text())))


def everything() -> tuple[str, ...]:
    """All names that a source may use."""
    fields = {field for found in structures().values() for field in found}
    return tuple(sorted({*functions(), *constants(), *types(), *fields}))


def _is_offered(name: str) -> bool:
    return not name.startswith((_OURS, "SAWTOOTH_"))
