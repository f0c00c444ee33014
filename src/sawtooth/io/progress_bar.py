"""Progress bar: the progress of long work, on stderr, after two seconds."""

from __future__ import annotations

import sys
import time
from typing import Any

from sawtooth.io.closing import Closing
from sawtooth.sanitize import plain

SHOWN_AFTER_S = 2.0
_FORMAT = "{desc} {percentage:3.0f}% |{bar}| {n:.1f}/{total} points, {elapsed} elapsed, {remaining} left"
_FORMAT_ONE = "{desc} {percentage:3.0f}% |{bar}| {elapsed} elapsed, {remaining} left"


class Bar(Closing):
    """A bar that appears only if the work takes longer than two seconds; ``quiet`` disables it."""

    def __init__(self, what: str, points: int, *, done: int = 0, quiet: bool = False) -> None:
        from tqdm import tqdm

        terminal = sys.stderr.isatty()
        self._terminal = terminal and not quiet
        self._start = time.monotonic()
        self._bar: Any = tqdm(
            total=points,
            initial=done,
            desc=plain(what, 100),
            disable=quiet,
            delay=SHOWN_AFTER_S,
            bar_format=_FORMAT if points > 1 else _FORMAT_ONE,
            # The command line escapes control characters, except a bar's own.
            file=getattr(sys.stderr, "own", sys.stderr),
            leave=terminal,
            # A log file gets a line now and then, a terminal a smooth bar.
            mininterval=0.2 if terminal else 30.0,
            dynamic_ncols=terminal,
            smoothing=0.05,
        )

    def show(self, points: float) -> None:
        """Sets the number of finished points, fractions included."""
        advance = points - self._bar.n
        if advance > 0:
            self._bar.update(advance)
        elif self._terminal and time.monotonic() - self._start >= SHOWN_AFTER_S:
            # The clock continues while no point advances.
            self._bar.refresh()

    def close(self) -> None:
        self._bar.close()
