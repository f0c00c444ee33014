"""Cleans up after runs that were killed."""

from __future__ import annotations

import contextlib
import os
import signal

from sawtooth.io.tempdirs import sweep
from sawtooth.testbed.apply import remove
from sawtooth.testbed.names import orphans, residents


def clean() -> tuple[list[str], list[int], list[str]]:
    """Removes this user's orphaned directories, ends processes in orphaned namespaces, and removes those namespaces.

    Returns the names of what was removed, the processes, and the namespaces that only root may remove.
    """
    removed = [str(path) for path in sweep()]
    names = orphans()
    ended = []
    for process in residents(names) if names else []:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(process, signal.SIGKILL)
            ended.append(process)
    refused = []
    for name in names:
        try:
            remove([name])
            removed.append(name)
        except OSError:
            refused.append(name)
    return removed, ended, refused
