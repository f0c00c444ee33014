"""Tables that grow during a run: in memory while small, then in a file, one row group at a time.

A table of up to ``GROUP`` rows is in memory, as arrays until somebody asks for its DataFrame: a short run has sixty
columns of few rows, and their frames would cost more than its simulation. A longer table is an unnamed Parquet file in
the temporary directory, which disappears with its last user; it is read when needed.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, overload

from sawtooth.errors import suggestion
from sawtooth.io.atomic_io import writing

if TYPE_CHECKING:
    from numpy import bool_, ndarray
    from numpy.typing import NDArray
    from pandas import DataFrame

GROUP = 1 << 17
"""Rows of a Parquet row group, and most rows of a table held in memory: 16 MB of the widest table."""
_BATCHES = 256
"""Batches joined at once: most have a few rows."""
_AT_ONCE = 1 << 16
"""Files below this size in bytes are read at once, which takes half the time."""
_FEW = 256
"""Tables of up to this many rows are written without compression, dictionaries or statistics, which would triple the
time of writing and of reading, and save no space."""


class Rows:
    """Rows of a table, read like a DataFrame: ``rows["t_s"]`` is a column as an array, ``rows[mask]`` some of the rows,
    ``len(rows)`` their number."""

    def __init__(self, columns: Mapping[str, ndarray[Any, Any]]) -> None:
        self.columns = columns

    @classmethod
    def of(cls, table: DataFrame) -> Rows:
        return cls({str(name): column.to_numpy() for name, column in table.items()})

    @classmethod
    def joined(cls, parts: Sequence[Rows]) -> Rows:
        """All rows in order. There is at least one part, and all have the same columns."""
        import numpy as np

        if len(parts) == 1:
            return parts[0]
        every = [part.columns for part in parts]
        return cls({name: np.concatenate([columns[name] for columns in every]) for name in every[0]})

    @overload
    def __getitem__(self, at: str) -> ndarray[Any, Any]: ...
    @overload
    def __getitem__(self, at: NDArray[bool_]) -> Rows: ...
    def __getitem__(self, at: str | NDArray[bool_]) -> ndarray[Any, Any] | Rows:
        if isinstance(at, str):
            return self.columns[at]
        if at.dtype == bool and at.all():
            return self
        return Rows({name: values[at] for name, values in self.columns.items()})

    def __reduce__(self) -> tuple[Any, ...]:
        # Pickle takes 5 microseconds for an array of one row, and a study's workers send many. As bytes they take one.
        sent = {
            name: values.tolist() if values.dtype.hasobject else (values.dtype.str, values.tobytes())
            for name, values in self.columns.items()
        }
        return _received, (sent,)

    def __contains__(self, name: object) -> bool:
        return name in self.columns

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def only(self, columns: Sequence[str]) -> Rows:
        """Those of ``columns`` that are there."""
        return Rows({name: self.columns[name] for name in columns if name in self.columns})

    def frame(self) -> DataFrame:
        """A copy as a DataFrame."""
        import pandas as pd

        return pd.DataFrame(dict(self.columns))


def _received(sent: Mapping[str, list[Any] | tuple[str, bytes]]) -> Rows:
    """Restores pickled rows."""
    import numpy as np

    return Rows(
        {
            name: np.frombuffer(values[1], values[0]) if isinstance(values, tuple) else np.array(values, object)
            for name, values in sent.items()
        }
    )


class StoredTable:
    """A table in an open Parquet file.

    Only the calling thread reads it; see ``opened``.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def read(self) -> Rows:
        """The whole table."""
        return _rows(self._opened().read(use_threads=False))

    def __len__(self) -> int:
        return int(self._opened().metadata.num_rows)

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self._opened().schema_arrow.names)

    def groups(self, columns: Sequence[str] | None = None) -> Iterator[Rows]:
        """The table in its row groups, in order; those of ``columns`` that it has."""
        file = self._opened()
        wanted = None if columns is None else [name for name in file.schema_arrow.names if name in columns]
        # Not iter_batches, which reads far ahead.
        for number in range(file.num_row_groups):
            yield _rows(file.read_row_group(number, columns=wanted, use_threads=False))

    def _opened(self) -> Any:
        self._file.seek(0)
        return opened(self._file)

    def copy(self, path: Path) -> None:
        """Writes the file's bytes to ``path``."""
        self._file.seek(0)
        with path.open("wb") as target:
            shutil.copyfileobj(self._file, target, 1 << 20)


class Tables(MutableMapping[str, "DataFrame"]):
    """Tables by name. One that is stored, or rows, becomes a DataFrame on first use and is then kept as such."""

    def __init__(self, tables: Mapping[str, DataFrame | Rows | StoredTable]) -> None:
        self._tables = dict(tables)

    def __getitem__(self, name: str) -> DataFrame:
        found = self.kept(name)
        if isinstance(found, StoredTable):
            found = found.read()
        if isinstance(found, Rows):
            found = self._tables[name] = found.frame()
        return found

    def __setitem__(self, name: str, table: DataFrame) -> None:
        self._tables[name] = table

    def __delitem__(self, name: str) -> None:
        del self._tables[name]

    def __contains__(self, name: object) -> bool:
        # Mapping's own method would read the table.
        return name in self._tables

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)

    def __repr__(self) -> str:
        """The names and sizes, without reading files."""
        sizes = (f"{name}: {len(one)} rows" for name, one in self._tables.items())
        return f"Tables({', '.join(sizes)})"

    def __getstate__(self) -> dict[str, Any]:
        # For another process, which cannot have the open file.
        return {"_tables": dict(self.items())}

    def kept(self, name: str) -> DataFrame | Rows | StoredTable:
        """The table as it is kept."""
        if name not in self._tables:
            # Mapping's own methods and callers expect a KeyError.
            raise KeyError(f"there is no table {name!r}; {suggestion(str(name), self._tables)}")
        return self._tables[name]


def opened(file: Any) -> Any:
    """A ``ParquetFile`` that only the calling thread reads, with ``use_threads=False``. A thread of Arrow that still
    holds a Python file when the interpreter ends aborts it, or keeps it from ending (apache/arrow#34314)."""
    import pyarrow.parquet as pq

    return pq.ParquetFile(file, pre_buffer=False)


def load(path: Path) -> Rows | StoredTable:
    """A saved table, in memory if it is small. For another kind of file raises what pyarrow raises."""
    import pyarrow as pa

    file = path.open("rb")
    content = file.read(_AT_ONCE)
    found = opened(pa.BufferReader(content) if len(content) < _AT_ONCE else file)
    return StoredTable(file) if found.metadata.num_rows > GROUP else _rows(found.read(use_threads=False))


def groups(tables: Mapping[str, DataFrame], name: str, columns: Sequence[str] | None = None) -> Iterator[Rows]:
    """A table in parts that fit into memory, in order, at least one; with ``columns`` and perhaps others."""
    kept = tables.kept(name) if isinstance(tables, Tables) else tables[name]
    if isinstance(kept, StoredTable):
        return kept.groups(columns)
    return iter([kept if isinstance(kept, Rows) else Rows.of(kept)])


def whole(tables: Mapping[str, DataFrame], name: str, columns: Sequence[str] | None = None) -> Rows:
    """All rows of a table, with ``columns`` and perhaps others."""
    return Rows.joined(list(groups(tables, name, columns)))


def save(tables: Mapping[str, DataFrame], name: str, path: Path) -> None:
    """Writes a table as Parquet, with the same bytes whether it was in memory or in a file. Raises OSError."""
    import pyarrow.parquet as pq

    kept = tables.kept(name) if isinstance(tables, Tables) else tables[name]
    if isinstance(kept, StoredTable):
        kept.copy(path)
        return
    table = _arrow(kept)
    few = table.num_rows <= _FEW
    how = {"compression": "none" if few else "zstd", "use_dictionary": not few, "write_statistics": not few}
    pq.write_table(table, path, row_group_size=GROUP, **how)


def _arrow(table: Rows | DataFrame) -> Any:
    """A pyarrow table; NaN becomes null, as in pandas. What pandas notes for itself is left out: for a small table it
    costs more than the values."""
    import pyarrow as pa

    columns = table.columns if isinstance(table, Rows) else table
    return pa.table({str(name): pa.array(values, from_pandas=True) for name, values in columns.items()})


def _rows(table: Any) -> Rows:
    """From a pyarrow table; null becomes NaN, as in pandas."""
    return Rows({name: values.to_numpy() for name, values in zip(table.column_names, table.columns, strict=True)})


class GrowingTables:
    """Tables to which rows are added."""

    def __init__(self) -> None:
        self._growing: dict[str, _GrowingTable] = {}

    def add(self, batch: Mapping[str, Mapping[str, ndarray[Any, Any]]]) -> None:
        """Adds rows, given as columns by table. Raises SawtoothError ``disk-full`` or ``unwritable-output``."""
        for name, columns in batch.items():
            self._growing.setdefault(name, _GrowingTable()).add(Rows(columns))

    def finish(self) -> Tables:
        """The tables with everything added. Raises SawtoothError as ``add`` does."""
        return Tables({name: table.finish() for name, table in self._growing.items()})


class _GrowingTable:
    """One table: waiting batches, and from ``GROUP`` rows on a file of complete row groups."""

    def __init__(self) -> None:
        self._waiting: list[Rows] = []
        self._rows = 0
        self._file: IO[bytes] | None = None
        self._writer: Any = None

    def add(self, rows: Rows) -> None:
        # The first batch defines the columns and their types, even without rows.
        if len(rows) or not self._waiting:
            self._waiting.append(rows)
            self._rows += len(rows)
            if len(self._waiting) == _BATCHES:
                self._waiting = [Rows.joined(self._waiting)]
        if self._rows > GROUP:
            self._store(self._rows - (self._rows - 1) % GROUP - 1)

    def finish(self) -> Rows | StoredTable:
        if self._file is None:
            return Rows.joined(self._waiting)
        if self._rows:
            self._store(self._rows)
        with _unnamed(self._writer):
            self._writer.close()
        return StoredTable(self._file)

    def _store(self, rows: int) -> None:
        """Moves the first ``rows`` waiting rows to the file."""
        import pyarrow.parquet as pq

        columns = Rows.joined(self._waiting).columns
        table = _arrow(Rows({name: values[:rows] for name, values in columns.items()}))
        if self._file is None:
            with writing(Path(tempfile.gettempdir())):
                self._file = tempfile.TemporaryFile(prefix="sawtooth-")  # noqa: SIM115 - it outlives this call
                self._writer = pq.ParquetWriter(self._file, table.schema, compression="zstd")
        with _unnamed(self._writer):
            self._writer.write_table(table, row_group_size=GROUP)
        # Copied, so that the rest does not keep the whole in memory.
        self._waiting = [Rows({name: values[rows:].copy() for name, values in columns.items()})]
        self._rows -= rows


@contextlib.contextmanager
def _unnamed(writer: Any) -> Iterator[None]:
    """For writing to an unnamed file: errors name its directory, and the writer does not retry."""
    with writing(Path(tempfile.gettempdir())):
        try:
            yield
        except OSError:
            writer.is_open = False
            raise
