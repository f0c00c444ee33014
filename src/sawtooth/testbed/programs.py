"""Programs of a scenario's hosts: started when due, waited for, and ended with the run.

A program that others wait for (``ready``) is a server and runs until the run ends. The run ends when all others have
ended, or at the scenario's duration.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from sawtooth.errors import SawtoothError
from sawtooth.io.untrusted import part
from sawtooth.testbed.containers import FILES_BYTES, Container, Started
from sawtooth.testbed.traffic import check_source

PROGRAMS = "programs.json"
LISTENING = "listening"
READY_S = 60.0
"""Longest wait for a program to be ready."""
_POLL_S = 0.001, 0.1
"""Interval between readiness checks: at first, and at the end."""
_COARSE_S = 0.002
"""A selector waits for whole milliseconds, rounded up."""
_GRID_S = 0.1
"""The first server starts at a multiple of this time."""
_GRACE_S = 2.0
"""Time between SIGTERM and SIGKILL for a server."""
_NOT_READY = "see whether it runs by itself, and whether ready says how to tell that it serves"
_ABSENT = "install what is not found, or give its whole path: programs see this machine's files and PATH"
_LISTEN, _CLOSE, _TIME_WAIT = "0A", "07", "06"


@dataclass
class Running:
    """One program of the task, ``about``, and its state. Times are seconds of CLOCK_MONOTONIC."""

    number: int
    about: Mapping[str, Any]
    started: Started | None = None
    start_s: float = 0.0
    end_s: float | None = None
    status: int | None = None
    files: tuple[Path, Path, Path] = field(default_factory=lambda: (Path(), Path(), Path()))

    @property
    def is_server(self) -> bool:
        return self.about["ready"] is not None

    @property
    def is_over(self) -> bool:
        return self.end_s is not None

    @property
    def is_absent(self) -> bool:
        """Whether a shell did not find it."""
        return self.status is not None and os.waitstatus_to_exitcode(self.status) == 127


class Supervisor:
    """Starts a task's programs in their hosts' containers. ``directory`` receives their output.

    ``containers``: by host name.
    """

    def __init__(self, task: Mapping[str, Any], containers: Mapping[str, Container], directory: Path) -> None:
        self._containers = containers
        self._directory = directory
        self._programs = [Running(number, about) for number, about in enumerate(task["programs"])]
        self._selector = selectors.DefaultSelector()

    def serve(self) -> None:
        """Starts the servers one after another, each when the previous one is ready. Raises SawtoothError
        ``program-not-ready`` if one is not ready in time, or ends before."""
        # What happened before, like Python's compiling of changed modules, must not show in the programs' times.
        self._sleep_until((time.monotonic() // _GRID_S + 1) * _GRID_S)
        for program in self._programs:
            if program.is_server:
                before = _ports(self._containers[program.about["host"]].first)
                self._start(program)
                self._wait_ready(program, before)

    def run(self, begin_s: float, end_s: float) -> float:
        """Starts the others at ``begin_s`` or at their own times after it, and waits for them until ``end_s``. Returns
        when the last one ended."""
        due = [one for one in self._programs if one.started is None]
        if not due:
            # Servers only: the run's flows decide.
            self._sleep_until(end_s)
        due.sort(key=lambda one: one.about["start_ns"] or 0)
        for program in due:
            self._sleep_until(min(end_s, begin_s + (program.about["start_ns"] or 0) / 1e9))
            if time.monotonic() >= end_s:
                break
            self._start(program)
        while any(not one.is_over for one in self._programs if one.started and not one.is_server):
            if time.monotonic() >= end_s or not self._wait(end_s - time.monotonic()):
                break
        return time.monotonic()

    def end(self) -> None:
        """Ends running programs: SIGTERM to all, two seconds, SIGKILL."""
        left = [one for one in self._programs if one.started and not one.is_over]
        for program in left:
            _signal_all(self._containers[program.about["host"]], signal.SIGTERM)
        patience = time.monotonic() + _GRACE_S
        while any(not one.is_over for one in left) and time.monotonic() < patience:
            self._wait(patience - time.monotonic())

    def drain(self, end_s: float) -> None:
        """Waits until TCP has closed the connections that programs left behind, at most until ``end_s``."""
        while time.monotonic() < end_s and any(_is_closing(one.first) for one in self._containers.values()):
            time.sleep(_POLL_S[-1] / 10)

    def collect(self) -> None:
        """Copies the requested files of programs to ``directory``/collected/HOST."""
        for program in self._programs:
            if program.started and program.about["collect"]:
                into = self._directory / "collected" / program.about["host"]
                into.mkdir(parents=True, exist_ok=True)
                container = self._containers[program.about["host"]]
                container.collect(program.about["collect"], program.about["directory"], into)

    def report(self, begin_s: float) -> list[dict[str, Any]]:
        """The outcome of each program: times in seconds since the run's start; None for what did not happen."""
        return [
            {
                "start_s": one.start_s - begin_s if one.started else None,
                "end_s": one.end_s - begin_s if one.end_s is not None else None,
                "status": None if one.status is None else os.waitstatus_to_exitcode(one.status),
                "group": one.started.group if one.started else 0,
            }
            for one in self._programs
        ]

    def datagrams(self) -> dict[str, dict[str, int]]:
        """Each host's UDP counters, by the host's name and the kernel's names of counters."""
        return {host: _udp(one.first) for host, one in self._containers.items()}

    def _start(self, program: Running) -> None:
        about = program.about
        given = self._directory / f"program-{program.number}.in"
        if about["stdin"] is not None:
            given.write_text(about["stdin"], encoding="utf-8")
        program.files = (
            Path(os.devnull) if about["stdin"] is None else given,
            self._directory / f"program-{program.number}.out",
            self._directory / f"program-{program.number}.err",
        )
        program.start_s = time.monotonic()
        program.started = self._containers[about["host"]].start(
            program.number,
            about["words"],
            environment=about["environment"],
            directory=about["directory"],
            files=program.files,
            terminal=about.get("terminal"),
        )
        self._selector.register(program.started.status_pipe, selectors.EVENT_READ, program)

    def _wait(self, seconds: float) -> bool:
        """Waits until a program ends, or this long; returns whether one ended."""
        found = self._selector.select(max(0.0, seconds))
        for key, _ in found:
            program = key.data
            program.end_s = time.monotonic()
            said = os.read(key.fd, 32)
            program.status = int(said) if said else signal.SIGKILL
            self._selector.unregister(key.fd)
            os.close(key.fd)
            os.waitpid(program.started.watcher, 0)
        return bool(found)

    def _sleep_until(self, at_s: float) -> None:
        """Programs may end in the meantime."""
        while (left := at_s - time.monotonic()) > 0:
            if self._selector.get_map() and left > _COARSE_S:
                self._wait(left - _COARSE_S)
            else:
                # Half a nanosecond less, because sleep() rounds up: to the same nanosecond, whatever the time is now.
                time.sleep((round(left * 1e9) - 0.5) / 1e9)

    def _wait_ready(self, program: Running, before: set[Port]) -> None:
        is_ready = self._readiness(program, before)
        patience, (pause, longest) = time.monotonic() + READY_S, _POLL_S
        while not is_ready():
            if program.is_over or time.monotonic() > patience:
                wanted = program.about["ready"]
                became = _ended(program) if program.is_over else f"was not ready ({wanted}) within {READY_S:g} s"
                message = f"the program {became}{_last(program.files[2])}"
                field, fix = f"programs.{program.number}.ready", _ABSENT if program.is_absent else _NOT_READY
                raise SawtoothError("program-not-ready", message, field=field, fix=fix)
            self._wait(pause)
            pause = min(longest, pause * 1.1)

    def _readiness(self, program: Running, before: set[Port]) -> Callable[[], bool]:
        """``before``: the ports that were in use before it started."""
        ready, first = program.about["ready"], self._containers[program.about["host"]].first
        if ready == LISTENING:
            return lambda: bool(_ports(first) - before)
        if (port := re.fullmatch(r"port (\d+)", ready)) is not None:
            return lambda: any(one.number == int(port[1]) for one in _ports(first))
        # The program makes these files itself, a moment after its start.
        return lambda: any(ready.encode() in part(path, 0, FILES_BYTES) for path in program.files[1:])


class Port(NamedTuple):
    kind: str
    """tcp or udp; a server of HTTP/3 has the number of its TCP port again."""
    number: int


def _ports(process: int) -> set[Port]:
    """TCP and UDP ports in use in a process's network."""
    states = {"tcp": _LISTEN, "udp": _CLOSE}
    return {
        Port(kind, one.port) for kind, state in states.items() for one in _sockets(process, kind) if one.state == state
    }


def _is_closing(process: int) -> bool:
    """Whether its network has an open TCP connection that no process holds."""
    over = (_CLOSE, _TIME_WAIT)
    return any(one.inode == 0 and one.state not in over for one in _sockets(process, "tcp"))


class _Socket(NamedTuple):
    port: int
    state: str
    inode: int


def _sockets(process: int, kind: str) -> Iterator[_Socket]:
    """Sockets of IPv4 and IPv6 (proc(5), /proc/PID/net/tcp)."""
    for name in (kind, f"{kind}6"):
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{process}/net/{name}").read_text().splitlines()[1:]:
                words = line.split()
                yield _Socket(int(words[1].rpartition(":")[2], 16), words[3], int(words[9]))


def _udp(process: int) -> dict[str, int]:
    """UDP's counters of a process's network (proc(5), /proc/PID/net/snmp): a line of names, then one of numbers."""
    lines = Path(f"/proc/{process}/net/snmp").read_text().splitlines()
    names, numbers = (one.split()[1:] for one in lines if one.startswith("Udp: "))
    return dict(zip(names, map(int, numbers), strict=True))


def _signal_all(container: Container, number: int) -> None:
    """Signals all processes of a container except its first."""
    child = os.fork()
    if child == 0:
        try:
            container.enter()
            inner = os.fork()
            if inner == 0:
                os.kill(-1, number)
                os._exit(0)
            os.waitpid(inner, 0)
        finally:
            os._exit(0)
    os.waitpid(child, 0)


def _ended(program: Running) -> str:
    """How it ended, and for what a shell could not find, its command."""
    assert program.status is not None
    code = os.waitstatus_to_exitcode(program.status)
    if program.is_absent:
        words = program.about["words"]
        typed = words[2] if words[:2] == ["/bin/sh", "-c"] else " ".join(words)
        return f'could not be started (status 127), by the command "{" ".join(typed.split())[:80]}"'
    return f"ended with status {code} before it was ready" if code >= 0 else f"was ended by signal {-code}"


def _last(errors: Path) -> str:
    try:
        lines = errors.read_text(errors="replace").strip().splitlines()
    except OSError:
        lines = []
    return f": {lines[-1][:300]}" if lines else ""


def attend(
    task: Mapping[str, Any],
    containers: Mapping[str, Container],
    directory: Path,
    source: Sequence[str | Path],
    begin: Callable[[int], None],
) -> None:
    """Runs everything: servers, then the traffic source from t = 0 with the other programs, until these have ended.

    ``begin`` writes the source's orders, given t = 0 in ns of CLOCK_MONOTONIC. Raises OSError, and SawtoothError
    ``program-not-ready`` and ``testbed-failed``.
    """
    supervisor = Supervisor(task, containers, directory)
    supervisor.serve()
    # A whole second of the clock, as the source chooses on its own.
    begin_ns = (time.monotonic_ns() // 10**9 + 2) * 10**9
    begin(begin_ns)
    traffic = subprocess.Popen(source, cwd=directory, stderr=subprocess.PIPE, text=True)
    try:
        begin_s = begin_ns / 1e9
        end_s = begin_s + task["compiled"]["duration_ns"] / 1e9
        over_s = supervisor.run(begin_s, end_s)
        programs = supervisor.report(begin_s)
        udp = supervisor.datagrams()
        supervisor.end()
        # Sampled until they close, connections have counted everything that they sent.
        supervisor.drain(min(end_s, time.monotonic() + _GRACE_S))
        if traffic.poll() is None:
            traffic.send_signal(signal.SIGTERM)
        _, said = traffic.communicate()
        check_source(traffic.returncode, said)
        supervisor.collect()
    finally:
        traffic.kill()
        traffic.wait()
    results = {"programs": programs, "udp": udp, "end_s": over_s - begin_s}
    (directory / PROGRAMS).write_text(json.dumps(results), encoding="utf-8")
