"""Compares results for the page, as JSON values: a sentence, a figure, and the tables of ``sawtooth compare``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sawtooth.compare import Comparison, compare
from sawtooth.compare.figure import figure
from sawtooth.compare.text import HEADER, about, alone, rows, verdict
from sawtooth.lab.result_page import MOST_ROWS
from sawtooth.sanitize import plain, sentence


def page_data(directories: Sequence[Path], within: str, omit: str | None) -> dict[str, Any]:
    """Compare results with the first one. Raises SawtoothError as ``compare`` does."""
    found = compare(directories, within=within, omit=omit)
    return {
        "heading": f"{', '.join(found.labels[1:])} against {found.labels[0]}",
        "lead": f"{_capital(verdict(found))}.",
        "lines": [f"{_capital(line)}." for line in (*about(found), *map(sentence, found.notes), *alone(found))],
        "figures": [figure(found).json()],
        "tables": _tables(found),
    }


def _capital(line: str) -> str:
    return f"{line[:1].upper()}{line[1:].rstrip('.')}"


def _tables(found: Comparison) -> list[dict[str, Any]]:
    """One for each subject that is compared, and one of what differs between the scenarios."""
    tables: list[tuple[str, tuple[str, ...], list[tuple[str, ...]]]] = [
        (f"{plain(label)} against {plain(found.labels[0])}", HEADER, rows(found, label)) for label in found.labels[1:]
    ]
    if found.differing:
        differing = [(plain(name), *map(plain, values)) for name, values in found.differing.items()]
        tables.append(("The scenarios differ in", ("field", *map(plain, found.labels)), differing))
    return [
        {"title": title, "columns": list(columns), "rows": [list(row) for row in cells[:MOST_ROWS]], "all": len(cells)}
        for title, columns, cells in tables
    ]
