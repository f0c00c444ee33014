"""Cells: a table of published results, read from CSV; which of them a condition selects; what a cell sets."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sawtooth.errors import InputError, suggestion
from sawtooth.io.untrusted import LARGEST, read_bytes
from sawtooth.sanitize import plain

MOST = 100_000
_LARGEST = 50 * 1024 * 1024
_BRACES = re.compile(r"\{([^{}]*)\}")

Cell = dict[str, str | float | int]
"""One row: a number where the text is one, otherwise the text."""


def read(path: Path) -> list[Cell]:
    """The rows of a CSV file. Lines that start with ``#`` say where the figures come from.

    Raises SawtoothError ``bad-published`` or ``file-not-found``.
    """

    def refused(message: str, fix: str) -> InputError:
        return InputError("bad-published", message, file=path, fix=fix)

    content = read_bytes(path, _LARGEST)
    if len(content) > _LARGEST:
        raise refused(f"it is larger than {_LARGEST >> 20} MiB", "remove columns that are not compared")
    try:
        lines = [line for line in content.decode().splitlines() if line.strip() and not line.startswith("#")]
        rows = list(csv.reader(io.StringIO("\n".join(lines)), strict=True))
    except (UnicodeDecodeError, csv.Error) as error:
        raise refused(f"is not a CSV table: {error}", "write a line of column names, then one line per cell") from error
    if len(rows) < 2:
        raise refused("has no cells", "write a line of column names, then one line per cell")
    if len(rows) > MOST:
        raise refused(f"has more than {MOST} cells", "split it into several replications")
    names = [plain(name) for name in rows[0]]
    if len(set(names)) < len(names):
        raise refused("two columns have the same name", "rename one of them")
    for number, row in enumerate(rows[1:], 1):
        if len(row) != len(names):
            message = f"cell {number} has {len(row)} values, and there are {len(names)} columns"
            raise refused(message, "write one value for every column, and quotes around text with commas")
    return [dict(zip(names, map(_value, row), strict=True)) for row in rows[1:]]


def _value(text: str) -> str | float | int:
    for kind in (int, float):
        try:
            number = kind(text)
        except ValueError:
            continue
        if math.isfinite(number) and abs(number) <= LARGEST and "_" not in text:
            return number
    return plain(text.strip())


def number(cell: Cell, column: str) -> float:
    """A cell's figure; NaN if it has none."""
    value = cell.get(column, math.nan)
    return math.nan if isinstance(value, str) else float(value)


def selects(condition: Mapping[str, Any], cell: Cell) -> bool:
    """Whether every column of ``condition`` has its value, or one of a list of values."""
    return all(
        cell[column] in (wanted if isinstance(wanted, list) else [wanted]) for column, wanted in condition.items()
    )


def check_condition(condition: Mapping[str, Any], cells: list[Cell], field: str, file: str) -> None:
    """Raises SawtoothError if a condition names a column that is missing, or selects no cell: such a sentence about
    cells would be about none."""
    for column in condition:
        if column not in cells[0]:
            fix = suggestion(column, cells[0])
            raise InputError("unknown-name", f"no column is named {column}", file=file, field=field, fix=fix)
    if not any(selects(condition, cell) for cell in cells):
        fix = "compare it with the values in the CSV file"
        raise InputError("unknown-name", "selects no cell", file=file, field=field, fix=fix)


def filled(value: Any, cell: Cell, field: str) -> Any:
    """``value`` with every ``{column}`` in its texts replaced by the cell's value. Text that is only ``{column}``
    becomes the value itself, so that numbers stay numbers. Raises SawtoothError ``unknown-name``."""
    if isinstance(value, Mapping):
        return {name: filled(one, cell, f"{field}.{name}") for name, one in value.items()}
    if isinstance(value, list):
        return [filled(one, cell, f"{field}.{at}") for at, one in enumerate(value)]
    if not isinstance(value, str):
        return value
    for name in _BRACES.findall(value):
        if name not in cell:
            fix = suggestion(name, cell)
            raise InputError("unknown-name", f"no column is named {name}", field=field, fix=fix)
    whole = _BRACES.fullmatch(value)
    return cell[whole[1]] if whole else _BRACES.sub(lambda found: str(cell[found[1]]), value)
