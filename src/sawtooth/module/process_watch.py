"""Process watch: whether the process that runs modules gets on. A hook never waits, so a process that does hangs."""

from __future__ import annotations

import os
import time
from pathlib import Path

IDLE_S = 30.0
"""So long may the process wait or be stopped, of one slice, before it counts as hanging."""
MARGIN_S = 5.0
"""So much later than the kernel's own limit of processor time is the process ended by us."""
_LONGEST_STEP_S = 1.0
"""Counted at most between two looks: a watch that was itself suspended has seen nothing."""
_WAITS, _STOPPED = "SDI", "Tt"


class ProcessWatch:
    """Looks at a process every now and then, while it is to work; ``begin`` with each slice.

    Time counts where every thread of it waits or is stopped: one that wants a processor and gets none on a busy machine
    is not idle. What the watch itself sleeps through does not count, so all may be suspended together and go on.
    """

    def __init__(self, process: int, patience_s: float) -> None:
        self._process = process
        self._patience_s = patience_s
        self._ticks_a_second = os.sysconf("SC_CLK_TCK")
        self.begin()

    def begin(self) -> None:
        """A slice begins."""
        self._idle_s = 0.0
        self._looked = time.monotonic()
        self._used_before = self._used_s()

    def look(self) -> str | None:
        """What is wrong with it, as the end of a sentence; None: it gets on, or has ended."""
        now = time.monotonic()
        passed, self._looked = min(now - self._looked, _LONGEST_STEP_S), now
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
        """The kernel ends a loop, unless the module has told it not to."""
        if self._used_s() - self._used_before < self._patience_s + MARGIN_S:
            return None
        return f"did not come back for {self._patience_s:g} s"

    def _states(self) -> str:
        """A letter a thread, as proc(5) has them; none where there is no such process."""
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
    """Those behind the name, which may hold anything: the state is the first."""
    return stat.read_text(errors="replace").rpartition(")")[2].split()
