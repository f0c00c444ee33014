"""What a guest's kernel can see and do on the host: it runs as a user without privileges and can write only the share.

The root user in a guest can do on the host whatever the guest's kernel, an ordinary program of the host, may do. So, if
started by root, that program runs under a user number that nobody else has; and always in its own namespaces (mount,
PID, network), where all other files are read-only. The keeper uses this module, which therefore also works without site
packages.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import pwd
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

SHARE, ROOM = "share", "uml"
"""Names in the guest's directory: the directory shared with the caller, and the one for the kernel's own files."""

_NEWNS, _NEWIPC, _NEWUSER, _NEWPID, _NEWNET = 0x20000, 0x8000000, 0x10000000, 0x20000000, 0x40000000
_RDONLY, _NOSUID, _NODEV, _NOEXEC, _BIND, _REC, _PRIVATE = 1, 2, 4, 8, 0x1000, 0x4000, 1 << 18
_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 428, 429, 442
"""System call numbers, the same on every architecture. mount_setattr needs Linux 5.12 or later."""
_CLONE, _CLOEXEC, _RECURSIVE, _EMPTY_PATH, _FROM_EMPTY = 1, 0o2000000, 0x8000, 0x1000, 4
_ATTR_RDONLY, _ATTR_NOSUID, _ATTR_NODEV, _ATTR_IDMAP = 1, 2, 4, 0x100000
_PR_SET_NO_NEW_PRIVS = 38
_HERE = -100
_FIRST_USER, _USERS = 61184, 4336
"""User numbers that systemd assigns to services while they run. No account has one of them."""

_libc = ctypes.CDLL(None, use_errno=True)


def spare_user() -> int | None:
    """The user number for a guest started by root, different for each keeper. None if this process may not use such
    numbers."""
    ranges = [line.split() for line in Path("/proc/self/uid_map").read_text().splitlines()]
    last = _FIRST_USER + _USERS
    if os.geteuid() != 0 or not any(
        int(first) <= _FIRST_USER and last <= int(first) + int(n) for first, _, n in ranges
    ):
        return None
    for step in range(_USERS):
        number = _FIRST_USER + (os.getpid() + step) % _USERS
        try:
            pwd.getpwuid(number)
        except KeyError:
            return number
    return None


def possible(user: int | None) -> bool:
    """Whether the host allows us to set up these namespaces. Tested in a short-lived process."""

    def attempt() -> None:
        separate(user)
        _unshare(_NEWNS | _NEWNET | _NEWIPC)
        _own_mounts()
        _attributes(_HERE, b"/", _ATTR_RDONLY | _ATTR_NOSUID)

    return _in_child(attempt) == 0


def separate(user: int | None) -> None:
    """Enter the namespaces. Call before the guest's first process is forked, which then gets a PID namespace of its
    own. Raises OSError."""
    if user is not None:
        _unshare(_NEWPID)
        return
    me, group = os.geteuid(), os.getegid()
    _unshare(_NEWUSER | _NEWPID)
    # A program started with any user number except 0 has no capabilities left.
    Path("/proc/self/uid_map").write_text(f"{me or 1000} {me} 1")
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/gid_map").write_text(f"{group or 1000} {group} 1")


def mount_view(directory: Path, share: Path, places: list[Path], user: int | None, room_bytes: int) -> None:
    """Set up the mounts of this process and its children: everything is read-only except ``ROOM`` and the share.

    ``directory`` is replaced by an in-memory directory with the same files, which also becomes the working directory.
    ``places`` can be reached under their own paths and as ``place-N``. Raises OSError.
    """
    _unshare(_NEWNS | _NEWNET | _NEWIPC)
    _own_mounts()
    trees = [_tree(place) for place in (share, *places)]
    _attributes(trees[0], b"", _ATTR_NOSUID | _ATTR_NODEV)
    for tree, about in zip(trees[1:], [place.stat() for place in places], strict=True):
        if user is not None and about.st_mode & 0o005 != 0o005:
            # Directories closed to others are shown as if the guest's user owned them. Some file systems do not support
            # this; then they stay closed.
            with contextlib.suppress(OSError):
                _attributes(tree, b"", _ATTR_IDMAP, _map(about, user))
        _attributes(tree, b"", _ATTR_RDONLY | _ATTR_NOSUID | _ATTR_NODEV)
    files = {name: (directory / name).read_bytes() for name in ("init", "command")}
    _attributes(_HERE, b"/", _ATTR_RDONLY | _ATTR_NOSUID)
    way = _Way() if user is not None else None
    if way is not None:
        way.to(directory)
    _in_memory(directory, f"mode=755,size={room_bytes}")
    os.chdir(directory)
    for name, content in files.items():
        (directory / name).write_bytes(content)
        (directory / name).chmod(0o755)
    (directory / ROOM).mkdir(mode=0o700)
    if user is not None:
        os.chown(directory / ROOM, user, user)
    if user is None:
        _plain_programs(directory)
    names = [SHARE, *(f"place-{number}" for number in range(len(places)))]
    for name, tree in zip(names, trees, strict=True):
        (directory / name).mkdir()
        _call(_libc.syscall(_MOVE_MOUNT, tree, b"", _HERE, os.fsencode(directory / name), _FROM_EMPTY))
        os.close(tree)
    for number, place in enumerate(places):
        (directory / f"seen-{number}").symlink_to(place)
        if way is not None and way.to(place):
            _mount(directory / f"place-{number}", place, None, _BIND | _REC)
            way.bound.append(place)
    # A /proc with the guest's processes only. Some containers do not allow this; then the host's /proc stays,
    # read-only.
    with contextlib.suppress(OSError):
        _mount(Path("proc"), Path("/proc"), b"proc", _RDONLY | _NOSUID | _NODEV | _NOEXEC)


def _plain_programs(directory: Path) -> None:
    """Cover programs that have a set-user-ID bit with copies without it.

    In a user namespace, root's files seem to belong to user 65534; such a program would change the guest's root to that
    user.
    """
    (directory / "plain").mkdir()
    for where in {os.path.realpath(place) for place in ("/bin", "/sbin", "/usr/bin", "/usr/sbin")}:
        for entry in os.scandir(where):
            about = entry.stat(follow_symlinks=False)
            if stat.S_ISREG(about.st_mode) and about.st_mode & (stat.S_ISUID | stat.S_ISGID):
                copy = directory / "plain" / entry.name
                # A program that this user may not read is not readable in the guest either.
                with contextlib.suppress(PermissionError):
                    copy.write_bytes(Path(entry.path).read_bytes())
                    copy.chmod(0o755)
                    _mount(copy, Path(entry.path), None, _BIND)


def stay(directory: Path, share: Path, places: list[Path], user: int | None) -> None:
    """The same files in the same places, for hosts that do not allow namespaces. Raises OSError."""
    (directory / ROOM).mkdir(mode=0o700)
    # Use an open directory, so that its parent directories need not be open to the guest's user.
    opened = os.open(share, os.O_RDONLY | os.O_DIRECTORY)
    os.set_inheritable(opened, True)
    (directory / SHARE).symlink_to(f"/proc/self/fd/{opened}/.")
    for number, place in enumerate(places):
        (directory / f"seen-{number}").symlink_to(place)
        (directory / f"place-{number}").symlink_to(place)
    if user is not None:
        os.chown(directory / ROOM, user, user)
        for path in (directory, directory / "init", directory / "command"):
            path.chmod(0o755)


def drop(user: int | None) -> None:
    """Give up root's privileges permanently, also for all programs started later. Raises OSError."""
    if user is not None:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    _call(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))


@contextlib.contextmanager
def lent(share: Path, user: int | None) -> Iterator[None]:
    """During the block the share and its content belong to the guest's user, afterwards to their former owners.

    At the end, entries that are neither files nor directories are removed, and so are links that point out of the
    share. So a caller that reads a guest's output never reads another file of the host.
    """
    if user is None:
        yield
        _tidy(share)
        return
    owner = share.stat()
    before = {}
    for name, directory, about in _walk(share):
        before[about.st_dev, about.st_ino] = (about.st_uid, about.st_gid)
        os.chown(name, user, user, dir_fd=directory, follow_symlinks=False)
    os.chown(share, user, user)
    try:
        yield
    finally:
        _tidy(share)
        for name, directory, about in _walk(share):
            uid, gid = before.get((about.st_dev, about.st_ino), (owner.st_uid, owner.st_gid))
            os.chown(name, uid, gid, dir_fd=directory, follow_symlinks=False)
        os.chown(share, owner.st_uid, owner.st_gid)


def _tidy(share: Path) -> None:
    top = os.path.realpath(share)
    for name, directory, about in _walk(share):
        if stat.S_ISREG(about.st_mode) or stat.S_ISDIR(about.st_mode):
            continue
        if stat.S_ISLNK(about.st_mode):
            where = os.path.realpath(f"/proc/self/fd/{directory}/{name}")
            if os.path.commonpath([top, where]) == top:
                continue
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=directory)


def _walk(top: Path) -> Iterator[tuple[str, int, os.stat_result]]:
    """All entries below ``top``: name, open parent directory, and stat. Links are not followed."""
    for _, directories, files, opened in os.fwalk(top, topdown=False, follow_symlinks=False):
        for name in (*directories, *files):
            with contextlib.suppress(FileNotFoundError):
                yield name, opened, os.stat(name, dir_fd=opened, follow_symlinks=False)


class _Way:
    """Makes directories accessible in this mount namespace only: a directory closed to others is covered by one in
    memory."""

    def __init__(self) -> None:
        self.bound: list[Path] = []
        self._covers: list[Path] = []

    def to(self, path: Path) -> bool:
        """Make ``path`` reachable. True if it is now covered by an empty directory."""
        closed = next((above for above in reversed(path.parents) if not above.stat().st_mode & 0o001), None)
        if closed is not None:
            _in_memory(closed, "mode=755,size=1m")
            self._covers.append(closed)
        hidden = any(cover in path.parents for cover in self._covers)
        if not hidden or any(path.is_relative_to(place) for place in self.bound):
            return False
        path.mkdir(parents=True, exist_ok=True)
        return True


def _map(owner: os.stat_result, user: int) -> int:
    """An open user namespace that maps the owner's files to the user."""
    ready, go = os.pipe()
    done, end = os.pipe()
    child = os.fork()
    if child == 0:
        with contextlib.suppress(OSError):
            _unshare(_NEWUSER)
            # Use the process number from the mounted /proc, whose PID namespace may differ from ours.
            os.write(go, os.readlink("/proc/self").encode())
            os.close(end)
            os.read(done, 1)
        os._exit(0)
    os.close(go)
    try:
        there = Path("/proc", os.read(ready, 20).decode() or "none")
        (there / "uid_map").write_text(f"{owner.st_uid} {user} 1")
        (there / "gid_map").write_text(f"{owner.st_gid} {user} 1")
        return os.open(there / "ns" / "user", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        for descriptor in (ready, done, end):
            os.close(descriptor)
        os.waitpid(child, 0)


def _in_child(attempt: Callable[[], None]) -> int:
    child = os.fork()
    if child == 0:
        status = 1
        try:
            attempt()
            status = 0
        finally:
            os._exit(status)
    return os.waitpid(child, 0)[1]


def _own_mounts() -> None:
    _mount(Path("none"), Path("/"), None, _REC | _PRIVATE)


def _in_memory(where: Path, options: str) -> None:
    _mount(Path("sawtooth"), where, b"tmpfs", _NOSUID | _NODEV, options.encode())


def _mount(source: Path, target: Path, kind: bytes | None, flags: int, options: bytes | None = None) -> None:
    what = (os.fsencode(source), os.fsencode(target), kind, ctypes.c_ulong(flags), options)
    _call(_libc.mount(*what))


def _tree(path: Path) -> int:
    """A detached copy of the mounts below ``path``."""
    flags = _CLONE | _CLOEXEC | _RECURSIVE
    return _call(_libc.syscall(_OPEN_TREE, _HERE, os.fsencode(path), flags))


def _attributes(tree: int, path: bytes, adds: int, user_namespace: int = 0) -> None:
    attributes = (ctypes.c_uint64 * 4)(adds, 0, 0, user_namespace)
    flags = _RECURSIVE | (_EMPTY_PATH if not path else 0)
    _call(_libc.syscall(_MOUNT_SETATTR, tree, path, flags, attributes, ctypes.sizeof(attributes)))


def _unshare(flags: int) -> None:
    _call(_libc.unshare(flags))


def _call(answer: int) -> int:
    if answer < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return answer
