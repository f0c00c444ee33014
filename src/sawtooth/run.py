"""Run: what an engine saw when it answered one scenario, and its place on disk."""

from __future__ import annotations

import functools
import hashlib
import platform
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sawtooth.errors import SawtoothError
from sawtooth.scenario import Scenario
from sawtooth.storage import new_directory, read_json, write_json, writing

if TYPE_CHECKING:
    from pandas import DataFrame

FORMAT = 1
"""Of ``run.json``; a reader refuses a higher one."""

TABLES = ("intervals", "tcp_info", "queues", "links", "probes", "flows")
"""Tables that a run may have; docs/design.md lists their columns. Only ``intervals`` is in every run."""


@dataclass(frozen=True)
class Run:
    """What was seen: a scenario, the engine's name, tables, and ``meta`` (versions, warnings, names of the indices).

    ``meta`` holds JSON values only. ``meta["warnings"]``, where there, is a list of sentences for the reader.
    """

    scenario: Scenario
    engine: str
    tables: dict[str, DataFrame]
    meta: dict[str, Any] = field(default_factory=dict)

    @property
    def warnings(self) -> list[str]:
        """Sentences that the reader of the figures must know."""
        return [str(warning) for warning in self.meta.get("warnings", [])]

    def save(self, directory: Path | str) -> Path:
        """Writes Parquet tables and ``run.json``; the directory appears whole or not at all.

        Raises SawtoothError ``unwritable-output`` (also when the directory exists: results are never overwritten) or
        ``disk-full``.
        """
        target = Path(directory)
        described = {
            "format": FORMAT,
            "engine": self.engine,
            "seed": self.scenario.seed,
            "scenario": self.scenario.to_dict(),
            "digest": self.scenario.digest(),
            "tables": sorted(self.tables),
            "versions": versions(),
            "meta": self.meta,
        }
        with new_directory(target) as aside:
            for name, table in self.tables.items():
                path = aside / f"{name}.parquet"
                with writing(path):
                    table.to_parquet(path, engine="pyarrow", compression="zstd", index=False)
            write_json(aside / "run.json", described)
        return target

    @classmethod
    def load(cls, directory: Path | str, *, tables: Sequence[str] | None = None) -> Run:
        """Reads what ``save`` wrote; ``tables`` names those wanted, all without it.

        Raises SawtoothError ``not-a-result`` for a directory that is not a whole result of a version known here.
        """
        import pandas as pd
        import pyarrow

        source = Path(directory)
        path = source / "run.json"
        described = read_json(path)
        if not isinstance(described, dict) or not isinstance(described.get("format"), int):
            raise SawtoothError("not-a-result", "is not the description of a run", file=path)
        if described["format"] > FORMAT:
            fix = "read it with the version of sawtooth that wrote it"
            raise SawtoothError("not-a-result", f"has the format {described['format']}", file=path, fix=fix)
        try:
            names = [name for name in described["tables"] if tables is None or name in tables]
            frames = {name: pd.read_parquet(source / f"{name}.parquet", engine="pyarrow") for name in names}
            scenario = Scenario.from_dict(described["scenario"], source=str(path))
            return cls(scenario, described["engine"], frames, described["meta"])
        except (OSError, KeyError, TypeError, ValueError, pyarrow.ArrowException) as error:
            if isinstance(error, SawtoothError):
                raise
            raise SawtoothError("not-a-result", f"is not a whole result: {error}", file=source) from error


def is_saved(directory: Path) -> bool:
    """True when ``directory`` holds a whole run. ``save`` renames last, so the description is enough to tell."""
    return (directory / "run.json").is_file()


@functools.cache
def versions() -> dict[str, str]:
    """Versions of what a result depends on. ``core`` is a digest of the simulator's very build."""
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
