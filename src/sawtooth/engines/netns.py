"""Engine ``netns``: this host's kernel in real time, with the testbed in separate namespaces. Needs root."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sawtooth.errors import InputError, SawtoothError

if TYPE_CHECKING:
    from sawtooth.engines import Engine, Progress, Stop
    from sawtooth.run import Run
    from sawtooth.scenario import Scenario
    from sawtooth.testbed.program_output import Output
    from sawtooth.testbed.pseudo_terminal import Terminal

_POLL_S = 0.1
_GROUP_END_S = 5.0
_PATIENCE_S = 90.0
"""Seconds beyond the scenario's duration, for setup and for iperf3's ending."""


@dataclass(frozen=True)
class Netns:
    """Touches nothing outside its own namespaces, whose names are unique to the run, and removes them however it ends.
    If it is killed, the next run or ``sawtooth clean`` removes them. ``capture``: a directory for packet headers, from
    both ends or from the hosts ``capture_at``.
    """

    capture: Path | None = None
    capture_at: tuple[str, ...] = ()
    name: str = "netns"
    output: Output | None = None
    """Called with what programs print, as it comes."""
    terminal: Terminal | None = None
    """For the last program: a person's."""

    def capturing(self, directory: Path, at: Sequence[str] = ()) -> Netns:
        """This engine with captures."""
        return replace(self, capture=directory, capture_at=tuple(at))

    def check(self, scenario: Scenario) -> None:
        """Raises SawtoothError ``unsupported``, naming the field; ``tool-missing``, naming privilege or tool."""
        from sawtooth.testbed.traffic import captured_hosts

        scenario = scenario.without_processing()
        _check(scenario, capture=self.capture is not None)
        captured_hosts(scenario.compile(), self.capture_at)

    def run(self, scenario: Scenario, *, progress: Progress | None = None, stop: Stop | None = None) -> Run:
        """Sets up, measures for the scenario's duration, cleans up and reads.

        Raises SawtoothError: as ``check``; ``testbed-failed``, ``interrupted``; ``program-not-ready`` and
        ``bad-measure`` of programs; ``unwritable-output`` and ``disk-full`` for captures.
        """
        from sawtooth import programs
        from sawtooth.io.tempdirs import directory as run_directory
        from sawtooth.testbed import kernel_features, outcome, remarks
        from sawtooth.testbed.apply import remove
        from sawtooth.testbed.cleaning import clean
        from sawtooth.testbed.names import prefix
        from sawtooth.testbed.plan import build
        from sawtooth.testbed.program_output import Printed
        from sawtooth.testbed.pseudo_terminal import Keys
        from sawtooth.testbed.traffic import captured_hosts

        self.check(scenario)
        given, scenario = scenario, scenario.without_processing()
        # Remains of runs that were killed.
        clean()
        captured = [] if self.capture is None else captured_hosts(scenario.compile(), self.capture_at)
        place, own = kernel_features.place(), prefix()
        names = [namespace.name for namespace in build(scenario.compile(), place, own).namespaces]
        begun, before = time.perf_counter(), _processor_ticks()
        with run_directory() as directory:
            compiled, traffic = scenario.compile(), programs.traffic(scenario)
            order = programs.order(scenario)
            if self.terminal is not None:
                self.terminal.give(order)
            outcome.prepare(directory, compiled, place, own, traffic=traffic, capture=captured, programs=order)
            printed, keys = Printed(directory, scenario, self.output), Keys(directory, self.terminal)

            def poll() -> None:
                keys.pass_on()
                printed.show()

            try:
                _measure(directory, scenario.duration.seconds, poll, progress, stop)
            finally:
                remove(names)
            printed.show()
            busy, all_ticks = (now - then for now, then in zip(_processor_ticks(), before, strict=True))
            share = busy / max(1, all_ticks)
            meta: dict[str, Any] = {
                "place": vars(place),
                "hz": kernel_features.hz(),
                "processors_busy": share,
                "wall_s": time.perf_counter() - begun,
                "warnings": [*remarks.busy(share), *remarks.real_time(place, scenario.compile())],
            }
            result = outcome.run(directory, given, self.name, meta)
            if self.capture is not None:
                outcome.keep_captures(directory, self.capture)
        return result


ENGINE: Engine = Netns()


def _check(scenario: Scenario, *, capture: bool) -> None:
    """Raises SawtoothError ``unsupported``, naming the field; ``tool-missing``, naming privilege or tool."""
    from sawtooth import programs
    from sawtooth.testbed import kernel_features, unsupported
    from sawtooth.testbed.compiler import source
    from sawtooth.testbed.names import prefix
    from sawtooth.testbed.plan import build

    compiled, traffic = scenario.compile(), programs.traffic(scenario)
    place, where = kernel_features.place(), "this host's kernel"
    unsupported.check(compiled, traffic, place, where=where)
    unsupported.check_kinds(compiled, build(compiled, place, prefix()), kernel_features.lacking, where=where)
    unsupported.check_version(compiled, os.uname().release, where=where)
    hz = kernel_features.hz()
    if hz is not None and hz != compiled.hosts[0].hz:
        message = f"this host's kernel has HZ {hz}, and nothing can change that"
        raise InputError("unsupported", message, field="host.hz", fix=f"set host.hz to {hz}, or use --engine kernel")
    if scenario.date is not None:
        message = "programs see this host's clock, which a run does not set"
        raise InputError("unsupported", message, field="date", fix="leave out date, or use --engine kernel")
    programs.check(scenario)
    for control, field in programs.controls(scenario).values():
        _check_control(control, field)
    for index, flow in enumerate(compiled.flows):
        if flow.datagrams is None:
            _check_control(flow.cc, f"flows.{index}.cc")
    unsupported.check_tools(traffic, capture=capture)
    source()


def _check_control(name: str, field: str) -> None:
    """Raises SawtoothError ``unsupported`` for a congestion control that this host's kernel lacks."""
    from sawtooth.testbed import kernel_features

    if not kernel_features.has_congestion_control(name):
        fix = f"modprobe tcp_{name}, or use --engine kernel"
        raise InputError("unsupported", f"this host's kernel has no {name}", field=field, fix=fix)


def _measure(
    directory: Path, duration_s: float, poll: Callable[[], None], progress: Progress | None, stop: Stop | None
) -> None:
    """Runs the testbed for so long, in a separate process group, which ends with this call."""
    from sawtooth.testbed import outcome

    deadline = time.monotonic() + duration_s + _PATIENCE_S
    command = [sys.executable, "-m", "sawtooth.testbed", str(directory)]
    with (directory / outcome.STDERR).open("wb") as said:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True)
    try:
        while process.poll() is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_POLL_S)
            poll()
            if progress is not None:
                progress(outcome.progress(directory))
            if stop is not None and stop():
                fix = "run it again"
                raise SawtoothError("interrupted", "stopped before the end of the scenario", fix=fix)
            if time.monotonic() > deadline:
                message = f"the testbed did not end within {_PATIENCE_S:g} s of the scenario's end"
                fix = "run it again when this host has less to do, or use --engine kernel, whose time is virtual"
                raise SawtoothError("testbed-failed", message, fix=fix)
    finally:
        _end_group(process)
    outcome.check(directory, process.returncode)


def _end_group(leader: subprocess.Popen[bytes]) -> None:
    """Kills the rest of a process group and waits until it is gone, so that its namespaces disappear too."""
    patience = time.monotonic() + _GROUP_END_S
    with contextlib.suppress(ProcessLookupError):
        while time.monotonic() < patience:
            os.killpg(leader.pid, signal.SIGKILL)
            leader.poll()
            time.sleep(0.01)
    leader.wait()


def _processor_ticks() -> tuple[int, int]:
    """Busy and total ticks of all processors since boot (proc(5), stat)."""
    ticks = [int(word) for word in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    return sum(ticks) - ticks[3] - ticks[4], sum(ticks)
