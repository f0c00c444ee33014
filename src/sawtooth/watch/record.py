"""Record: looks as a Parquet file, a row for each connection of each look."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import typing
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from sawtooth.errors import SawtoothError
from sawtooth.plain import where
from sawtooth.storage import ASIDE, fresh, writing
from sawtooth.watch.connection import MEANINGS, Connection
from sawtooth.watch.watcher import Seen

ROWS = 20_000
"""In memory, before they go to the disk."""
KEPT_S = 10.0
"""After so long they do in any case: a kill loses no more."""
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
    """Looks go to ``parts``, a directory beside the file, now and then as a file that is whole; ``close`` makes one
    of them, with the name ``path``. A kill leaves the parts, which ``Recording`` reads.
    """

    def __init__(self, path: Path) -> None:
        """Raises SawtoothError ``unwritable-output`` (also where the file exists: recordings are never overwritten) or
        ``disk-full``, and so do ``add`` and ``close``.
        """
        self.path, self.parts = path, parts_of(path)
        self.looks = 0
        self.whole = False
        """Whether the file has its name."""
        self._held, self._rows, self._written, self._since_s = list[pa.Table](), 0, 0, 0.0
        with self._writing():
            self._free()
            try:
                self.parts.mkdir()
            except FileExistsError:
                fix = f"show it with --replay {where(self.parts)}; give another name, or remove it"
                message = "a recording of that name is running, or was cut off"
                raise SawtoothError("unwritable-output", message, file=self.parts, fix=fix) from None

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
        self.looks += 1
        if self.looks == 1 or seen.at_s - self._since_s >= KEPT_S or self._rows >= ROWS:
            self._write()
            self._since_s = seen.at_s

    def close(self) -> None:
        """The file is whole after it. Where that fails the parts stay."""
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
        """What is held, as a part."""
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
        """All parts in one file, whose own parts are large."""
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
    """The directory that has a recording while it is made."""
    return Path(f"{path}{ASIDE}")


def written(directory: Path) -> list[Path]:
    """The parts in it, in order."""
    return sorted(directory.glob("[0-9]*.parquet"))


@contextlib.contextmanager
def _durable(path: Path) -> Iterator[typing.BinaryIO]:
    """A file that is on the disk after it, should the power fail."""
    with os.fdopen(fresh(path), "wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())
