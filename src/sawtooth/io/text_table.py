"""Text table: tables and sentences that fit a terminal's width."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Collection, Sequence

_LABEL = re.compile(r"^\s*(?:\S+ )*\S+ {2,}(?=\S)|^\s*- (?=\S)")
_GAP = re.compile(r"\S {2,}(?=\S)")
_PREFIXES = ("", "k", "M", "G", "T")


def cell(value: float, form: str = ".2f", unit: str = "") -> str:
    """A number in a table; a dash if it is not known (NaN)."""
    return "-" if math.isnan(value) else f"{value:{form}}{unit}"


def size(count: float, single: str = "B") -> str:
    """Bytes with three digits, in the largest unit in which the value is at least 1: "1.23 MB"."""
    place = 0
    while count >= 999.5 and place < len(_PREFIXES) - 1:
        count, place = count / 1000, place + 1
    return f"{count:.3g} {_PREFIXES[place]}B" if place else f"{count:.0f} {single}"


def aligned(
    lines: Sequence[Sequence[str]], words: Collection[int] = (), width: int | None = None, *, keys: int = 1
) -> list[str]:
    """Columns side by side; those in ``words`` are text, left-aligned, the others numbers, right-aligned.

    An empty line stays empty. If a line would be longer than ``width`` (None: any), the columns that do not fit follow
    in a table below, which repeats the first ``keys`` columns.
    """
    widths = [max(len(line[at]) for line in lines if line) for at in range(len(lines[0]))]
    first = list(range(keys))
    tables = [[*first]]
    for at in range(keys, len(widths)):
        longer = sum(widths[one] + 2 for one in [*tables[-1], at]) - 2
        if width is not None and len(tables[-1]) > keys and longer > width:
            tables.append([*first])
        tables[-1].append(at)
    found: list[str] = []
    for table in tables:
        found += [""] * bool(found)
        for line in lines:
            cells = [line[at].ljust(widths[at]) if at in words else line[at].rjust(widths[at]) for at in table if line]
            found.append("  ".join(cells).rstrip())
    return found


def folded(text: str, width: int | None) -> str:
    """Wraps sentences longer than ``width`` (None: any) under their own beginning, after a label; tables and long words
    stay unchanged."""
    if width is None:
        return text
    return "\n".join(_folded(line, width) for line in text.split("\n"))


def _folded(line: str, width: int) -> str:
    if len(line) <= width or len(_GAP.findall(line)) > 2:
        return line
    label = _LABEL.match(line)
    indent = label.end() if label and label.end() <= width // 2 else len(line) - len(line.lstrip()) + 2
    broken = textwrap.wrap(line, width, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False)
    return "\n".join(broken)
