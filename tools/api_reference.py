"""Writes docs/reference/api.md from the docstrings of the package. Run it after changing one; a test compares."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "api.md"
MODULES = {
    "sawtooth": (),
    "sawtooth.study": (),
    "sawtooth.cluster": (),
    "sawtooth.compare": (),
    "sawtooth.finding": ("Found", "Frontier", "Answers"),
    "sawtooth.stats": (),
    "sawtooth.congestion": (),
    "sawtooth.congestion.estimate": ("Estimate", "estimate"),
    "sawtooth.whatif": (),
}
"""And of each the names that are told: none for those of its ``__all__``."""
HEAD = """# The package

What `import sawtooth` and its modules offer, by their docstrings. The command line does nothing that these do not.
Whatever fails raises `SawtoothError` with a stable [code](errors.md). Results say in a few lines what they hold, and
show figure and table in a notebook.

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
            yield f"- **`.{own}`**: {_item(member)}"
        elif inspect.isfunction(plain) and plain.__module__.startswith("sawtooth"):
            yield f"- **`.{own}{_arguments(plain)}`**: {_item(plain)}"


def _signature(name: str, value: Any) -> str:
    if inspect.isclass(value) and not hasattr(value, "__dataclass_fields__"):
        return ""
    return f"```python\n{name}{_arguments(value)}\n```"


def _arguments(value: Any) -> str:
    """As written, without the first argument of a method."""
    found = inspect.signature(value)
    kept = [one for name, one in found.parameters.items() if name not in ("self", "cls")]
    told = str(found.replace(parameters=kept)).replace("'", "").replace(" -> None", "")
    return told.replace("pathlib._local.", "").replace("pathlib.", "")


def _prose(value: Any) -> str:
    text = inspect.getdoc(value) or ""
    return text.replace("``", "`")


def _item(value: Any) -> str:
    """A docstring as an item of a list: its later paragraphs belong to it."""
    return _prose(value).replace("\n", "\n  ")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
