"""Writes the names in docs/reference/module.md from the headers. Run it after changing one; a test compares."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from pathlib import Path

from sawtooth.engines.cc_module import interface

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "module.md"
MARK = "<!-- Below: written by tools/module_reference.py from the headers; a test compares. Do not edit. -->\n"
WIDTH = 100


def page() -> str:
    """The page: the text above the mark is kept, the names below it are written."""
    above = PAGE.read_text(encoding="utf-8").partition(MARK)[0]
    parts = [f"### Headers\n\n{_codes(interface.headers())}"]
    structures = "\n".join(f"| `{name}` | {_row(fields)} |" for name, fields in interface.structures().items())
    parts.append(f"### Structures\n\n| structure | fields |\n|---|---|\n{structures}")
    parts.append(f"### Functions, and macros like them\n\n{_codes(interface.functions())}")
    parts.append(f"### Types of module parameters\n\n{_codes(interface.parameter_types())}")
    parts.append(f"### Types\n\n{_codes(interface.types())}")
    parts.append(f"### Constants, variables, attributes\n\n{_codes(interface.constants())}")
    return above + MARK + "\n" + "\n\n".join(parts) + "\n"


def _row(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _codes(names: Iterable[str]) -> str:
    wrapped = textwrap.fill(", ".join(names), WIDTH, break_on_hyphens=False, break_long_words=False)
    return f"```text\n{wrapped}\n```"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
