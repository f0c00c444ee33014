"""Program: one command on one host, and when it is ready for others."""

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

    - ``command``: a list of words, or a text for ``/bin/sh -c``.
    - ``ready`` makes it a server: the programs after it start when it is ready, and it ends with the run.
      ``"listening"`` (on any new port), ``"port 8000"``, or a text in its output.
    - ``start``: a time after the run's start, such as ``"2 s"``, instead of the place in the list.
    - ``directory``: its working directory (default: the caller's). ``environment`` is added to PATH, HOME and LC_ALL.
      ``stdin`` is its input.
    - ``collect``: patterns of files to bring back from the host after the run.
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
        """The words to execute."""
        return ["/bin/sh", "-c", self.command] if isinstance(self.command, str) else [str(one) for one in self.command]

    def shown(self) -> str:
        """The command as a person types it."""
        import shlex

        return self.command if isinstance(self.command, str) else shlex.join(self.words())

    def task(self, field: str) -> dict[str, Any]:
        """The form that ``testbed.programs`` uses; errors name ``field``. Raises InputError ``bad-program``, and what a
        bad ``start`` raises."""
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
