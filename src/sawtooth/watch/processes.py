"""Processes: who holds a socket, by /proc, as far as this user may look."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Collection

AGAIN_S = 5.0
"""All of /proc is read no more often, and only where a socket is new."""
MOST = 200_000


class Processes:
    """Holders of sockets by inode: a process's number and name. Of several holders the one with the least number."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[int, str]] = {}
        self._tried: set[int] = set()
        self._read_s = -AGAIN_S
        self.hidden = 0
        """Processes whose sockets this user may not see, at the last reading."""

    def of(self, inodes: Collection[int]) -> dict[int, tuple[int, str]]:
        """Those that are known."""
        asked = set(inodes) - {0}
        now = time.monotonic()
        if not asked <= self._tried and now - self._read_s >= AGAIN_S:
            self._read_s = now
            self._read()
            # Who has none now, as in another namespace of processes, is not asked for again.
            self._tried = asked | set(self._known)
        return {inode: self._known[inode] for inode in asked if inode in self._known}

    def _read(self) -> None:
        self._known, self.hidden = {}, 0
        for pid in sorted(map(int, filter(str.isdecimal, os.listdir("/proc"))), reverse=True):
            try:
                descriptors = os.listdir(f"/proc/{pid}/fd")
            except PermissionError:
                self.hidden += 1
                continue
            except OSError:
                continue
            name = None
            for descriptor in descriptors:
                with contextlib.suppress(OSError):
                    target = os.readlink(f"/proc/{pid}/fd/{descriptor}")
                    if target.startswith("socket:[") and len(self._known) < MOST:
                        name = name if name is not None else _name(pid)
                        self._known[int(target[8:-1])] = pid, name


def _name(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/comm", "rb") as file:
            return file.read(64).decode(errors="replace").removesuffix("\n")
    except OSError:
        return "?"
