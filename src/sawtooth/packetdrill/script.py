"""Script: a file in packetdrill's language, and how it ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sawtooth._core import packetdrill_outside_data_path
from sawtooth.errors import InputError
from sawtooth.io.untrusted import read_bytes

PASSED, FAILED, NOT_APPLICABLE = "passed", "failed", "not applicable"
SUFFIX = ".pkt"
_LARGEST_BYTES = 1 << 20


@dataclass(frozen=True)
class Script:
    """A script. ``root``: the directory that was given, or the script's; ``name``: the path below it without suffix."""

    name: str
    path: Path
    root: Path

    def read(self) -> str:
        """Its text. Raises InputError ``file-not-found``, ``file-unreadable`` or ``out-of-range``."""
        content = read_bytes(self.path, _LARGEST_BYTES)
        if len(content) > _LARGEST_BYTES:
            message = f"it is larger than {_LARGEST_BYTES >> 20} MiB"
            raise InputError("out-of-range", message, file=self.path, fix="give a packetdrill script")
        return content.decode(errors="replace")

    def outside_data_path(self) -> str | None:
        """Why it is not about TCP's data path; None: it is. Raises InputError as ``read`` does.

        It is, if its application only opens connections, reads, writes and closes, without errors; if its packets are
        TCP without Fast Open, signatures, urgent data and resets; and if, after the handshake, it expects data, an
        acknowledgement of data, or a property in ``tcp_info``.
        """
        return packetdrill_outside_data_path(self.read())


@dataclass(frozen=True)
class ScriptResult:
    """How a script ended on an engine. ``line`` and ``reason`` tell the first difference, or why it is not applicable.
    ``packets`` and ``assertions`` count what was as expected; None where packetdrill itself does not tell.
    """

    script: str
    engine: str
    verdict: str
    line: int | None = None
    reason: str = ""
    packets: int | None = None
    assertions: int | None = None
    remarks: tuple[str, ...] = ()

    def describe(self) -> dict[str, Any]:
        """As JSON values."""
        return {**asdict(self), "remarks": list(self.remarks)}


def find_scripts(paths: Sequence[Path]) -> list[Script]:
    """All scripts below directories, sorted by name, and scripts given by name.

    Raises InputError ``file-not-found`` if a path does not exist, or a directory has no ``*.pkt``.
    """
    found: list[Script] = []
    for path in paths:
        if path.is_dir():
            inside = sorted(path.rglob(f"*{SUFFIX}"))
            if not inside:
                fix = "give a directory with packetdrill scripts, such as gtests/net/tcp of google/packetdrill"
                raise InputError("file-not-found", f"there is no *{SUFFIX} in this directory", file=path, fix=fix)
            found += [Script(str(one.relative_to(path).with_suffix("")), one, path) for one in inside]
        elif path.is_file():
            found.append(Script(path.stem, path, path.parent))
        else:
            fix = "check the name and the directory"
            raise InputError("file-not-found", "there is no such file or directory", file=path, fix=fix)
    return found
