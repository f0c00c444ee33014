"""Source files of a module."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sawtooth.errors import InputError


def check(sources: Sequence[str]) -> None:
    """Check that the files can be read. Raises InputError ``file-not-found``, ``file-unreadable``."""
    for source in sources:
        path = Path(source)
        if not path.exists():
            fix = "a source is named beside the scenario file, or by its whole path"
            raise InputError("file-not-found", "there is no such file", file=source, fix=fix)
        if not path.is_file():
            raise InputError("file-unreadable", "this is not a file", file=source, fix="name the C file of the module")
        try:
            path.read_bytes()
        except OSError as error:
            fix = "make it readable"
            raise InputError("file-unreadable", f"cannot be read: {error.strerror}", file=source, fix=fix) from error
