"""Finds the process that holds a socket, from /proc, as far as this user is allowed to see."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Collection

AGAIN_S = 5.0
"""/proc is read again after this many seconds at the earliest, and only if there are new sockets."""
MOST = 200_000


class Processes:
    """Number and name of the process that holds each socket, by inode. If there are several, the lowest number."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[int, str]] = {}
        self._tried: set[int] = set()
        self._read_s = -AGAIN_S
        self.hidden = 0
        """Number of processes whose sockets this user could not see in the last reading."""

    def of(self, inodes: Collection[int]) -> dict[int, tuple[int, str]]:
        """The known holders of these inodes."""
        requested = set(inodes) - {0}
        now = time.monotonic()
        if not requested <= self._tried and now - self._read_s >= AGAIN_S:
            self._read_s = now
            self._read()
            # A socket without a visible holder, for example in another PID namespace, is not searched again.
            self._tried = requested | set(self._known)
        return {inode: self._known[inode] for inode in requested if inode in self._known}

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
