"""Query: SQL over all results, by DuckDB in memory: what is below the directory of results is read, nothing is written.

Nothing else of the disk is read, no network is asked, and no extension is loaded or installed.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sawtooth.errors import InputError, SawtoothError
from sawtooth.results.listing import listing
from sawtooth.results.place import HOME
from sawtooth.results.views import ABOUT, NAMES, Views, uniform

if TYPE_CHECKING:
    from pyarrow import Table

LONGEST = 100_000
"""Characters of a query."""
_READING = ("SELECT", "EXPLAIN")


def query(sql: str, directory: Path | str = HOME, *, names: Iterable[str] = (), latest: bool = False) -> Table:
    """The answer to one SELECT, DESCRIBE, SUMMARIZE or EXPLAIN, as an Arrow table; of columns with one name the later
    ones are ``NAME_1`` and so on.

    ``names`` and ``latest`` choose results as ``listing`` does. The views are ``results``, ``points``, and each kind of
    table that there is (docs/reference/results.md). Raises SawtoothError: ``tool-missing`` without DuckDB,
    ``bad-query`` with its words, and as ``listing``. What a signal raises ends the question.
    """
    duckdb = _duckdb()
    if len(sql) > LONGEST:
        raise InputError("bad-query", f"{len(sql)} characters; at most {LONGEST}", fix="ask for less at once")
    found = Views(listing(directory, names=tuple(names), latest=latest))
    try:
        statements = duckdb.extract_statements(sql)
    except duckdb.Error as error:
        raise _wrong(error, found) from None
    if len(statements) != 1 or statements[0].type.name not in _READING:
        message = "is not one question: SELECT, DESCRIBE, SUMMARIZE or EXPLAIN"
        raise InputError("bad-query", message, field="SQL", fix='write it like "SELECT * FROM results"')
    with _connection(duckdb, Path(directory)) as connection:
        try:
            _lay(connection, found, sql)
            return _answer(connection, sql)
        except duckdb.Error as error:
            raise _wrong(error, found) from None


def views(directory: Path | str = HOME) -> dict[str, list[str]]:
    """The columns of each view that some result has something for. Raises SawtoothError as ``query`` does."""
    duckdb = _duckdb()
    found = Views(listing(directory))
    there = found.there()
    with _connection(duckdb, Path(directory)) as connection:
        try:
            _lay(connection, found, " ".join(there))
            return {name: [row[0] for row in connection.execute(f"DESCRIBE {name}").fetchall()] for name in there}
        except duckdb.Error as error:
            raise _wrong(error, found) from None


def _answer(connection: Any, sql: str) -> Table:
    """In a thread beside this one, which signals reach: DuckDB looks for none while it works."""
    with ThreadPoolExecutor(1) as beside:
        asked = beside.submit(lambda: connection.sql(sql).to_arrow_table())
        try:
            found = asked.result()
        except BaseException:
            connection.interrupt()
            raise
    return found.rename_columns(_different(found.column_names))


def _different(names: Sequence[str]) -> list[str]:
    """Each name once."""
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
        fix = "install it: pip install 'sawtooth[query]'"
        raise SawtoothError("tool-missing", "queries need DuckDB, which is not installed", fix=fix) from error
    return duckdb


def _connection(duckdb: Any, directory: Path) -> Any:
    """In memory, and held to the directory."""
    off = ("autoinstall_known_extensions", "autoload_known_extensions", "allow_community_extensions")
    connection = duckdb.connect(":memory:", config={**dict.fromkeys(off, False), "python_enable_replacements": False})
    # What does not fit into memory is an error, not a file.
    connection.execute("SET temp_directory=''")
    # Its bar would stand among the answer's lines.
    connection.execute("SET enable_progress_bar=false")
    # Paths are compared as they are written, those of views without patterns.
    root = str(directory.resolve())
    allowed = ", ".join(map(_quoted, dict.fromkeys((root, _no_pattern(root)))))
    connection.execute(f"SET allowed_directories=[{allowed}]")
    connection.execute("SET enable_external_access=false")
    return connection


def _lay(connection: Any, found: Views, sql: str) -> None:
    """The views that a query names, all where it names none, then locks the connection's settings."""
    words = {word.lower() for word in re.findall(r"\w+", sql)}
    for name in [one for one in NAMES if one in words] or found.there():
        frame = found.frame(name)
        if frame is not None:
            connection.register(name, frame)
            continue
        files = found.files(name)
        if files:
            _lay_files(connection, name, files)
    connection.execute("SET lock_configuration=true")


def _lay_files(connection: Any, name: str, files: dict[str, Any]) -> None:
    """A view of Parquet files, beside each what is known of its run."""
    import pandas as pd

    read = (
        f"read_parquet([{', '.join(_quoted(_no_pattern(path)) for path in files)}], union_by_name=true, filename=true)"
    )
    own = {row[0].lower() for row in connection.execute(f"DESCRIBE SELECT * FROM {read}").fetchall()}
    rows = []
    for path, place in files.items():
        # A table's own column keeps its name.
        key = {f"{column}_varied" if column in own else column: value for column, value in place.key.items()}
        rows.append({"filename": path, **place.about, **key})
    about = uniform(pd.DataFrame(rows))
    connection.register(f"about_{name}", about)
    first = [column for column in about.columns if column != "filename" and (column in ABOUT or column not in own)]
    chosen = ", ".join(f"about.{_name(column)}" for column in first)
    connection.execute(
        f"CREATE VIEW {_name(name)} AS SELECT {chosen}, data.* EXCLUDE (filename) FROM {read} AS data "
        f"JOIN about_{name} AS about ON data.filename = about.filename"
    )


def _wrong(error: Exception, found: Views) -> SawtoothError:
    """DuckDB's own words, without the part that shows the place by signs below it."""
    words = str(error).strip().split("\n\nLINE ")[0]
    told = InputError("bad-query", words, field="SQL", fix=f"there are: {', '.join(found.there())}")
    if ".parquet'" in words:
        fix = "sawtooth results --verify says which result is damaged"
        told = InputError("bad-query", words, field="SQL", fix=fix)
    return told


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _name(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _no_pattern(path: str) -> str:
    """A path in which nothing stands for other names."""
    return re.sub(r"[\[*?]", lambda found: f"[{found[0]}]", path)
