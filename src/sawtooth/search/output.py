"""Output: writes an answer to files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from sawtooth.figures.static import draw
from sawtooth.io.atomic_io import write_bytes, writing
from sawtooth.io.csv import csv_text
from sawtooth.search.answers import Answers
from sawtooth.search.frontier import Frontier
from sawtooth.search.page import figure, report
from sawtooth.search.result import Threshold


def save(found: Threshold | Frontier | Answers, directory: Path) -> None:
    """Writes find.json, find.csv, report.html, and one picture per answer. find.csv has the points tried; with several
    answers one row per answer; with several unknowns the frontier, and points.csv has the points tried.

    Raises SawtoothError: ``unwritable-output``, ``disk-full``.
    """
    with writing(directory):
        directory.mkdir(parents=True, exist_ok=True)
    write_bytes(directory / "find.json", f"{json.dumps(found.describe(), indent=2, ensure_ascii=False)}\n".encode())
    table = found.frontier if isinstance(found, Frontier) else found.table
    write_bytes(directory / "find.csv", csv_text(table).encode())
    if isinstance(found, Frontier):
        write_bytes(directory / "points.csv", csv_text(found.table).encode())
    each: Sequence[Threshold | Frontier] = found.found if isinstance(found, Answers) else [found]
    names = ["find" if len(each) == 1 else f"find-{number}" for number in range(len(each))]
    for one, name in zip(each, names, strict=True):
        draw(figure(one, name), directory)
    write_bytes(directory / "report.html", report(found, names).encode())
