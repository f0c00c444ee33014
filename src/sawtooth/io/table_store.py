"""Tables that grow during a run: in memory while small, then in a file, one row group at a time.

A table of up to ``GROUP`` rows is a DataFrame. A longer one is an unnamed Parquet file in the temporary directory,
which disappears with its last user; it is read when needed.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from sawtooth.errors import suggestion
from sawtooth.io.atomic_io import writing

if TYPE_CHECKING:
    from numpy import ndarray
    from pandas import DataFrame

GROUP = 1 << 17
"""Rows of a Parquet row group, and most rows of a table held in memory: 16 MB of the widest table."""
_BATCHES = 256
"""Batches joined at once: most have a few rows."""


class Stored:
    """A table in an open Parquet file.

    Only the calling thread reads it; see ``opened``.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def read(self) -> DataFrame:
        """The whole table."""
        self._file.seek(0)
        table: DataFrame = opened(self._file).read(use_threads=False).to_pandas()
        return table

    def __len__(self) -> int:
        import pyarrow.parquet as pq

        self._file.seek(0)
        return int(pq.read_metadata(self._file).num_rows)

    def names(self) -> list[str]:
        """The names of the columns."""
        import pyarrow.parquet as pq

        self._file.seek(0)
        return list(pq.read_schema(self._file).names)

    def groups(self, columns: Sequence[str] | None = None) -> Iterator[DataFrame]:
        """The table in its row groups, in order; those of ``columns`` that it has."""
        wanted = None if columns is None else [name for name in self.names() if name in columns]
        self._file.seek(0)
        file = opened(self._file)
        # Not iter_batches, which reads far ahead.
        for number in range(file.num_row_groups):
            yield file.read_row_group(number, columns=wanted, use_threads=False).to_pandas()

    def copy(self, path: Path) -> None:
        """Writes the file's bytes to ``path``."""
        self._file.seek(0)
        with path.open("wb") as target:
            shutil.copyfileobj(self._file, target, 1 << 20)


class Tables(MutableMapping[str, "DataFrame"]):
    """Tables by name. A stored one is read on first use and then kept."""

    def __init__(self, tables: Mapping[str, DataFrame | Stored]) -> None:
        self._tables = dict(tables)

    def __getitem__(self, name: str) -> DataFrame:
        found = self._tables.get(name)
        if found is None:
            # Mapping's own methods and callers expect a KeyError.
            raise KeyError(f"there is no table {name!r}; {suggestion(str(name), self._tables)}")
        if isinstance(found, Stored):
            found = self._tables[name] = found.read()
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

    def stored(self, name: str) -> Stored | None:
        """The table if it is in a file and was not read yet."""
        found = self._tables[name]
        return found if isinstance(found, Stored) else None


def opened(file: IO[bytes]) -> Any:
    """A ``ParquetFile`` that only the calling thread reads, with ``use_threads=False``. A thread of Arrow that still
    holds a Python file when the interpreter ends aborts it, or keeps it from ending (apache/arrow#34314)."""
    import pyarrow.parquet as pq

    return pq.ParquetFile(file, pre_buffer=False)


def load(path: Path) -> DataFrame | Stored:
    """A saved table, in memory if it is small. For another kind of file raises what pandas and pyarrow raise."""
    stored = Stored(path.open("rb"))
    return stored if len(stored) > GROUP else stored.read()


def groups(tables: Mapping[str, DataFrame], name: str, columns: Sequence[str] | None = None) -> Iterator[DataFrame]:
    """A table in parts that fit into memory, in order, at least one; with ``columns`` and perhaps others."""
    stored = tables.stored(name) if isinstance(tables, Tables) else None
    return iter([tables[name]]) if stored is None else stored.groups(columns)


def save(tables: Mapping[str, DataFrame], name: str, path: Path) -> None:
    """Writes a table as Parquet, with the same bytes whether it was in memory or in a file. Raises OSError."""
    import pyarrow.parquet as pq

    stored = tables.stored(name) if isinstance(tables, Tables) else None
    if stored is None:
        pq.write_table(_arrow(tables[name]), path, compression="zstd", row_group_size=GROUP)
    else:
        stored.copy(path)


def _arrow(columns: Mapping[str, Any] | DataFrame) -> Any:
    """A pyarrow table; NaN becomes null, as in pandas. What pandas notes for itself is left out: for a small table it
    costs more than the values."""
    import pyarrow as pa

    return pa.table({str(name): pa.array(values, from_pandas=True) for name, values in columns.items()})


class Growing:
    """Tables to which rows are added."""

    def __init__(self) -> None:
        self._growing: dict[str, _Growing] = {}

    def add(self, batch: Mapping[str, Mapping[str, ndarray[Any, Any]]]) -> None:
        """Adds rows, given as columns by table. Raises SawtoothError ``disk-full`` or ``unwritable-output``."""
        for name, columns in batch.items():
            self._growing.setdefault(name, _Growing()).add(columns)

    def finish(self) -> Tables:
        """The tables with everything added. Raises SawtoothError as ``add`` does."""
        return Tables({name: table.finish() for name, table in self._growing.items()})


class _Growing:
    """One table: waiting batches, and from ``GROUP`` rows on a file of complete row groups."""

    def __init__(self) -> None:
        self._waiting: list[Mapping[str, ndarray[Any, Any]]] = []
        self._rows = 0
        self._file: IO[bytes] | None = None
        self._writer: Any = None

    def add(self, columns: Mapping[str, ndarray[Any, Any]]) -> None:
        rows = len(next(iter(columns.values())))
        # The first batch defines the columns and their types, even without rows.
        if rows or not self._waiting:
            self._waiting.append(columns)
            self._rows += rows
            if len(self._waiting) == _BATCHES:
                self._waiting = [self._joined()]
        if self._rows > GROUP:
            self._store(self._rows - (self._rows - 1) % GROUP - 1)

    def finish(self) -> DataFrame | Stored:
        import pandas as pd

        if self._file is None:
            return pd.DataFrame(self._joined())
        if self._rows:
            self._store(self._rows)
        with _unnamed(self._writer):
            self._writer.close()
        return Stored(self._file)

    def _joined(self) -> dict[str, ndarray[Any, Any]]:
        import numpy as np

        return {name: np.concatenate([batch[name] for batch in self._waiting]) for name in self._waiting[0]}

    def _store(self, rows: int) -> None:
        """Moves the first ``rows`` waiting rows to the file."""
        import pyarrow.parquet as pq

        columns = self._joined()
        table = _arrow({name: values[:rows] for name, values in columns.items()})
        if self._file is None:
            with writing(Path(tempfile.gettempdir())):
                self._file = tempfile.TemporaryFile(prefix="sawtooth-")  # noqa: SIM115 - it outlives this call
                self._writer = pq.ParquetWriter(self._file, table.schema, compression="zstd")
        with _unnamed(self._writer):
            self._writer.write_table(table, row_group_size=GROUP)
        # Copied, so that the rest does not keep the whole in memory.
        self._waiting = [{name: values[rows:].copy() for name, values in columns.items()}]
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
