"""Writes the table of measures in docs/reference/tables.md from their records. Run it after adding a measure; a test
compares.
"""

from __future__ import annotations

import re
from pathlib import Path

from sawtooth.study.measures import GROUPS

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "tables.md"
BEGINS, ENDS = (
    "<!-- Written by tools/measure_table.py; a test compares. Do not edit. -->\n\n",
    "\n**Utilization and goodput.**",
)


def table() -> str:
    """One row per group of measures."""
    rows = [(", ".join(f"`{one.name}`" for one in group.measures), group.meaning) for group in GROUPS]
    return "\n".join(["| columns | of |", "|---|---|", *(f"| {names} | {meaning} |" for names, meaning in rows), ""])


def page() -> str:
    """The whole page, with this table."""
    text = PAGE.read_text(encoding="utf-8")
    return re.sub(f"(?<={re.escape(BEGINS)}).*?(?={re.escape(ENDS)})", lambda _: table(), text, flags=re.DOTALL)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
