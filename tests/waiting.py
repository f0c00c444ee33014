"""Waits for other processes and threads, for a bounded time."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

Found = TypeVar("Found")


def until(what: Callable[[], Found], limit_s: float = 120) -> Found:
    """What ``what`` returns as soon as that is true."""
    end = time.monotonic() + limit_s
    while not (found := what()):
        assert time.monotonic() < end, f"not within {limit_s:g} s"
        time.sleep(0.02)
    return found


def is_running(process: int) -> bool:
    """Whether the process is there. One that has ended, and whose status was not collected yet, is not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
