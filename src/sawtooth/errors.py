"""Every error that Sawtooth raises, each with a stable code.

    Exception
    └── SawtoothError              code, message, file, field, fix
        └── InputError             also a ValueError: an input is wrong

Tell errors apart by ``code``: a code never changes its meaning, messages may. ``CODES`` lists all codes;
docs/reference/errors.md explains each.
"""

from __future__ import annotations

import difflib
import errno
import traceback
from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import Any

from sawtooth.sanitize import plain, sentence

BAD_INPUT = 2
FAILURE = 1
INTERRUPTED = 130
_LONGEST_PATH = 400
MORE_MEMORY = "raise the limit (ulimit -v unlimited), end other programs, or use fewer workers: --jobs 1"

CODES: dict[str, int] = {
    # The input is wrong.
    "file-not-found": BAD_INPUT,
    "file-unreadable": BAD_INPUT,
    "not-toml": BAD_INPUT,
    "wrong-type": BAD_INPUT,
    "unknown-field": BAD_INPUT,
    "missing-field": BAD_INPUT,
    "missing-unit": BAD_INPUT,
    "unknown-unit": BAD_INPUT,
    "bad-quantity": BAD_INPUT,
    "out-of-range": BAD_INPUT,
    "zero-queue": BAD_INPUT,
    "bad-name": BAD_INPUT,
    "duplicate-name": BAD_INPUT,
    "unknown-name": BAD_INPUT,
    "conflict": BAD_INPUT,
    "no-route": BAD_INPUT,
    "route-loop": BAD_INPUT,
    "bad-override": BAD_INPUT,
    "bad-expression": BAD_INPUT,
    "bad-query": BAD_INPUT,
    "empty-axis": BAD_INPUT,
    "too-many-points": BAD_INPUT,
    "unsupported": BAD_INPUT,
    "bad-published": BAD_INPUT,
    "not-a-result": BAD_INPUT,
    "not-a-measurement": BAD_INPUT,
    "not-a-recording": BAD_INPUT,
    "too-short": BAD_INPUT,
    "application-limited": BAD_INPUT,
    "not-a-capture": BAD_INPUT,
    "no-such-connection": BAD_INPUT,
    "bad-source": BAD_INPUT,
    "bad-trace": BAD_INPUT,
    "bad-cdf": BAD_INPUT,
    "bad-table": BAD_INPUT,
    "bad-transfers": BAD_INPUT,
    "bad-module": BAD_INPUT,
    "bad-policy": BAD_INPUT,
    "patch-failed": BAD_INPUT,
    "not-a-series": BAD_INPUT,
    "too-few-probes": BAD_INPUT,
    "all-lost": BAD_INPUT,
    "constant-series": BAD_INPUT,
    "clock-step": BAD_INPUT,
    "wrong-unit": BAD_INPUT,
    "unmatched-series": BAD_INPUT,
    "bad-target": BAD_INPUT,
    "bad-usage": BAD_INPUT,
    "bad-program": BAD_INPUT,
    "bad-measure": BAD_INPUT,
    "compile-failed": BAD_INPUT,
    "module-refused": BAD_INPUT,
    # The input is right, but the work failed.
    "unwritable-output": FAILURE,
    "disk-full": FAILURE,
    "out-of-memory": FAILURE,
    "no-workers": FAILURE,
    "worker-died": FAILURE,
    "cluster-unreachable": FAILURE,
    "cluster-lost": FAILURE,
    "core-missing": FAILURE,
    "core-failed": FAILURE,
    "lab-missing": FAILURE,
    "port-taken": FAILURE,
    "module-failed": FAILURE,
    "policy-failed": FAILURE,
    "tool-missing": FAILURE,
    "kernel-missing": FAILURE,
    "build-failed": FAILURE,
    "guest-failed": FAILURE,
    "guest-timeout": FAILURE,
    "testbed-failed": FAILURE,
    "program-not-ready": FAILURE,
    "missing-capability": FAILURE,
    "probe-failed": FAILURE,
    "internal": FAILURE,
    # The user pressed Ctrl-C.
    "interrupted": INTERRUPTED,
}
"""Every code, with the exit status of the command line."""


class SawtoothError(Exception):
    """An error with a clear message: what is wrong, where, and how to fix it.

    ``file`` is the file that was read or written, ``field`` the dotted path inside it (``flows.0.cc``), ``fix`` a
    sentence or an accepted value. As text, all are safe for a terminal and shortened if they are long. Raises
    ValueError for a code that is not in ``CODES``.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        file: str | PathLike[str] | None = None,
        field: str | None = None,
        fix: str | None = None,
    ) -> None:
        if code not in CODES:
            raise ValueError(f"unknown error code {code!r}: list it in sawtooth.errors.CODES")
        super().__init__(message)
        self.code = code
        self.message = message
        self.file = None if file is None else str(file)
        self.field = field
        self.fix = fix

    @property
    def exit_status(self) -> int:
        """Exit status of the command line: 2 for bad input, 1 for a failure, 130 after Ctrl-C."""
        return CODES[self.code]

    def at(self, *, file: str | PathLike[str] | None = None, field: str | None = None) -> SawtoothError:
        """The same error, with file and field added if it had none."""
        known_file = self.file if self.file is not None else file
        known_field = self.field if self.field is not None else field
        return type(self)(self.code, self.message, file=known_file, field=known_field, fix=self.fix)

    def __str__(self) -> str:
        where = [plain(part, _LONGEST_PATH) for part in (self.file, self.field) if part]
        said = ": ".join([f"error[{self.code}]", *where, sentence(self.message)])
        return said + (f"\nfix: {sentence(self.fix)}" if self.fix else "")

    def __reduce__(self) -> tuple[Any, ...]:
        # Worker processes return errors pickled, and pickle cannot pass keyword arguments without a helper.
        return _rebuild, (type(self), self.code, self.message, self.file, self.field, self.fix)


class InputError(SawtoothError, ValueError):
    """An input is wrong: a field, a quantity, a file. Also a ValueError."""


def unforeseen(error: BaseException) -> SawtoothError:
    """Wraps an unexpected exception: ``out-of-memory``, ``core-missing``, or ``internal`` for a defect in Sawtooth."""
    if _wants_memory(error):
        return SawtoothError("out-of-memory", "there is not enough memory for this", fix=MORE_MEMORY)
    if isinstance(error, ImportError) and "_core" in f"{error.name} {error}":
        message = f"the core cannot be loaded: {error}"
        return SawtoothError("core-missing", message, fix="build it: make demo, or maturin develop --release")
    last = traceback.extract_tb(error.__traceback__)[-1:]
    where = "".join(f" ({Path(frame.filename).name}, line {frame.lineno})" for frame in last)
    fix = "this is a defect of sawtooth: please report it; SAWTOOTH_TRACEBACK=1 shows where it comes from"
    return SawtoothError("internal", f"{type(error).__name__}: {error}{where}", fix=fix)


def _wants_memory(error: BaseException | None) -> bool:
    """Whether memory ran out: Python raises MemoryError; the system reports it when it loads a library or starts a
    program."""
    if isinstance(error, ImportError):
        return "failed to map segment" in str(error) or "cannot allocate memory" in str(error).lower()
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    return isinstance(error, MemoryError)


def _rebuild(
    kind: type[SawtoothError], code: str, message: str, file: str | None, field: str | None, fix: str | None
) -> SawtoothError:
    return kind(code, message, file=file, field=field, fix=fix)


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known name most similar to ``word``; None if no name is similar."""
    by_lower = {name.lower(): name for name in known}
    # Among two letters, one may differ.
    cutoff = 0.6 if len(word) > 2 else 0.5
    found = difflib.get_close_matches(word.lower()[:200], by_lower, n=1, cutoff=cutoff)
    return by_lower[found[0]] if found else None


def install_extra(name: str) -> str:
    """The fix for an absent extra. No index publishes Sawtooth, so pip needs the wheel's file."""
    return f'run make wheel in a checkout, then pip install "$(ls dist/sawtooth-*.whl)[{name}]"'


def suggestion(word: str, known: Iterable[str]) -> str:
    """A fix for an unknown name: the most similar one, or the list of all if there are few."""
    names = list(known)
    near = nearest(word, names)
    if near is not None:
        return f'did you mean "{near}"?'
    if not names:
        return "there is none to choose from"
    shown = ", ".join(names[:20]) + (", …" if len(names) > 20 else "")
    return f"choose one of: {shown}"
