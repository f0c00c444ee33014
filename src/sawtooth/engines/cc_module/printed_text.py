"""Passes on text that a module prints, through a pipe, to standard error, with control characters made harmless."""

from __future__ import annotations

import contextlib
import os
import sys

from sawtooth.engines.cc_module.protocol import readable
from sawtooth.sanitize import plain

MOST = 64 << 20
"""Maximum number of bytes passed on for one process."""
_PART = 1 << 16
_LONGEST_LINE = 2000


class PrintedLines:
    """Reads the available text from a descriptor and passes on whole lines."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._begun = b""
        self._passed = 0
        self.ended = False

    def pass_on(self, most: int = 1 << 20) -> None:
        """Pass on the text available now, at most ``most`` bytes. The rest follows in a later call."""
        while most > 0 and not self.ended and readable([self._descriptor], 0.0):
            part = os.read(self._descriptor, _PART)
            self.ended = not part
            most -= len(part)
            self._say(part)

    def finish(self) -> None:
        """Like ``pass_on``, and also pass on a last line without a line end."""
        self.pass_on()
        if self._begun:
            self._say(b"\n")

    def _say(self, part: bytes) -> None:
        if self._passed > MOST:
            return
        self._passed += len(part)
        *lines, self._begun = (self._begun + part).split(b"\n")
        if len(self._begun) > _LONGEST_LINE:
            lines, self._begun = [*lines, self._begun], b""
        if self._passed > MOST:
            lines, self._begun = [*lines, f"(the module says more than {MOST >> 20} MiB: no more of it)".encode()], b""
        if lines and sys.stderr is not None:
            # If standard error is closed, the run continues.
            with contextlib.suppress(OSError, ValueError):
                sys.stderr.write("".join(plain(_text(line), _LONGEST_LINE) + "\n" for line in lines))
                sys.stderr.flush()


def _text(line: bytes) -> str:
    return line.decode(errors="replace").replace("\t", "    ")
