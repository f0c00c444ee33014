"""The traffic source, compiled at first use: statically, so that a guest starts it without a search for libraries."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path

from sawtooth.errors import SawtoothError
from sawtooth.storage import writing
from sawtooth.temporary import cache

_SOURCES = Path(__file__).with_name("source")
_FLAGS = ("-O2", "-Wall", "-static", "-pthread")


def source() -> Path:
    """The program, from the cache or newly compiled.

    Raises SawtoothError ``tool-missing`` without a C compiler, ``build-failed`` when it does not compile.
    """
    files = sorted(_SOURCES.glob("*.[ch]"))
    digest = hashlib.sha256(b"\0".join(file.read_bytes() for file in files) + " ".join(_FLAGS).encode()).hexdigest()
    where = cache() / "source"
    program = where / digest[:16]
    if program.exists():
        return program
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        fix = "install a C compiler; on Debian: apt install gcc libc6-dev"
        raise SawtoothError("tool-missing", "the traffic source needs a C compiler", fix=fix)
    with writing(where):
        where.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=where) as aside:
            made = Path(aside) / "source"
            command = [compiler, *_FLAGS, "-o", str(made), *(str(file) for file in files if file.suffix == ".c"), "-lm"]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
                fix = "on Debian: apt install gcc libc6-dev"
                raise SawtoothError("build-failed", f"the traffic source does not compile: {reason}", fix=fix)
            made.rename(program)
    return program
