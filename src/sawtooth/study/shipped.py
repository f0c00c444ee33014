"""The studies that come with the package, found by name wherever it is installed."""

from __future__ import annotations

import os
from importlib.resources import files
from os import PathLike, fspath
from pathlib import Path

from sawtooth.errors import InputError, suggestion


def shipped() -> dict[str, Path]:
    """Their files by name, sorted."""
    home = Path(str(files("sawtooth") / "data" / "studies"))
    return {path.stem: path for path in sorted(home.glob("*.toml"))}


def found(file: str | PathLike[str]) -> str | PathLike[str]:
    """``file`` if it exists or is ``-``, otherwise the bundled study of that name. A name with a directory is never a
    bundled study.

    Raises SawtoothError ``file-not-found``.
    """
    path = Path(file)
    named = shipped()
    bare = len(path.parts) == 1 and not path.suffix and os.sep not in fspath(file)
    if fspath(file) == "-" or (os.path.exists(file) and not (bare and path.name in named and path.is_dir())):
        return file
    if bare:
        if path.name in named:
            return named[path.name]
        message = "there is no such file, and no study of that name is shipped"
        raise InputError("file-not-found", message, file=file, fix=suggestion(path.name, named))
    if path.stem in named and path.suffix == ".toml" and path.parent.name in ("studies", ""):
        fix = f"a study of that name comes with sawtooth: give its name alone, {path.stem}"
        raise InputError("file-not-found", "there is no such file", file=file, fix=fix)
    return file
