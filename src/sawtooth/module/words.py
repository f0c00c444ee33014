"""Words of modules: what one prints goes through a pipe to standard error, made fit for a terminal."""

from __future__ import annotations

import contextlib
import os
import sys

from sawtooth.module.answers import readable
from sawtooth.plain import plain

MOST = 64 << 20
"""Bytes that are passed on of one process."""
_PART = 1 << 16
_LONGEST_LINE = 2000


class Words:
    """Reads a descriptor as far as something is there, and passes on whole lines."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._begun = b""
        self._passed = 0
        self.ended = False

    def pass_on(self, most: int = 1 << 20) -> None:
        """What was said by now, up to so many bytes: who never stops talking is asked again later."""
        while most > 0 and not self.ended and readable([self._descriptor], 0.0):
            part = os.read(self._descriptor, _PART)
            self.ended = not part
            most -= len(part)
            self._say(part)

    def finish(self) -> None:
        """As ``pass_on``, with a last line that has no end."""
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
            # Who reads them may have gone, which ends no run.
            with contextlib.suppress(OSError, ValueError):
                sys.stderr.write("".join(plain(_text(line), _LONGEST_LINE) + "\n" for line in lines))
                sys.stderr.flush()


def _text(line: bytes) -> str:
    return line.decode(errors="replace").replace("\t", "    ")
