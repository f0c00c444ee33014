"""Compiler: the machine's, which makes a shared library of a module's sources, kept in the user's cache.

The library's name is the digest of all that it was made of: what the preprocessor gives for the sources and ours, the
compiler, its options.
"""

from __future__ import annotations

import functools
import hashlib
import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from sawtooth.errors import InputError, SawtoothError
from sawtooth.module import complaints, interface, sources
from sawtooth.storage import write_bytes, writing
from sawtooth.temporary import cache, directory

NAMES = ("cc", "gcc", "clang")
_TIMEOUT_S = 120.0
_OPTIONS = (
    "-std=gnu11",
    "-O2",
    "-g",
    "-fPIC",
    # What Linux's own Makefile asks for, where it changes what a source means.
    "-funsigned-char",
    "-fno-strict-aliasing",
    "-fwrapv",
    "-fno-common",
    "-fno-delete-null-pointer-checks",
    "-fgnu89-inline",
    "-Werror=implicit-function-declaration",
    "-Werror=implicit-int",
    "-Werror=int-conversion",
    "-Werror=incompatible-pointer-types",
    "-Werror=return-type",
)
_LINK = ("-shared", "-Wl,-Bsymbolic", "-Wl,-z,defs")


def build(given: Sequence[str], hz: int) -> Path:
    """The library of these sources, for hosts with that tick; compiled where it is not in the cache.

    Raises SawtoothError ``file-not-found``, ``file-unreadable``, ``compile-failed`` (with file and line),
    ``tool-missing``; ``unwritable-output`` or ``disk-full`` for the cache.
    """
    sources.check(given)
    command = [*_compiler(), *_OPTIONS, f"-DHZ={hz}", "-isystem", str(interface.HEADERS)]
    inputs = ["-x", "c", *given, str(interface.RUNTIME)]
    made_of = hashlib.sha256(_version(tuple(_compiler())))
    made_of.update("\0".join([*_OPTIONS, *_LINK, f"HZ={hz}"]).encode())
    # Without the lines that say where each header lies: a copy elsewhere is the same.
    for source in (*given, str(interface.RUNTIME)):
        made_of.update(_run([*command, "-E", "-P", "-x", "c", source], given))
        made_of.update(source.encode())
    library = cache() / "module" / f"{made_of.hexdigest()}.so"
    if not library.exists():
        with directory() as own:
            _run([*command, *_LINK, *inputs, "-o", str(own / "module.so")], given)
            with writing(library.parent):
                library.parent.mkdir(parents=True, exist_ok=True)
            write_bytes(library, (own / "module.so").read_bytes())
    return library


def _compiler() -> list[str]:
    given = shlex.split(os.environ.get("CC", ""))
    if given and shutil.which(given[0]):
        return given
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        message = f"a module needs a C compiler, and there is none here ({', '.join(NAMES)})"
        fix = "install one: apt install gcc libc6-dev, dnf install gcc, or the like"
        raise SawtoothError("tool-missing", message, fix=fix)
    return [found]


@functools.cache
def _version(compiler: tuple[str, ...]) -> bytes:
    try:
        return subprocess.run([*compiler, "--version"], capture_output=True, timeout=_TIMEOUT_S, check=False).stdout
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SawtoothError("tool-missing", f"the C compiler cannot be run: {error}", fix="install gcc") from error


def _run(command: Sequence[str], given: Sequence[str]) -> bytes:
    plainly = {**os.environ, "LC_ALL": "C"}
    try:
        done = subprocess.run(
            command, capture_output=True, env=plainly, stdin=subprocess.DEVNULL, timeout=_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired as error:
        message = f"the compiler did not end within {_TIMEOUT_S:.0f} s"
        raise InputError("compile-failed", message, file=given[0], fix="mend the source") from error
    except OSError as error:
        raise SawtoothError("tool-missing", f"the C compiler cannot be run: {error}", fix="install gcc") from error
    if done.returncode:
        raise complaints.refused(done.stderr.decode(errors="replace"), given)
    return done.stdout
