"""Query: SQL over all results, with DuckDB in memory. Files below the results directory are read, nothing is written.

DuckDB itself has no file system, no network, no extensions and no settings that a query could change: Arrow reads the
files, and DuckDB reads Arrow. So no query can write or read anything else.
"""

from __future__ import annotations

import contextlib
import itertools
import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sawtooth.errors import InputError, SawtoothError, install_extra
from sawtooth.results.listing import listing
from sawtooth.results.lookup import HOME
from sawtooth.results.parquet_scan import scanned
from sawtooth.results.views import ABOUT, NAMES, Place, Views, tables, uniform
from sawtooth.run.pack import PLACE

if TYPE_CHECKING:
    from pandas import DataFrame
    from pyarrow import Table

LONGEST = 100_000
"""Characters of a query."""
_LOCKED = {
    "python_enable_replacements": False,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_community_extensions": False,
    "allow_persistent_secrets": False,
    # Without memory there is an error, not a temporary file.
    "temp_directory": "",
    # Its bar would appear among the answer's lines.
    "enable_progress_bar": False,
    "enable_external_access": False,
    "disabled_filesystems": "LocalFileSystem",
    "lock_configuration": True,
}
"""DuckDB's settings, in this order."""
_FILE = "#file"
"""Arrow's column with the number of a row's file."""


def query(
    sql: str,
    directory: Path | str = HOME,
    *,
    names: Iterable[str] = (),
    latest: bool = False,
    problem: Callable[[str], object] = warnings.warn,
) -> Table:
    """The answer to one SELECT, DESCRIBE, SUMMARIZE or EXPLAIN, as an Arrow table; repeated column names become
    ``NAME_1`` and so on.

    ``names`` and ``latest`` select results as in ``listing``. Damaged results, and those that a later version wrote,
    are left out; ``problem`` is called with a sentence about each. The views are ``results``, ``points``, and each kind
    of table present (docs/reference/results.md). Raises SawtoothError: ``tool-missing`` without DuckDB, ``bad-query``
    with its message, and as ``listing`` does. An exception from a signal handler ends the query.
    """
    duckdb = _duckdb()
    if len(sql) > LONGEST:
        raise InputError("bad-query", f"{len(sql)} characters; at most {LONGEST}", fix="write a shorter one")
    try:
        sql.encode()
    except UnicodeEncodeError:
        fix = "type it anew, without bytes of another encoding"
        raise InputError("bad-query", "it is not UTF-8", field="SQL", fix=fix) from None
    found = Views(listing(directory, names=tuple(names), latest=latest), problem)
    try:
        statements = duckdb.extract_statements(sql)
    except duckdb.Error as error:
        raise _wrong(error, found) from None
    if len(statements) != 1 or not _reads(duckdb, statements[0]):
        message = "is not a single query: SELECT, DESCRIBE, SUMMARIZE or EXPLAIN"
        raise InputError("bad-query", message, field="SQL", fix='write it like "SELECT * FROM results"')
    with _connection(duckdb) as connection:
        try:
            _lay(connection, found, sql)
            return _answer(connection, sql)
        except duckdb.Error as error:
            raise _wrong(error, found) from None


def views(directory: Path | str = HOME, *, problem: Callable[[str], object] = warnings.warn) -> dict[str, list[str]]:
    """The columns of each view that has rows in some result, with ``problem`` as in ``query``. Raises SawtoothError as
    ``query`` does."""
    duckdb = _duckdb()
    found = Views(listing(directory), problem)
    there = found.there()
    with _connection(duckdb) as connection:
        try:
            _lay(connection, found, " ".join(there))
            return {name: [row[0] for row in connection.execute(f"DESCRIBE {name}").fetchall()] for name in there}
        except duckdb.Error as error:
            raise _wrong(error, found) from None


def _answer(connection: Any, sql: str) -> Table:
    """In a separate thread, so that signals arrive here: DuckDB does not handle them while it works."""
    with ThreadPoolExecutor(1) as beside:
        future = beside.submit(lambda: connection.sql(sql).to_arrow_table())
        try:
            found = future.result()
        except BaseException:
            connection.interrupt()
            raise
    return found.rename_columns(_different(found.column_names))


def _different(names: Sequence[str]) -> list[str]:
    """Makes names unique."""
    taken = set(names)
    found: list[str] = []
    for name in names:
        new = name
        if name in found:
            new = next(one for at in itertools.count(1) if (one := f"{name}_{at}") not in taken)
            taken.add(new)
        found.append(new)
    return found


def _duckdb() -> Any:
    try:
        import duckdb
    except ImportError as error:
        fix = install_extra("query")
        raise SawtoothError("tool-missing", "queries need DuckDB, which is not installed", fix=fix) from error
    return duckdb


def _reads(duckdb: Any, statement: Any) -> bool:
    """Whether it is a SELECT (as DESCRIBE and SUMMARIZE are) or explains one: EXPLAIN ANALYZE executes the
    statement."""
    if statement.type.name != "EXPLAIN":
        return bool(statement.type.name == "SELECT")
    sql: str = statement.query
    tokens = [(at, kind) for at, kind in duckdb.tokenize(sql) if kind != duckdb.token_type.comment]
    ends = [*(at for at, _ in tokens[1:]), len(sql)]
    words = [
        sql[at:end].split("--")[0].split("/*")[0].strip().upper() for (at, _), end in zip(tokens, ends, strict=True)
    ]
    # EXPLAIN [ANALYZE] [(options)] statement
    begin = 2 if words[1:2] == ["ANALYZE"] else 1
    after = begin + words[begin:].index(")") + 1 if ")" in words[begin:] and words[begin] == "(" else begin
    for first in {begin, after}:
        with contextlib.suppress(duckdb.Error, IndexError):
            inner = duckdb.extract_statements(sql[tokens[first][0] :])
            if [one.type.name for one in inner] == ["SELECT"]:
                return True
    return False


def _connection(duckdb: Any) -> Any:
    """In memory, without a file system: from here on only registered data can be read."""
    connection = duckdb.connect(":memory:")
    for name, value in _LOCKED.items():
        connection.execute(f"SET {name}={str(value).lower() if isinstance(value, bool) else repr(value)}")
    return connection


def _lay(connection: Any, found: Views, sql: str) -> None:
    """The views that a query names; all of them if it names none."""
    words = {word.lower() for word in re.findall(r"\w+", sql)}
    for name in [one for one in NAMES if one in words] or found.there():
        frame = found.frame(name)
        if frame is not None:
            _lay_frame(connection, name, frame)
            continue
        files = found.files(name)
        if files:
            _lay_files(connection, name, files)


def _lay_frame(connection: Any, name: str, frame: DataFrame) -> None:
    """A view of a frame; of points also each table of their scenarios as a struct: ``path.loss`` is a number."""
    import pandas as pd

    structs = tables(frame) if name == "points" else {}
    if not structs:
        connection.register(name, frame)
        return
    fields = {f"{table}/{one}": values for table, of in structs.items() for one, values in of.items()}
    connection.register(f"data_{name}", pd.concat([frame, uniform(pd.DataFrame(fields, index=frame.index))], axis=1))
    packed = []
    for table, of in structs.items():
        parts = ", ".join(f"{_name(one)} := {_name(f'{table}/{one}')}" for one in of)
        packed.append(f"struct_pack({parts}) AS {_name(table)}")
    chosen = ", ".join(_name(str(column)) for column in frame.columns)
    connection.execute(f"CREATE VIEW {_name(name)} AS SELECT {chosen}, {', '.join(packed)} FROM data_{name}")


def _lay_files(connection: Any, name: str, files: Sequence[tuple[Path, int | None, Place]]) -> None:
    """A view of Parquet files, joined with facts about each run."""
    import pandas as pd

    numbers = {path: number for number, path in enumerate(dict.fromkeys(path for path, _, _ in files))}
    data = scanned(list(numbers), _FILE, PLACE, {path for path, at, _ in files if at is not None})
    own = {column.lower() for column in data.schema.names}
    rows = []
    for path, at, place in files:
        # A table's own column keeps its name.
        key = {f"{column}_varied" if column in own else column: value for column, value in place.key.items()}
        rows.append({_FILE: numbers[path], PLACE: at or 0, **place.about, **key})
    about = uniform(pd.DataFrame(rows))
    connection.register(f"about_{name}", about)
    connection.register(f"data_{name}", data)
    first = [
        column for column in about.columns if column not in (_FILE, PLACE) and (column in ABOUT or column not in own)
    ]
    chosen = ", ".join(f"about.{_name(column)}" for column in first)
    connection.execute(
        f"CREATE VIEW {_name(name)} AS SELECT {chosen}, data.* EXCLUDE ({_name(_FILE)}, {_name(PLACE)}) "
        f"FROM data_{name} AS data JOIN about_{name} AS about USING ({_name(_FILE)}, {_name(PLACE)})"
    )


def _wrong(error: Exception, found: Views) -> SawtoothError:
    """DuckDB's message without the part that marks the position with characters."""
    words = str(error).strip().split("\n\nLINE ")[0]
    if ".parquet'" in words:
        fix = "find the damaged result: sawtooth results --verify"
    elif words.startswith("Catalog Error"):
        fix = f"choose one of: {', '.join(found.there())}"
    elif words.startswith("Binder Error"):
        fix = "list the tables and their columns: sawtooth query"
    else:
        fix = f'write it like "SELECT * FROM results"; the tables are: {", ".join(found.there())}'
    return InputError("bad-query", words, field="SQL", fix=fix)


def _name(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'
