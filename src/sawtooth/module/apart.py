"""Apart: a simulation with modules in a process of its own. What a module breaks is broken there."""

from __future__ import annotations

import contextlib
import mmap
import os
import secrets
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from sawtooth.errors import InputError, SawtoothError, suggestion
from sawtooth.module.answers import Answers, Garbled, readable
from sawtooth.module.compiler import build
from sawtooth.module.process_watch import ProcessWatch
from sawtooth.module.words import Words
from sawtooth.plain import plain

PATIENCE_S = 10
"""So much processor time may pass before a slice of the simulation comes to its end."""

# The page that the core keeps (crates/module/src/watch.rs), in words of eight bytes.
_WORDS = 512
_BASES = 16
_POLL_S = 0.2
_MARK = "SAWTOOTH_APART"
_GRACE_S = 5.0
_WHY: dict[int, str] = {
    signal.SIGFPE: "divided by zero",
    signal.SIGSEGV: "reached for memory that is not there",
    signal.SIGBUS: "reached for memory that is not there",
    signal.SIGILL: "came to a BUG(), or to what its compiler knew to be undefined",
    signal.SIGABRT: "was stopped by the C library, which found its memory broken",
    signal.SIGKILL: "was killed",
}


@dataclass(frozen=True)
class Wanted:
    """A module as a flow wants it: its sources, the tick of its host, parameters, the name that chooses."""

    sources: tuple[str, ...]
    hz: int
    parameters: tuple[tuple[str, str], ...]
    name: str | None

    @property
    def file(self) -> str:
        return Path(self.sources[0]).name


class Apart:
    """What ``sawtooth._core.Simulation`` is, elsewhere. ``modules``: which each flow has, by the flow's number.

    Raises SawtoothError: as ``build``; ``module-refused``, ``unknown-name`` for what a module does not take or have;
    ``module-failed``, from ``advance`` too; ValueError, OSError and the core's panics (``core-failed``) as it does.
    """

    def __init__(self, scenario: str | None, captures: Mapping[int, str] | None, modules: Mapping[int, Wanted]) -> None:
        self._distinct = list(dict.fromkeys(modules.values()))
        self._flows = {
            wanted: next(flow for flow, one in modules.items() if one == wanted) for wanted in self._distinct
        }
        self._libraries = [self._built(wanted) for wanted in self._distinct]
        self._tables: dict[str, dict[str, Any]] = {}
        self.now_ns = self.events = self.delivered_packets = 0
        self._mark = secrets.token_hex(8)
        self._page = tempfile.TemporaryFile()  # noqa: SIM115
        self._page.truncate(8 * _WORDS)
        ours, theirs = os.pipe()
        back, there = os.pipe()
        heard, said = os.pipe()
        command = [sys.executable, "-P", "-m", "sawtooth.module", str(self._page.fileno()), str(back), str(theirs)]
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                pass_fds=(self._page.fileno(), back, theirs),
                # Ctrl-C is for us, who end it.
                start_new_session=True,
                env={**os.environ, _MARK: self._mark},
            )
        finally:
            for end in (theirs, back, said):
                os.close(end)
        self._ends = (ours, heard)
        self._answers, self._words = Answers(ours), Words(heard)
        self._to = Connection(there, readable=False)
        self._watch = ProcessWatch(self._process.pid, PATIENCE_S)
        try:
            places = {flow: self._distinct.index(wanted) for flow, wanted in modules.items()}
            opened = [(str(path), wanted.parameters, wanted.name) for path, wanted in self._paired()]
            self.names: list[str] = self._ask(
                "open", scenario, None if captures is None else dict(captures), opened, places, PATIENCE_S
            )
        except BaseException:
            self.close()
            raise

    def _paired(self) -> Iterator[tuple[Path, Wanted]]:
        yield from zip(self._libraries, self._distinct, strict=True)

    def _built(self, wanted: Wanted) -> Path:
        try:
            return build(wanted.sources, wanted.hz)
        except SawtoothError as error:
            raise error.at(field=self._at(wanted, "source")) from None

    def _at(self, wanted: Wanted, *rest: str) -> str:
        return ".".join(("flows", str(self._flows[wanted]), "cc", *rest))

    def advance(self, until_ns: int, max_events: int) -> bool:
        """As the core's. Rows are kept until ``take``."""
        (finished, self.now_ns, self.events, self.delivered_packets), self._tables = self._asked(
            "advance", until_ns, max_events
        )
        return bool(finished)

    def take(self) -> dict[str, dict[str, Any]]:
        """As the core's; after each ``advance``."""
        tables, self._tables = self._tables, {}
        return tables

    def close(self) -> None:
        """Ends the process, whatever it does, and those that a module began."""
        self._kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_GRACE_S)
        self._words.finish()
        for descriptor in self._ends:
            os.close(descriptor)
        self._to.close()
        self._page.close()

    def _kill(self) -> None:
        """Also what it began: its group, and those that have left its session, by the mark that they inherited."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        mark = f"{_MARK}={self._mark}".encode()
        for process in filter(str.isdecimal, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                if mark in Path(f"/proc/{process}/environ").read_bytes().split(b"\0"):
                    os.kill(int(process), signal.SIGKILL)

    def __enter__(self) -> Apart:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(self, *question: Any) -> Any:
        return self._asked(*question)[0]

    def _asked(self, *question: Any) -> tuple[Any, dict[str, dict[str, Any]]]:
        """The answer, and its tables."""
        try:
            self._to.send(question)
            kind, answer, tables = self._awaited()
            self._check(question[0], kind, answer)
        except (EOFError, OSError):
            raise self._died() from None
        except Garbled:
            self._kill()
            raise self._failed("wrote to a file that it did not open: the one that answers go through") from None
        if kind == "answer":
            return answer, tables
        if kind == "refused":
            raise self._refused(*answer)
        if kind == "overrun":
            raise self._failed(answer)
        if kind == "value":
            raise ValueError(answer)
        if kind == "system":
            raise OSError(*answer)
        raise SawtoothError("core-failed", f"the core failed: {answer}", fix=_REPORT_IT)

    def _check(self, question: str, kind: str, answer: Any) -> None:
        """Raises Garbled for what the process itself does not answer."""
        match kind, answer:
            case "answer", [*names] if question == "open" and all(isinstance(name, str) for name in names):
                return
            case "answer", [bool(), int(), int(), int()] if question == "advance":
                return
            case "refused", [int(number), str(), [*words]] if 0 <= number < len(self._distinct):
                if words and all(isinstance(word, str | int) for word in words):
                    return
            case ("system", [int(), _, _]) | ("overrun" | "value" | "panic", str()):
                return
        raise Garbled(kind)

    def _awaited(self) -> tuple[str, Any, dict[str, dict[str, Any]]]:
        """The next answer. Raises EOFError where the process ends, and as ``_failed`` where it hangs."""
        self._watch.begin()
        ended = False
        looked = time.monotonic()
        while True:
            found = self._answers.next()
            self._words.pass_on()
            if found is not None:
                return found
            # What a module began may hold the pipe open beyond the end of the process.
            if ended:
                raise EOFError
            ended = self._process.poll() is not None
            if time.monotonic() - looked >= _POLL_S:
                looked = time.monotonic()
                hangs = self._watch.look()
                if hangs is not None:
                    self._kill()
                    raise self._failed(hangs)
            readable(self._ends[: 1 if self._words.ended else 2], 0.0 if ended else _POLL_S)

    def _refused(self, number: int, kind: str, words: Sequence[str]) -> SawtoothError:
        wanted = self._distinct[number]
        file = wanted.sources[0]
        if kind == "no-parameter":
            name, *known = words
            message = f'the module has no parameter "{plain(name, 60)}"'
            field = self._at(wanted, "parameters", name)
            return InputError("unknown-name", message, file=file, field=field, fix=suggestion(name, known))
        if kind == "bad-value":
            name, value, of, _ = words
            message = f'the parameter {name}, of type {of}, does not accept "{plain(value, 60)}"'
            field = self._at(wanted, "parameters", name)
            return InputError("module-refused", message, file=file, field=field, fix=f"give a value of type {of}")
        if kind == "no-control":
            name, *known = words
            if not name:
                message = f"it registers {len(known)} congestion controls: {', '.join(known)}"
                fix = f'choose one: cc = {{ source = "{wanted.file}", name = "{known[0]}" }}'
                return InputError("module-refused", message, file=file, field=self._at(wanted), fix=fix)
            message = f'it registers no congestion control "{plain(name, 60)}"'
            field = self._at(wanted, "name")
            return InputError("unknown-name", message, file=file, field=field, fix=suggestion(name, known))
        if kind == "refused":
            message = f"the module does not start: {words[0]}"
            fix = "let its module_init register it with tcp_register_congestion_control, and return 0"
            return InputError("module-refused", message, file=file, field=self._at(wanted), fix=fix)
        message = f"the module cannot be loaded: {plain(words[0], 200)}"
        return SawtoothError("module-failed", message, file=file, field=self._at(wanted), fix=_REPORT_IT)

    def _died(self) -> SawtoothError:
        """The error for a process that is no more."""
        try:
            status = self._process.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            self._kill()
            status = self._process.wait()
        if status == -signal.SIGXCPU:
            return self._failed(f"did not come back for {PATIENCE_S} s")
        return self._failed(_WHY.get(-status, f"ended with status {status}"))

    def _failed(self, why: str) -> SawtoothError:
        from sawtooth import _core

        with mmap.mmap(self._page.fileno(), 8 * _WORDS) as page:
            words = struct.unpack(f"={_WORDS}Q", page[:])
        hook, number, address = words[0], words[1], words[3]
        if 0 < hook < len(_core.MODULE_HOOKS) and number < len(self._distinct):
            wanted = self._distinct[number]
            line = _line(self._libraries[number], address - words[_BASES + number]) if address else None
            where = f"in its {_core.MODULE_HOOKS[hook]}" + (f", {line}" if line else "")
            message = f"the module {why}, {where}"
            return SawtoothError(
                "module-failed", message, file=wanted.sources[0], field=self._at(wanted), fix="correct the module"
            )
        files = ", ".join(wanted.file for wanted in self._distinct)
        message = f"the process that ran {files} {why}, outside of a hook"
        fix = "look for constructors, threads and writes beyond the module's own memory; or run the modules one by one"
        return SawtoothError("module-failed", message, file=self._distinct[0].sources[0], fix=fix)


def registered(wanted: Wanted) -> str:
    """What a module calls the control that is wanted of it. Raises SawtoothError as ``Apart`` does."""
    with Apart(None, None, {0: wanted}) as apart:
        return apart.names[0]


def _line(library: Path, offset: int) -> str | None:
    """``tcp_mine.c line 12``: what lies there, where the compiler's tools can tell."""
    try:
        done = subprocess.run(
            ["addr2line", "-e", str(library), hex(offset)], capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return None
    file, _, line = done.stdout.strip().partition(":")
    number = line.split(" ")[0]
    return f"{Path(file).name} line {number}" if number.isdigit() and number != "0" else None


_REPORT_IT = "this is a defect of sawtooth: please report it with the scenario and the module"
