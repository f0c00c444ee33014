"""Compiles the testbed's C programs on first use: the traffic source, and a library for iperf3 in a guest."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from sawtooth.errors import SawtoothError
from sawtooth.io.atomic_io import writing
from sawtooth.io.tempdirs import cache

_SOURCES = Path(__file__).with_name("source")
_ALWAYS = ("-O2", "-Wall")


def source() -> Path:
    """The traffic source, cached or newly compiled. It is linked statically, so that a guest starts it without
    searching for libraries.

    Raises SawtoothError ``tool-missing`` without a C compiler, ``build-failed`` if it does not compile.
    """
    return _compiled(sorted(_SOURCES.glob("*.[ch]")), ("-static", "-pthread"), ("-lm",))


def waits() -> Path:
    """The library with which iperf3's client in a guest waits instead of polling. Raises as ``source`` does."""
    return _compiled([_SOURCES / "beside" / "waits.c"], ("-shared", "-fPIC"), ("-ldl",))


def _compiled(files: Sequence[Path], how: Sequence[str], libraries: Sequence[str]) -> Path:
    flags = [*_ALWAYS, *how, *libraries]
    digest = hashlib.sha256(b"\0".join(file.read_bytes() for file in files) + " ".join(flags).encode()).hexdigest()
    where = cache() / "source"
    made = where / digest[:16]
    if made.exists():
        return made
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        fix = "install a C compiler; on Debian: apt install gcc libc6-dev"
        raise SawtoothError("tool-missing", "the traffic source needs a C compiler", fix=fix)
    with writing(where):
        where.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=where) as directory:
            aside = Path(directory) / "made"
            sources = [str(file) for file in files if file.suffix == ".c"]
            command = [compiler, *_ALWAYS, *how, "-o", str(aside), *sources, *libraries]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
                fix = "on Debian: apt install gcc libc6-dev"
                raise SawtoothError("build-failed", f"the traffic source does not compile: {reason}", fix=fix)
            aside.rename(made)
    return made
