"""Compares results for the page, as JSON values: the same words and table as ``sawtooth compare``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sawtooth.compare import compare
from sawtooth.compare.figure import figure
from sawtooth.compare.text import words
from sawtooth.lab.result_page import table


def told(directories: Sequence[Path], within: str, omit: str | None) -> dict[str, Any]:
    """Compare results with the first one. Raises SawtoothError as ``compare`` does."""
    found = compare(directories, within=within, omit=omit)
    return {
        "heading": f"{', '.join(found.labels[1:])} against {found.labels[0]}",
        "words": words(found),
        "figures": [figure(found).json()],
        "tables": [table("Each point", found.table)],
    }
