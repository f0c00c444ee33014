"""Names of namespaces and directories: whose they are can be told from them, also after their owner was killed.

``st-PID-START-N-HOST``: the process, the tick of its start (process numbers come again), its N-th testbed, the host.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

NAMESPACES = Path("/run/netns")
_NAME = re.compile(r"st-(\d+)-(\d+)-\d+-.+")
_DIRECTORY = "sawtooth-"
_number = itertools.count(1)


def prefix() -> str:
    """Of a new testbed of this process."""
    return f"st-{os.getpid()}-{_started(os.getpid())}-{next(_number)}-"


def orphans() -> list[str]:
    """Namespaces with such a name whose process is gone."""
    return [path.name for path in _orphaned(NAMESPACES, "")]


@contextlib.contextmanager
def directory() -> Iterator[Path]:
    """For one run; removed at the end of the block."""
    with tempfile.TemporaryDirectory(prefix=_DIRECTORY + prefix()) as made:
        yield Path(made)


def orphaned_directories() -> list[Path]:
    """This user's directories of runs whose process is gone."""
    return [path for path in _orphaned(Path(tempfile.gettempdir()), _DIRECTORY) if path.stat().st_uid == os.getuid()]


def _orphaned(parent: Path, before: str) -> list[Path]:
    found = []
    for path in sorted(parent.iterdir()) if parent.is_dir() else []:
        owner = _NAME.fullmatch(path.name.removeprefix(before))
        if owner and path.name.startswith(before) and _started(int(owner[1])) != int(owner[2]):
            found.append(path)
    return found


def residents(names: list[str]) -> list[int]:
    """Processes that have a thread in one of these namespaces."""
    wanted = {_identity(NAMESPACES / name) for name in names} - {None}
    found = set()
    for path in Path("/proc").glob("[0-9]*/task/[0-9]*/ns/net"):
        if _identity(path) in wanted:
            found.add(int(path.parts[2]))
    return sorted(found - {os.getpid()})


def clean() -> tuple[list[str], list[int]]:
    """Ends what still runs in orphaned namespaces, removes these and orphaned directories.

    Returns the names of what was removed, and the processes. Raises PermissionError.
    """
    from sawtooth.testbed.apply import remove

    names = orphans()
    processes = residents(names)
    for process in processes:
        try:
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:
            continue
    remove(names)
    directories = orphaned_directories()
    for path in directories:
        shutil.rmtree(path)
    return [*names, *(str(path) for path in directories)], processes


def _started(process: int) -> int | None:
    """In clock ticks since the boot (proc(5), stat's 22nd field); None when there is no such process."""
    try:
        text = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    # A zombie has ended; nobody has fetched its status yet.
    return None if fields[0] == "Z" else int(fields[19])


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        about = path.stat()
    except OSError:
        return None
    return about.st_dev, about.st_ino
