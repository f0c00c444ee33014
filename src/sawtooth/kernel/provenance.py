"""Provenance: the origin of a kernel's source, and which checks it passed."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
import subprocess
import tempfile
from pathlib import Path

from sawtooth.errors import InputError, SawtoothError
from sawtooth.io.atomic_io import checksum

ARCHIVES = Path("/var/cache/apt/archives")
"""Where apt keeps downloaded packages, if it is configured to keep them."""


def check(path: Path, sha256: str) -> str:
    """Check a source that has this SHA-256 (empty for a directory). Returns the checks in words, for ``kernel info``.

    A file installed by the package manager must be writable by root only, and must match the package manager's record.
    If the package is still in apt's archive, it must have the SHA-256 that apt's lists give for its version, and
    contain that file. Signatures are checked by apt: it verifies its lists when it downloads them, and packages by the
    lists. Raises InputError ``bad-source`` if a check fails.
    """
    if not sha256:
        return "nothing: a directory"
    package = _owner(path)
    if package is None:
        return "nothing: compare its SHA-256 with what its publisher names"
    _only_roots(path)
    version = _ask("dpkg-query", "--show", "--showformat=${Version}", package)
    recorded = re.search(rf"(?m)^([0-9a-f]{{32}})  {re.escape(str(path)[1:])}$", _sums(package))
    if recorded is None or recorded[1] != _md5(path):
        raise _wrong(path, f"it is not the file that the package {package} {version} installed")
    return f"as {package} {version} installed it (MD5 on dpkg's record){_archived(path, package, version, sha256)}"


def _archived(path: Path, package: str, version: str, sha256: str) -> str:
    """Whether the package file is in apt's archive and matches apt's lists."""
    found = sorted(ARCHIVES.glob(f"{package}_{version.replace(':', '%3a')}_*.deb"))
    listed = re.search(r"(?m)^SHA256: ([0-9a-f]{64})$", _ask("apt-cache", "show", f"{package}={version}"))
    if not found or listed is None:
        return ""
    if checksum(found[0]) != listed[1]:
        raise _wrong(found[0], "it is not the package that apt's lists name")
    with tempfile.TemporaryFile() as held:
        command = ["dpkg-deb", "--fsys-tarfile", str(found[0])]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as archive:
            subprocess.run(["tar", "-xOf", "-", f".{path}"], stdin=archive.stdout, stdout=held, check=False)
        held.seek(0)
        if hashlib.file_digest(held, "sha256").hexdigest() != sha256:
            raise _wrong(path, f"it is not the file of the package {found[0]}")
    return ", and as in the package, whose SHA-256 is the one in apt's lists"


def _owner(path: Path) -> str | None:
    """The package that installed the file; None if no package manager knows it."""
    said = _ask("dpkg-query", "--search", str(path)) if shutil.which("dpkg-query") else ""
    found = re.search(rf"(?m)^([^,:\s]+)(?::\S+)?: {re.escape(str(path))}$", said)
    return None if found is None else found[1]


def _sums(package: str) -> str:
    return _ask("dpkg-query", "--control-show", package, "md5sums")


def _only_roots(path: Path) -> None:
    for part in (path, *path.parents):
        about = part.stat()
        if about.st_uid != 0 or about.st_mode & stat.S_IWOTH:
            raise _wrong(part, "others than root may change it")


def _md5(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def _ask(*command: str) -> str:
    """Output of a package manager's command; empty if it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"})
    except FileNotFoundError:
        return ""
    return done.stdout if done.returncode == 0 else ""


def _wrong(path: Path, message: str) -> SawtoothError:
    fix = "install the package again (apt-get install --reinstall), or name a tarball that you trust (--source)"
    return InputError("bad-source", message, file=path, fix=fix)
