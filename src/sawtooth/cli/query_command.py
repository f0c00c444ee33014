"""The command ``query``: SQL over all results."""

from __future__ import annotations

import contextlib
import json
import math
import shlex
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sawtooth.cli.common_options import PARTLY, Command
from sawtooth.cli.output_format import form_options
from sawtooth.cli.terminal import say, say_folded, say_on_stderr, width
from sawtooth.errors import InputError
from sawtooth.io.text_table import aligned, folded
from sawtooth.sanitize import plain, sentence, where

if TYPE_CHECKING:
    from pyarrow import Table

MOST_PROBLEMS = 10
"""Maximum number of results that were left out to name."""
MOST_ROWS = 200
"""Maximum number of rows of a table on the terminal."""
_ENDINGS = ("parquet", "csv", "json")
_NUMBERS = ("int", "uint", "float", "double", "decimal")
"""Arrow's types that are aligned to the right."""


@click.command(cls=Command)
@click.argument("sql", type=str, required=False)
@click.option("--in", "directory", default="results", show_default=True, metavar="DIR", help="Directory of results.")
@click.option("--latest", is_flag=True, help="Use only the newest finished result of each study.")
@click.option("--out", type=str, metavar="FILE", help="Write the answer to this file: .parquet, .csv or .json.")
@form_options
@click.pass_context
def query(
    context: click.Context, sql: str | None, directory: str, latest: bool, out: str | None, form: str | None
) -> None:
    """Query all results with SQL.

    Every kind of table is a view over all results. Its columns include the result's name and the fields that varied.
    Without SQL, the views are listed. The query runs in memory: it writes nothing but --out, and reads nothing outside
    the directory of results. If a damaged result is left out, a line on standard error says so, and the exit status
    is 5.

    \b
      sawtooth query "SELECT study, cc, mean_mbps FROM summary WHERE seed = 'all'"
    """
    from sawtooth.results.query import query as ask
    from sawtooth.results.query import views

    ending = "" if out is None else out.rpartition(".")[2].lower()
    if out is not None and ending not in _ENDINGS:
        fix = "end it in .parquet, .csv or .json"
        raise InputError("bad-usage", "the ending of the file must be one of a format", field="--out", fix=fix)
    if sql is None:
        if out is not None:
            raise InputError("bad-usage", "needs a query", field="--out", fix='add a query: "SELECT * FROM results"')
        with _problems(directory) as problems:
            known = views(directory, problem=problems.append)
        _list(known, form)
    else:
        with _problems(directory) as problems:
            found = ask(sql, directory, latest=latest, problem=problems.append)
        _print(found, out, ending, form)
    if problems:
        context.exit(PARTLY)


@contextlib.contextmanager
def _problems(directory: str) -> Iterator[list[str]]:
    """A list to fill: it is printed on standard error, even if there is no answer."""
    found: list[str] = []
    try:
        yield found
    finally:
        for one in found[:MOST_PROBLEMS]:
            say_on_stderr(f"problem: {sentence(one)}")
        if len(found) > MOST_PROBLEMS:
            listed = f"sawtooth results --verify --in {shlex.quote(directory)}"
            say_on_stderr(f"problem: {len(found) - MOST_PROBLEMS} more are left out: {plain(listed, 400)}")


def _print(found: Table, out: str | None, ending: str, form: str | None) -> None:
    if out is not None:
        from sawtooth.io.atomic_io import write_bytes

        write_bytes(Path(out), _bytes(found, ending))
    if form is not None:
        say(_bytes(found, form).decode(), end="")
    elif out is not None:
        say(f"wrote {where(Path(out))}: {found.num_rows} rows")
    else:
        say(_table(found))


def _list(found: dict[str, list[str]], form: str | None) -> None:
    if form == "json":
        say(json.dumps(found, indent=2, ensure_ascii=False))
    elif form == "csv":
        say("\n".join(["view,column", *(f"{view},{one}" for view, columns in found.items() for one in columns)]))
    else:
        longest = max(map(len, found))
        for view, columns in found.items():
            names = columns if len(columns) <= 40 else [*columns[:40], f"… ({len(columns)} columns: DESCRIBE {view})"]
            say_folded(f"{view:{longest}}  {plain(', '.join(names), 4000)}")


def _bytes(found: Table, form: str) -> bytes:
    if form == "parquet":
        import pyarrow as pa
        from pyarrow import parquet

        sink = pa.BufferOutputStream()
        parquet.write_table(found, sink)
        return bytes(sink.getvalue())
    if form == "csv":
        return str(found.to_pandas().to_csv(index=False, lineterminator="\n")).encode()
    rows = [{name: _value(value) for name, value in row.items()} for row in found.to_pylist()]
    return f"{json.dumps(rows, indent=2, ensure_ascii=False, default=_other)}\n".encode()


def _value(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _other(value: Any) -> Any:
    """Convert values that JSON has no type for: sums are HUGEINT in DuckDB and DECIMAL in Arrow."""
    if isinstance(value, Decimal):
        return float(value) if value.as_tuple().exponent else int(value)
    return str(value)


def _table(found: Table) -> str:
    shown = found.slice(0, MOST_ROWS)
    columns = [[_cell(value) for value in column.to_pylist()] for column in shown.columns]
    lines = [[plain(name) for name in found.column_names], *map(list, zip(*columns, strict=True))]
    words = [not str(one).startswith(_NUMBERS) for one in found.schema.types]
    room, remarks = width(), []
    if _is_wider(lines, room):
        empty = [at for at in range(found.num_columns) if not any(line[at] for line in lines[1:])]
        if len(empty) < found.num_columns:
            remarks += [f"without any value: {', '.join(lines[0][at] for at in empty)}"] * bool(empty)
            lines = [[cell for at, cell in enumerate(line) if at not in empty] for line in lines]
            words = [one for at, one in enumerate(words) if at not in empty]
    if _is_wider(lines, room):
        # Columns that do not fit follow below; the row number shows which row they belong to.
        lines = [["row", *lines[0]], *([str(number), *line] for number, line in enumerate(lines[1:], 1))]
        words = [False, *words]
    rows = aligned(lines, [at for at, one in enumerate(words) if one], room) if found.num_columns else []
    more = found.num_rows - shown.num_rows
    remarks += [f"… {more} more rows: --csv, --json and --out have them"] * bool(more)
    return "\n".join([*rows, *(folded(one, room) for one in remarks)])


def _is_wider(lines: list[list[str]], room: int | None) -> bool:
    return room is not None and sum(max(map(len, column)) + 2 for column in zip(*lines, strict=True)) - 2 > room


def _cell(value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return f"{value:.6g}" if isinstance(value, float) else plain(value, 100)
