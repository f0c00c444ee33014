"""Names of namespaces. The name shows the owner, even after the owner was killed.

``st-PID-START-N-HOST``, as ``tempdirs.prefix`` begins them.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from sawtooth.io.tempdirs import orphaned, prefix

__all__ = ["NAMESPACES", "orphans", "prefix", "residents"]

NAMESPACES = Path("/run/netns")


def orphans() -> list[str]:
    """Namespaces with such a name whose process is gone."""
    try:
        return sorted(name for name in os.listdir(NAMESPACES) if orphaned(name))
    except OSError:
        return []


def residents(names: list[str]) -> list[int]:
    """Processes that have a thread in one of these namespaces."""
    wanted = {_identity(NAMESPACES / name) for name in names} - {None}
    found = set()
    for process in filter(str.isdigit, os.listdir("/proc")):
        # It may end in the meantime.
        with contextlib.suppress(OSError):
            threads = os.listdir(f"/proc/{process}/task")
            if any(_identity(Path(f"/proc/{process}/task/{thread}/ns/net")) in wanted for thread in threads):
                found.add(int(process))
    return sorted(found - {os.getpid()})


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        about = path.stat()
    except OSError:
        return None
    return about.st_dev, about.st_ino
