"""What building a kernel needs from the system: tools, headers, disk space. Checked before the build starts."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from sawtooth.errors import SawtoothError

SPACE_BYTES = 2_500_000_000
"""Disk space for a build: 1.5 GB of unpacked source, the compiler's output, and a margin."""

Tell = Callable[[str], None]

TOOLS = {
    "tar": "tar",
    "xz": "xz-utils",
    "make": "make",
    "gcc": "gcc",
    "ld": "binutils",
    "strip": "binutils",
    "flex": "flex",
    "bison": "bison",
    "bc": "bc",
    "perl": "perl",
    "patch": "patch",
}
"""Each required program and the Debian package that contains it."""

HEADERS = {"libelf.h": "libelf-dev", "openssl/opensslv.h": "libssl-dev", "stdio.h": "libc6-dev"}


def missing() -> list[str]:
    """The Debian packages that are missing."""
    found = {package for tool, package in TOOLS.items() if shutil.which(tool) is None}
    if shutil.which("gcc") is not None:
        found |= {package for header, package in HEADERS.items() if not _compiles(header)}
    else:
        found |= set(HEADERS.values())
    return sorted(found)


def check(tell: Tell) -> None:
    """Check the tools. If some are missing, install them when run as root; otherwise raise SawtoothError
    ``tool-missing``, naming the packages."""
    packages = missing()
    if packages:
        tell(f"installing {' '.join(packages)}")
        install(packages)


def install(packages: Sequence[str]) -> None:
    """Install Debian packages. Raises SawtoothError ``tool-missing`` if that is not possible."""
    command = ["apt-get", "install", "-y", "--no-install-recommends", *packages]
    shown = " ".join(command)
    message = f"these system packages are missing: {' '.join(packages)}"
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise SawtoothError("tool-missing", message, fix=f"run as root: {shown}")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"}
    for attempt in (command, ["apt-get", "update", "-q"], command):
        done = subprocess.run(attempt, capture_output=True, text=True, env=environment, stdin=subprocess.DEVNULL)
        if done.returncode == 0 and attempt is command:
            return
    said = [line for line in done.stderr.splitlines() if line.startswith("E:")][:1]
    reason = f"; installing them failed: {said[0]}" if said else ""
    raise SawtoothError("tool-missing", message + reason, fix=f"install them by hand: {shown}")


def check_space(directory: Path, present_bytes: int = 0) -> None:
    """Raises SawtoothError ``disk-full`` if the disk of ``directory`` has too little space for a build."""
    free = shutil.disk_usage(directory).free
    needed = max(0, SPACE_BYTES - present_bytes)
    if free < needed:
        message = f"building a kernel needs {needed / 1e9:.1f} GB, and {free / 1e9:.1f} GB are free"
        fix = "free some space, or set XDG_CACHE_HOME to a directory on a larger disk"
        raise SawtoothError("disk-full", message, file=directory, fix=fix)


def _compiles(header: str) -> bool:
    command = ["gcc", "-E", "-x", "c", "-", "-o", os.devnull]
    done = subprocess.run(command, input=f"#include <{header}>\n", capture_output=True, text=True)
    return done.returncode == 0
