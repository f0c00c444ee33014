"""A scenario's programs for the testbed: a part of its task, as JSON."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sawtooth.scenario import Scenario
    from sawtooth.scenario.tables import Program

LEAST_BYTES = 2 << 30
"""Memory of a guest with programs, files that they write included."""
_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def traffic(scenario: Scenario) -> str:
    """Which program sends the flows. Where there are none beside programs, the one that needs nothing installed."""
    return "native" if scenario.programs and not scenario.flows else scenario.traffic


def controls(scenario: Scenario) -> dict[str, tuple[str, str]]:
    """The congestion control of programs' sockets, and the field that gives it, by host; only of hosts with one."""
    found = {}
    for host in scenario.compile().program_hosts:
        own = scenario.hosts.get(host)
        if own is not None and own.cc is not None:
            found[host] = (own.cc, f"hosts.{host}.cc")
        elif scenario.host.cc is not None:
            found[host] = (scenario.host.cc, "host.cc")
    return found


def order(scenario: Scenario, kernels: Callable[[str], str] = str) -> dict[str, Any]:
    """Empty for a scenario without programs. ``kernels``: what the kernel calls a congestion control."""
    if not scenario.programs:
        return {}
    compiled = scenario.compile()
    programs = [_program(one, host) for one, host in zip(scenario.programs, compiled.program_hosts, strict=True)]
    return {
        "programs": programs,
        "called": compiled.called,
        "controls": {host: kernels(cc) for host, (cc, _) in controls(scenario).items()},
        "places": [str(place) for place in places(scenario)],
    }


def places(scenario: Scenario) -> list[Path]:
    """Directories that programs see wherever they lie; of a file, the one that it is in."""
    files = [Path(file).resolve() for one in scenario.programs for file in one.files]
    return sorted({*map(_directory, scenario.programs), *(one if one.is_dir() else one.parent for one in files)})


def memory(scenario: Scenario) -> int:
    """Bytes of a guest for all programs and the files that they write."""
    return max(LEAST_BYTES, sum(one.memory.bytes for one in scenario.programs if one.memory is not None))


def words(program: Program) -> list[str]:
    """What is executed."""
    return ["/bin/sh", "-c", program.command] if isinstance(program.command, str) else list(program.command)


def command_text(command: str | Sequence[str]) -> str:
    """As a person types it."""
    return command if isinstance(command, str) else shlex.join(command)


def _program(program: Program, host: str) -> dict[str, Any]:
    return {
        "host": host,
        "words": words(program),
        "ready": program.ready,
        "start_ns": None if program.start is None else program.start.ns,
        "directory": str(_directory(program)),
        "environment": {
            # At the end: this Python's programs, for sawtooth-browser.
            "PATH": f"{os.environ.get('PATH', _SYSTEM_PATH)}:{Path(sys.executable).parent}",
            "HOME": "/tmp",
            "LC_ALL": "C.UTF-8",
            **program.environment,
        },
        "stdin": program.stdin,
        "collect": list(program.collect),
    }


def _directory(program: Program) -> Path:
    return Path(program.directory or Path.cwd()).resolve()
