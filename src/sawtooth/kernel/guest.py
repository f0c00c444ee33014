"""Guest: one boot of a user-mode kernel in virtual time, to run one program."""

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

from sawtooth import temporary
from sawtooth.errors import SawtoothError
from sawtooth.kernel.kernel import Kernel, data

SHARE = "/run/sawtooth"
"""Where the guest sees the shared directory."""

START_NS = 1_767_225_600_000_000_000
"""What every guest's clock shows at its boot: 2026-01-01 00:00:00 UTC."""

_POLL_S = 0.1
_ROOM_BYTES = 16 << 20
"""Beside its memory, what a guest's kernel writes for itself."""

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
    """How it ended: the program's exit status, the kernel's messages, processor and wall time of all of it."""

    exit_code: int
    console: str
    cpu_s: float
    wall_s: float


@dataclass(frozen=True)
class Guest:
    """What a guest runs on: its kernel, the host's processor that it is pinned to (None: free), its memory, and further
    ``words`` of its kernel's command line.

    The same program, share and seed see the same clock, the same random numbers and the same network, each time.
    """

    kernel: Kernel
    cpu: int | None = None
    memory: str = "1024M"
    seed: int = 1
    words: tuple[str, ...] = ()

    def run(
        self,
        argv: Sequence[str],
        *,
        share: Path,
        timeout_s: float,
        env: Mapping[str, str] | None = None,
        poll: Callable[[], None] | None = None,
        places: Sequence[Path] = (),
    ) -> GuestResult:
        """Boots, runs ``argv`` as root of the guest, and powers off.

        The guest sees the host's files read-only, and ``share``, writable, at ``SHARE``; the program's output is in
        ``share``/stdout and stderr. It reaches ``places``, directories, where they lie, also below /tmp and in closed
        ones. ``timeout_s`` is wall time. ``poll`` is called ten times a second and may raise, which ends the guest.
        However this call ends, even by a kill of this process, it leaves no process and no directory behind.

        Raises SawtoothError: ``guest-timeout``, or ``guest-failed`` when the program did not come to its end.
        """
        if not share.is_dir():
            fix = "make it first, or name one that exists"
            raise SawtoothError("guest-failed", "the directory to share does not exist", file=share, fix=fix)
        status = share / ".exit"
        status.unlink(missing_ok=True)
        begun = time.monotonic()
        with temporary.directory() as directory:
            self._fill(directory, argv, env or {})
            ended = self._keep(directory, share, timeout_s, poll, places)
            console = _tail(directory / "console")
        wall_s = time.monotonic() - begun
        if ended["timeout"]:
            fix = f"allow more than {timeout_s:g} s of wall time; a guest that waits without sleeping never ends"
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
        """The same for every guest of a seed and ``words``: the kernel mixes them into its random numbers."""
        return [
            str(self.kernel.path),
            f"mem={self.memory}",
            "root=/dev/root",
            "rootfstype=hostfs",
            "rootflags=/",
            "ro",
            "time-travel=inf-cpu",
            f"time-travel-start={START_NS}",
            "con=null",
            "con0=null,fd:1",
            "quiet",
            "uml_dir=uml",
            "umid=guest",
            # Through the kernel's own working directory, so that no random name is in these words.
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
        places: Sequence[Path],
    ) -> dict[str, float]:
        """Runs the kernel under a keeper, which cleans up after it even when this process is killed."""
        keeper = Path(__file__).with_name("keeper.py")
        order = {
            "command": self._command(),
            "directory": str(directory.resolve()),
            "share": str(share.resolve()),
            "places": [str(place.resolve()) for place in (*_places(), *places)],
            "room_bytes": _bytes(self.memory) + _ROOM_BYTES,
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
            # The keeper ends the guest when its standard input closes: by us, or with us.
            assert process.stdin is not None
            assert process.stdout is not None
            try:
                while process.poll() is None:
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        process.wait(_POLL_S)
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
    """This Python and its packages, which a guest must reach wherever they lie."""
    return Path(sys.base_prefix), Path(sys.prefix), Path(__file__).parents[2]


def _bytes(memory: str) -> int:
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    return int(memory.rstrip("KMG")) * units.get(memory[-1:], 1)


def _memory_directory() -> str:
    """Where the guest's memory is a file: one kept in memory, if programs may run from it and there is room."""
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
