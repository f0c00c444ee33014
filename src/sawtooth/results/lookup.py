"""Finds a result by its directory, or by its name as ``sawtooth results`` prints it."""

from __future__ import annotations

from pathlib import Path

from sawtooth.errors import InputError
from sawtooth.run import is_saved
from sawtooth.study import store

HOME = Path("results")
"""Default directory of ``sawtooth run`` for results."""


def place(name: Path | str, home: Path | str = HOME) -> Path:
    """The directory of a result: ``name`` itself, else below ``home``; for a study's own directory its latest one.

    If none is finished, it is the newest one, so that the reader reports it. Raises SawtoothError ``file-not-found``,
    or ``not-a-result``.
    """
    given = Path(name)
    found = next((one for one in (given, Path(home) / given) if one.exists() or is_saved(one)), None)
    if found is None:
        fix = "check the name; list results: sawtooth results"
        raise InputError("file-not-found", "there is no such directory", file=given, fix=fix)
    if is_result(found):
        return found
    newest = found / store.LATEST
    if is_result(newest):
        return newest
    begun = _newest(found)
    if begun is not None:
        return begun
    fix = "name the directory of a run (it has a run.json) or of a study's results (it has a study.json)"
    raise InputError("not-a-result", "is neither a run nor a study's results", file=found, fix=fix)


def is_result(directory: Path) -> bool:
    """Whether it contains the description of a run, or of a study's results."""
    return (directory / store.DESCRIPTION).is_file() or is_saved(directory)


def _newest(directory: Path) -> Path | None:
    """The newest result in a study's own directory: they are named by time."""
    if not directory.is_dir():
        return None
    found = [one for one in directory.iterdir() if (one / store.DESCRIPTION).is_file()]
    return max(found, default=None)
