"""Recording: samples as a Parquet file, one row per connection and sample."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from sawtooth.errors import SawtoothError
from sawtooth.io.atomic_io import ASIDE, fresh, writing
from sawtooth.io.closing import Closing
from sawtooth.sanitize import where
from sawtooth.watch.connection import MEANINGS, Connection
from sawtooth.watch.watcher import LiveMoment

ROWS = 20_000
"""Rows that are held in memory before they are written."""
KEPT_S = 10.0
"""Rows are written after this many seconds at the latest, so a kill loses no more than that."""
FORMAT, KEY = 2, b"sawtooth.watch"
"""Format number and its key in the file's metadata. Format 1 had no number."""
OF_SAMPLE = {
    "connections_total": pa.int64(),
    "short_connections": pa.int64(),
    "short_bytes": pa.int64(),
    "unseen": pa.list_(pa.string()),
}
"""Columns of the sample itself, equal in all its rows; since format 2."""
SINCE_2 = ("standing", "standing_bps")
"""Columns of a connection that format 1 does not have."""
_KINDS = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}


def schema() -> pa.Schema:
    """Columns: ``time``, ``at_s``, those of the sample, and the fields of a connection. The metadata has the format."""
    fields = [("time", pa.string()), ("at_s", pa.float64()), *OF_SAMPLE.items()]
    for name, kind in typing.get_type_hints(Connection).items():
        of = next(one for one in (*typing.get_args(kind), kind) if one in _KINDS)
        fields.append((name, _KINDS[of]))
    return pa.schema(fields, {KEY: str(FORMAT).encode()})


class Recorder(Closing):
    """Writes samples to part files in ``parts``, a directory beside the file. ``close`` joins them to one file at
    ``path``. After a kill the parts remain, and ``Recording`` can read them."""

    def __init__(self, path: Path) -> None:
        """Raises SawtoothError ``unwritable-output`` (also if the file exists: recordings are never overwritten) or
        ``disk-full``; ``add`` and ``close`` raise the same errors."""
        self.path, self.parts = path, parts_of(path)
        self.samples = 0
        self.whole = False
        """Whether the joined file has been given its final name."""
        self._held, self._rows, self._written, self._since_s = list[pa.Table](), 0, 0, 0.0
        with self._writing():
            self._free()
            try:
                self.parts.mkdir()
            except FileExistsError:
                fix = f"show it with --replay {where(self.parts)}; give another name, or remove it"
                message = "a recording of that name is running, or was cut off"
                raise SawtoothError("unwritable-output", message, file=self.parts, fix=fix) from None

    def add(self, seen: LiveMoment) -> None:
        """Add the sample's connections that pass the filter; one row without a connection if there are none."""
        columns: dict[str, list[Any]] = dict(seen.columns()) if seen.matching else {name: [None] for name in MEANINGS}
        count = max(1, seen.matching)
        sample = [seen.time, seen.at_s, seen.total, seen.short, seen.short_bytes, list(seen.unseen)]
        for name, value in zip(["time", "at_s", *OF_SAMPLE], sample, strict=True):
            columns[name] = [value] * count
        self._held.append(pa.table(columns, schema()))
        self._rows += count
        self.samples += 1
        if self.samples == 1 or seen.at_s - self._since_s >= KEPT_S or self._rows >= ROWS:
            self._write()
            self._since_s = seen.at_s

    def close(self) -> None:
        """Join the parts to one file. If this fails, the parts remain."""
        self._write()
        aside = self.parts / f".whole{ASIDE}"
        with self._writing():
            try:
                self._join(aside)
                self._free()
                os.rename(aside, self.path)
            except BaseException:
                aside.unlink(missing_ok=True)
                raise
        self.whole = True
        shutil.rmtree(self.parts, ignore_errors=True)

    def _free(self) -> None:
        if os.path.lexists(self.path):
            raise FileExistsError(errno.EEXIST, "it exists, and recordings are never overwritten")

    def _write(self) -> None:
        """Write the held rows as a part file."""
        if not self._held:
            return
        aside = self.parts / f".next{ASIDE}"
        with self._writing():
            with _durable(aside) as file:
                pq.write_table(pa.concat_tables(self._held), file, compression="zstd")
            os.rename(aside, self.parts / f"{self._written:08}.parquet")
        self._written += 1
        self._held, self._rows = [], 0

    def _join(self, aside: Path) -> None:
        """Join all parts to one file with large row groups."""
        with _durable(aside) as file, pq.ParquetWriter(file, schema(), compression="zstd") as writer:
            held: list[pa.Table] = []
            for part in written(self.parts):
                with pq.ParquetFile(part) as read:
                    held.append(read.read(use_threads=False))
                if sum(table.num_rows for table in held) >= ROWS:
                    writer.write_table(pa.concat_tables(held).combine_chunks())
                    held = []
            if held:
                writer.write_table(pa.concat_tables(held).combine_chunks())

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            with writing(self.path):
                yield
        except SawtoothError as error:
            if error.code != "disk-full":
                raise
            fix = f"free some space; show what was recorded with --replay {where(self.parts)}"
            raise SawtoothError("disk-full", error.message, file=self.path, fix=fix) from error


def parts_of(path: Path) -> Path:
    """The directory of a recording in progress."""
    return Path(f"{path}{ASIDE}")


def written(directory: Path) -> list[Path]:
    """The part files in it, in order."""
    return sorted(directory.glob("[0-9]*.parquet"))


@contextlib.contextmanager
def _durable(path: Path) -> Iterator[typing.BinaryIO]:
    """A file that is synced to disk at the end of the block, so that a power failure cannot lose it."""
    with os.fdopen(fresh(path), "wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())
