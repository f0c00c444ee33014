"""Record: looks as a Parquet file, a row a connection and look."""

from __future__ import annotations

import os
import typing
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from sawtooth.storage import ASIDE, fresh, writing
from sawtooth.watch.connection import Connection
from sawtooth.watch.watcher import Seen

ROWS = 20_000
"""In memory, before they go to the file."""
_KINDS = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}


def schema() -> pa.Schema:
    """``time``, ``at_s``, and the fields of a connection."""
    fields = [("time", pa.string()), ("at_s", pa.float64())]
    for name, kind in typing.get_type_hints(Connection).items():
        of = next(one for one in (*typing.get_args(kind), kind) if one in _KINDS)
        fields.append((name, _KINDS[of]))
    return pa.schema(fields)


class Recorder:
    """Takes the name ``path`` when it is closed, and replaces what had it; until then it is aside."""

    def __init__(self, path: Path) -> None:
        """Raises SawtoothError ``unwritable-output`` or ``disk-full``, and so do ``add`` and ``close``."""
        self._path, self._rows = path, list[dict[str, Any]]()
        self._aside = path.with_name(f".{path.name}.{os.getpid()}{ASIDE}")
        with writing(path):
            self._file = os.fdopen(fresh(self._aside), "wb")
            self._writer = pq.ParquetWriter(self._file, schema(), compression="zstd")

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def add(self, seen: Seen) -> None:
        """All connections of a look that the filter lets through."""
        self._rows += [{"time": seen.time, "at_s": seen.at_s} | one.describe() for one in seen.first()]
        if len(self._rows) >= ROWS:
            self._write()

    def close(self) -> None:
        """The file is whole after it."""
        try:
            self._write()
            with writing(self._path):
                self._writer.close()
                self._file.close()
                os.replace(self._aside, self._path)
        except BaseException:
            self._file.close()
            self._aside.unlink(missing_ok=True)
            raise

    def _write(self) -> None:
        with writing(self._path):
            if self._rows:
                self._writer.write_table(pa.Table.from_pylist(self._rows, schema()))
                self._rows.clear()
