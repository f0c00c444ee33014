"""Shows a study's stored result: its tables and the figures of its report. Nothing is computed again.

Summarising the runs again would take up to a second per point on a busy machine; the stored tables have the same
values.
"""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

from sawtooth.errors import InputError, SawtoothError
from sawtooth.figures import embedded_figures
from sawtooth.io.atomic_io import not_a_result
from sawtooth.io.untrusted import read_bytes
from sawtooth.sanitize import where
from sawtooth.study import store
from sawtooth.study.shares import ALL

_TABLES = {
    "table": "Means, of all seeds together",
    "shares": "Shares",
    "latency": "Latency",
    "completions": "Completion times",
    "applications": "Applications",
}
"""CSV files that a finished study has, with their titles. Only the first one always exists."""
_LARGEST_TABLE = 64 << 20
_LARGEST_REPORT = 64 << 20


def page_data(directory: Path, most_rows: int) -> dict[str, Any]:
    """The page's data of a finished study. Raises SawtoothError ``not-a-result``."""
    found = store.describe(directory)
    if found["finished"] is None:
        fix = "run the same command again: it continues where it stopped"
        raise SawtoothError("not-a-result", "the study is not finished", file=directory, fix=fix)
    study = found["study"]
    words = {name: _text(study.get(name)) for name in ("title", "name", "question")}
    lines = [words["question"]] if words["question"] else []
    lines += [_text(one) for one in found.get("warnings") or ()]
    tables = []
    for name, title in _TABLES.items():
        try:
            rows = _table(directory / f"{name}.csv", title, most_rows)
        except FileNotFoundError:
            if name == "table":
                lines.append(f"Its tables are not stored: `sawtooth report {directory}` computes them from the runs.")
            continue
        tables += [rows] * (rows["all"] > 0)
    figures, missing = _figures(directory)
    lines += [f"{missing}: `sawtooth report {directory}` draws them from the runs."] * bool(missing)
    lines.append(f"Stored on {found['finished']}, in {where(directory)}")
    heading = f"{words['title'] or words['name']}, engine {_text(found['engine'])}"
    return {"heading": heading, "lines": lines, "figures": figures, "tables": tables}


def _text(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""


def _figures(directory: Path) -> tuple[list[Any], str]:
    """The figures of the report, and if there are none, the reason."""
    path = directory / "report.html"
    try:
        page = read_bytes(path, _LARGEST_REPORT)
    except InputError as error:
        absent = error.code == "file-not-found"
        return (
            [],
            "Figures are not stored" if absent else f"The report with the figures cannot be read: {error.message}",
        )
    try:
        return embedded_figures(page.decode()), ""
    except ValueError:
        return [], "Its report, of another version or damaged, has no figures that can be read"


def _table(path: Path, title: str, most_rows: int) -> dict[str, Any]:
    """Rows that summarise all seeds, without empty columns. Raises FileNotFoundError, SawtoothError."""
    try:
        content = read_bytes(path, _LARGEST_TABLE)
    except InputError as error:
        if error.code == "file-not-found":
            raise FileNotFoundError(path) from None
        raise
    try:
        if len(content) > _LARGEST_TABLE:
            raise ValueError(f"it is larger than {_LARGEST_TABLE >> 20} MiB")
        columns, *rows = csv.reader(io.StringIO(content.decode(), newline=""))
        seed = columns.index("seed")
        rows = [row for row in rows if row[seed] == ALL]
        if any(len(row) != len(columns) for row in rows):
            raise ValueError("a row has other columns than the first line")
    except (ValueError, IndexError, csv.Error) as error:
        raise not_a_result(f"is not the table that was saved: {error}", path) from error
    kept = [at for at in range(len(columns)) if any(row[at] for row in rows)]
    cells = [[_cell(row[at]) for at in kept] for row in rows[:most_rows]]
    return {"title": title, "columns": [columns[at] for at in kept], "rows": cells, "all": len(rows)}


def _cell(text: str) -> str:
    """A cell's text: fractions with six digits. Unknown values are empty, as in the file."""
    if text == "":
        return "–"
    if "." not in text:
        return text
    try:
        return f"{float(text):.6g}"
    except ValueError:
        return text
