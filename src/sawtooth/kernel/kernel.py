"""Kernel: a user-mode kernel in the cache, and how to find one."""

from __future__ import annotations

import hashlib
import os
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from sawtooth.errors import SawtoothError
from sawtooth.storage import read_json
from sawtooth.temporary import cache

DESCRIPTION = "kernel.json"
BINARY = "linux"
DEFAULT_HZ = 250
"""What Debian and Ubuntu build with; it sets the grain of TCP's timers."""


@dataclass(frozen=True)
class Kernel:
    """A user-mode kernel that was built and has booted.

    ``digest`` is of the binary itself, for a run's provenance; ``source`` of what it was built from; ``recipe`` of the
    configuration and edits; ``algorithms`` is what it answered when asked for its congestion controls, sorted;
    ``built`` is the UTC time, ``build_s`` the seconds that building took; ``source_sha256`` the whole digest of a
    tarball (empty for a directory), ``source_checked`` what of the source was checked, in words.
    """

    path: Path
    version: str
    hz: int
    algorithms: tuple[str, ...]
    digest: str
    source: str
    source_digest: str
    recipe: str
    built: str
    build_s: float
    source_sha256: str = ""
    source_checked: str = ""

    def describe(self) -> dict[str, Any]:
        """As JSON values."""
        return {**asdict(self), "path": str(self.path), "algorithms": list(self.algorithms)}


def cache_directory() -> Path:
    """Where kernels lie: ``$XDG_CACHE_HOME/sawtooth/kernel``, by default under ``~/.cache``."""
    return cache() / "kernel"


def configuration() -> str:
    """The configuration fragment that all kernels are built with."""
    return data("guest.config")


def data(name: str) -> str:
    """A text file that is shipped for the kernel."""
    return (files("sawtooth") / "data" / "kernel" / name).read_text(encoding="utf-8")


def recipe() -> str:
    """Digest of everything of ours that a kernel is made of: configuration and edits."""
    from sawtooth.kernel.source import EDITS

    return hashlib.sha256((configuration() + repr(EDITS)).encode()).hexdigest()[:12]


def installed() -> list[Kernel]:
    """All kernels in the cache that this version of sawtooth would build, the latest first."""
    current = recipe()
    found = [load(path.parent) for path in cache_directory().glob(f"*/{DESCRIPTION}")]
    kept = [kernel for kernel in found if kernel is not None and kernel.recipe == current]
    return sorted(kept, key=lambda kernel: kernel.built, reverse=True)


def find(hz: int = DEFAULT_HZ) -> Kernel:
    """The kernel built last with that HZ. Raises SawtoothError ``kernel-missing``, naming the command to run."""
    kernels = installed()
    for kernel in kernels:
        if kernel.hz == hz:
            return kernel
    others = sorted({kernel.hz for kernel in kernels})
    there = f" (there is HZ {', '.join(map(str, others))})" if others else ""
    command = "sawtooth kernel build" + ("" if hz == DEFAULT_HZ else f" --hz {hz}")
    message = f"no user-mode kernel with HZ {hz} is built{there}"
    raise SawtoothError("kernel-missing", message, file=cache_directory(), fix=f"build it, a few minutes: {command}")


def load(directory: Path) -> Kernel | None:
    """The kernel of a directory of the cache; None when it is not a whole one of this format."""
    try:
        about = read_json(directory / DESCRIPTION)
        kernel = Kernel(path=directory / BINARY, algorithms=tuple(about.pop("algorithms")), **about)
    except (SawtoothError, AttributeError, KeyError, TypeError):
        return None
    return kernel if os.access(kernel.path, os.X_OK) else None
