"""Guest: one boot of a user-mode kernel in virtual time, which runs one program."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sawtooth.errors import SawtoothError
from sawtooth.io import tempdirs
from sawtooth.kernel.kernel import Kernel, data

SHARE = "/run/sawtooth"
"""Path of the shared directory in the guest."""

START_NS = 1_767_225_600_000_000_000
"""The clock of a guest at boot, in ns since 1970, unless it gets another one: 2026-01-01 00:00:00 UTC."""

_POLL_S = 0.1
_ROOM_BYTES = 16 << 20
"""Bytes of disk or memory that a guest's kernel needs for its own files, in addition to its memory."""

_CONSOLE_CHARACTERS = 20_000
_ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/tmp",
    "LC_ALL": "C.UTF-8",
    "PYTHONHASHSEED": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
}


@dataclass(frozen=True)
class GuestResult:
    """How a guest ended: the program's exit status, the kernel's messages, and the processor and wall time of the whole
    boot."""

    exit_code: int
    console: str
    cpu_s: float
    wall_s: float


@dataclass(frozen=True)
class Guest:
    """What a guest runs with: its kernel, the processor of the host that it is pinned to (None: not pinned), its
    memory, its clock at boot in ns since 1970, and additional ``words`` for the kernel's command line.

    With the same program, share and seed, a guest has the same clock, the same random numbers and the same network each
    time.
    """

    kernel: Kernel
    cpu: int | None = None
    memory: str = "1024M"
    seed: int = 1
    words: tuple[str, ...] = ()
    start_ns: int = START_NS

    def run(
        self,
        argv: Sequence[str],
        *,
        share: Path,
        timeout_s: float,
        env: Mapping[str, str] | None = None,
        poll: Callable[[], None] | None = None,
        poll_s: float = _POLL_S,
        places: Sequence[Path] = (),
    ) -> GuestResult:
        """Boot, run ``argv`` as the guest's root, and power off.

        The guest sees the host's files read-only. ``share`` is writable, at ``SHARE`` in the guest; the program's
        output goes to ``share``/stdout and ``share``/stderr. ``places`` are directories that the guest reaches under
        the same path as on the host, even below /tmp or in directories closed to others. ``timeout_s`` is wall time.
        ``poll`` is called every ``poll_s``; if it raises, the guest is ended. No process and no directory remains
        after this call, even if this process is killed.

        Raises SawtoothError ``guest-timeout``, or ``guest-failed`` if the program did not run to its end.
        """
        if not share.is_dir():
            fix = "make it first, or name one that exists"
            raise SawtoothError("guest-failed", "the directory to share does not exist", file=share, fix=fix)
        status = share / ".exit"
        status.unlink(missing_ok=True)
        begun = time.monotonic()
        with tempdirs.directory() as directory:
            self._fill(directory, argv, env or {})
            ended = self._keep(directory, share, timeout_s, poll, poll_s, places)
            console = _tail(directory / "console")
        wall_s = time.monotonic() - begun
        if ended["timeout"]:
            fix = f"allow more than {timeout_s:g} s of wall time"
            raise SawtoothError("guest-timeout", f"the guest did not finish within {timeout_s:g} s", fix=fix)
        try:
            exit_code = int(status.read_text())
            status.unlink()
        except (OSError, ValueError):
            last = console.strip().splitlines()[-3:]
            said = f": {' / '.join(last)}" if last else ""
            message = f"the guest ended without running its program to the end (status {ended['status']}){said}"
            raise SawtoothError("guest-failed", message, fix=_advice(console)) from None
        return GuestResult(exit_code, console, ended["cpu_s"], wall_s)

    def _fill(self, directory: Path, argv: Sequence[str], env: Mapping[str, str]) -> None:
        init = directory / "init"
        init.write_text(data("guest-init"), encoding="utf-8")
        init.chmod(0o700)
        assignments = [f"{name}={value}" for name, value in {**_ENVIRONMENT, **env}.items()]
        command = shlex.join(["env", "-i", *assignments, *argv])
        (directory / "command").write_text(f"exec {command}\n", encoding="utf-8", errors="surrogateescape")

    def _command(self) -> list[str]:
        """The kernel's command line. It must be the same for each guest with this seed and ``words``, because the
        kernel mixes it into its random numbers."""
        return [
            str(self.kernel.path),
            f"mem={self.memory}",
            "root=/dev/root",
            "rootfstype=hostfs",
            "rootflags=/",
            "ro",
            "time-travel=inf-cpu",
            f"time-travel-start={self.start_ns}",
            "con=null",
            "con0=null,fd:1",
            "quiet",
            "uml_dir=uml",
            "umid=guest",
            # The path goes through the kernel's working directory, so that no random directory name is on the command
            # line.
            "init=/proc/self/cwd/init",
            f"sawtooth.seed={self.seed}",
            *self.words,
        ]

    def _keep(
        self,
        directory: Path,
        share: Path,
        timeout_s: float,
        poll: Callable[[], None] | None,
        poll_s: float,
        places: Sequence[Path],
    ) -> dict[str, float]:
        """Run the kernel under a keeper process, which cleans up even when this process is killed."""
        keeper = Path(__file__).with_name("guest_keeper.py")
        order = {
            "command": self._command(),
            "directory": str(directory.resolve()),
            "share": str(share.resolve()),
            "places": [str(place.resolve()) for place in (*_places(), *places)],
            "room_bytes": size(self.memory) + _ROOM_BYTES,
            "cpu": self.cpu,
            "timeout_s": timeout_s,
            "env": {"HOME": str(directory), "TMPDIR": _memory_directory(), "PATH": os.defpath},
        }
        with subprocess.Popen(
            [sys.executable, "-I", "-S", str(keeper), json.dumps(order)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as process:
            # The keeper ends the guest when its standard input closes: because we close it, or because we end.
            assert process.stdin is not None
            assert process.stdout is not None
            try:
                while process.poll() is None:
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        process.wait(poll_s)
                    if poll is not None:
                        poll()
            except BaseException:
                process.stdin.close()
                process.wait()
                raise
            said = process.stdout.read()
        if process.returncode:
            message = f"the guest's keeper ended with status {process.returncode}"
            fix = "run it again, with fewer guests at once if memory is short"
            raise SawtoothError("guest-failed", message, fix=fix)
        ended: dict[str, float] = json.loads(said)
        return ended


def _places() -> tuple[Path, ...]:
    """Directories of this Python and its packages. The guest needs them, wherever they are."""
    return Path(sys.base_prefix), Path(sys.prefix), Path(__file__).parents[2]


def size(memory: str) -> int:
    """Bytes of a guest's ``memory``."""
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    return int(memory.rstrip("KMG")) * units.get(memory[-1:], 1)


def _memory_directory() -> str:
    """Directory for the file that holds the guest's memory: in RAM if programs may be executed from there and there is
    enough space."""
    shared = "/dev/shm"
    with contextlib.suppress(OSError):
        about = os.statvfs(shared)
        room = about.f_bavail * about.f_frsize >= 1 << 30
        if room and os.access(shared, os.W_OK) and not about.f_flag & os.ST_NOEXEC:
            return shared
    return tempfile.gettempdir()


def _advice(console: str) -> str:
    if "fp regs" in console:
        return (
            "this processor's state is longer than this kernel knows (sawtooth doctor shows its length): build the "
            "kernel anew, with sawtooth kernel build"
        )
    if "ptrace" in console.lower():
        return (
            "a guest needs ptrace: allow it in this container (docker run --cap-add SYS_PTRACE, or no seccomp profile)"
        )
    if "noexec" in console or "PROT_EXEC" in console:
        return "a guest needs a directory for its memory that is not mounted noexec: set TMPDIR"
    return "run it again; if it ends this way each time, report it with these lines"


def _tail(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")[-_CONSOLE_CHARACTERS:]
    except OSError:
        return ""
