"""Record: looks as a Parquet file, a row for each connection of each look."""

from __future__ import annotations

import os
import typing
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from sawtooth.storage import ASIDE, fresh, writing
from sawtooth.watch.connection import MEANINGS, Connection
from sawtooth.watch.watcher import Seen

ROWS = 20_000
"""In memory, before they go to the file."""
FORMAT, KEY = 2, b"sawtooth.watch"
"""Of the file, in its metadata; format 1 had no number."""
OF_LOOK = {
    "connections_total": pa.int64(),
    "short_connections": pa.int64(),
    "short_bytes": pa.int64(),
    "unseen": pa.list_(pa.string()),
}
"""What is said of a look, and is the same in all its rows; since format 2."""
SINCE_2 = ("standing", "standing_bps")
"""Of a connection."""
_KINDS = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}


def schema() -> pa.Schema:
    """``time``, ``at_s``, what is said of a look, and the fields of a connection; the format is in its metadata."""
    fields = [("time", pa.string()), ("at_s", pa.float64()), *OF_LOOK.items()]
    for name, kind in typing.get_type_hints(Connection).items():
        of = next(one for one in (*typing.get_args(kind), kind) if one in _KINDS)
        fields.append((name, _KINDS[of]))
    return pa.schema(fields, {KEY: str(FORMAT).encode()})


class Recorder:
    """Takes the name ``path`` when it is closed, and replaces what had it; until then it is aside."""

    def __init__(self, path: Path) -> None:
        """Raises SawtoothError ``unwritable-output`` or ``disk-full``, and so do ``add`` and ``close``."""
        self._path, self._held, self._rows = path, list[pa.Table](), 0
        self._aside = path.with_name(f".{path.name}.{os.getpid()}{ASIDE}")
        with writing(path):
            self._file = os.fdopen(fresh(self._aside), "wb")
            self._writer = pq.ParquetWriter(self._file, schema(), compression="zstd")

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def add(self, seen: Seen) -> None:
        """All connections of a look that the filter lets through; where there are none a row that has none."""
        told: dict[str, list[Any]] = dict(seen.columns()) if seen.matching else {name: [None] for name in MEANINGS}
        count = max(1, seen.matching)
        look = [seen.time, seen.at_s, seen.total, seen.short, seen.short_bytes, list(seen.unseen)]
        for name, value in zip(["time", "at_s", *OF_LOOK], look, strict=True):
            told[name] = [value] * count
        self._held.append(pa.table(told, schema()))
        self._rows += count
        if self._rows >= ROWS:
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
            if self._held:
                self._writer.write_table(pa.concat_tables(self._held))
                self._held, self._rows = [], 0
