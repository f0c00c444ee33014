"""A network in a test: programs of any language on its hosts, on the real kernel, in virtual time and without root.

from sawtooth.testing import network

def test_the_download_survives_loss():
    with network(rate="20 Mbit/s", rtt="40 ms", loss="1%", cc="bbr") as net:
        net.host("server").start("python3 -m http.server 8000", directory="site")
        done = net.host("client").run(["curl", "-sO", "http://server:8000/file"])
    assert done.seconds < 3
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sawtooth.run import Run
    from sawtooth.scenario import Scenario


@dataclass(frozen=True)
class Done:
    """The result of a command: its exit ``status`` (None if time ran out), ``seconds`` of virtual time from start to
    end, its output, and ``run``, the whole run with its tables of connections, queues and files."""

    status: int | None
    seconds: float | None
    stdout: str
    stderr: str
    run: Run = field(repr=False)


@dataclass
class Network:
    """Hosts and the servers started on them. Each ``run`` boots everything again, so runs do not depend on each
    other."""

    scenario: Scenario
    engine: str
    servers: list[dict[str, Any]] = field(default_factory=list)

    def host(self, name: str) -> Host:
        """The host of that name. ``server`` and ``client`` are the two ends of the path."""
        return Host(self, name)


@dataclass(frozen=True)
class Host:
    """A host on which you can run programs."""

    network: Network
    name: str

    def start(self, command: str | Sequence[str], *, ready: str = "listening", **options: Any) -> None:
        """Registers a server for all later runs. ``ready`` and ``options`` are fields of ``[[programs]]``."""
        self.network.servers.append(self._program(command, ready=ready, **options))

    def run(self, command: str | Sequence[str], *, check: bool = True, **options: Any) -> Done:
        """Runs a command to its end, beside the servers and the scenario's flows. ``options`` are fields of
        ``[[programs]]``.

        Raises subprocess.CalledProcessError if it fails, unless ``check`` is false; subprocess.TimeoutExpired if the
        scenario's duration is too short for it; SawtoothError as ``sawtooth.run`` does.
        """
        from sawtooth import engines
        from sawtooth.programs import finished, words

        network = self.network
        listed = network.scenario.given().get("programs", [])
        scenario = network.scenario.set({"programs": [*listed, *network.servers, self._program(command, **options)]})
        run = engines.get(network.engine).run(scenario)
        last = finished(run)[-1]
        stdout, stderr = (one.decode(errors="replace") for one in (last.stdout, last.stderr))
        if check and last.status is None:
            raise subprocess.TimeoutExpired(words(scenario.programs[-1]), scenario.duration.seconds, stdout, stderr)
        if check and last.status:
            raise subprocess.CalledProcessError(last.status, words(scenario.programs[-1]), stdout, stderr)
        return Done(last.status, last.seconds, stdout, stderr, run)

    def _program(self, command: str | Sequence[str], *, directory: str = ".", **options: Any) -> dict[str, Any]:
        written = command if isinstance(command, str) else [str(word) for word in command]
        return {"host": self.name, "command": written, "directory": os.path.abspath(directory), **options}


@contextmanager
def network(
    scenario: Scenario | Mapping[str, Any] | None = None,
    *,
    cc: str | None = None,
    seed: int = 1,
    duration: str = "60 s",
    engine: str = "kernel",
    **path: str,
) -> Iterator[Network]:
    """A path between ``server`` and ``client`` (``rate``, ``rtt``, ``loss``, ``queue``, as in ``[path]``), or a whole
    ``scenario``, which has its own duration and may have flows that run beside the programs. ``cc`` is the congestion
    control of all sockets.

    Raises SawtoothError as scenarios do, and ``bad-usage`` if both a path and a scenario are given.
    """
    from sawtooth.errors import InputError
    from sawtooth.scenario import Scenario

    if scenario is None:
        tables = {"topology": "path", "duration": duration, "interval": "100 ms", "path": path}
        scenario = Scenario.from_dict(tables)
    elif path:
        fix = "leave out one of them"
        raise InputError("bad-usage", "the scenario has a path already", field=next(iter(path)), fix=fix)
    elif isinstance(scenario, Mapping):
        scenario = Scenario.from_dict(scenario)
    yield Network(scenario.set({"seed": seed} | ({} if cc is None else {"host.cc": cc})), engine)
