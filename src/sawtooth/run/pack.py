"""Pack: the runs of many short points in a few files, so that files cost little per run.

OUT/NAME/DATE/packs/3/
    pack.json        the names of its runs, their engine and versions, the SHA-256 of the other files
    runs.jsonl       one line per run: seed, scenario, meta, and how many rows it has in each table
    TABLE.parquet    the rows of all runs that have this table, run after run, with the column ``#run``

A saved run is at ``OUT/NAME/DATE/points/ID``: a directory there, or a run of the pack that the number in ID belongs to.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import itertools
import json
import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sawtooth.errors import SawtoothError
from sawtooth.io import table_store
from sawtooth.io.atomic_io import (
    AGAIN,
    checksum,
    new_directory,
    not_a_result,
    read_description,
    reason,
    write_description,
    writing,
)
from sawtooth.io.table_store import Rows
from sawtooth.io.untrusted import json_value, read_bytes
from sawtooth.run.saved_table import TABLES, saved_table

FORMAT = 1
RUNS = 64
"""Most runs of a pack: the points with the numbers 0 … 63, 64 … 127 and so on."""
MOST_ROWS = 1024
"""Rows of a table in a packed run, at most."""
PACKS, POINTS = "packs", "points"
PLACE = "#run"
"""The column with a row's run: its place in the pack."""
DESCRIPTION = "pack.json"
_LINES = "runs.jsonl"
_LONGEST_NAME = 255
"""Bytes of a file's name in Linux."""
_LARGEST = 256 * 1024 * 1024
_NUMBERED = re.compile(r"([0-9]{1,9})-[A-Za-z0-9._-]+")


def place(directory: Path) -> Path | None:
    """The pack that may have the run of ``directory``; None if this is not the directory of a point."""
    found = _NUMBERED.fullmatch(directory.name)
    if found is None or directory.parent.name != POINTS:
        return None
    return directory.parent.parent / PACKS / str(int(found[1]) // RUNS)


def add_if_fits(tables: Mapping[str, Any], known: dict[str, dict[str, Any]]) -> dict[str, Rows] | None:
    """The tables as rows if they are short and have the columns and types that are ``known`` of each table; None
    otherwise. Tables that ``known`` lacks are added to it."""
    found: dict[str, Rows] = {}
    for name in sorted(tables):
        kept = tables.kept(name) if isinstance(tables, table_store.Tables) else tables[name]
        if len(kept) > MOST_ROWS:
            return None
        found[name] = kept if isinstance(kept, Rows) else Rows.joined(list(table_store.groups(tables, name)))
    types = {name: {column: values.dtype for column, values in rows.columns.items()} for name, rows in found.items()}
    if any(known.get(name, columns) != columns for name, columns in types.items()):
        return None
    known |= types
    return found


def save(
    target: Path,
    names: Sequence[str],
    runs: Sequence[tuple[dict[str, Any], Mapping[str, Rows]]],
    about: Mapping[str, Any],
) -> None:
    """Writes a pack of runs, each with its line and its tables. The directory appears complete or not at all.

    Raises SawtoothError as ``Run.save`` does.
    """
    lines: list[str] = []
    parts: dict[str, list[Rows]] = {}
    places: dict[str, list[int]] = {}
    for at, (line, tables) in enumerate(runs):
        counts = {name: len(rows) for name, rows in tables.items()}
        lines.append(json.dumps(line | {"rows": counts}, allow_nan=False))
        for name, rows in tables.items():
            parts.setdefault(name, []).append(rows)
            places.setdefault(name, []).extend([at] * counts[name])
    with new_directory(target) as aside:
        with writing(aside):
            (aside / _LINES).write_text("\n".join(lines) + "\n", encoding="utf-8")
            joined = table_store.Tables({name: _placed(rows, places[name]) for name, rows in parts.items()})
            for name in joined:
                table_store.save(joined, name, aside / f"{name}.parquet")
            files = {file.name: checksum(file) for file in sorted(aside.iterdir())}
        write_description(aside / DESCRIPTION, {"format": FORMAT, "runs": list(names), "files": files, **about})


def _placed(parts: Sequence[Rows], places: Sequence[int]) -> Rows:
    """The rows of all runs, each with its run's place."""
    import numpy as np

    return Rows({**Rows.joined(parts).columns, PLACE: np.array(places, np.int32)})


@dataclass(frozen=True)
class Pack:
    """A saved pack. Its lines and tables are read on first use."""

    directory: Path
    engine: str
    versions: Mapping[str, str]
    files: Mapping[str, str]
    names: tuple[str, ...]
    _tables: dict[str, tuple[Rows, list[int]]] = field(default_factory=dict)

    @functools.cached_property
    def lines(self) -> dict[str, dict[str, Any]]:
        """What each run says of itself, by name. Raises SawtoothError ``not-a-result``."""
        path = self.directory / _LINES
        with _damage(self.directory):
            try:
                content = read_bytes(path, _LARGEST)
                if hashlib.sha256(content).hexdigest() != self.files.get(path.name):
                    raise not_a_result("is damaged: it is not what was saved (its SHA-256 differs)", path)
                lines = [json_value(line) for line in content.decode().splitlines()]
                if not all(isinstance(line, dict) and _are_counts(line.get("rows")) for line in lines):
                    raise ValueError("a line is not a run")
                return dict(zip(self.names, lines, strict=True))
            except (OSError, ValueError, TypeError) as error:
                raise not_a_result(f"is not the list of a pack's runs: {reason(error)}", path) from error

    def tables(self, run: str, names: Sequence[str] | None) -> dict[str, Rows]:
        """The tables of a run; ``names`` are those to read (default: all). Raises SawtoothError ``not-a-result``."""
        at = self.names.index(run)
        found = {}
        for name in self.lines[run]["rows"]:
            if names is None or name in names:
                rows, ends = self._table(name)
                found[name] = Rows({each: values[ends[at] : ends[at + 1]] for each, values in rows.columns.items()})
        return found

    def _table(self, name: str) -> tuple[Rows, list[int]]:
        """The rows of all runs, and where each run's begin and end."""
        import numpy as np

        if name not in self._tables:
            path = self.directory / f"{name}.parquet"
            counts = [line["rows"].get(name, 0) for line in self.lines.values()]
            with _damage(self.directory):
                rows = saved_table(path, self.files.get(path.name, ""))
                places = np.repeat(np.arange(len(counts)), counts)
                if not isinstance(rows, Rows) or not np.array_equal(rows.columns.get(PLACE, ()), places):
                    raise not_a_result("has other rows than its description says", path)
            columns = {each: values for each, values in rows.columns.items() if each != PLACE}
            self._tables[name] = Rows(columns), [0, *itertools.accumulate(counts)]
        return self._tables[name]


def digest(rows: Rows) -> str:
    """SHA-256 of the values of a table."""
    found = hashlib.sha256()
    for name, values in rows.columns.items():
        content = repr(values.tolist()).encode() if values.dtype == object else values.tobytes()
        found.update(name.encode() + b"\0" + content)
    return found.hexdigest()


def find(directory: Path) -> Pack | None:
    """The pack that has the run of ``directory``; None if none has. Raises SawtoothError ``not-a-result`` for a
    damaged one."""
    where = place(directory)
    found = None if where is None else _at(where)
    return found if found is not None and directory.name in found.names else None


def refuse_missing(directory: Path) -> None:
    """Raises SawtoothError ``not-a-result`` with the pack's name if ``directory`` is absent in a study with packs, and
    its pack is absent too or has no such run."""
    where = place(directory)
    if where is None or directory.exists() or not where.parent.is_dir():
        return
    path = where / DESCRIPTION
    read_description(path, FORMAT)
    raise not_a_result(f"has no run {directory.name}", path)


def lacking(directory: Path, points: Iterable[str]) -> set[str]:
    """Those points of a study's results that are in no pack. Raises SawtoothError ``not-a-result`` for a damaged
    pack."""
    wanted: dict[str, set[str]] = {}
    for point in points:
        number = _NUMBERED.fullmatch(point)
        wanted.setdefault(str(int(number[1]) // RUNS) if number else "", set()).add(point)
    packs = ((_at(directory / PACKS / number) if number else None, those) for number, those in wanted.items())
    return {one for pack, those in packs for one in (those if pack is None else those.difference(pack.names))}


def names(directory: Path) -> list[str]:
    """The names of all runs in the packs of a study's results. Raises SawtoothError ``not-a-result`` for a damaged
    one."""
    packs = (_at(where) for where in (directory / PACKS).glob("[0-9]*"))
    return [name for one in packs if one is not None for name in one.names]


def forget() -> None:
    """The next reader of a pack reads its files, even if it was read before."""
    _read.cache_clear()


def _at(where: Path) -> Pack | None:
    try:
        about = os.stat(where / DESCRIPTION)
    except OSError:
        return None
    return _read(where, (about.st_ino, about.st_mtime_ns, about.st_size))


@functools.lru_cache(maxsize=4)
def _read(where: Path, state: tuple[int, int, int]) -> Pack:
    """A pack whose description is this one."""
    del state
    path, points = where / DESCRIPTION, where.parent.parent / POINTS
    with _damage(where):
        described = read_description(path, FORMAT)
        try:
            runs, files = [str(name) for name in described["runs"]], dict(described["files"])
            if len(set(runs)) < len(runs):
                raise ValueError("two runs have the same name")
            if not all(len(name) <= _LONGEST_NAME and place(points / name) == where for name in runs):
                raise ValueError("a run's name is not that of a point of this pack")
            return Pack(where, str(described["engine"]), dict(described["versions"]), files, tuple(runs))
        except (KeyError, TypeError, ValueError) as error:
            raise not_a_result(f"is not the description of a pack of runs: {reason(error)}", path) from error


def _are_counts(rows: Any) -> bool:
    """Whether these are the numbers of rows of a run's tables. A name becomes that of a file."""
    return (
        isinstance(rows, dict)
        and rows.keys() <= set(TABLES)
        and all(type(number) is int and 0 <= number <= MOST_ROWS for number in rows.values())
    )


@contextlib.contextmanager
def _damage(where: Path) -> Iterator[None]:
    """Adds to errors about damage what to delete: a study that continues computes only runs that are missing."""
    try:
        yield
    except SawtoothError as error:
        if error.fix != AGAIN:
            raise
        fix = f"delete {shlex.quote(str(where))} and run the study again: it computes the runs that were there"
        raise SawtoothError(error.code, error.message, file=error.file, field=error.field, fix=fix) from error
