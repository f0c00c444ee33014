"""Reads the samples of a recording, one after the other, as they were recorded."""

from __future__ import annotations

import contextlib
import ipaddress
import itertools
import math
import typing
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sawtooth.errors import InputError
from sawtooth.io.closing import Closing
from sawtooth.io.untrusted import regular
from sawtooth.sanitize import plain, where
from sawtooth.watch import layout
from sawtooth.watch.connection import Connection
from sawtooth.watch.filter import Condition, condition
from sawtooth.watch.record import FORMAT, KEY, OF_SAMPLE, SINCE_2, parts_of, schema, written
from sawtooth.watch.sample import Sample
from sawtooth.watch.watcher import in_order

MOST_ROWS, LARGEST_GROUP = 4_000_000, 1 << 30
"""Limits of a row group of a file, which is loaded at once: rows and bytes."""
_OLDER = (
    "recorded in format 1: it lacks the number of other connections, the short connections, and the rate while the "
    "path had a queue"
)
_UNENDED = "the end of the recording: it was cut off, or is still running"
_STATES = {name: number for number, name in layout.STATES.items()}
_NUMBERS = {name for name, kind in typing.get_type_hints(Connection).items() if float in (kind, *typing.get_args(kind))}
_WORDS = {name for name, kind in typing.get_type_hints(Connection).items() if str in (kind, *typing.get_args(kind))}
_NEEDED = ("local", "local_port", "peer", "peer_port", "state", "uid", "mptcp", "cc", "limit", "why", "recovery")


@dataclass(frozen=True)
class RecordedMoment:
    """One sample of a recording. Like ``LiveMoment``, but from a table whose columns are the fields of connections."""

    time: str
    at_s: float
    table: pa.Table
    total: int | None
    short: int | None
    short_bytes: int | None
    unseen: tuple[str, ...]
    path: Path

    @property
    def matching(self) -> int:
        """Number of connections."""
        return int(self.table.num_rows)

    def first(self, sort: str = "goodput", count: int | None = None) -> list[Connection]:
        """Connections in order, at most ``count``. Raises SawtoothError ``not-a-recording``, ``unknown-name``."""
        of = {name: self.table[name].to_numpy(zero_copy_only=False) for name in self.table.column_names}
        ends = self._sockets() if sort == "peer" else np.zeros(self.matching, layout.SOCKET)
        which = in_order(
            sort,
            ends,
            {
                "goodput": of["goodput_bps"],
                "received": of["received_bps"],
                "delivery": of["delivery_bps"],
                "loss": of["loss"],
                "retransmits": of["retransmits"],
                "rtt": of["rtt_s"],
                "cwnd": of["cwnd_segments"],
            },
            of["acked_bytes"],
        )[:count]
        return [self._connection(row) for row in self.table.take(which).to_pylist()]

    def narrowed(self, wanted: Condition) -> RecordedMoment:
        """Only the connections that pass the filter."""
        sockets = self._sockets()
        cc = np.array([name.encode(errors="replace") for name in self.table["cc"].to_pylist()], "S16")
        count = len(sockets)
        sample = Sample(
            at_s=self.at_s,
            sockets=sockets,
            info=np.zeros(count, layout.TCP_INFO),
            info_bytes=np.zeros(count, np.int64),
            cc=cc,
            bbr=np.zeros(count, layout.BBR_INFO),
            bbr_known=np.zeros(count, bool),
            memory=np.zeros(count, layout.SOCKET_MEMORY),
            memory_known=np.zeros(count, bool),
            ulp=np.zeros(count, "S16"),
        )
        names = [name or "" for name in self.table["process"].to_pylist()]
        kept = self.table.filter(pa.array(wanted(sample, lambda _: names)))
        return RecordedMoment(**vars(self) | {"table": kept})

    def _connection(self, row: dict[str, Any]) -> Connection:
        for name in _NEEDED:
            if row[name] is None:
                raise damaged(self.path, f"a connection at {plain(self.time, 40)} has no {name}")
        for name in _NUMBERS:
            value = row[name]
            row[name] = value if value is not None and math.isfinite(value) else None
        for name in _WORDS:
            row[name] = None if row[name] is None else plain(row[name])
        return Connection(**row)

    def _sockets(self) -> np.ndarray[Any, np.dtype[np.void]]:
        """Addresses, ports and states of all sockets."""
        found = np.zeros(self.matching, layout.SOCKET)
        for at, row in enumerate(self.table.select(["local", "peer", "local_port", "peer_port", "state"]).to_pylist()):
            one = found[at]
            try:
                ends = [ipaddress.ip_address(row[name]) for name in ("local", "peer")]
                one["sport"], one["dport"] = row["local_port"], row["peer_port"]
            except (ValueError, TypeError, OverflowError):
                message = f"a connection at {plain(self.time, 40)} has no addresses and ports"
                raise damaged(self.path, message) from None
            one["family"] = 2 if ends[1].version == 4 else 10
            for name, end in zip(("src", "dst"), ends, strict=True):
                one[name] = np.frombuffer(end.packed.ljust(16, b"\0"), np.uint8)
            one["state"] = _STATES.get(row["state"], 0)
        return found


def damaged(path: Path, why: str) -> InputError:
    """The error for a file that is not a valid recording."""
    fix = "give a file that sawtooth watch --record has written to its end"
    return InputError("not-a-recording", f"it is not a recording of watch: {why}", file=path, fix=fix)


class Recording(Closing):
    """The samples of a file, in order, read when needed; one row group is in memory at a time. For an unfinished
    recording, ``path`` is the directory of its parts."""

    def __init__(self, path: Path, *, filter: str = "") -> None:
        """Raises SawtoothError ``file-not-found``, ``file-unreadable``, ``not-a-recording``, and as ``condition``."""
        self._path = path
        self.narrow(filter)
        with self._reading():
            self._parts = written(path) if path.is_dir() else []
        self._file: pq.ParquetFile | None = None
        self._open((self._parts or [path])[0])

    def narrow(self, filter: str) -> None:
        """Use another filter from the next sample on. Raises SawtoothError as ``condition``."""
        self._condition = condition(filter) if filter.strip() else None

    def samples(self) -> Iterator[RecordedMoment]:
        """All samples. Raises SawtoothError ``not-a-recording`` if the file is damaged."""
        held: pa.Table | None = None
        before = -math.inf
        for read in self._tables():
            with self._reading():
                table = read if held is None else pa.concat_tables([held, read])
            times = table["at_s"].to_numpy(zero_copy_only=False)
            if not np.isfinite(times).all() or (np.diff(times, prepend=before) < 0).any():
                raise damaged(self._path, "its clock (at_s) goes back, or is missing")
            starts = [0, *(np.flatnonzero(np.diff(times)) + 1).tolist()] if len(times) else []
            # The last sample of a row group may continue in the next one.
            for begin, end in itertools.pairwise(starts):
                yield self._sample(table.slice(begin, end - begin))
            held = table.slice(starts[-1]) if starts else held
            before = float(times[starts[-1]]) if starts else before
        if held is not None and held.num_rows:
            yield self._sample(held)

    def _tables(self) -> Iterator[pa.Table]:
        """The row groups as tables."""
        for path in self._parts or [self._path]:
            file = self._open(path)
            for number in range(file.num_row_groups):
                with self._reading():
                    table = self._whole(file.read_row_group(number, columns=file.schema_arrow.names))
                    table.validate(full=True)
                yield table

    def _open(self, path: Path) -> pq.ParquetFile:
        """Open this file and check it."""
        self.close()
        regular(path)
        with self._reading():
            self._file = file = pq.ParquetFile(path)
        try:
            self._check(file)
        except BaseException:
            self.close()
            raise
        return file

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _sample(self, table: pa.Table) -> RecordedMoment:
        head = table.slice(0, 1).select(["time", "at_s", *OF_SAMPLE]).to_pylist()[0]
        unseen = [plain(one) for one in head["unseen"] or [] if one is not None]
        # A sample without connections has one row with empty fields.
        rows = table.filter(pa.compute.is_valid(table["cookie"])).select(list(Connection.__dataclass_fields__))
        total = head["connections_total"]
        sample = RecordedMoment(
            time=plain(head["time"] or "", 40),
            at_s=head["at_s"],
            table=rows,
            total=total,
            short=head["short_connections"],
            short_bytes=head["short_bytes"],
            unseen=(*([_OLDER] if self.older else []), *([_UNENDED] if self._parts else []), *unseen),
            path=self._path,
        )
        return sample if self._condition is None else sample.narrowed(self._condition)

    def _check(self, file: pq.ParquetFile) -> None:
        columns = file.schema_arrow
        version = (columns.metadata or {}).get(KEY)
        self.older = version is None
        """Format 1, without a number."""
        if version is not None and version != str(FORMAT).encode():
            fix = "replay it with the version of sawtooth that wrote it"
            message = f"it has the format {plain(version.decode('ascii', 'replace'), 20)}; this version writes {FORMAT}"
            raise InputError("not-a-recording", message, file=self._path, fix=fix)
        for field in schema():
            if self.older and field.name in (*OF_SAMPLE, *SINCE_2):
                continue
            at = columns.get_field_index(field.name)
            if at < 0 or columns.field(at).type != field.type:
                what = "it has none" if at < 0 else f"it is of {plain(columns.field(at).type, 40)}, not {field.type}"
                raise damaged(self._path, f'the column "{field.name}": {what}')
        for number in range(file.num_row_groups):
            group = file.metadata.row_group(number)
            if group.num_rows > MOST_ROWS or group.total_byte_size > LARGEST_GROUP:
                raise damaged(self._path, f"a part of it has {group.num_rows} rows, {group.total_byte_size >> 20} MiB")

    def _whole(self, table: pa.Table) -> pa.Table:
        """Add the columns that an older format lacks."""
        for field in schema():
            if field.name not in table.column_names:
                table = table.append_column(field, pa.nulls(table.num_rows, field.type))
        return table

    @contextlib.contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError:
            parts = parts_of(self._path)
            cut = f"{where(parts)} has what was recorded until now, or until it was cut off"
            fix = cut if parts.is_dir() else "check the name and the directory"
            raise InputError("file-not-found", "there is no such file", file=self._path, fix=fix) from None
        except PermissionError as error:
            fix = "make it readable, or give another file"
            raise InputError("file-unreadable", f"cannot read it: {error}", file=self._path, fix=fix) from None
        except (pa.ArrowException, OSError, ValueError, EOFError) as error:
            raise damaged(self._path, plain(str(error).partition("\n")[0], 120)) from None
