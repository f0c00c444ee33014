"""The replications that come with the package, and your own folders."""

from __future__ import annotations

import os
from importlib.resources import files
from os import PathLike, fspath
from pathlib import Path

from sawtooth.errors import InputError, suggestion
from sawtooth.replication.replication import FILE


def shipped() -> dict[str, Path]:
    """Their folders by name, sorted."""
    home = Path(str(files("sawtooth") / "data" / "replications"))
    return {path.parent.name: path.parent for path in sorted(home.glob(f"*/{FILE}"))}


def found(name: str | PathLike[str]) -> Path:
    """The bundled replication of that name, otherwise the folder. Raises SawtoothError ``file-not-found``."""
    named = shipped()
    if fspath(name) in named:
        return named[fspath(name)]
    path = Path(name)
    if (path / FILE).is_file():
        return path
    if path.name == FILE and path.is_file():
        return path.parent
    if os.sep in fspath(name) or path.exists():
        fix = f"write {path / FILE}, or give the folder that has it"
        raise InputError("file-not-found", f"the folder has no {FILE}", file=name, fix=fix)
    message = "no replication of that name is shipped, and there is no such folder"
    raise InputError("file-not-found", message, file=name, fix=suggestion(path.name, named))
