"""Detects whether the process that runs modules hangs. A module's functions must never wait, so a process that waits
hangs."""

from __future__ import annotations

import os
import time
from pathlib import Path

IDLE_S = 30.0
"""A process counts as hanging if it waits or is stopped for this many seconds in one slice."""
MARGIN_S = 5.0
"""If the kernel's limit of processor time has no effect, we end the process this many seconds of processor time later.
"""
_LONGEST_STEP_S = 1.0
"""Most time that counts between two checks, in seconds. A longer gap means that this process was suspended itself."""
_WAITS, _STOPPED = "SDI", "Tt"


class ProcessWatch:
    """Checks a process regularly while it should be working. Call ``begin`` at each slice.

    Time counts as idle when all threads wait or are stopped. A thread that is ready but gets no processor on a busy
    machine is not idle. Time in which this process is suspended does not count, so everything may be suspended together
    and continue.
    """

    def __init__(self, process: int, patience_s: float) -> None:
        self._process = process
        self._patience_s = patience_s
        self._ticks_a_second = os.sysconf("SC_CLK_TCK")
        self.begin()

    def begin(self) -> None:
        """A slice begins."""
        self._idle_s = 0.0
        self._checked_s = time.monotonic()
        self._used_before = self._used_s()

    def problem(self) -> str | None:
        """The problem, as the end of a sentence. None if the process works or has ended."""
        now = time.monotonic()
        passed, self._checked_s = min(now - self._checked_s, _LONGEST_STEP_S), now
        states = self._states()
        if not states or not all(state in _WAITS + _STOPPED for state in states):
            return self._spins()
        self._idle_s += passed
        if self._idle_s < IDLE_S:
            return self._spins()
        if any(state in _STOPPED for state in states):
            return f"was stopped by a signal, and did not go on for {IDLE_S:g} s"
        return f"waited for {IDLE_S:g} s: it sleeps, or reads what does not come"

    def _spins(self) -> str | None:
        """The kernel ends an endless loop, unless the module has switched that off. Returns the problem then."""
        if self._used_s() - self._used_before < self._patience_s + MARGIN_S:
            return None
        return f"did not come back for {self._patience_s:g} s"

    def _states(self) -> str:
        """The state of each thread, one letter each, as in proc(5). Empty if the process does not exist."""
        try:
            return "".join(_fields(task / "stat")[0] for task in Path(f"/proc/{self._process}/task").iterdir())
        except (OSError, IndexError):
            return ""

    def _used_s(self) -> float:
        """Processor time of the process, in seconds."""
        try:
            fields = _fields(Path(f"/proc/{self._process}/stat"))
            return (int(fields[11]) + int(fields[12])) / self._ticks_a_second
        except (OSError, IndexError):
            return 0.0


def _fields(stat: Path) -> list[str]:
    """The fields of the file after the process name, which may contain anything. The first one is the state."""
    return stat.read_text(errors="replace").rpartition(")")[2].split()
