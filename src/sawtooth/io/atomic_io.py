"""Writes files so that nothing half-written is ever taken for a result, even after a power cut.

New content is written under another name, synchronized to disk, renamed, and then the directory is synchronized.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import json
import os
import shutil
import stat
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from sawtooth.errors import SawtoothError
from sawtooth.io.untrusted import json_value, read_bytes, regular

ASIDE = ".part"
"""Suffix of files being written; everything that reads results ignores it."""

_SYNCS_AT_ONCE = 8
_NO_SYNC = (errno.EINVAL, errno.ENOTSUP)
"""Errors of file systems that have nothing to synchronize: fsync(2)."""
_SEAL = "sha256"
_LARGEST_JSON = 256 * 1024 * 1024
_LONG_LIST = 1000

FULL = (errno.ENOSPC, errno.EDQUOT)
_REFUSED = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.ENAMETOOLONG)


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Converts the operating system's errors into one clear message.

    Raises SawtoothError ``disk-full`` (ENOSPC, EDQUOT) or ``unwritable-output`` (any other errno).
    """
    try:
        yield
    except OSError as error:
        if error.errno in FULL:
            fix = "free some space, then run the same command again: finished points are kept"
            raise SawtoothError("disk-full", "no space is left on the disk", file=path, fix=fix) from error
        reason = error.strerror or str(error)
        advice = "choose a directory that you may write to" if error.errno in _REFUSED else "choose another directory"
        if error.errno == errno.EEXIST:
            advice = "give another name, or remove what is there"
        raise SawtoothError("unwritable-output", f"cannot write here: {reason}", file=path, fix=advice) from error


def write_bytes(path: Path, content: bytes) -> None:
    """Replaces ``path`` in one step, and returns when it is on disk. Raises SawtoothError as ``writing`` does.

    Inside ``new_directory``, the whole directory is synchronized at its end instead.
    """
    aside = path.with_name(f".{path.name}.{os.getpid()}{ASIDE}")
    later = any(parent.name.endswith(ASIDE) for parent in path.parents)
    with writing(path):
        _replaceable(path)
        try:
            with os.fdopen(fresh(aside), "wb") as file:
                file.write(content)
                if not later:
                    file.flush()
                    _sync_open(file.fileno())
            os.replace(aside, path)
            if not later:
                sync([path.parent])
        except OSError:
            aside.unlink(missing_ok=True)
            raise


def sync(paths: Iterable[Path]) -> None:
    """Returns when these files and directories are on disk. Raises OSError.

    All at once: a journaling file system then commits them together, in a quarter of the time.
    """
    known = list(paths)
    if len(known) < 2:
        for path in known:
            _sync(path)
        return
    list(_threads(os.getpid()).map(_sync, known))


@functools.lru_cache(maxsize=1)
def _threads(process: int) -> ThreadPoolExecutor:
    """The threads that synchronize files. Threads do not survive a fork, so a forked process has others."""
    return ThreadPoolExecutor(_SYNCS_AT_ONCE, thread_name_prefix="sync")


def below(directory: Path, *, but: Iterable[str] = ()) -> list[Path]:
    """``directory`` with all files and directories in it, without links; ``but`` names entries of ``directory`` to
    leave out. Raises OSError."""
    found, unread = [directory], [directory]
    passed = {directory / name for name in but}
    while unread:
        with os.scandir(unread.pop()) as entries:
            for entry in entries:
                path = Path(entry.path)
                if path in passed:
                    continue
                if entry.is_dir(follow_symlinks=False):
                    unread.append(path)
                if entry.is_dir(follow_symlinks=False) or entry.is_file(follow_symlinks=False):
                    found.append(path)
    return found


def _sync(path: Path) -> None:
    try:
        opened = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except PermissionError:
        # A directory that can be written but not read cannot be opened for this.
        return
    try:
        _sync_open(opened)
    finally:
        os.close(opened)


def _sync_open(opened: int) -> None:
    try:
        os.fsync(opened)
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise


def _replaceable(path: Path) -> None:
    """Raises OSError if a rename to ``path`` would replace a link, a pipe or a device."""
    with contextlib.suppress(FileNotFoundError):
        mode = os.lstat(path).st_mode
        if stat.S_ISLNK(mode):
            raise OSError(errno.EEXIST, "it is a link, which would be replaced")
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            raise OSError(errno.EEXIST, "it is no file, and would be replaced by one")


def fresh(path: Path) -> int:
    """A new file, opened for writing, never one that somebody placed under that name. Raises OSError."""
    path.unlink(missing_ok=True)
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)


def write_json(path: Path, content: Any) -> None:
    """Replaces ``path`` in one step with readable JSON. Raises SawtoothError as ``writing`` does."""
    write_bytes(path, (_readable(content) + "\n").encode())


def _readable(content: Any) -> str:
    """Indented JSON. Each entry of a very long list in the outermost table is one line: Python indents slowly."""
    write = functools.partial(json.dumps, ensure_ascii=False, allow_nan=False)
    fields = content.items() if isinstance(content, dict) else ()
    long = {
        name: value
        for name, value in fields
        if isinstance(name, str) and isinstance(value, list) and len(value) > _LONG_LIST
    }
    text = write({**content, **{name: [] for name in long}} if long else content, indent=2)
    for name, entries in long.items():
        field, lines = f"\n  {write(name)}: [", ",\n".join(f"    {write(one)}" for one in entries)
        text = text.replace(f"{field}]", f"{field}\n{lines}\n  ]", 1)
    return text


def read_json(path: Path) -> Any:
    """Raises SawtoothError ``not-a-result`` if the file is missing, unreadable or not JSON."""
    try:
        content = read_bytes(path, _LARGEST_JSON)
        if len(content) > _LARGEST_JSON:
            raise ValueError(f"it is larger than {_LARGEST_JSON >> 20} MiB")
        return json_value(content.decode())
    except ValueError as error:
        raise not_a_result(f"cannot be read as a result: {reason(error)}", path) from error


def write_description(path: Path, content: dict[str, Any]) -> None:
    """Writes a JSON object with its own digest. Raises SawtoothError as ``writing`` does."""
    write_json(path, content | {_SEAL: _digest(json.loads(json.dumps(content, allow_nan=False)))})


def read_description(path: Path, newest: int) -> dict[str, Any]:
    """A JSON object with a number ``format`` up to ``newest``, as ``write_description`` writes it.

    Raises SawtoothError ``not-a-result``, also if the digest differs; the oldest have none.
    """
    found = read_json(path)
    if not isinstance(found, dict) or not isinstance(found.get("format"), int):
        raise not_a_result("is not the description of a result", path)
    if found["format"] > newest:
        fix = "read it with the version of sawtooth that wrote it"
        raise SawtoothError("not-a-result", f"has the format {found['format']}", file=path, fix=fix)
    seal = found.pop(_SEAL, None)
    if seal is not None and seal != _digest(found):
        raise not_a_result("is damaged: it is not what was saved (its SHA-256 differs)", path)
    return found


def is_sealed(path: Path) -> bool:
    """Whether a description has its own digest: the oldest have none. Raises SawtoothError ``not-a-result``."""
    found = read_json(path)
    return isinstance(found, dict) and _SEAL in found


def _digest(read: dict[str, Any]) -> str:
    """``read``: as JSON gives it, with keys that are text."""
    canonical = json.dumps(read, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


AGAIN = "name the directory of a finished result, or run the same command again: it writes a new one"


def not_a_result(message: str, path: Path, fix: str = AGAIN) -> SawtoothError:
    """The error for a result's file that is missing, damaged or different."""
    return SawtoothError("not-a-result", message, file=path, fix=fix)


def reason(error: Exception) -> str:
    """The cause, for a sentence that already names the file."""
    if isinstance(error, KeyError):
        return f"it has no {error}"
    return str(getattr(error, "message", None) or getattr(error, "strerror", None) or error)


def checksum(path: Path) -> str:
    """SHA-256 of a file in hexadecimal, under 1 s per GB. Raises OSError, and as ``regular`` does."""
    regular(path)
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextlib.contextmanager
def new_directory(target: Path) -> Iterator[Path]:
    """A directory to fill. It gets the name ``target`` if the block succeeds, with everything in it on disk, and
    disappears otherwise.

    Raises SawtoothError ``unwritable-output`` if ``target`` exists (results are never overwritten), and as ``writing``
    does.
    """
    with writing(target):
        if target.exists():
            raise FileExistsError(errno.EEXIST, "it exists, and results are never overwritten")
        # Machines that share a disk may have processes with the same id.
        aside = target.with_name(f".{target.name}.{os.uname().nodename[:30]}-{os.getpid()}{ASIDE}")
        shutil.rmtree(aside, ignore_errors=True)
        absent = [parent for parent in target.parents if not parent.exists()]
        aside.mkdir(parents=True)
        try:
            yield aside
            sync(below(aside))
            os.rename(aside, target)
            sync({target.parent, *(parent.parent for parent in absent)})
        except BaseException:
            shutil.rmtree(aside, ignore_errors=True)
            with contextlib.suppress(OSError):
                for parent in absent:
                    parent.rmdir()
            raise
