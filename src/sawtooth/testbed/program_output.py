"""Program output: what programs print while they run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from sawtooth.io.untrusted import part
from sawtooth.testbed.containers import FILES_BYTES

if TYPE_CHECKING:
    from sawtooth.scenario import Scenario

_PIECE = 1 << 24

Output = Callable[[int, bytes, bytes], None]
"""Called with a program's number, and what it printed since on standard output and on standard error."""


class Printed:
    """Reads the files that programs print into, of a scenario that runs in the directory ``share``."""

    def __init__(self, share: Path, scenario: Scenario, output: Output | None) -> None:
        self._output = output
        self._files = [
            [share / f"program-{number}.{ending}" for ending in ("out", "err")]
            for number in range(len(scenario.programs))
        ]
        self._read = [[0, 0] for _ in self._files]

    def show(self) -> None:
        """Passes on what is new."""
        if self._output is None:
            return
        for number in range(len(self._files)):
            while any(new := [self._next(number, stream) for stream in (0, 1)]):
                self._output(number, *new)

    def _next(self, number: int, stream: int) -> bytes:
        """A program that is root of a guest may lay a link or an endless file in the place of its output."""
        begin = self._read[number][stream]
        piece = part(self._files[number][stream], begin, min(_PIECE, FILES_BYTES - begin))
        self._read[number][stream] += len(piece)
        return piece
