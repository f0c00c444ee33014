"""Containers: the environment of one host's programs, with its own network, name, processes and files.

The machine's files are read-only below a private layer in memory, so a program may write anywhere and changes nothing.
Mounts, processes, name and IPC are separate namespaces (unshare(2)); the network is the host's namespace from the plan.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NoReturn

from sawtooth.testbed import pseudo_terminal

FILES_BYTES = 512 << 20
"""Most bytes that a host's programs may write in total; also the longest file."""
PROCESSES = 512
"""Most processes of a program, if the kernel has the controller ``pids``."""
GROUPS = Path("/sys/fs/cgroup")

_NEWNS, _NEWUTS, _NEWIPC, _NEWPID, _NEWNET = 0x20000, 0x4000000, 0x8000000, 0x20000000, 0x40000000
_RDONLY, _NOSUID, _NODEV, _NOEXEC, _REMOUNT, _BIND, _REC, _PRIVATE = 1, 2, 4, 8, 32, 0x1000, 0x4000, 1 << 18
_DETACH = 2
_PR_SET_PDEATHSIG, _PR_CAPBSET_DROP = 1, 24
_DROPPED = {"mac_override": 32, "mac_admin": 33, "sys_module": 16, "sys_rawio": 17, "sys_boot": 22, "sys_time": 25}
"""Capabilities (linux/capability.h) with effects outside a network namespace. ``mknod`` stays, since mounts are nodev.
"""
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "net/tun")
_HIDDEN = ("/proc", "/sys", "/dev", "/run", "/tmp")
"""Directories that a container replaces by its own."""

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Started:
    """A running program: ``watcher`` is the process that waits for it and exits when it does; ``group`` is the number
    of its control group, 0 without control groups."""

    watcher: int
    status_pipe: int
    """A pipe: the status of wait(2) as text, after the program has ended."""
    group: int


class Container:
    """The container of one host. ``network``: the file of its network namespace; ``hosts``: the lines of /etc/hosts;
    ``places``: other visible directories. Raises OSError."""

    def __init__(self, name: str, network: Path, hosts: str, places: Sequence[Path]) -> None:
        self.name = name
        read_end, write_end = os.pipe()
        self._parent = os.fork()
        if self._parent == 0:
            os.close(read_end)
            _build(write_end, name, network, hosts, places)
        os.close(write_end)
        with os.fdopen(read_end) as lines:
            said = lines.read().strip()
        if not said.isdigit():
            raise OSError(f'no container can be made for the host "{name}": {said or "no reason given"}')
        self.first = int(said)
        """The process whose end ends everything in the container."""

    def start(
        self,
        number: int,
        words: Sequence[str],
        *,
        environment: Mapping[str, str],
        directory: str,
        files: tuple[Path, Path, Path],
        terminal: tuple[int, int] | None = None,
    ) -> Started:
        """Starts a program; ``files`` are its standard input, output and error. A program that cannot be started exits
        with 127 and a message on standard error. ``terminal``: rows and columns of a pseudo-terminal for all three,
        whose keys come from files next to the output."""
        group = _group(f"program-{number}")
        read_end, write_end = os.pipe()
        watcher = os.fork()
        if watcher == 0:
            os.close(read_end)
            status = -1
            try:
                status = self._run(group, words, environment, directory, files, terminal)
            finally:
                os.write(write_end, str(status).encode())
                os._exit(0)
        os.close(write_end)
        return Started(watcher, read_end, group.stat().st_ino if group is not None else 0)

    def _run(
        self,
        group: Path | None,
        words: Sequence[str],
        environment: Mapping[str, str],
        directory: str,
        files: tuple[Path, Path, Path],
        terminal: tuple[int, int] | None,
    ) -> int:
        """In a separate process: enters the container, runs the program, waits. Returns the status of wait(2)."""
        _end_with_parent()
        if group is not None:
            (group / "cgroup.procs").write_text(str(os.getpid()))
        if terminal is not None:
            execute = partial(_execute, words, environment, directory)
            return pseudo_terminal.run(self.enter, execute, terminal, files[1].parent, files[1])
        modes = (os.O_RDONLY, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for number, (path, mode) in enumerate(zip(files, modes, strict=True)):
            opened = os.open(path, mode, 0o644)
            os.dup2(opened, number)
            os.close(opened)
        self.enter()
        child = os.fork()
        if child == 0:
            os.setsid()
            _execute(words, environment, directory)
        return os.waitpid(child, 0)[1]

    def enter(self) -> None:
        """Moves this process into the container; its children will be there too. Raises OSError."""
        kinds = {"net": _NEWNET, "ipc": _NEWIPC, "uts": _NEWUTS, "pid": _NEWPID, "mnt": _NEWNS}
        opened = [
            (os.open(f"/proc/{self.first}/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC), flag) for kind, flag in kinds.items()
        ]
        for descriptor, flag in opened:
            _call(_libc.setns(descriptor, flag))
            os.close(descriptor)

    def collect(self, patterns: Sequence[str], directory: str, into: Path) -> None:
        """Copies matching files from the container to ``into``; relative patterns begin at ``directory``. Links out of
        the container are not followed, and only plain files are copied."""
        target = os.open(into, os.O_RDONLY | os.O_DIRECTORY)
        child = os.fork()
        if child == 0:
            try:
                self.enter()
                inner = os.fork()
                if inner == 0:
                    _copy(patterns, directory, target)
                    os._exit(0)
                os.waitpid(inner, 0)
            finally:
                os._exit(0)
        os.close(target)
        os.waitpid(child, 0)

    def close(self) -> None:
        """Ends every process in it."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.first, signal.SIGKILL)
        os.waitpid(self._parent, 0)


def _copy(patterns: Sequence[str], directory: str, target: int) -> None:
    """Copies the first file of each name."""
    names: set[str] = set()
    for pattern in patterns:
        top, relative = (Path("/"), pattern.lstrip("/")) if pattern.startswith("/") else (Path(directory), pattern)
        for path in sorted(top.glob(relative)):
            if path.name in names or not stat.S_ISREG(path.lstat().st_mode):
                continue
            made = os.open(path.name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o644, dir_fd=target)
            given = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            with os.fdopen(given, "rb") as source, os.fdopen(made, "wb") as copy:
                while piece := source.read(1 << 20):
                    copy.write(piece)
            names.add(path.name)


def _group(name: str) -> Path | None:
    """A control group of version 2, if the kernel allows one."""
    group = GROUPS / "sawtooth" / name
    try:
        if not (GROUPS / "cgroup.controllers").exists():
            return None
        group.mkdir(parents=True, exist_ok=True)
        for above in (GROUPS, group.parent):
            with contextlib.suppress(OSError):
                (above / "cgroup.subtree_control").write_text("+pids")
        with contextlib.suppress(OSError):
            (group / "pids.max").write_text(str(PROCESSES))
    except OSError:
        return None
    return group


def mount_groups() -> None:
    """Mounts control groups in a guest, which has none mounted. Raises OSError."""
    _mount("cgroup2", GROUPS, "cgroup2", _NOSUID | _NODEV | _NOEXEC)


def _build(report: int, name: str, network: Path, hosts: str, places: Sequence[Path]) -> NoReturn:
    try:
        _end_with_parent()
        os.setsid()
        opened = os.open(network, os.O_RDONLY | os.O_CLOEXEC)
        _call(_libc.setns(opened, _NEWNET))
        _call(_libc.unshare(_NEWNS | _NEWUTS | _NEWPID | _NEWIPC))
        shown = name.encode()
        _call(_libc.sethostname(shown, len(shown)))
        first = os.fork()
        if first:
            os.close(report)
            os.waitpid(first, 0)
            os._exit(0)
        _end_with_parent()
        for descriptor in (0, 1, 2):
            os.dup2(os.open(os.devnull, os.O_RDWR), descriptor)
        _files(name, hosts, places)
        # As in the parent's process table, which /proc still showed at the fork.
        os.write(report, _outer_pid.encode())
        os.close(report)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        while True:
            signal.pause()
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.write(report, f"{type(error).__name__}: {error}".encode())
    finally:
        os._exit(1)


_outer_pid = ""


def _files(name: str, hosts: str, places: Sequence[Path]) -> None:
    """A separate root: the machine's files below a layer in memory, with the directories that every program expects."""
    global _outer_pid
    _outer_pid = os.readlink("/proc/self")
    _mount("none", Path("/"), None, _REC | _PRIVATE)
    base = Path("/run/sawtooth-container")
    base.mkdir(exist_ok=True)
    _mount("sawtooth", base, "tmpfs", _NOSUID | _NODEV, f"mode=755,size={FILES_BYTES}")
    root = base / "root"
    root.mkdir()
    _layered(Path("/"), root, base / "layers" / "root")
    for own, mode in (("tmp", 0o1777), ("run", 0o755), ("dev/shm", 0o1777)):
        source = base / "own" / own
        source.mkdir(parents=True)
        source.chmod(mode)
    _mount(base / "own" / "dev", root / "dev", None, _BIND)
    _mount(base / "own" / "tmp", root / "tmp", None, _BIND)
    _mount(base / "own" / "run", root / "run", None, _BIND)
    for number, place in enumerate(_covered(places)):
        (root / place.relative_to("/")).mkdir(parents=True, exist_ok=True)
        _layered(place, root / place.relative_to("/"), base / "layers" / str(number))
    _devices(root / "dev")
    _mount("proc", root / "proc", "proc", _NOSUID | _NODEV | _NOEXEC)
    _mount("sysfs", root / "sys", "sysfs", _RDONLY | _NOSUID | _NODEV | _NOEXEC)
    for closed in ("sys", "sysrq-trigger"):
        if (root / "proc" / closed).exists():
            _mount(root / "proc" / closed, root / "proc" / closed, None, _BIND)
    _mount(root / "proc" / "sys" / "net", root / "proc" / "sys" / "net", None, _BIND)
    for closed in ("sys", "sysrq-trigger"):
        if (root / "proc" / closed).exists():
            _mount("none", root / "proc" / closed, None, _BIND | _REMOUNT | _RDONLY)
    etc = root / "etc"
    for file, text in (("hosts", hosts), ("hostname", f"{name}\n"), ("resolv.conf", "")):
        with contextlib.suppress(FileNotFoundError):
            (etc / file).unlink()
        (etc / file).write_text(text)
    os.chdir(root)
    (root / ".machine").mkdir(exist_ok=True)
    _call(_libc.syscall(_PIVOT_ROOT[os.uname().machine], b".", b".machine"))
    os.chdir("/")
    _call(_libc.umount2(b"/.machine", _DETACH))
    Path("/.machine").rmdir()


def _covered(places: Sequence[Path]) -> list[Path]:
    """The machine's mounts below its root, and those of ``places`` that a container's own directories would hide; outer
    ones first."""
    lines = Path("/proc/self/mounts").read_text().splitlines()
    mounts = [Path(line.split()[1].replace("\\040", " ")) for line in lines]
    hidden = [Path(name) for name in _HIDDEN]
    outside = [path for path in mounts if path != Path("/") and not _is_in(path, hidden)]
    wanted = {path for path in (*outside, *(one for one in places if _is_in(one, hidden))) if path.is_dir()}
    return sorted(wanted)


def _is_in(path: Path, directories: Sequence[Path]) -> bool:
    return any(path.is_relative_to(one) for one in directories)


def _layered(below: Path, where: Path, layer: Path) -> None:
    for part in ("upper", "work"):
        (layer / part).mkdir(parents=True)
    options = f"lowerdir={below},upperdir={layer / 'upper'},workdir={layer / 'work'}"
    _mount("overlay", where, "overlay", _NOSUID | _NODEV, options)


def _devices(where: Path) -> None:
    for name in _DEVICES:
        source = Path("/dev") / name
        if source.exists():
            (where / name).parent.mkdir(parents=True, exist_ok=True)
            (where / name).touch()
            _mount(source, where / name, None, _BIND)
    (where / "pts").mkdir()
    with contextlib.suppress(OSError):
        _mount("devpts", where / "pts", "devpts", _NOSUID | _NOEXEC, "newinstance,ptmxmode=0666,mode=620")
    links = {"ptmx": "pts/ptmx", "fd": "/proc/self/fd"}
    links |= {name: f"/proc/self/fd/{number}" for number, name in enumerate(("stdin", "stdout", "stderr"))}
    for name, target in links.items():
        (where / name).symlink_to(target)


def _execute(words: Sequence[str], environment: Mapping[str, str], directory: str) -> NoReturn:
    try:
        os.chdir(directory)
        resource.setrlimit(resource.RLIMIT_FSIZE, (FILES_BYTES, FILES_BYTES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        for number in _DROPPED.values():
            _libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0)
        for number in (signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        os.closerange(3, 1024)
        os.execvpe(words[0], list(words), dict(environment))
    except OSError as error:
        os.write(2, f"sawtooth: {words[0]}: {error.strerror or error}\n".encode())
    finally:
        os._exit(127)


def _end_with_parent() -> None:
    _libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))


def _mount(source: str | Path, target: Path, kind: str | None, flags: int, options: str = "") -> None:
    names = (os.fsencode(source), os.fsencode(target), None if kind is None else kind.encode())
    if _libc.mount(*names, ctypes.c_ulong(flags), options.encode()):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), f"mount {kind or source} on {target}")


def _call(answer: int) -> None:
    if answer < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
