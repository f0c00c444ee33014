"""A network in a test: programs of any language on its hosts, on the real kernel, in virtual time and without root.

from sawtooth.testing import network

def test_the_download_survives_loss():
    with network(rate="20 Mbit/s", rtt="40 ms", loss="1%", cc="bbr") as net:
        net.host("server").start("python3 -m http.server 8000", directory="site")
        done = net.host("client").run(["curl", "-sO", "http://server:8000/file"])
    assert done.seconds < 3
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sawtooth.programs import Execution, Program
    from sawtooth.scenario import Scenario


@dataclass(frozen=True)
class Done:
    """A command that ran: its exit ``status`` (None: time was up), ``seconds`` of virtual time from its start to its
    end, what it printed, and ``execution``, the whole run: connections, queues, files.
    """

    status: int | None
    seconds: float | None
    stdout: str
    stderr: str
    execution: Execution = field(repr=False)


@dataclass
class Network:
    """Hosts and what was started on them. Each ``run`` boots all of it anew, so runs don't depend on each other."""

    scenario: Scenario
    cc: str | None
    engine: str
    servers: list[Program] = field(default_factory=list)

    def host(self, name: str) -> Host:
        """The host of that name: ``server`` and ``client`` are the two ends of the path."""
        return Host(self, name)


@dataclass(frozen=True)
class Host:
    """Where programs run."""

    network: Network
    name: str

    def start(self, command: str | Sequence[str], *, ready: str = "listening", **options: Any) -> None:
        """A server for all later runs; ``ready`` and ``options`` as ``sawtooth.programs.Program`` has them."""
        from sawtooth.programs import Program

        self.network.servers.append(Program(self.name, command, ready=ready, **options))

    def run(self, command: str | Sequence[str], *, check: bool = True, **options: Any) -> Done:
        """Runs a command to its end, beside the servers and the scenario's flows.

        Raises subprocess.CalledProcessError where it failed, unless ``check`` is false; subprocess.TimeoutExpired where
        the scenario's duration was too short for it; SawtoothError as ``sawtooth.programs.execute`` does.
        """
        from sawtooth.programs import Program, execute

        program = Program(self.name, command, **options)
        network = self.network
        done = execute(network.scenario, [*network.servers, program], engine=network.engine, cc=network.cc)
        last = done.programs[-1]
        result = Done(
            last.status, last.seconds, last.stdout.decode(errors="replace"), last.stderr.decode(errors="replace"), done
        )
        if check and last.status is None:
            limit = network.scenario.duration.seconds
            raise subprocess.TimeoutExpired(program.words(), limit, last.stdout, last.stderr)
        if check and last.status:
            raise subprocess.CalledProcessError(last.status, program.words(), result.stdout, result.stderr)
        return result


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
    """A path (``rate``, ``rtt``, ``loss``, ``queue``, as in ``[path]``) between ``server`` and ``client``, or a whole
    ``scenario``, which has its own duration and may list flows that run beside the programs. ``cc``: the congestion
    control of all sockets.

    Raises SawtoothError as scenarios do; ``bad-usage`` for a path and a scenario.
    """
    from sawtooth.errors import InputError
    from sawtooth.scenario import Scenario as Language

    if scenario is None:
        tables = {"topology": "path", "duration": duration, "interval": "100 ms", "path": path}
        scenario = Language.from_dict(tables)
    elif path:
        fix = "leave out one of them"
        raise InputError("bad-usage", "the scenario has a path already", field=next(iter(path)), fix=fix)
    elif isinstance(scenario, Mapping):
        scenario = Language.from_dict(scenario)
    yield Network(scenario.set({"seed": seed}), cc, engine)
