"""Runs programs on the hosts of a scenario, on the engine ``kernel`` (virtual time) or ``netns`` (this host, root)."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sawtooth.compiled import Compiled
from sawtooth.errors import InputError, SawtoothError, suggestion
from sawtooth.foreign import json_value, part
from sawtooth.plain import plain
from sawtooth.programs.program import Program
from sawtooth.programs.value import value_of
from sawtooth.testbed.containers import FILES_BYTES

if TYPE_CHECKING:
    from pandas import DataFrame

    from sawtooth.engines import Progress, Stop
    from sawtooth.scenario import Scenario
    from sawtooth.testbed.place import Place

ENGINES = ("kernel", "netns")
TIME_UP = 124
MEMORY = "2048M"
"""Memory of the guest, which includes files that programs write."""
_PIECE = 1 << 24
_STATES = (
    "established syn_sent syn_recv fin_wait1 fin_wait2 time_wait close close_wait last_ack listen closing new_syn_recv"
)


@dataclass(frozen=True)
class Finished:
    """The outcome of a program. Times are in seconds since the run's start (servers start before it).

    ``status`` is its exit status; below 0 it is the signal that ended it, as subprocess's ``returncode``. It is None
    for a program that ran until the run ended, and so is ``end_s``.
    """

    program: Program
    start_s: float | None
    end_s: float | None
    status: int | None
    stdout: bytes = field(repr=False)
    stderr: bytes = field(repr=False)

    @property
    def seconds(self) -> float | None:
        """From its start to its end; None if one of them did not happen."""
        return None if self.start_s is None or self.end_s is None else self.end_s - self.start_s

    @property
    def exit_status(self) -> int:
        """As in a shell: 128 plus the signal's number, or 124, as timeout(1) has it, if the run ended first."""
        if self.status is None:
            return TIME_UP
        return self.status if self.status >= 0 else 128 - self.status

    def value(self, place: str) -> float:
        """The number that ``place`` names in the program's output. Raises InputError ``bad-measure`` as ``value_of``
        does."""
        return value_of(place, self.stdout.decode(errors="replace"), self.stderr.decode(errors="replace"))


@dataclass(frozen=True)
class Execution:
    """The result of a run with programs.

    - ``connections``: every TCP connection of the programs' hosts at the end of each interval.
    - ``tables``: the tables of every run, by name. ``collected``: files brought back, by host.
    - ``end_s``: when the last program ended. ``wall_s``, ``cpu_s``: what the run cost on this machine.
    """

    programs: tuple[Finished, ...]
    connections: DataFrame
    tables: Mapping[str, DataFrame]
    collected: Mapping[str, Mapping[str, bytes]]
    end_s: float
    wall_s: float
    cpu_s: float | None


def execute(
    scenario: Scenario,
    programs: Sequence[Program],
    *,
    engine: str = "kernel",
    cc: str | None = None,
    memory: str = MEMORY,
    see: Sequence[Path] = (),
    progress: Progress | None = None,
    stop: Stop | None = None,
    output: Callable[[int, bytes, bytes], None] | None = None,
) -> Execution:
    """Runs programs on a scenario's hosts, together with the scenario's flows and probes.

    A host has its own network, name and processes. Its files are on top of this machine's, which it sees read-only. All
    hosts are in /etc/hosts; ``server`` and ``client`` are the first flow's two ends. ``cc`` is the congestion control
    of sockets there. Programs see their working directory and the directories ``see``. ``output`` is called from time
    to time with a program's number and its new output.

    Raises SawtoothError: ``unsupported``, ``bad-usage``, ``unknown-name``, ``bad-program``, ``kernel-missing``,
    ``tool-missing``, ``program-not-ready``, ``testbed-failed``, ``interrupted``.
    """
    from sawtooth import temporary
    from sawtooth.testbed import outcome

    if engine not in ENGINES:
        message = f"the engine {engine} runs no programs"
        raise InputError("unsupported", message, field="engine", fix=f"use --engine {' or '.join(ENGINES)}")
    if re.fullmatch(r"[1-9][0-9]{0,8}[KMG]", memory) is None:
        message = f'"{plain(memory, 40)}" is no size of memory'
        raise InputError("bad-usage", message, field="memory", fix='write it like "2048M"')
    aliases = _aliases(scenario)
    names = {name: host for host, name in aliases.items()}
    known = [host.name for host in scenario.compile().hosts]
    placed = []
    for number, program in enumerate(programs):
        host = names.get(program.host, program.host)
        if host not in known:
            message = f'the scenario has no host "{program.host[:60]}"'
            fix = suggestion(program.host, [*known, *names])
            raise InputError("unknown-name", message, field=f"programs.{number}.host", fix=fix)
        placed.append(replace(program, host=host))
    compiled = _with_ways(scenario, sorted({one.host for one in placed}))
    tasks = [program.task(f"programs.{number}") for number, program in enumerate(placed)]
    task = {
        "programs": tasks,
        "hosts": _hosts_file(compiled, aliases),
        "called": aliases,
        "places": sorted({*(str(one.resolve()) for one in see), *(one["directory"] for one in tasks)}),
    }
    begun = time.perf_counter()
    with temporary.directory() as own:
        share = own / "share"
        share.mkdir()
        for number, program in enumerate(programs):
            if program.stdin:
                (share / f"program-{number}.in").write_bytes(program.stdin)
        outputs = [_Output(share, number, output) for number in range(len(programs))]

        def look(fraction: float | None = None) -> None:
            for one in outputs:
                one.show()
            if progress is not None:
                progress(outcome.progress(share) if fraction is None else fraction)
            if stop is not None and stop():
                raise SawtoothError("interrupted", "stopped before the programs ended", fix="run it again")

        # Without flows it does not matter which program would send them.
        order = _Order(share, compiled, scenario.traffic if compiled.flows else "native", task, cc, memory, look)
        cpu_s = None
        if engine == "kernel":
            cpu_s = _on_kernel(order)
        else:
            _on_netns(order)
        look(1.0)
        with outcome.whole():
            found = _read(share, compiled, programs, aliases)
        return replace(found, wall_s=time.perf_counter() - begun, cpu_s=cpu_s)


def _aliases(scenario: Scenario) -> dict[str, str]:
    """Names for the two ends of the first flow (``client`` receives the data), unless hosts have these names."""
    compiled = scenario.compile()
    names = [host.name for host in compiled.hosts]
    senders = compiled.senders
    if not senders:
        return {}
    ends = {"server": names[compiled.source(senders[0])], "client": names[compiled.target(senders[0])]}
    return {host: alias for alias, host in ends.items() if alias not in names}


def _with_ways(scenario: Scenario, hosts: Sequence[str]) -> Compiled:
    """The compiled scenario without the default flow of a scenario that lists none, and with a path between every two
    of these hosts, as a probe that sends nothing."""
    own = scenario.to_dict().get("probes", [])
    ways = [{"from": one, "to": other, "interval": "1 s", "count": 1} for one, other in combinations(hosts, 2)]
    routed = scenario.set({"probes": [*own, *ways]}).compile()
    told = routed.to_dict()
    for silent in told["probes"][len(scenario.compile().probes) :]:
        silent["count"] = 0
    listed = "flows" in scenario.given()
    if not listed:
        told["flows"] = []
    return replace(Compiled.from_dict(told), kernel=routed.kernel, flows=routed.flows if listed else ())


def _hosts_file(compiled: Compiled, aliases: Mapping[str, str]) -> str:
    from sawtooth.testbed.plan import address

    lines = ["127.0.0.1 localhost"]
    for number, host in enumerate(compiled.hosts):
        lines.append(f"{address(number)} {' '.join(dict.fromkeys([aliases.get(host.name, host.name), host.name]))}")
    return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class _Order:
    """The task of an engine in the directory ``share``."""

    share: Path
    compiled: Compiled
    traffic: str
    task: dict[str, Any]
    cc: str | None
    memory: str
    look: Callable[..., None]

    def prepare(self, place: Place, prefix: str, control: str | None, called: Mapping[str, str]) -> None:
        """Writes the task. ``control`` and ``called`` are that kernel's names for ``cc`` and for the flows'
        controls."""
        from sawtooth.testbed import outcome

        programs = {**self.task, "control": control}
        outcome.prepare(
            self.share,
            self.compiled,
            place,
            prefix,
            traffic=self.traffic,
            capture=(),
            called=called,
            programs=programs,
        )


def _on_kernel(order: _Order) -> float:
    """Runs the task in a guest and returns the processor time that it took."""
    from sawtooth.engines import kernel
    from sawtooth.testbed.place import Place

    called = kernel.check(order.compiled, order.traffic, capture=False)
    control = None if order.cc is None else kernel.control(order.compiled, order.cc)
    order.prepare(Place(), kernel.PREFIX, control, called)
    places = [Path(one) for one in order.task["places"]]
    return float(kernel.boot(order.share, order.compiled, order.look, memory=order.memory, places=places)["cpu_s"])


def _on_netns(order: _Order) -> None:
    """Runs the task in real time, in namespaces of this host."""
    from sawtooth.engines import netns
    from sawtooth.testbed import survey
    from sawtooth.testbed.apply import remove
    from sawtooth.testbed.cleaning import clean
    from sawtooth.testbed.names import prefix
    from sawtooth.testbed.plan import build

    netns.check(order.compiled, order.traffic, capture=False)
    if order.cc is not None:
        netns.check_control(order.cc, "cc")
    clean()
    place, own = survey.place(), prefix()
    order.prepare(place, own, order.cc, {})
    try:
        netns.measure(order.share, order.compiled.duration_ns / 1e9, order.look, None)
    finally:
        remove([namespace.name for namespace in build(order.compiled, place, own).namespaces])


class _Output:
    """Passes on a program's output as it arrives."""

    def __init__(self, share: Path, number: int, told: Callable[[int, bytes, bytes], None] | None) -> None:
        self._files = [share / f"program-{number}.{ending}" for ending in ("out", "err")]
        self._number, self._told, self._at = number, told, [0, 0]

    def show(self) -> None:
        if self._told is None:
            return
        while any(new := [self._next(index) for index in (0, 1)]):
            self._told(self._number, *new)

    def _next(self, index: int) -> bytes:
        """Of output or errors. A program that is root of a guest may lay a link or an endless file in their place."""
        piece = part(self._files[index], self._at[index], min(_PIECE, FILES_BYTES - self._at[index]))
        self._at[index] += len(piece)
        return piece


def _read(share: Path, compiled: Compiled, programs: Sequence[Program], called: Mapping[str, str]) -> Execution:
    from sawtooth.testbed import tables
    from sawtooth.testbed.__main__ import SYSTEM
    from sawtooth.testbed.programs import PROGRAMS

    told, system = (json_value(part(share / name, 0, 1 << 26).decode()) for name in (PROGRAMS, SYSTEM))
    version = re.search(r"(\d+)\.(\d+)", system["kernel"])
    assert version is not None
    end_ns = max(1, round(told["end_s"] * 1e9))
    found = tables.read(share, replace(compiled, duration_ns=end_ns), (int(version[1]), int(version[2])))
    groups = {one["group"]: number for number, one in enumerate(told["programs"]) if one["group"]}
    finished = tuple(
        Finished(
            program,
            one["start_s"],
            one["end_s"],
            one["status"],
            _bytes(share / f"program-{number}.out"),
            _bytes(share / f"program-{number}.err"),
        )
        for number, (program, one) in enumerate(zip(programs, told["programs"], strict=True))
    )
    own = {alias: host for host, alias in called.items()}
    asked = {own.get(program.host, program.host) for program in programs if program.collect}
    collected = {called.get(host, host): _collected(share / "collected" / host) for host in sorted(asked)}
    names = [called.get(host.name, host.name) for host in compiled.hosts]
    return Execution(finished, _connections(share, names, groups), found, collected, told["end_s"], 0.0, None)


def _collected(directory: Path) -> dict[str, bytes]:
    """The files that are there: their names are a program's, and may have line ends in them."""
    names = sorted(os.listdir(directory)) if directory.is_dir() else []
    return {name: part(directory / name, 0, FILES_BYTES) for name in names}


def _bytes(path: Path) -> bytes:
    return part(path, 0, FILES_BYTES)


def _connections(share: Path, names: Sequence[str], groups: Mapping[int, int]) -> DataFrame:
    """One row per interval, host and connection; times in seconds, rates in bit/s. A connection that ended has a last
    row with the state ``close``, which the kernel reports with fewer values: control and program come from earlier
    rows.
    """
    import pandas as pd

    from sawtooth.testbed.plan import address

    kinds = {"cc": "str", "local": "str", "peer": "str", "cookie": "uint64"}
    raw = pd.read_csv(share / "connections.csv", dtype=kinds)
    by_address = {address(number): name for number, name in enumerate(names)}
    table = pd.DataFrame({"t_s": raw["t_ns"] / 1e9, "host": [names[one] for one in raw["namespace"]]})
    table["connection"] = pd.factorize(raw["cookie"])[0]
    program = raw["group"].map(lambda group: groups.get(int(group)))
    table["program"] = program.groupby(raw["cookie"]).transform("max").fillna(-1).astype("int64")
    states = _STATES.split()
    table["state"] = [states[one - 1] if 0 < one <= len(states) else "unknown" for one in raw["state"]]
    table["cc"] = raw["cc"].groupby(raw["cookie"]).transform("first").fillna("")
    for name in ("local", "local_port", "peer", "peer_port"):
        table[name] = raw[name]
    table["peer_host"] = [by_address.get(one, "") for one in raw["peer"]]
    for name in ("cwnd_segments", "ssthresh_segments"):
        table[name] = raw[name]
    for name in ("srtt", "min_rtt", "rwnd_limited", "sndbuf_limited"):
        table[f"{name}_s"] = raw[f"{name}_us"].where(raw[f"{name}_us"] != 0xFFFFFFFF) / 1e6
    for name in ("delivery", "pacing"):
        table[f"{name}_bps"] = raw[f"{name}_bytes"].astype(float).where(lambda value: value < 2**62) * 8
    for name in ("in_flight_segments", "lost_segments", "sent_bytes", "received_bytes", "segments_out", "retransmits"):
        table[name] = raw[name]
    return table
