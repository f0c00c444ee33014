"""Writing to disk so that nothing half-written is ever taken for a result: written aside, then renamed."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sawtooth.errors import SawtoothError

ASIDE = ".part"
"""Ending of what is being written; everything that reads results passes over it."""

_FULL = (errno.ENOSPC, errno.EDQUOT)
_REFUSED = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST, errno.ENAMETOOLONG)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turns the operating system's refusals into one clear message.

    Raises SawtoothError ``disk-full`` (ENOSPC, EDQUOT) or ``unwritable-output`` (anything else that has an errno).
    """
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            fix = "free some space, then run the same command again: finished points are kept"
            raise SawtoothError("disk-full", "no space is left on the disk", file=path, fix=fix) from error
        reason = error.strerror or str(error)
        advice = "choose a directory that you may write to" if error.errno in _REFUSED else None
        raise SawtoothError("unwritable-output", f"cannot write here: {reason}", file=path, fix=advice) from error


def write_bytes(path: Path, content: bytes) -> None:
    """Replaces ``path`` in one step. Raises SawtoothError as ``writing`` does."""
    aside = path.with_name(f".{path.name}.{os.getpid()}{ASIDE}")
    with writing(path):
        try:
            aside.write_bytes(content)
            os.replace(aside, path)
        except OSError:
            aside.unlink(missing_ok=True)
            raise


def write_json(path: Path, content: Any) -> None:
    """Replaces ``path`` in one step with readable JSON. Raises SawtoothError as ``writing`` does."""
    write_bytes(path, (json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode())


def read_json(path: Path) -> Any:
    """Raises SawtoothError ``not-a-result`` when the file is absent, unreadable or not JSON."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SawtoothError("not-a-result", f"cannot be read as a result: {error}", file=path) from error


@contextmanager
def new_directory(target: Path) -> Iterator[Path]:
    """A directory to fill; it takes the name ``target`` when the block ends well and vanishes when it does not.

    Raises SawtoothError ``unwritable-output`` when ``target`` exists (results are never overwritten), and as
    ``writing`` does.
    """
    aside = target.with_name(f".{target.name}.{os.getpid()}{ASIDE}")
    with writing(target):
        if target.exists():
            raise FileExistsError(errno.EEXIST, "it exists, and results are never overwritten")
        shutil.rmtree(aside, ignore_errors=True)
        aside.mkdir(parents=True)
        try:
            yield aside
            os.rename(aside, target)
        except BaseException:
            shutil.rmtree(aside, ignore_errors=True)
            raise
