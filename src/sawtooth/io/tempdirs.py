"""Temporary directories of runs, and locks. Their owner can be identified, even after it was killed.

Other users of this machine can create any name in the temporary directory. So no guessable name is opened there, and
only the user's own directories are removed.
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

_NAME = re.compile(r"st-(\d+)-(\d+)-\d+-.+")
_BEFORE = "sawtooth-"
_LOCK = ".lock"
_number = itertools.count(1)


def prefix() -> str:
    """``st-PID-START-N-``: the process, the tick of its start (process ids are reused), and a counter."""
    return f"st-{os.getpid()}-{_started(os.getpid())}-{next(_number)}-"


def orphaned(name: str) -> bool:
    """Whether a name has this form and its process is gone."""
    owner = _NAME.fullmatch(name)
    return owner is not None and _started(int(owner[1])) != int(owner[2])


@contextlib.contextmanager
def directory() -> Iterator[Path]:
    """A directory for this user only, removed at the end of the block. Directories of killed runs are removed first."""
    sweep()
    with tempfile.TemporaryDirectory(prefix=_BEFORE + prefix()) as made:
        # Held while its process lives, for processes in other containers.
        lock = _opened(Path(made, _LOCK), os.O_CREAT | os.O_EXCL)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield Path(made)
        finally:
            os.close(lock)


def orphans() -> list[Path]:
    """This user's directories whose process is gone."""
    found = []
    with contextlib.suppress(OSError), os.scandir(tempfile.gettempdir()) as entries:
        for entry in entries:
            if entry.name.startswith(_BEFORE) and orphaned(entry.name.removeprefix(_BEFORE)):
                with contextlib.suppress(OSError):
                    about = entry.stat(follow_symlinks=False)
                    if stat.S_ISDIR(about.st_mode) and about.st_uid == os.geteuid() and not _held(Path(entry.path)):
                        found.append(Path(entry.path))
    return sorted(found)


def sweep() -> list[Path]:
    """Removes them; those that cannot be removed stay. Returns the removed ones."""
    gone = []
    for path in orphans():
        shutil.rmtree(path, ignore_errors=True)
        if not path.exists():
            gone.append(path)
    return gone


@contextlib.contextmanager
def locked(names: list[str]) -> Iterator[str | None]:
    """The first of these names that no other process of this user holds; None if all are taken.

    Locks end with their process. They are in ``$XDG_RUNTIME_DIR/sawtooth``, or else in the cache, and only in a
    directory that is private to this user; without one, nothing is locked.
    """
    with contextlib.ExitStack() as held:
        where = _private()
        if where is not None:
            held.callback(os.close, where)
        for name in names if where is not None else []:
            try:
                lock = _opened(Path(name), os.O_CREAT, where)
            except OSError:
                continue
            held.callback(os.close, lock)
            about = os.fstat(lock)
            if stat.S_ISREG(about.st_mode) and about.st_uid == os.geteuid() and take(lock):
                yield name
                return
        yield None


def cache() -> Path:
    """The directory for reproducible files: ``$XDG_CACHE_HOME/sawtooth``, by default under ``~/.cache``."""
    # By the XDG base directory specification, a relative path is ignored.
    given = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(given) if given.startswith("/") else Path.home() / ".cache") / "sawtooth"


def _private() -> int | None:
    """An open directory that is private to this user."""
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    with contextlib.suppress(OSError):
        if runtime.startswith("/") and _alone(os.lstat(runtime)):
            return _own_directory(Path(runtime, "sawtooth"))
    # Without a home directory: RuntimeError.
    with contextlib.suppress(OSError, RuntimeError):
        return _own_directory(cache() / "locks")
    return None


def _own_directory(path: Path) -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        path.mkdir(mode=0o700)
    opened = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    if not _alone(os.fstat(opened)):
        os.close(opened)
        raise PermissionError("it is not only this user's")
    return opened


def _alone(about: os.stat_result) -> bool:
    return stat.S_ISDIR(about.st_mode) and about.st_uid == os.geteuid() and not about.st_mode & 0o077


def _opened(path: Path, flags: int, where: int | None = None) -> int:
    """Follows no link, and does not wait for the other end of a pipe."""
    return os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | flags, 0o600, dir_fd=where)


def _held(path: Path) -> bool:
    """Whether a process that is invisible here, in another container, still uses it."""
    try:
        lock = _opened(path / _LOCK, 0)
    except OSError:
        return False
    try:
        return not take(lock)
    finally:
        os.close(lock)


def take(lock: int) -> bool:
    """Takes the lock of an open file without waiting. False if another process holds it."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _started(process: int) -> int | None:
    """Start time in clock ticks since boot (proc(5), stat's 22nd field); None if there is no such process."""
    try:
        text = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    # A zombie has ended; its status has not been collected yet.
    return None if fields[0] == "Z" else int(fields[19])
