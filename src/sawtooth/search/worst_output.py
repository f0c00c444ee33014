"""A worst case as text for a terminal, and as files."""

from __future__ import annotations

import json
from pathlib import Path

from sawtooth.io.atomic_io import write_bytes, writing
from sawtooth.io.csv import csv_text
from sawtooth.io.text_table import aligned
from sawtooth.scenario.toml import toml_text
from sawtooth.search.worst import At, Worst
from sawtooth.stats import Interval

FILE = "worst.toml"


def worst_words(found: Worst, width: int | None = None) -> str:
    fields = found.ranges.unknowns
    cells = [["", *(one.field for one in fields), found.measure]]
    cells.append(["in the file", *("" for _ in fields), _number(found, found.own.measured)])
    cells.append(["worst", *_values(found, found.worst), _number(found, found.worst.measured)])
    if found.enough:
        cells.append(["simplest", *_values(found, found.simplest), _number(found, found.simplest.measured)])
    if found.checked is not None:
        cells.append([f"on {found.checking}", *_values(found, found.simplest), _number(found, found.checked)])
    ranges = "; ".join(one.describe() for one in fields)
    text = [f"{found.measure}, smallest; engine {found.engine}", f"within: {ranges}", "", f"answer: {answer(found)}"]
    text += ["", *aligned(cells, (0,), width)]
    if found.enough:
        text += ["", scenario_text(found).rstrip()]
    return "\n".join([*text, "", f"cost: {found.runs} runs, {found.seconds:.1f} s of computation"])


def answer(found: Worst) -> str:
    """In one sentence."""
    if not found.enough:
        return f"nothing in these ranges is worse than the file's scenario ({_number(found, found.own.measured)})"
    changed = found.ranges.named(tuple(found.simplest.values.items()))
    return f"{changed}: {_number(found, found.simplest.measured)}, in the file {_number(found, found.own.measured)}"


def scenario_text(found: Worst) -> str:
    """The simplest scenario as a file."""
    return f"# {found.measure} is {_number(found, found.simplest.measured)}\n{toml_text(found.scenario)}"


def save_worst(found: Worst, directory: Path) -> None:
    """Writes worst.toml, worst.json, and worst.csv with everything that was tried. Raises SawtoothError:
    ``unwritable-output``, ``disk-full``."""
    with writing(directory):
        directory.mkdir(parents=True, exist_ok=True)
    write_bytes(directory / FILE, scenario_text(found).encode())
    write_bytes(directory / "worst.json", f"{json.dumps(found.describe(), indent=2, ensure_ascii=False)}\n".encode())
    write_bytes(directory / "worst.csv", csv_text(found.table).encode())


def _values(found: Worst, there: At) -> list[str]:
    """By field; empty where it is that of the file."""
    return [one.text(there.values[one.field]) if one.field in there.values else "" for one in found.ranges.unknowns]


def _number(found: Worst, over: Interval) -> str:
    show = found.dimension.show
    return show(over.mean) if over.low != over.low else f"{show(over.mean)} ({show(over.low)} … {show(over.high)})"
