"""Prints the commands' answers on standard output, everything else on standard error, including a progress line that is
updated.

Commands print only with these functions. Control characters are made harmless in ``sawtooth.cli.process``.
"""

from __future__ import annotations

import logging
import os
import shutil
import sys
from typing import Any

from sawtooth.io.text_table import folded

_quiet = False
_log = logging.getLogger("sawtooth")


def be_quiet(wanted: bool) -> None:
    """Switch progress off or on."""
    global _quiet
    _quiet = wanted


def is_quiet() -> bool:
    """Whether progress is left out."""
    return _quiet


def be_verbose(wanted: bool) -> None:
    """Switch the output of the package's log messages on or off."""
    for handler in [one for one in _log.handlers if isinstance(one, _Telling)]:
        _log.removeHandler(handler)
    if wanted:
        _log.addHandler(_Telling())
    _log.setLevel(logging.DEBUG if wanted else logging.NOTSET)


class _Telling(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        say_on_stderr(f"{record.relativeCreated / 1000:8.3f} s  {record.getMessage()}")


def say(text: str, end: str = "\n") -> None:
    """Print an answer. Raises SawtoothError as the stream of ``process.prepared`` does."""
    sys.stdout.write(text + end)
    sys.stdout.flush()


def say_folded(text: str) -> None:
    """Print an answer with sentences and tables, wrapped to the terminal's width."""
    say(folded(text, width()))


def pass_on(stdout: bytes, stderr: bytes) -> None:
    """Print the output of a user's program: standard output unchanged to a file or pipe, everything else without
    control characters."""
    if sys.stdout.isatty():
        say(_lines(stdout), end="")
    elif stdout:
        sys.stdout.flush()
        sys.stdout.buffer.write(stdout)
        sys.stdout.buffer.flush()
    sys.stderr.write(_lines(stderr))
    sys.stderr.flush()


def _lines(output: bytes) -> str:
    """A progress bar that returns to its line's start gets a line for each state."""
    return output.decode(errors="replace").replace("\r\n", "\n").replace("\r", "\n")


def is_answered_on_a_terminal() -> bool:
    """Whether standard output is a terminal."""
    return sys.stdout.isatty()


def width() -> int | None:
    """Width in characters of the terminal for answers, or the value of COLUMNS. None: no terminal, so no limit."""
    if not os.environ.get("COLUMNS", "").isdigit() and not (sys.stdout is not None and sys.stdout.isatty()):
        return None
    return max(40, shutil.get_terminal_size().columns)


def say_on_stderr(text: str = "") -> None:
    """Print additional information on standard error."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def is_watched() -> bool:
    """Whether standard error is a terminal."""
    return sys.stderr is not None and sys.stderr.isatty()


def redraw(line: str) -> None:
    """Replace the cursor's line. ``line`` must be our own text."""
    stream: Any = getattr(sys.stderr, "own", sys.stderr)
    stream.write(f"\r\x1b[K{line}")
    stream.flush()
