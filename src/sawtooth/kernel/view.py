"""What of the host a guest's kernel can do and see: a user without powers, and files of which it can write the share.

A guest's root may do to the host what its kernel, a program of the host, may do. So root starts that program as a user
that nobody else is, and everybody starts it in namespaces of its own (mounts, processes, network) where all files are
read-only. Used by the keeper, and like it without site packages.
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
"""In the guest's directory: what it shares with the caller, and where its kernel may write besides."""

_NEWNS, _NEWIPC, _NEWUSER, _NEWPID, _NEWNET = 0x20000, 0x8000000, 0x10000000, 0x20000000, 0x40000000
_RDONLY, _NOSUID, _NODEV, _NOEXEC, _BIND, _REC, _PRIVATE = 1, 2, 4, 8, 0x1000, 0x4000, 1 << 18
_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 428, 429, 442
"""The same on every architecture; the last is there since Linux 5.12."""
_CLONE, _CLOEXEC, _RECURSIVE, _EMPTY_PATH, _FROM_EMPTY = 1, 0o2000000, 0x8000, 0x1000, 4
_ATTR_RDONLY, _ATTR_NOSUID, _ATTR_NODEV, _ATTR_IDMAP = 1, 2, 4, 0x100000
_PR_SET_NO_NEW_PRIVS = 38
_HERE = -100
_ALL = 1 << 32
_FIRST_USER, _USERS = 61184, 4336
"""Numbers of users that systemd lends to services while they run: no account has one."""

_libc = ctypes.CDLL(None, use_errno=True)


def spare_user() -> int | None:
    """The number that root's guest runs under, another for each keeper; None for who is not root over such numbers."""
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
    """Whether this host allows such a view to us. Tried in a process that ends at once."""

    def attempt() -> None:
        separate(user)
        _unshare(_NEWNS | _NEWNET | _NEWIPC)
        _own_mounts()
        _attributes(_HERE, b"/", _ATTR_RDONLY | _ATTR_NOSUID)

    return _in_child(attempt) == 0


def separate(user: int | None) -> None:
    """Before the guest's first process is forked: that one gets a table of processes of its own. Raises OSError."""
    if user is not None:
        _unshare(_NEWPID)
        return
    me, group = os.geteuid(), os.getegid()
    _unshare(_NEWUSER | _NEWPID)
    # A program that is started under any number but 0 has no powers left.
    Path("/proc/self/uid_map").write_text(f"{me or 1000} {me} 1")
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/gid_map").write_text(f"{group or 1000} {group} 1")


def look(directory: Path, share: Path, places: list[Path], user: int | None, room_bytes: int) -> None:
    """Changes what this process and its children see: all is read-only but ``ROOM`` and the share.

    ``directory`` becomes one in memory with the same files, and this process's own. ``places`` can be reached where
    they lie, and as ``place-N``. Raises OSError.
    """
    _unshare(_NEWNS | _NEWNET | _NEWIPC)
    _own_mounts()
    trees = [_tree(place) for place in (share, *places)]
    _attributes(trees[0], b"", _ATTR_NOSUID | _ATTR_NODEV)
    for tree, about in zip(trees[1:], [place.stat() for place in places], strict=True):
        if user is not None and about.st_mode & 0o005 != 0o005:
            # Closed to others: shown as if it were the guest's user's. Some file systems can't; then it stays closed.
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
    # Of its own processes only. Some containers don't allow that; the host's stays then, read-only.
    with contextlib.suppress(OSError):
        _mount(Path("proc"), Path("/proc"), b"proc", _RDONLY | _NOSUID | _NODEV | _NOEXEC)


def _plain_programs(directory: Path) -> None:
    """Copies without their set-user-ID bits in the place of programs that have them.

    In a user namespace what is root's seems to be the user's 65534, whom the guest's root would become by them.
    """
    (directory / "plain").mkdir()
    for where in {os.path.realpath(place) for place in ("/bin", "/sbin", "/usr/bin", "/usr/sbin")}:
        for entry in os.scandir(where):
            about = entry.stat(follow_symlinks=False)
            if stat.S_ISREG(about.st_mode) and about.st_mode & (stat.S_ISUID | stat.S_ISGID):
                copy = directory / "plain" / entry.name
                # One that the user may not read can't be read in the guest, either.
                with contextlib.suppress(PermissionError):
                    copy.write_bytes(Path(entry.path).read_bytes())
                    copy.chmod(0o755)
                    _mount(copy, Path(entry.path), None, _BIND)


def stay(directory: Path, share: Path, places: list[Path], user: int | None) -> None:
    """The same files in the same places where the host allows no other view. Raises OSError."""
    (directory / ROOM).mkdir(mode=0o700)
    # Through an open directory, so that none on the way has to be open to the guest's user.
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
    """Gives up what root may, for good; no program that is started can get it back. Raises OSError."""
    if user is not None:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    _call(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))


@contextlib.contextmanager
def lent(share: Path, user: int | None) -> Iterator[None]:
    """The share and all in it is the guest's user's for the time of the block, then its owners' again.

    At the end what is neither a file nor a directory is removed, and so are links that lead out of the share: a caller
    who reads what a guest wrote reads no file of the host.
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
    """Every entry below, by its name and the open directory that it is in; links are not followed."""
    for _, directories, files, opened in os.fwalk(top, topdown=False, follow_symlinks=False):
        for name in (*directories, *files):
            with contextlib.suppress(FileNotFoundError):
                yield name, opened, os.stat(name, dir_fd=opened, follow_symlinks=False)


class _Way:
    """Opens directories to others, in this view only: one that is closed is covered by one in memory."""

    def __init__(self) -> None:
        self.bound: list[Path] = []
        self._covers: list[Path] = []

    def to(self, path: Path) -> bool:
        """True if ``path`` is covered now, an empty directory."""
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
    """A user namespace, open, in which what is the owner's is the user's."""
    ready, go = os.pipe()
    done, end = os.pipe()
    child = os.fork()
    if child == 0:
        with contextlib.suppress(OSError):
            _unshare(_NEWUSER)
            # By the table of processes that /proc shows, which may not be ours.
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
    """A copy of the mounts from there on, not yet anywhere."""
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
