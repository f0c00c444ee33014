"""Source: locate the kernel's source and make the edited copy that is built. The original is never changed."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from sawtooth.errors import InputError, SawtoothError
from sawtooth.io.atomic_io import ASIDE, checksum, write_bytes, writing
from sawtooth.kernel import prerequisites
from sawtooth.kernel.edits import EDITS, PACKAGE, edit
from sawtooth.kernel.history import History

PACKAGED = Path("/usr/src/linux-source-6.12.tar.xz")

_LEFT_OUT = ("Documentation/*/*", "tools/testing/*")
"""Many files that this build never reads."""


@dataclass(frozen=True)
class Source:
    """A source: a tarball, a directory or a commit of a git repository; a digest that changes with its content, and the
    full SHA-256 of a tarball. ``repository``: a digest that all commits of the repository share."""

    path: Path
    digest: str
    sha256: str = ""
    commit: str = ""
    repository: str = ""


class Patches(Protocol):
    """What a user changes in the source: ``Additions``."""

    def files(self) -> set[str]:
        """The files that it changes, below the source's directory."""

    def patch(self, tree: Path) -> None:
        """Change them."""

    def patched(self) -> str:
        """Digest of the changes."""


_ORIGINALS = ".sawtooth"
"""Directory in a copy of the source with the files that patches and edits change, as they were."""


def locate(given: Path | str | None = None, commit: str | None = None) -> Source:
    """The source to build from: the given one, otherwise Debian's package, which is installed if run as root.
    ``commit``: of the git repository ``given``.

    Raises SawtoothError: ``file-not-found``, ``bad-source``, ``tool-missing`` naming the package, ``unknown-name`` for
    a commit, and ``bad-usage`` for one without a repository.
    """
    if commit is not None:
        if given is None:
            fix = "name the repository, too: sawtooth kernel build --source DIRECTORY --commit COMMIT --name NAME"
            raise InputError("bad-usage", "a commit needs its repository", field="--commit", fix=fix)
        history = History.open(given)
        found = history.resolve(commit)
        return Source(history.path, history.contents(found)[:16], commit=found, repository=history.digest)
    if given is None:
        if not PACKAGED.exists():
            prerequisites.install([PACKAGE])
        return _tarball(PACKAGED)
    path = Path(given).absolute()
    if not path.exists():
        fix = f"name a tarball or directory of a kernel's source, or install the package {PACKAGE}"
        raise InputError("file-not-found", "there is no kernel source", file=path, fix=fix)
    if path.is_dir():
        _check(path, path)
        return Source(path, _directory_digest(path))
    return _tarball(path)


def has_patches(tree: Path, patches: str) -> bool | None:
    """Whether a copy of the source has exactly these patches, by their digest. None: there is no copy to change."""
    try:
        return (tree / _ORIGINALS / "patched").read_text(encoding="utf-8") == _mark(patches)
    except OSError:
        return False if (tree / _ORIGINALS / "names").is_file() else None


def _mark(patches: str) -> str:
    """What the file that is written last contains. An empty or half-written one is not equal to it."""
    return f"patches: {patches or 'none'}\n"


def unpack(source: Source, tree: Path, hz: int, patches: Patches | None = None) -> None:
    """Create ``tree``, a patched and edited copy of the source. It only appears when it is complete.

    Raises SawtoothError: ``bad-source``, ``disk-full``, ``unwritable-output``, and the errors of ``patches``.
    """
    aside = tree.with_name(tree.name + ASIDE)
    shutil.rmtree(aside, ignore_errors=True)
    with writing(aside):
        aside.mkdir(parents=True)
        if source.path.is_dir():
            _copy(source.path, aside)
        else:
            _extract(source.path, aside)
            if _tarball(source.path) != source:
                raise InputError(
                    "bad-source", "changed while it was unpacked", file=source.path, fix="run the same command again"
                )
        _check(aside, source.path)
        change(aside, source.path, hz, patches)
        os.rename(aside, tree)


def change(tree: Path, shown: Path, hz: int, patches: Patches | None = None) -> None:
    """Patch and edit a copy of the source, which may have had other patches before. Files that stay the same are not
    written, so that make compiles only what changed. ``shown``: the source that errors name.

    Raises SawtoothError: ``bad-source``, ``disk-full``, ``unwritable-output``, and the errors of ``patches``.
    """
    originals, names = tree / _ORIGINALS / "files", tree / _ORIGINALS / "names"
    known = names.read_text(encoding="utf-8").splitlines() if names.is_file() else []
    wanted = {one.file for one in EDITS} | (set() if patches is None else patches.files())
    fresh = tree / _ORIGINALS / "fresh"
    with writing(tree):
        for file in sorted(wanted.difference(known)):
            _copy_file(tree / file, originals / file)
        known = sorted(wanted.union(known))
        (tree / _ORIGINALS / "patched").unlink(missing_ok=True)
        names.parent.mkdir(exist_ok=True)
        write_bytes(names, "\n".join(known).encode())
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir()
        for file in known:
            _copy_file(originals / file, fresh / file)
        if patches is not None:
            patches.patch(fresh)
        edit(fresh, shown, hz, number(tree))
        for file in known:
            new, old = fresh / file, tree / file
            if not new.is_file():
                if old.is_file():
                    old.unlink()
            elif not old.is_file() or old.read_bytes() != new.read_bytes():
                _copy_file(new, old)
        write_bytes(tree / _ORIGINALS / "patched", _mark("" if patches is None else patches.patched()).encode())


def _copy_file(old: Path, new: Path) -> None:
    """With a new time, by which make sees it."""
    if old.is_file():
        new.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(old, new)


def check_out(source: Source, tree: Path, hz: int, patches: Patches | None = None, lock: int | None = None) -> None:
    """Make ``tree`` a patched and edited copy of the source's commit. It may have been one of another commit before.
    Files that stay the same keep their times, so that make compiles only what changed. ``lock``: as for
    ``History.check_out``.

    Raises SawtoothError: ``bad-source``, ``disk-full``, ``unwritable-output``, and the errors of ``patches``.
    """
    names = tree / _ORIGINALS / "names"
    with writing(tree):
        names.parent.mkdir(parents=True, exist_ok=True)
        # git restores what patches and edits changed.
        changed = names.read_text(encoding="utf-8").splitlines() if names.is_file() else []
        before = {
            file: ((tree / file).read_bytes(), (tree / file).stat()) for file in changed if (tree / file).is_file()
        }
        index = names.with_name("index")
        # Left by a checkout that was interrupted: whoever changes the tree holds the lock of the build.
        index.with_name("index.lock").unlink(missing_ok=True)
        History(source.path).check_out(source.commit, tree, index, lock)
        _check(tree, source.path)
        wanted = sorted({one.file for one in EDITS} | (set() if patches is None else patches.files()))
        write_bytes(names, "\n".join(wanted).encode())
        if patches is not None:
            patches.patch(tree)
        edit(tree, source.path, hz, number(tree))
        for file, (content, status) in before.items():
            if (tree / file).is_file() and (tree / file).read_bytes() == content:
                os.utime(tree / file, ns=(status.st_atime_ns, status.st_mtime_ns))


def version(tree: Path) -> str:
    """The version from the top Makefile, for example 6.12.117."""
    text = (tree / "Makefile").read_text(encoding="utf-8", errors="replace")
    parts = dict(re.findall(r"(?m)^(VERSION|PATCHLEVEL|SUBLEVEL|EXTRAVERSION)[ \t]*=[ \t]*(\S*)[ \t]*$", text))
    number = ".".join(parts[name] for name in ("VERSION", "PATCHLEVEL", "SUBLEVEL") if parts.get(name))
    return f"{number}{parts.get('EXTRAVERSION', '')}"


def number(tree: Path) -> tuple[int, ...]:
    """The first two numbers of the version, for example (6, 12)."""
    return tuple(int(part) for part in re.findall(r"\d+", version(tree))[:2])


def _extract(tarball: Path, into: Path) -> None:
    left_out = [f"--exclude=*/{pattern}" for pattern in _LEFT_OUT]
    command = ["tar", "-xf", str(tarball), "-C", str(into), "--strip-components=1", "--no-same-owner", *left_out]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"})
    if done.returncode:
        if "No space left" in done.stderr:
            raise _full(into)
        said = done.stderr.strip().splitlines()[:1] or [f"tar ended with status {done.returncode}"]
        raise InputError("bad-source", f"cannot be unpacked: {said[0]}", file=tarball, fix=_FIX)


def _copy(directory: Path, into: Path) -> None:
    def left_out(where: str, names: list[str]) -> list[str]:
        return [name for name in names if name == ".git" or name.endswith((".o", ".a", ".cmd"))]

    try:
        shutil.copytree(directory, into, symlinks=True, ignore=left_out, dirs_exist_ok=True)
    except shutil.Error as error:
        first = error.args[0][0]
        if "No space left" in first[2]:
            raise _full(into) from error
        fix = "make it readable, or name another directory"
        raise InputError("bad-source", f"cannot be copied: {first[2]}", file=first[0], fix=fix) from error
    for stale in (".config", "include/config", "include/generated", "arch/um/include/generated"):
        where = into / stale
        shutil.rmtree(where, ignore_errors=True) if where.is_dir() else where.unlink(missing_ok=True)


def _full(into: Path) -> SawtoothError:
    fix = "free some space, then run the same command again"
    return SawtoothError("disk-full", "no space is left for the kernel's source", file=into, fix=fix)


_FIX = "name the tarball or directory of a Linux kernel from 5.10 on"


def _check(tree: Path, shown: Path) -> None:
    if not (tree / "arch" / "um" / "Kconfig").is_file() or not (tree / "Makefile").is_file():
        raise InputError("bad-source", "is not the source of a Linux kernel", file=shown, fix=_FIX)
    if number(tree) < (5, 10):
        raise InputError("bad-source", f"is kernel {version(tree)}, too old", file=shown, fix=_FIX)


def _tarball(path: Path) -> Source:
    try:
        sha256 = checksum(path)
        return Source(path, sha256[:16], sha256)
    except OSError as error:
        fix = "make it readable, or name another source"
        raise InputError("file-unreadable", f"cannot be read: {error.strerror}", file=path, fix=fix) from error


def _directory_digest(directory: Path) -> str:
    """Digest of the names, sizes and modification times; reading all contents would take too long."""
    digest = hashlib.sha256()
    for path, status in sorted(_walk(str(directory))):
        digest.update(f"{path}\0{status.st_size}\0{status.st_mtime_ns}\n".encode(errors="surrogateescape"))
    return digest.hexdigest()[:16]


def _walk(directory: str) -> Iterator[tuple[str, os.stat_result]]:
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if entry.name != ".git":
                    yield from _walk(entry.path)
            elif entry.is_file(follow_symlinks=False) and not entry.name.endswith((".o", ".a", ".cmd")):
                yield entry.path, entry.stat()
