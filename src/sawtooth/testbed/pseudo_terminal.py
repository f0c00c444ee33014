"""A pseudo-terminal for one program: a shell in which a person looks around.

What the person types comes in files ``typed-0``, ``typed-1`` … of the shared directory, because a guest has no other
way in. In virtual time nothing may wait for a person: while the shell is at its prompt, time passes in short steps,
each of which costs about as long in real time.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import struct
import termios
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

_AT_PROMPT_S, _RUNNING_S = 0.0002, 0.01
"""Time steps between two checks for keys: while the shell itself is in the foreground, and while what it started
is."""


@dataclass(frozen=True)
class Terminal:
    """A person's terminal: its size, the name of its kind (TERM), and what was typed since the last call."""

    rows: int
    columns: int
    kind: str
    typed: Callable[[], bytes]

    def give(self, order: dict[str, Any]) -> None:
        """Gives it to the last program of the testbed's task (``programs.order``)."""
        last = order["programs"][-1]
        last["terminal"] = (self.rows, self.columns)
        last["environment"] = {"TERM": self.kind, **last["environment"]}


class Keys:
    """Passes on what is typed, by files in the directory ``share``."""

    def __init__(self, share: Path, terminal: Terminal | None) -> None:
        self._share = share
        self._terminal = terminal
        self._number = 0

    def pass_on(self) -> None:
        """The keys typed since the last call."""
        if self._terminal is not None and (typed := self._terminal.typed()):
            whole = self._share / "typing"
            # A program that is root of a guest may lay a link or a directory there: then keys are lost, nothing else.
            with contextlib.suppress(OSError):
                whole.unlink(missing_ok=True)
                with os.fdopen(
                    os.open(whole, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644), "wb"
                ) as file:
                    file.write(typed)
                whole.rename(self._share / f"typed-{self._number}")
            self._number += 1


def run(
    enter: Callable[[], None], execute: Callable[[], NoReturn], size: tuple[int, int], share: Path, output: Path
) -> int:
    """In a separate process: enters the container, executes the program on a new terminal, and passes on keys and
    output until it ends. Returns the status of wait(2)."""
    keys = os.open(share, os.O_RDONLY | os.O_DIRECTORY)
    shown = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    enter()
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
    child = os.fork()
    if child == 0:
        os.close(ours)
        os.login_tty(theirs)
        execute()
    os.close(theirs)
    number = 0
    while True:
        pause = _AT_PROMPT_S if os.tcgetpgrp(ours) == child else _RUNNING_S
        if select.select([ours], [], [], pause)[0]:
            try:
                os.write(shown, os.read(ours, 1 << 16))
            except OSError:
                # No process has the terminal open any longer.
                return os.waitpid(child, 0)[1]
        elif (ended := os.waitpid(child, os.WNOHANG))[0]:
            return ended[1]
        number += _typed(keys, number, ours)


def _typed(keys: int, number: int, terminal: int) -> int:
    """Passes on the next file of keys, if it is there; returns how many."""
    try:
        given = os.open(f"typed-{number}", os.O_RDONLY | os.O_NOFOLLOW, dir_fd=keys)
    except FileNotFoundError:
        return 0
    try:
        os.write(terminal, os.read(given, 1 << 16))
    finally:
        os.close(given)
    return 1
