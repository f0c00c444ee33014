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
from sawtooth.io.atomic_io import read_json, writing
from sawtooth.io.tempdirs import cache

DESCRIPTION = "kernel.json"
BINARY = "linux"
DEFAULT = "default"
"""The name of the kernel without additions. No other kernel can have it."""
_ADDED = ("name", "patches", "modules", "names")
DEFAULT_HZ = 250
"""Debian and Ubuntu build with this HZ. It sets the resolution of TCP's timers."""


@dataclass(frozen=True)
class Kernel:
    """A user-mode kernel that was built and has booted.

    ``digest``: of the binary, recorded in a run's provenance. ``source``: digest of the source. ``recipe``: digest of
    the configuration and edits. ``algorithms``: the congestion controls that the kernel lists, sorted. ``built``: UTC
    time of the build. ``build_s``: seconds that it took. ``source_sha256``: SHA-256 of the tarball (empty for a
    directory). ``source_checked``: which checks the source passed, in words.

    Additions of the user: ``patches`` and ``modules``, each with the name of its file and its ``sha256``, modules also
    with the ``controls`` that they register; ``names``, which maps a control's name in scenarios to its name in this
    kernel; ``name``, the kernel's name in scenarios, empty if it has none.
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

    @classmethod
    def described(cls, about: Mapping[str, Any]) -> Kernel:
        """The kernel of ``describe``'s values, whether it is still in the cache or not. Raises TypeError or KeyError
        for others."""
        lists = {key: tuple(about[key]) for key in ("algorithms", "patches", "modules") if key in about}
        return cls(**{**about, **lists, "path": Path(about["path"])})

    @property
    def is_plain(self) -> bool:
        """Whether the kernel has neither additions nor its own name."""
        return not (self.name or self.patches or self.modules or self.names)

    @property
    def controls(self) -> tuple[str, ...]:
        """The congestion controls that scenarios can ask for, sorted. A control in ``names`` is listed under its name
        in scenarios."""
        return tuple(sorted({*self.algorithms} - {*self.names.values()} | {*self.names}))

    def registered(self, sha256: str) -> tuple[str, ...]:
        """The controls that a built-in module registers. ``sha256`` is the digest of the module's file."""
        return tuple(name for file in self.modules if file["sha256"] == sha256 for name in file["controls"])

    def own(self, control: str) -> str:
        """This kernel's own name for a control of a scenario."""
        return self.names.get(control, control)

    def remove(self) -> None:
        """Remove the kernel from the cache. Running guests are not affected. Raises SawtoothError
        ``unwritable-output``."""
        with writing(self.path.parent):
            # Remove the description first: without it, the directory does not count as a kernel.
            (self.path.parent / DESCRIPTION).unlink()
            shutil.rmtree(self.path.parent)

    def describe(self) -> dict[str, Any]:
        """The kernel as JSON values. Additions are included only if there are any."""
        values = {**asdict(self), "path": str(self.path), "algorithms": list(self.algorithms)}
        return {key: value for key, value in values.items() if value or key not in _ADDED}


def cache_directory() -> Path:
    """The directory of the kernels: ``$XDG_CACHE_HOME/sawtooth/kernel``, by default ``~/.cache/sawtooth/kernel``."""
    return cache() / "kernel"


def configuration() -> str:
    """The configuration fragment that all kernels are built with."""
    return data("guest.config")


def data(name: str) -> str:
    """The text of a file that sawtooth ships for building kernels."""
    return (files("sawtooth") / "data" / "kernel" / name).read_text(encoding="utf-8")


def recipe() -> str:
    """Digest of sawtooth's part of a kernel build: configuration and edits."""
    from sawtooth.kernel.edits import EDITS

    return hashlib.sha256((configuration() + repr(EDITS)).encode()).hexdigest()[:12]


def everything() -> list[Kernel]:
    """All kernels in the cache, newest first, including those built by other versions of sawtooth."""
    found = [load(path.parent) for path in cache_directory().glob(f"*/{DESCRIPTION}")]
    return sorted((kernel for kernel in found if kernel is not None), key=lambda kernel: kernel.built, reverse=True)


def installed() -> list[Kernel]:
    """The kernels in the cache that this version of sawtooth would build in the same way, newest first."""
    current = recipe()
    return [kernel for kernel in everything() if kernel.recipe == current]


def find(hz: int = DEFAULT_HZ, name: str | None = None) -> Kernel:
    """The newest kernel with this HZ and ``name``. Without ``name``, or with "default": the newest without additions.

    Raises SawtoothError ``kernel-missing``, with the command to run.
    """
    name = None if name == DEFAULT else name
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
        fix = f"{has}build it: {command} --name {name} with --source PATH, --with FILE.c or --patch FILE"
    raise SawtoothError("kernel-missing", message, file=cache_directory(), fix=fix)


def find_with(sources: Mapping[str, str], hz: int = DEFAULT_HZ, name: str | None = None) -> Kernel:
    """The newest kernel with this HZ (and ``name``, if given) that has exactly these files built in. ``sources``:
    SHA-256 by path. Raises SawtoothError ``kernel-missing``, with the command to run."""
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
    """Names of the kernels that have a control with this name in scenarios."""
    return sorted({kernel.name for kernel in installed() if kernel.name and control in kernel.controls})


def _listed(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, sorted({*numbers})))


def load(directory: Path) -> Kernel | None:
    """The kernel in a directory of the cache; None if it is incomplete or has another format."""
    try:
        kernel = Kernel.described(read_json(directory / DESCRIPTION) | {"path": directory / BINARY})
    except (SawtoothError, AttributeError, KeyError, TypeError):
        return None
    return kernel if os.access(kernel.path, os.X_OK) else None
