"""Runs a simulation that has modules in a separate process, so that a faulty module cannot damage this one."""

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

from sawtooth.engines.cc_module.compiler import build
from sawtooth.engines.cc_module.printed_text import PrintedLines
from sawtooth.engines.cc_module.process_watch import ProcessWatch
from sawtooth.engines.cc_module.protocol import Answers, Garbled, readable
from sawtooth.errors import InputError, SawtoothError, suggestion
from sawtooth.io.closing import Closing
from sawtooth.sanitize import plain

PATIENCE_S = 10
"""Processor time in seconds that one slice of the simulation may take."""

# Size, in words of eight bytes, of the memory page that the core updates (crates/cc-module/src/watch.rs).
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
class Module:
    """A module that a flow uses: its source files, its host's tick rate (HZ), its parameters, and the name of the
    control to choose."""

    sources: tuple[str, ...]
    hz: int
    parameters: tuple[tuple[str, str], ...]
    name: str | None

    @property
    def file(self) -> str:
        return Path(self.sources[0]).name


class IsolatedSimulation(Closing):
    """A ``sawtooth._core.Simulation`` in another process. ``modules``: the module of each flow, by the flow's number.

    Raises SawtoothError: as ``build``; ``module-refused`` or ``unknown-name`` for something that a module does not
    accept or have; ``module-failed``, also from ``advance``; and ValueError, OSError and core panics (``core-failed``)
    as the core does.
    """

    def __init__(self, scenario: str | None, captures: Mapping[int, str] | None, modules: Mapping[int, Module]) -> None:
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
        command = [
            sys.executable,
            "-P",
            "-m",
            "sawtooth.engines.cc_module",
            str(self._page.fileno()),
            str(back),
            str(theirs),
        ]
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                pass_fds=(self._page.fileno(), back, theirs),
                # Ctrl-C goes to this process only, which then ends the other one.
                start_new_session=True,
                env={**os.environ, _MARK: self._mark},
            )
        finally:
            for end in (theirs, back, said):
                os.close(end)
        self._ends = (ours, heard)
        self._answers, self._words = Answers(ours), PrintedLines(heard)
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

    def _paired(self) -> Iterator[tuple[Path, Module]]:
        yield from zip(self._libraries, self._distinct, strict=True)

    def _built(self, wanted: Module) -> Path:
        try:
            return build(wanted.sources, wanted.hz)
        except SawtoothError as error:
            raise error.at(field=self._at(wanted, "source")) from None

    def _at(self, wanted: Module, *rest: str) -> str:
        return ".".join(("flows", str(self._flows[wanted]), "cc", *rest))

    def advance(self, until_ns: int, max_events: int, ends: bool = False) -> bool:
        """Advance, as the core's method. Rows are kept until ``take``."""
        (finished, self.now_ns, self.events, self.delivered_packets), self._tables = self._request(
            "advance", until_ns, max_events, ends
        )
        return bool(finished)

    def take(self) -> dict[str, dict[str, Any]]:
        """Take the rows, as the core's method. Call it after each ``advance``."""
        tables, self._tables = self._tables, {}
        return tables

    def close(self) -> None:
        """End the process in any state, and the processes that a module started."""
        self._kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_GRACE_S)
        self._words.finish()
        for descriptor in self._ends:
            os.close(descriptor)
        self._to.close()
        self._page.close()

    def _kill(self) -> None:
        """Kill the process, its process group, and its descendants in other sessions, which are found by the inherited
        mark in their environment.
        """
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        mark = f"{_MARK}={self._mark}".encode()
        for process in filter(str.isdecimal, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                if mark in Path(f"/proc/{process}/environ").read_bytes().split(b"\0"):
                    os.kill(int(process), signal.SIGKILL)

    def _ask(self, *question: Any) -> Any:
        return self._request(*question)[0]

    def _request(self, *question: Any) -> tuple[Any, dict[str, dict[str, Any]]]:
        """Send a request. Returns the answer and its tables."""
        try:
            self._to.send(question)
            kind, answer, tables = self._next_answer()
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
        """Raises Garbled for an answer that does not fit the request."""
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

    def _next_answer(self) -> tuple[str, Any, dict[str, dict[str, Any]]]:
        """Wait for the next answer. Raises EOFError if the process ends, and the error of ``_failed`` if it hangs."""
        self._watch.begin()
        ended = False
        checked_s = time.monotonic()
        while True:
            found = self._answers.next()
            self._words.pass_on()
            if found is not None:
                return found
            # A process started by a module may keep the pipe open after this process has ended.
            if ended:
                raise EOFError
            ended = self._process.poll() is not None
            if time.monotonic() - checked_s >= _POLL_S:
                checked_s = time.monotonic()
                hangs = self._watch.problem()
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
        """The error for a process that has ended."""
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


def registered(wanted: Module) -> str:
    """The module's own name for the wanted control. Raises SawtoothError as ``IsolatedSimulation`` does."""
    with IsolatedSimulation(None, None, {0: wanted}) as apart:
        return apart.names[0]


def _line(library: Path, offset: int) -> str | None:
    """The source line at an offset in the library, like ``tcp_mine.c line 12``; None if the compiler's tools cannot
    find it."""
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
