"""Writes docs/reference/api.md from the docstrings of the package. Run it after one changes; a test compares."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "api.md"
MODULES = {
    "sawtooth": (),
    "sawtooth.study": (),
    "sawtooth.dask": (),
    "sawtooth.compare": (),
    "sawtooth.search": ("Threshold", "Frontier", "Answers", "Worst"),
    "sawtooth.stats": (),
    "sawtooth.link_estimate": (),
    "sawtooth.link_estimate.estimate": ("Estimate", "estimate"),
    "sawtooth.link_estimate.together": ("Narrower", "narrower", "together"),
    "sawtooth.whatif": (),
    "sawtooth.explain": (),
    "sawtooth.gym": (),
}
"""Modules, and the names shown of each. An empty tuple: those of its ``__all__``."""
WIDTH = 98
"""Width of prose lines in characters."""
HEAD = """# The package

This page lists everything that `import sawtooth` and its modules offer. The text is from the
docstrings, so `help(sawtooth.run)` prints the same. The command line uses nothing else. Every error
is a `SawtoothError` with a stable [code](errors.md). Results print a summary in a shell, and show a
figure and a table in a notebook.

<!-- Written by tools/api_reference.py; a test compares. Do not edit. -->
"""


def page() -> str:
    """The whole page."""
    parts, seen = [HEAD], set[int]()
    for module_name, chosen in MODULES.items():
        module = import_module(module_name)
        told = []
        for name in chosen or module.__all__:
            value = getattr(module, name)
            if callable(value) and id(value) not in seen:
                seen.add(id(value))
                told += list(_of(name, value))
        parts += [f"## {module_name}", _prose(module), *told]
    lines = "\n\n".join(part.strip() for part in parts).splitlines()
    return re.sub(r"\n{3,}", "\n\n", "\n".join(line.rstrip() for line in lines)) + "\n"


def _of(name: str, value: Any) -> Iterator[str]:
    yield f"### {name}\n\n{_signature(name, value)}\n\n{_prose(value)}"
    if not inspect.isclass(value):
        return
    for own, member in vars(value).items():
        plain = member.__func__ if isinstance(member, (classmethod, staticmethod)) else member
        if own.startswith("_") or not inspect.getdoc(plain):
            continue
        if isinstance(member, (property, cached_property)):
            yield _prose(member, f"- **`.{own}`**: ", "  ")
        elif inspect.isfunction(plain) and plain.__module__.startswith("sawtooth"):
            yield _prose(plain, f"- **`.{own}{_arguments(plain)}`**: ", "  ")


def _signature(name: str, value: Any) -> str:
    if inspect.isclass(value) and not hasattr(value, "__dataclass_fields__"):
        return ""
    return f"```python\n{name}{_arguments(value)}\n```"


def _arguments(value: Any) -> str:
    """The signature as written, without a method's first argument."""
    found = inspect.signature(value)
    kept = [one for name, one in found.parameters.items() if name not in ("self", "cls")]
    told = str(found.replace(parameters=kept)).replace("'", "").replace(" -> None", "")
    return told.replace("pathlib._local.", "").replace("pathlib.", "")


def _prose(value: Any, first: str = "", indent: str = "") -> str:
    """A docstring after ``first``, wrapped to the page's width; indented code stays as it is."""
    text = (inspect.getdoc(value) or "").replace("``", "`")
    parts = re.split(r"\n\s*\n|\n(?=- )", text)
    return "\n\n".join(_wrapped(part, first if number == 0 else "", indent) for number, part in enumerate(parts))


def _wrapped(text: str, first: str, indent: str) -> str:
    if text.startswith("    "):
        return textwrap.indent(text, indent)
    hanging = indent + ("  " if text.startswith("- ") else "")
    return textwrap.fill(
        " ".join((first + text).split()),
        WIDTH,
        initial_indent="" if first else indent,
        subsequent_indent=hanging,
        break_long_words=False,
        break_on_hyphens=False,
    )


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
