"""Program: one command on one host, and when others may count on it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sawtooth.errors import InputError
from sawtooth.scenario.units import Span

LISTENING = "listening"
_PORT = re.compile(r"port ([1-9]\d{0,4})")
_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Program:
    """A command that runs on a host of the scenario.

    ``command`` is a list of words, or a text for ``/bin/sh -c``. ``ready`` makes it a server: the programs after it
    start when it is ready, and it ends with the run. It is ``"listening"`` (on any new port), ``"port 8000"``, or a
    text that its output has. ``start`` is a time after the run's begin, such as ``"2 s"``, instead of the place in the
    list. ``directory`` is its working directory (the caller's); ``environment`` is added to PATH, HOME and LC_ALL;
    ``stdin`` is what it reads. ``collect``: patterns of files to bring back from the host when the run is over.
    """

    host: str
    command: str | Sequence[str]
    ready: str | None = None
    start: str | None = None
    directory: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    stdin: bytes = b""
    collect: Sequence[str] = ()

    def words(self) -> list[str]:
        """What is executed."""
        return ["/bin/sh", "-c", self.command] if isinstance(self.command, str) else [str(one) for one in self.command]

    def shown(self) -> str:
        """The command as a person types it."""
        import shlex

        return self.command if isinstance(self.command, str) else shlex.join(self.words())

    def task(self, field: str) -> dict[str, Any]:
        """As ``testbed.programs`` takes it; ``field`` names it in errors. Raises InputError ``bad-program``, or what a
        bad ``start`` raises.
        """
        if not self.words() or not self.words()[-1].strip():
            raise InputError("bad-program", "there is no command", field=field, fix='write one, like "curl -s server"')
        if self.ready is not None and self.start is not None:
            message = "a program with a start of its own is not waited for"
            raise InputError("bad-program", message, field=f"{field}.ready", fix="leave out ready, or start")
        if self.ready is not None and self.ready.startswith("port") and not _is_port(self.ready):
            message = f'"{self.ready[:60]}" names no port'
            raise InputError("bad-program", message, field=f"{field}.ready", fix='write it like "port 8000"')
        return {
            "host": self.host,
            "words": self.words(),
            "ready": self.ready,
            "start_ns": None if self.start is None else Span.parse(self.start).ns,
            "directory": str(Path(self.directory or Path.cwd()).resolve()),
            "environment": {
                "PATH": os.environ.get("PATH", _SYSTEM_PATH),
                "HOME": "/tmp",
                "LC_ALL": "C.UTF-8",
                **self.environment,
            },
            "collect": list(self.collect),
        }


def _is_port(text: str) -> bool:
    found = _PORT.fullmatch(text)
    return found is not None and int(found[1]) < 1 << 16
