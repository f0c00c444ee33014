"""Additions: what a user builds into a kernel: patches, congestion controls written in C, and the names that scenarios
use for them."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path, PurePosixPath
from typing import Any

from sawtooth.errors import InputError, SawtoothError
from sawtooth.io.untrusted import read_bytes
from sawtooth.kernel.kernel import DEFAULT
from sawtooth.sanitize import plain

LARGEST_BYTES = 16 << 20
"""Largest size of a patch or source file, in bytes."""
FOLDER = "net/ipv4/sawtooth"
"""Where the user's files are put in the copy of the kernel source."""

_PATCHED = re.compile(r"(?m)^(?:---|\+\+\+) ([^\t\r\n]+?)[ \r]*(?:\t.*)?$")
_RENAMED = re.compile(r"(?m)^(?:rename|copy) (?:from|to) (\S+)$")
_BESIDE = "net/ipv4/Makefile"
_LINE = "\nobj-y += sawtooth/\n"
_NAME = re.compile(r"(?!\d+$|\.|.*\.\.)[A-Za-z0-9_+.-]{1,40}")
_CONTROL = re.compile(r"[A-Za-z0-9_-]{1,15}")
_FILE = re.compile(r"[A-Za-z0-9_-]{1,60}\.[ch]")


@dataclass(frozen=True)
class File:
    """A file with the content it had when it was read. Later changes to the file have no effect."""

    path: Path
    content: bytes

    @classmethod
    def read(cls, path: str | PathLike[str]) -> File:
        """Read a file. Raises InputError ``file-not-found``, ``file-unreadable`` or ``out-of-range``."""
        content = read_bytes(path, LARGEST_BYTES)
        if len(content) > LARGEST_BYTES:
            fix = "give a patch or a C file"
            raise InputError("out-of-range", f"it is larger than {LARGEST_BYTES >> 20} MiB", file=path, fix=fix)
        return cls(Path(path), content)

    @property
    def sha256(self) -> str:
        """SHA-256 of the content, in hexadecimal."""
        return hashlib.sha256(self.content).hexdigest()

    def describe(self) -> dict[str, Any]:
        """The file's name and digest as JSON values."""
        return {"file": self.path.name, "sha256": self.sha256}


@dataclass(frozen=True)
class Additions:
    """What a user adds to a kernel. ``name``: the name that scenarios use for the kernel; empty if it has none.
    ``patches``: applied to the source in order, with ``patch -p1``. ``modules``: C files with one congestion control
    each, and their headers. ``names``: maps a control's name in scenarios to its name in this kernel.
    """

    name: str = ""
    patches: tuple[File, ...] = ()
    modules: tuple[File, ...] = ()
    names: tuple[tuple[str, str], ...] = ()

    @classmethod
    def read(
        cls,
        *,
        name: str | None = None,
        patches: Sequence[str | PathLike[str]] = (),
        modules: Sequence[str | PathLike[str]] = (),
        names: Mapping[str, str] | None = None,
    ) -> Additions:
        """Read the files. Raises InputError: ``bad-name`` for a name that scenarios do not allow or a file name that
        make does not allow; ``duplicate-name``; and for a file ``file-not-found``, ``file-unreadable`` or
        ``out-of-range``.
        """
        if name is not None and (not _NAME.fullmatch(name) or name == DEFAULT):
            message = f'a kernel cannot be called "{plain(name, 60)}"'
            fix = (
                'use at most 40 letters, digits, "-", "_", "+" and ".", but no "." first, no "..", not digits alone, '
                f'and not "{DEFAULT}"'
            )
            raise InputError("bad-name", message, field="name", fix=fix)
        for ours, theirs in (names or {}).items():
            for word in (ours, theirs):
                if not _CONTROL.fullmatch(word):
                    message = f'a congestion control cannot be called "{plain(word, 60)}"'
                    fix = 'write it like bbr3=bbr: letters, digits, "_" and "-", at most 15'
                    raise InputError("bad-name", message, field="names", fix=fix)
        files = tuple(File.read(path) for path in modules)
        for file in files:
            if not _FILE.fullmatch(file.path.name):
                fix = 'name it like "tcp_mine.c": letters, digits, "_" and "-", then .c or .h'
                raise InputError("bad-name", "a file with this name cannot be built in", file=file.path, fix=fix)
        twice = {file.path.name for file in files if sum(file.path.stem == one.path.stem for one in files) > 1}
        if twice and len({file.path.name for file in files}) < len(files):
            message = f"two files are called {min(twice)}"
            raise InputError("duplicate-name", message, file=min(twice), fix="rename one of them")
        return cls(name or "", tuple(File.read(path) for path in patches), files, tuple(sorted((names or {}).items())))

    def __bool__(self) -> bool:
        return bool(self.name or self.patches or self.modules or self.names)

    @property
    def programs(self) -> tuple[File, ...]:
        """The C files among the modules, without the headers."""
        return tuple(file for file in self.modules if file.path.suffix == ".c")

    def files(self) -> set[str]:
        """The files of the source that the patches name."""
        lines = b"\n".join(file.content for file in self.patches).decode(errors="replace")
        named = {one.strip('"').split("/", 1)[-1] for one in _PATCHED.findall(lines)} | {*_RENAMED.findall(lines)}
        return {one for one in named if one != "dev/null" and ".." not in PurePosixPath(one).parts and one[:1] != "/"}

    def patched(self) -> str:
        """Digest of the patches; empty if there are none."""
        return _digest([file.sha256 for file in self.patches]) if self.patches else ""

    def digest(self) -> str:
        """Digest of all additions; empty if there are none."""
        files = [[(file.path.name, file.sha256) for file in group] for group in (self.patches, self.modules)]
        return _digest([self.name, *files, self.names]) if self else ""

    def patch(self, tree: Path) -> None:
        """Apply the patches to ``tree``. Raises SawtoothError ``patch-failed``, naming the patch, the file and the
        hunk."""
        for file in self.patches:
            command = ["patch", "-p1", "--forward", "--batch", "--no-backup-if-mismatch", "--reject-file=-"]
            done = subprocess.run(command, cwd=tree, input=file.content, capture_output=True)
            if done.returncode:
                said = (done.stdout + done.stderr).decode(errors="replace")
                fix = "make the patch for the source that is built, or name its source: sawtooth kernel build --source"
                raise InputError("patch-failed", _rejected(said), file=file.path, fix=fix)

    def lay(self, tree: Path) -> None:
        """Put exactly these modules into ``tree``. Unchanged files are not rewritten, so that make compiles only what
        changed."""
        folder, makefile = tree / FOLDER, tree / _BESIDE
        if not self.modules and not makefile.is_file():
            return
        text = makefile.read_text(encoding="utf-8") if makefile.is_file() else ""
        makefile.parent.mkdir(parents=True, exist_ok=True)
        _write(makefile, (text.replace(_LINE, "") + (_LINE if self.modules else "")).encode())
        if not self.modules:
            shutil.rmtree(folder, ignore_errors=True)
            return
        folder.mkdir(exist_ok=True)
        wanted = {file.path.name: file.content for file in self.modules}
        objects = "".join(f"obj-y += {PurePosixPath(name).stem}.o\n" for name in sorted(wanted) if name.endswith(".c"))
        wanted["Makefile"] = f"ccflags-y := -I$(srctree)/net/ipv4\n{objects}".encode()
        for path in folder.glob("*.[ch]"):
            if path.name not in wanted:
                path.unlink()
        for name, content in wanted.items():
            _write(folder / name, content)

    def described(self, found: Sequence[str], tree: Path) -> dict[str, Any]:
        """The additions as the kernel's description stores them. ``found``: the congestion controls that the kernel
        lists when it boots.

        Raises SawtoothError ``build-failed`` if a C file registered no control; InputError ``unknown-name`` if a name
        refers to no control, ``conflict`` if it hides another control.
        """
        linux = {name for path in (tree / "net/ipv4").glob("tcp_*.c") for name in _named(path.read_bytes())}
        fresh = set(found) - linux
        if len(fresh) < len(self.programs):
            files = ", ".join(file.path.name for file in self.programs)
            message = f"{files}: registered {', '.join(sorted(fresh)) or 'no congestion control'} at the boot"
            if taken := {name for file in self.programs for name in _named(file.content)} & linux:
                message += f"; {', '.join(sorted(taken))} is Linux's own"
            fix = "register each in module_init, under a name (.name, at most 15 characters) that Linux does not use"
            raise SawtoothError("build-failed", message, fix=fix)
        for ours, theirs in self.names:
            if theirs not in found:
                message = f"{ours}={theirs}: this kernel has no {theirs}"
                raise InputError("unknown-name", message, field="names", fix=f"name one of: {', '.join(found)}")
            if ours in found and ours not in dict(self.names).values():
                message = f"{ours}={theirs}: this kernel has a {ours} of its own, which no scenario could name"
                raise InputError("conflict", message, field="names", fix="choose another name")
        modules = [
            file.describe() | {"controls": sorted(fresh.intersection(_named(file.content)))} for file in self.modules
        ]
        patches = [file.describe() for file in self.patches]
        description = {"name": self.name, "patches": patches, "modules": modules, "names": dict(self.names)}
        return {key: value for key, value in description.items() if value}


def _named(source: bytes) -> set[str]:
    """The names under which a C file registers its controls."""
    return {name.decode() for name in re.findall(rb'\.name\s*=\s*"([A-Za-z0-9_-]{1,15})"', source)}


def _digest(parts: Sequence[Any]) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:12]


def _write(path: Path, content: bytes) -> None:
    if not path.is_file() or path.read_bytes() != content:
        path.write_bytes(content)


def _rejected(said: str) -> str:
    """The first hunk that failed, from the output of ``patch``."""
    file = ""
    for line in said.splitlines():
        if found := re.match(r"(?:checking|patching) file '?([^']*?)'?(?: \(.*)?$", line):
            file = found[1]
        elif found := re.match(r"Hunk #(\d+) (?:FAILED|ignored) at (\d+)", line):
            rest = re.search(r"\d+ out of \d+ hunks? (?:FAILED|ignored)", said)
            return f"hunk {found[1]} does not fit {file}, line {found[2]}" + (f" ({rest[0]})" if rest else "")
        elif re.match(r"can't find file to patch|.*Reversed \(or previously applied\)|.*[Mm]alformed|.*garbage", line):
            return f"{plain(line)}{f' ({file})' if file else ''}"
    last = [line for line in said.splitlines() if line.strip()][-1:] or ["no reason given"]
    return f"patch says: {plain(last[0])}"
