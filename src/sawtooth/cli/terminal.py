"""What the commands print: answers on standard output, the rest on standard error, and one line that changes.

Every command prints by these and by nothing else; what a terminal would obey is written out on the way, in
``sawtooth.cli.process``.
"""

from __future__ import annotations

import logging
import os
import shutil
import sys
from typing import Any

from sawtooth.columns import folded

_quiet = False
_log = logging.getLogger("sawtooth")


def be_quiet(wanted: bool) -> None:
    """From now on there is no progress, or some again."""
    global _quiet
    _quiet = wanted


def is_quiet() -> bool:
    """Whether progress is left out."""
    return _quiet


def be_verbose(wanted: bool) -> None:
    """From now on what the package logs is told, or no longer."""
    for handler in [one for one in _log.handlers if isinstance(one, _Telling)]:
        _log.removeHandler(handler)
    if wanted:
        _log.addHandler(_Telling())
    _log.setLevel(logging.DEBUG if wanted else logging.NOTSET)


class _Telling(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        tell(f"{record.relativeCreated / 1000:8.3f} s  {record.getMessage()}")


def say(text: str, end: str = "\n") -> None:
    """An answer. Raises SawtoothError as the stream of ``process.prepared`` does."""
    sys.stdout.write(text + end)
    sys.stdout.flush()


def say_folded(text: str) -> None:
    """An answer in sentences and tables, which keeps to the width of the terminal."""
    say(folded(text, width()))


def pass_on(stdout: bytes, stderr: bytes) -> None:
    """What a program of the user prints: to a file or a pipe as it is, to a terminal without control characters."""
    if sys.stdout.isatty():
        say(stdout.decode(errors="replace"), end="")
    elif stdout:
        sys.stdout.flush()
        sys.stdout.buffer.write(stdout)
        sys.stdout.buffer.flush()
    sys.stderr.write(stderr.decode(errors="replace"))
    sys.stderr.flush()


def is_answered_on_a_terminal() -> bool:
    """Whether standard output is a terminal."""
    return sys.stdout.isatty()


def width() -> int | None:
    """Of the terminal that answers go to, in characters, or what COLUMNS says; None: no terminal, so any."""
    if not os.environ.get("COLUMNS", "").isdigit() and not (sys.stdout is not None and sys.stdout.isatty()):
        return None
    return max(40, shutil.get_terminal_size().columns)


def tell(text: str = "") -> None:
    """What is to be known beside the answer."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def is_watched() -> bool:
    """Whether standard error is a terminal."""
    return sys.stderr is not None and sys.stderr.isatty()


def redraw(line: str) -> None:
    """Replaces the line that the cursor is in; ``line`` is of our own words."""
    stream: Any = getattr(sys.stderr, "own", sys.stderr)
    stream.write(f"\r\x1b[K{line}")
    stream.flush()
