"""Kernel: a user-mode kernel in the cache, and how to find one."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from sawtooth.errors import SawtoothError
from sawtooth.storage import read_json, writing
from sawtooth.temporary import cache

DESCRIPTION = "kernel.json"
BINARY = "linux"
_ADDED = ("name", "patches", "modules", "names")
DEFAULT_HZ = 250
"""What Debian and Ubuntu build with; it sets the grain of TCP's timers."""


@dataclass(frozen=True)
class Kernel:
    """A user-mode kernel that was built and has booted.

    ``digest`` is of the binary itself, for a run's provenance; ``source`` of what it was built from; ``recipe`` of the
    configuration and edits; ``algorithms`` is what it answered when asked for its congestion controls, sorted;
    ``built`` is the UTC time, ``build_s`` the seconds that building took; ``source_sha256`` the whole digest of a
    tarball (empty for a directory), ``source_checked`` what of the source was checked, in words.

    What a user had built in: ``patches`` and ``modules``, each with its file's name and ``sha256``, modules with the
    ``controls`` that they register; ``names``, what scenarios call a control and what this kernel calls it; ``name``,
    what scenarios call the kernel, empty for none.
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
    name: str = ""
    patches: tuple[Mapping[str, Any], ...] = ()
    modules: tuple[Mapping[str, Any], ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_plain(self) -> bool:
        """Whether it is Linux as its source has it, and no scenario names it."""
        return not (self.name or self.patches or self.modules or self.names)

    @property
    def controls(self) -> tuple[str, ...]:
        """What scenarios may ask it for, sorted: its controls, those that ``names`` gives another name under that."""
        return tuple(sorted({*self.algorithms} - {*self.names.values()} | {*self.names}))

    def registered(self, sha256: str) -> tuple[str, ...]:
        """The controls of a module that was built in, by its file's digest."""
        return tuple(name for file in self.modules if file["sha256"] == sha256 for name in file["controls"])

    def own(self, control: str) -> str:
        """What this kernel calls a control of a scenario."""
        return self.names.get(control, control)

    def remove(self) -> None:
        """From the cache. Guests that run on it go on. Raises SawtoothError ``unwritable-output``."""
        with writing(self.path.parent):
            # First what makes it one.
            (self.path.parent / DESCRIPTION).unlink()
            shutil.rmtree(self.path.parent)

    def describe(self) -> dict[str, Any]:
        """As JSON values; what a user had built in only where there is some."""
        told = {**asdict(self), "path": str(self.path), "algorithms": list(self.algorithms)}
        return {key: value for key, value in told.items() if value or key not in _ADDED}


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


def everything() -> list[Kernel]:
    """All kernels in the cache, also those that another version of sawtooth built, the latest first."""
    found = [load(path.parent) for path in cache_directory().glob(f"*/{DESCRIPTION}")]
    return sorted((kernel for kernel in found if kernel is not None), key=lambda kernel: kernel.built, reverse=True)


def installed() -> list[Kernel]:
    """All kernels in the cache that this version of sawtooth would build, the latest first."""
    current = recipe()
    return [kernel for kernel in everything() if kernel.recipe == current]


def find(hz: int = DEFAULT_HZ, name: str | None = None) -> Kernel:
    """The kernel built last with that HZ: of that name, else one that is Linux as its source has it.

    Raises SawtoothError ``kernel-missing``, naming the command to run.
    """
    alike = [kernel for kernel in installed() if (kernel.is_plain if name is None else kernel.name == name)]
    for kernel in alike:
        if kernel.hz == hz:
            return kernel
    called = "user-mode kernel" if name is None else f'kernel "{name}"'
    there = f" (there is HZ {_listed(kernel.hz for kernel in alike)})" if alike else ""
    message = f"no {called} with HZ {hz} is built{there}"
    command = "sawtooth kernel build" + ("" if hz == DEFAULT_HZ else f" --hz {hz}")
    if name is None:
        fix = f"build it, a few minutes: {command}"
    elif any(kernel.name == name for kernel in everything()):
        fix = f"build it again with its other options, and these: {command} --name {name}"
    else:
        names = sorted({kernel.name for kernel in installed() if kernel.name})
        has = f"there is {', '.join(names)}; or " if names else ""
        fix = f"{has}build it: {command} --name {name} --with FILE.c, or --patch FILE"
    raise SawtoothError("kernel-missing", message, file=cache_directory(), fix=fix)


def find_with(sources: Mapping[str, str], hz: int = DEFAULT_HZ, name: str | None = None) -> Kernel:
    """The kernel built last with that HZ, and of that name where there is one, which has these files built in as they
    are: ``sources`` are their SHA-256 by path. Raises SawtoothError ``kernel-missing``, naming the command to run.
    """
    for kernel in installed():
        built_in = {file["sha256"] for file in kernel.modules}
        if kernel.hz == hz and name in (None, kernel.name) and built_in.issuperset(sources.values()):
            return kernel
    called = f'kernel "{name}"' if name is not None else "user-mode kernel"
    options = "".join(f" --with {path}" for path in sources) + (f" --name {name}" if name is not None else "")
    command = "sawtooth kernel build" + ("" if hz == DEFAULT_HZ else f" --hz {hz}") + options
    message = f"no {called} with HZ {hz} has {', '.join(sources)} built in, as it is now"
    raise SawtoothError("kernel-missing", message, file=cache_directory(), fix=f"build it: {command}")


def having(control: str) -> list[str]:
    """The names of kernels that have a control which scenarios call so."""
    return sorted({kernel.name for kernel in installed() if kernel.name and control in kernel.controls})


def _listed(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, sorted({*numbers})))


def load(directory: Path) -> Kernel | None:
    """The kernel of a directory of the cache; None when it is not a whole one of this format."""
    try:
        about = read_json(directory / DESCRIPTION)
        about |= {key: tuple(about[key]) for key in ("algorithms", "patches", "modules") if key in about}
        kernel = Kernel(path=directory / BINARY, **about)
    except (SawtoothError, AttributeError, KeyError, TypeError):
        return None
    return kernel if os.access(kernel.path, os.X_OK) else None
