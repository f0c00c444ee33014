"""Run: the result of one scenario on one engine, and its files on disk."""

from __future__ import annotations

import functools
import hashlib
import math
import platform
from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sawtooth.io import table_store
from sawtooth.io.atomic_io import (
    checksum,
    new_directory,
    not_a_result,
    read_description,
    reason,
    write_description,
    writing,
)
from sawtooth.io.displayable import Drawn
from sawtooth.run import pack
from sawtooth.run.saved_table import saved_table
from sawtooth.scenario import Scenario

if TYPE_CHECKING:
    from pandas import DataFrame

FORMAT = 2
"""Format version of ``run.json``. A reader refuses a higher version. Format 1 has no checksums of the tables."""


@dataclass(frozen=True, repr=False)
class Run(Drawn):
    """The result of one run: the scenario, the engine's name, the tables, and ``meta`` (versions, warnings, names of
    indices).

    Tables become data frames on first use, and those of more than 131,072 rows are read then
    (``sawtooth.io.table_store``). ``meta`` contains JSON values only: ``meta["warnings"]`` is a list of sentences, if
    there are any, and ``meta["limits"]`` says what limits each flow.
    """

    scenario: Scenario
    engine: str
    tables: MutableMapping[str, DataFrame]
    meta: dict[str, Any] = field(default_factory=dict)

    @property
    def end_s(self) -> float:
        """When it ended: at the scenario's duration, or before it with the last of its programs."""
        return min(float(self.meta.get("end_s", math.inf)), self.scenario.duration.seconds)

    @property
    def measured(self) -> dict[str, float]:
        """The numbers that its programs are asked for, by name; NaN where one that failed did not print it."""
        return {name: math.nan if value is None else value for name, value in self.meta.get("measured", {}).items()}

    @property
    def warnings(self) -> list[str]:
        """Sentences that anyone who uses the figures must read."""
        return [str(warning) for warning in self.meta.get("warnings", [])]

    @property
    def limits(self) -> list[dict[str, Any]]:
        """What limits each flow, one dictionary per flow: ``flow``, ``limit`` (the largest limit), ``share`` (of the
        flow's time), ``shares`` (of all limits), ``words``, and ``takers`` of a shared rate. Empty if the engine does
        not provide it. See docs/explanation/measures.md.
        """
        return [dict(one) for one in self.meta.get("limits", [])]

    def save(self, directory: Path | str) -> Path:
        """Writes the tables as Parquet, and ``run.json`` with the SHA-256 of each. The directory appears complete or
        not at all.

        Raises SawtoothError ``disk-full``, or ``unwritable-output`` (also if the directory exists: results are never
        overwritten).
        """
        target = Path(directory)
        checksums = {}
        with new_directory(target) as aside:
            for name in sorted(self.tables):
                path = aside / f"{name}.parquet"
                with writing(path):
                    table_store.save(self.tables, name, path)
                    checksums[name] = checksum(path)
            described = {
                "format": FORMAT,
                "engine": self.engine,
                "seed": self.scenario.seed,
                "scenario": self.scenario.to_dict(),
                "digest": self.scenario.digest(),
                "tables": checksums,
                "versions": versions(),
                "meta": self.meta,
            }
            write_description(aside / "run.json", described)
        return target

    @classmethod
    def load(cls, directory: Path | str, *, tables: Sequence[str] | None = None) -> Run:
        """Reads what ``save`` wrote; ``tables`` names the tables to read (default: all).

        Raises SawtoothError ``not-a-result`` if the directory is not a complete result of a known version. The error
        names the file if a table is damaged or belongs to another run.
        """
        source = Path(directory)
        packed = _packed(source)
        path = source / "run.json" if packed is None else packed.directory
        described = _described(source, packed)
        try:
            known = described["tables"]
            # Format 1 has a list of names.
            checksums = known if isinstance(known, dict) else dict.fromkeys(known)
            scenario = Scenario.from_dict(described["scenario"])
            engine, meta = str(described["engine"]), _meta(described["meta"])
        except (KeyError, TypeError, ValueError) as error:
            # An InputError about the scenario is a ValueError too.
            raise not_a_result(f"is not the description of a run: {reason(error)}", path) from error
        if "intervals" not in checksums:
            raise not_a_result("has no table of intervals", path)
        wanted = {name: digest for name, digest in checksums.items() if tables is None or name in tables}
        found: Mapping[str, table_store.Rows | table_store.StoredTable]
        if packed is None:
            found = {name: saved_table(source / f"{name}.parquet", digest) for name, digest in wanted.items()}
        else:
            found = packed.tables(source.name, list(wanted))
        return cls(scenario, engine, table_store.Tables(found), meta)


def _meta(found: Any) -> dict[str, Any]:
    """Returns ``found`` if it has what readers of ``meta`` rely on. Raises TypeError or ValueError otherwise."""
    meta = dict(found)
    limits = [dict(one) for one in meta.get("limits", [])]
    if not all({"flow", "limit", "share", "words"} <= one.keys() for one in limits):
        raise ValueError("limits")
    lists = {"warnings": meta.get("warnings", []), **dict(meta.get("names", {}))}
    for name, value in lists.items():
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            raise TypeError(f"{name} is not a list of texts")
    return meta


def save_together(runs: Mapping[Path, Run]) -> None:
    """Saves short runs, given by their directories, in one pack (``sawtooth.run.pack``), and each run that does not fit
    in its own directory.

    They are of one engine and of points whose numbers belong to that pack. Raises SawtoothError as ``Run.save`` does.
    """
    known: dict[str, dict[str, Any]] = {}
    packed = {}
    for directory, run in runs.items():
        rows = pack.add_if_fits(run.tables, known)
        if rows is None:
            run.save(directory)
        else:
            packed[directory] = run, rows
    if not packed:
        return
    directory, (run, _) = next(iter(packed.items()))
    target = pack.place(directory)
    if target is None:
        raise ValueError(f"{directory} is not a point's directory")
    content = [
        ({"seed": one.scenario.seed, "scenario": one.scenario.to_dict(), "meta": one.meta}, rows)
        for one, rows in packed.values()
    ]
    pack.save(target, [one.name for one in packed], content, {"engine": run.engine, "versions": versions()})


def is_saved(directory: Path) -> bool:
    """True if ``directory`` contains a complete run, or a pack does. ``save`` renames last, so a description's presence
    is enough. Raises SawtoothError ``not-a-result`` for a damaged pack."""
    return (directory / "run.json").is_file() or pack.find(directory) is not None


def unsaved(directory: Path, points: Iterable[str]) -> set[str]:
    """Those points of a study's results that have no complete run: as ``is_saved``, for many points at once. Raises
    SawtoothError ``not-a-result`` for a damaged pack."""
    return {
        one for one in pack.lacking(directory, points) if not (directory / pack.POINTS / one / "run.json").is_file()
    }


def described(directory: Path) -> dict[str, Any]:
    """The format, engine, versions, seed, scenario and meta of a saved run, and the names of its tables. Raises
    SawtoothError as ``load`` does."""
    return _described(directory, _packed(directory))


def saved_points(directory: Path) -> list[Path]:
    """The directories by which the saved runs of a study's results are named, in order, whether they are in packs or
    not. Raises SawtoothError ``not-a-result`` for a damaged pack."""
    points = directory / pack.POINTS
    alone = {one.name for one in points.iterdir() if not one.name.startswith(".")} if points.is_dir() else set()
    return [points / name for name in sorted(alone | set(pack.names(directory)))]


def table_digests(directories: Iterable[Path], table: str) -> list[str | None]:
    """For each saved run a digest of a table: equal if the tables are. None if it has no such table or is of format 1.
    Raises SawtoothError as ``load`` does."""
    every = list(directories)
    packs = [_packed(one) for one in every]
    if any(packs):
        # Some may be in packs and others not.
        runs = [Run.load(one, tables=["intervals", table]) for one in every]
        return [pack.digest(table_store.whole(run.tables, table)) if table in run.tables else None for run in runs]
    tables = [_described(one, None).get("tables") for one in every]
    return [known.get(table) if isinstance(known, dict) else None for known in tables]


def _packed(directory: Path) -> pack.Pack | None:
    """The pack that has the run; None if it is in a directory, or nowhere."""
    return None if (directory / "run.json").is_file() else pack.find(directory)


def _described(directory: Path, packed: pack.Pack | None) -> dict[str, Any]:
    if packed is None:
        pack.refuse_missing(directory)
        return read_description(directory / "run.json", FORMAT)
    line = packed.lines[directory.name]
    return {
        "format": FORMAT,
        "engine": packed.engine,
        "versions": packed.versions,
        **line,
        "tables": dict.fromkeys(line["rows"]),
    }


@functools.cache
def versions() -> dict[str, str]:
    """Versions of everything that a result depends on. ``core`` is a digest of the simulator's exact build."""
    found = {"python": platform.python_version()}
    for package in ("sawtooth", "numpy", "pandas", "pyarrow"):
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "not installed"
    core = find_spec("sawtooth._core")
    if core is not None and core.origin is not None and Path(core.origin).is_file():
        found["core"] = hashlib.sha256(Path(core.origin).read_bytes()).hexdigest()[:16]
    else:
        found["core"] = "not built"
    return found
