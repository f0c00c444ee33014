"""Compiles a module's sources to a shared library with this machine's compiler, and keeps it in the user's cache.

The library's name is a digest of everything it is made from: the preprocessed sources (the module's and ours), the
compiler, and its options. Our part is compiled once and linked to each module.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from sawtooth.engines.cc_module import compiler_errors, interface
from sawtooth.errors import InputError, SawtoothError
from sawtooth.io.atomic_io import write_bytes, writing
from sawtooth.io.tempdirs import cache, directory
from sawtooth.sanitize import plain

NAMES = ("cc", "gcc", "clang")
_TIMEOUT_S = 120.0
_MOST = {"d": 1 << 20, "f": 1 << 17, "t": 120}
"""Limits for the shell's ulimit: kB of memory, file size in blocks of 512 bytes (64 MiB), seconds of processor time."""
_MOST_SAID = 1 << 20
"""Maximum number of bytes of compiler messages."""
_OPTIONS = (
    "-std=gnu11",
    "-O2",
    "-g",
    "-fPIC",
    # Options from Linux's own Makefile that change the meaning of a source.
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
_OURS = str(interface.RUNTIME)
_LINK = ("-shared", "-Wl,-Bsymbolic", "-Wl,-z,defs")


def build(given: Sequence[str], hz: int) -> Path:
    """The library of these sources for hosts with this tick rate. It is compiled if it is not in the cache.

    Raises SawtoothError ``file-not-found``, ``file-unreadable``, ``compile-failed`` (with file and line),
    ``tool-missing``; ``unwritable-output`` or ``disk-full`` for the cache.
    """
    _check(given)
    compiler = tuple(_compiler())
    command = _command(compiler, hz)
    made_of = hashlib.sha256()
    # Leave out the lines with the paths of headers, so that a copy in another directory has the same digest.
    for source in given:
        made_of.update(_run([*command, "-E", "-P", "-x", "c", source], given))
        made_of.update(source.encode())
    ours = _runtime(compiler, hz)
    made_of.update(ours.encode())

    def link(path: Path) -> None:
        # Compiling the runtime takes longer than most modules, and all modules share it.
        runtime = _kept(f"{ours}.o", lambda path: _run([*command, "-c", _OURS, "-o", str(path)], [_OURS]))
        _run([*command, *_LINK, "-x", "c", *given, "-x", "none", str(runtime), "-o", str(path)], given)

    return _kept(f"{made_of.hexdigest()}.so", link)


def _command(compiler: tuple[str, ...], hz: int) -> list[str]:
    return [*compiler, *_OPTIONS, f"-DHZ={hz}", "-isystem", str(interface.HEADERS)]


@functools.cache
def _runtime(compiler: tuple[str, ...], hz: int) -> str:
    """Digest of the runtime that is linked to each module, the compiler and its options."""
    made_of = hashlib.sha256(_version(compiler))
    made_of.update("\0".join([*_OPTIONS, *_LINK, f"HZ={hz}"]).encode())
    made_of.update(_run([*_command(compiler, hz), "-E", "-P", _OURS], [_OURS]))
    return made_of.hexdigest()


def _kept(name: str, make: Callable[[Path], object]) -> Path:
    """The file with this name in the cache. If it does not exist, ``make`` writes it to a path."""
    kept = cache() / "module" / name
    if not kept.exists():
        with directory() as own:
            make(own / name)
            with writing(kept.parent):
                kept.parent.mkdir(parents=True, exist_ok=True)
            write_bytes(kept, (own / name).read_bytes())
    return kept


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
    """Output of the compiler. Sources may come from anybody, so time, memory and file size are limited."""
    limits = "".join(f"ulimit -S -{name} {most} 2>/dev/null; " for name, most in _MOST.items())
    plainly = {**os.environ, "LC_ALL": "C"}
    with tempfile.TemporaryFile() as printed:
        try:
            # A separate session: no terminal to read from, and the compiler's child processes end with it.
            process = subprocess.Popen(
                ["/bin/sh", "-c", f'{limits}exec "$@"', "sh", *command],
                env=plainly,
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            raise SawtoothError("tool-missing", f"the C compiler cannot be run: {error}", fix="install gcc") from error
        assert process.stderr is not None
        begun = time.monotonic()
        threading.Thread(target=_end_after, args=(process, _TIMEOUT_S), daemon=True).start()
        with process.stderr:
            said = process.stderr.read(_MOST_SAID).decode(errors="replace")
            if len(said) >= _MOST_SAID:
                _end(process)
        status = process.wait()
        if status and time.monotonic() - begun >= _TIMEOUT_S:
            message = f"the compiler did not end within {_TIMEOUT_S:.0f} s"
            raise InputError("compile-failed", message, file=given[0], fix="correct the source")
        if len(said) >= _MOST_SAID:
            first = plain(said.splitlines()[0], 200)
            message = f"the compiler printed more than {_MOST_SAID >> 10} KiB, first: {first}"
            raise InputError("compile-failed", message, file=given[0], fix="correct the source")
        if status:
            raise compiler_errors.refused(said, given)
        printed.seek(0)
        return printed.read()


def _end_after(process: subprocess.Popen[bytes], limit_s: float) -> None:
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(limit_s)
        return
    _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _check(sources: Sequence[str]) -> None:
    """Check that the files can be read. Raises InputError ``file-not-found``, ``file-unreadable``."""
    for source in sources:
        path = Path(source)
        if not path.exists():
            fix = "a source is named beside the scenario file, or by its whole path"
            raise InputError("file-not-found", "there is no such file", file=source, fix=fix)
        if not path.is_file():
            raise InputError("file-unreadable", "this is not a file", file=source, fix="name the C file of the module")
        try:
            path.read_bytes()
        except OSError as error:
            fix = "make it readable"
            raise InputError("file-unreadable", f"cannot be read: {error.strerror}", file=source, fix=fix) from error
