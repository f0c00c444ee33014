"""Engine ``kernel``: the real Linux kernel in virtual time, without root; the testbed runs inside a user-mode guest."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sawtooth.engines import sim
from sawtooth.errors import InputError, SawtoothError, suggestion
from sawtooth.io.tempdirs import directory, locked

if TYPE_CHECKING:
    from sawtooth.engines import Engine, Progress, Stop
    from sawtooth.kernel import Kernel as Installed
    from sawtooth.run import Run
    from sawtooth.scenario import Scenario
    from sawtooth.scenario.compiled import Compiled
    from sawtooth.testbed.program_output import Output
    from sawtooth.testbed.pseudo_terminal import Terminal

TIMEOUT_S = 24 * 3600.0
MEMORY = "1024M"
PREFIX = "st-1-0-"
_POLL_S, _TYPING_S = 0.1, 0.02
"""Seconds between two checks of a guest, and while a person types."""
_DUALPI2_SINCE = (6, 17)


@dataclass(frozen=True)
class Kernel:
    """Boots one guest per run, pinned to a separate processor. ``capture``: a directory for packet headers, from both
    ends or from the hosts ``capture_at``.

    The same scenario and seed give the same tables each time.
    """

    capture: Path | None = None
    capture_at: tuple[str, ...] = ()
    name: str = "kernel"
    output: Output | None = None
    """Called with what programs print, as it comes."""
    terminal: Terminal | None = None
    """For the last program: a person's."""
    limit_s: float = TIMEOUT_S
    """Seconds of wall time after which a guest is ended."""

    def capturing(self, directory: Path, at: Sequence[str] = ()) -> Kernel:
        """This engine with captures."""
        return replace(self, capture=directory, capture_at=tuple(at))

    def check(self, scenario: Scenario) -> None:
        """Raises SawtoothError ``unsupported``, naming the field; ``kernel-missing``; ``tool-missing``."""
        from sawtooth.testbed.traffic import captured_hosts

        _check(scenario, capture=self.capture is not None)
        captured_hosts(scenario.compile(), self.capture_at)

    def run(self, scenario: Scenario, *, progress: Progress | None = None, stop: Stop | None = None) -> Run:
        """Boots, measures and reads. Raises SawtoothError: as ``check``; ``guest-failed``, ``testbed-failed``,
        ``interrupted``; ``program-not-ready`` and ``bad-measure`` of programs; ``unwritable-output`` and
        ``disk-full`` for captures.
        """
        from sawtooth import programs
        from sawtooth.testbed import outcome
        from sawtooth.testbed.program_output import Printed
        from sawtooth.testbed.pseudo_terminal import Keys
        from sawtooth.testbed.target_kernel import Place
        from sawtooth.testbed.traffic import captured_hosts

        compiled = scenario.compile()
        called = _check(scenario, capture=self.capture is not None)
        captured = captured_hosts(compiled, self.capture_at)
        captured = [] if self.capture is None else captured

        def poll() -> None:
            if stop is not None and stop():
                fix = "run it again"
                raise SawtoothError("interrupted", "stopped before the end of the scenario", fix=fix)
            keys.pass_on()
            printed.show()
            if progress is not None:
                progress(outcome.progress(share))

        begun = time.perf_counter()
        with directory() as own:
            share = own / "share"
            share.mkdir()
            printed, keys = Printed(share, scenario, self.output), Keys(share, self.terminal)
            order = programs.order(scenario, _kernel(compiled).own)
            if self.terminal is not None:
                self.terminal.give(order)
            outcome.prepare(
                share,
                compiled,
                Place(),
                PREFIX,
                traffic=programs.traffic(scenario),
                capture=captured,
                called=called,
                programs=order,
            )
            memory = f"{programs.memory(scenario) >> 20}M" if order else MEMORY
            poll_s = _POLL_S if self.terminal is None else _TYPING_S
            meta = boot(
                share,
                compiled,
                poll,
                poll_s,
                memory=memory,
                start_ns=_start_ns(scenario.date),
                places=programs.places(scenario),
                limit_s=self.limit_s,
            )
            printed.show()
            meta["wall_s"] = time.perf_counter() - begun
            result = outcome.run(share, scenario, self.name, meta, called=called)
            if self.capture is not None:
                outcome.keep_captures(share, self.capture)
        if progress is not None:
            progress(1.0)
        return result


ENGINE: Engine = Kernel()


def _check(scenario: Scenario, *, capture: bool) -> dict[str, str]:
    """What flows call their controls, and what the kernel calls them, where that is another name.

    Raises SawtoothError ``unsupported``, naming the field; ``kernel-missing``; ``tool-missing``.
    """
    from sawtooth import programs
    from sawtooth.testbed import unsupported
    from sawtooth.testbed.compiler import source
    from sawtooth.testbed.target_kernel import Place

    compiled, traffic = scenario.compile(), programs.traffic(scenario)
    unsupported.check(compiled, traffic, Place(), where="the engine kernel")
    found = _kernel(compiled)
    programs.check(scenario)
    for control, field in programs.controls(scenario).values():
        _check_control(control, found, field)
    for index, flow in enumerate(compiled.flows):
        if flow.module is None and flow.datagrams is None:
            _check_control(flow.cc, found, f"flows.{index}.cc")
    _check_queues(compiled, found)
    unsupported.check_version(compiled, found.version, where="the kernel of the engine kernel")
    called = _called(compiled, found)
    _words(compiled)
    unsupported.check_tools(traffic, capture=capture)
    source()
    return called


def series(
    scenarios: Sequence[Scenario], *, stop: Stop | None = None, limit_s: float = TIMEOUT_S
) -> list[Run | SawtoothError]:
    """Runs scenarios one after the other in one guest, which costs a tenth of a boot for each. They have one kernel and
    no programs. Losses, jitter and arrivals follow each scenario's seed, the guest's other random numbers the first's.
    A run that fails gives its error. ``limit_s``: seconds of wall time for the guest.

    The tables are the same each time, but not those of ``Kernel.run``: random numbers and the order of threads differ.
    They also differ between installations, because paths of other lengths take another time at boot. Raises
    SawtoothError as ``Kernel.run`` does.
    """
    from sawtooth import programs
    from sawtooth.testbed import outcome
    from sawtooth.testbed.target_kernel import Place

    def poll() -> None:
        if stop is not None and stop():
            raise SawtoothError("interrupted", "stopped before the end of the scenarios", fix="run it again")

    with directory() as own:
        share = own / "share"
        share.mkdir()
        parts = [str(at) for at in range(len(scenarios))]
        called = [_check(scenario, capture=False) for scenario in scenarios]
        for part, scenario, names in zip(parts, scenarios, called, strict=True):
            (share / part).mkdir()
            prefix, traffic = f"st-1-{part}-", programs.traffic(scenario)
            outcome.prepare(
                share / part, scenario.compile(), Place(), prefix, traffic=traffic, capture=(), called=names
            )
        meta = boot(share, scenarios[0].compile(), poll, parts=parts, limit_s=limit_s)
        found: list[Run | SawtoothError] = []
        for part, scenario, names in zip(parts, scenarios, called, strict=True):
            try:
                outcome.check(share / part, 0)
                found.append(outcome.run(share / part, scenario, "kernel", dict(meta), called=names))
            except SawtoothError as error:
                found.append(error)
        return found


def boot(
    share: Path,
    compiled: Compiled,
    poll: Callable[[], None],
    poll_s: float = _POLL_S,
    *,
    memory: str = MEMORY,
    start_ns: int | None = None,
    places: Sequence[Path] = (),
    parts: Sequence[str] = (),
    limit_s: float = TIMEOUT_S,
) -> dict[str, Any]:
    """Runs the testbed's task in ``share``, or those in its ``parts``, in a guest; other arguments are as in
    ``Guest.run``. Returns metadata: the kernel, and the processor time, which differs from run to run.

    Raises SawtoothError: ``kernel-missing``, ``guest-failed``, ``testbed-failed``, and what ``poll`` raises.
    """
    from sawtooth.kernel import Guest
    from sawtooth.kernel.guest import SHARE
    from sawtooth.testbed import outcome

    found = _kernel(compiled)
    with _room(memory, poll), processor() as cpu:
        guest = Guest(found, cpu=cpu, memory=memory, seed=compiled.seed, words=_words(compiled))
        if start_ns is not None:
            guest = replace(guest, start_ns=start_ns)
        command = [sys.executable, "-m", "sawtooth.testbed", *([f"{SHARE}/{part}" for part in parts] or [SHARE])]
        ended = guest.run(command, share=share, timeout_s=limit_s, poll=poll, poll_s=poll_s, places=places)
    # A status of 1 says that a part left an error, which is raised when that part is read.
    if not parts or ended.exit_code not in (0, 1):
        outcome.check(share, ended.exit_code)
    return {"kernel": found.describe(), "cpu_s": ended.cpu_s}


def _start_ns(date: str | None) -> int | None:
    """A scenario's date in ns since 1970."""
    if date is None:
        return None
    return int(datetime.fromisoformat(date).replace(tzinfo=UTC).timestamp()) * 1_000_000_000


def _kernel(compiled: Compiled) -> Installed:
    """The kernel for a scenario; with modules, one that has exactly these files built in.

    Raises SawtoothError ``kernel-missing``, and for a module's file ``file-not-found`` or ``file-unreadable``.
    """
    from sawtooth.kernel import find, find_with

    sources = _sources(compiled)
    try:
        if sources:
            return find_with(sources, compiled.hosts[0].hz, compiled.kernel)
        return find(compiled.hosts[0].hz, compiled.kernel)
    except SawtoothError as error:
        raise error.at(field=None if compiled.kernel is None else "host.kernel") from None


def _sources(compiled: Compiled) -> dict[str, str]:
    """SHA-256 of the modules' files, by path."""
    from sawtooth.kernel.additions import File

    paths = [path for flow in compiled.flows if flow.module is not None for path in flow.module.sources]
    return {path: File.read(path).sha256 for path in dict.fromkeys(paths)}


def _called(compiled: Compiled, found: Installed) -> dict[str, str]:
    """Maps flows' names of congestion controls to the kernel's, where they differ.

    Raises InputError ``unsupported`` for a module that registers several controls when none is selected.
    """
    sources, called = _sources(compiled), dict(found.names)
    for index, flow in enumerate(compiled.flows):
        if flow.module is None:
            continue
        at = f"flows.{index}.cc"
        names = [name for path in flow.module.sources for name in found.registered(sources[path])]
        chosen = [name for name in names if flow.module.name in (None, name)]
        if len(chosen) != 1 or called.get(flow.cc, chosen[0]) != chosen[0]:
            message = f"{', '.join(flow.module.sources)} registers {', '.join(names) or 'nothing'}"
            fix = f'name one of them: cc = {{ source = "{flow.module.sources[0]}", name = "NAME" }}'
            raise InputError("unsupported", message, field=at, fix=fix)
        called[flow.cc] = chosen[0]
    return called


def _words(compiled: Compiled) -> tuple[str, ...]:
    """The kernel's command line for parameters of the built-in modules.

    They apply to the whole kernel. Raises InputError ``conflict`` if two flows want different ones for the same files;
    ``unsupported`` for a value that a command line cannot express; and as ``cc_module.IsolatedSimulation`` does for one
    that the module refuses, which a kernel would ignore.
    """
    wanted: dict[tuple[str, ...], tuple[int, tuple[tuple[str, str], ...]]] = {}
    for index, flow in enumerate(compiled.flows):
        if flow.module is None:
            continue
        sources, at = flow.module.sources, f"flows.{index}.cc.parameters"
        first, before = wanted.setdefault(sources, (index, flow.module.parameters))
        if dict(before) != dict(flow.module.parameters):
            message = f"other parameters than those of flows.{first}, which uses the same module"
            raise InputError("conflict", message, field=at, fix="give both the same, or use --engine sim")
        for name, value in flow.module.parameters:
            if '"' in value or not value.isprintable():
                message = f"{name}: a kernel's command line has no place for quotes, line ends and the like"
                raise InputError("unsupported", message, field=f"{at}.{name}", fix="use --engine sim")
    for index, parameters in wanted.values():
        if parameters:
            _check_parameters(compiled, index)
    return tuple(
        f'{_module(path)}.{name}="{value}"'
        for sources, (_, parameters) in wanted.items()
        for path in sources
        for name, value in parameters
    )


def _check_parameters(compiled: Compiled, index: int) -> None:
    """Asks the module of this flow, in a separate process, whether it accepts the parameters."""
    from sawtooth.engines.cc_module import IsolatedSimulation, Module

    flow = compiled.flows[index]
    assert flow.module is not None
    hz = compiled.hosts[compiled.source(flow)].hz
    with IsolatedSimulation(
        None, None, {index: Module(flow.module.sources, hz, flow.module.parameters, flow.module.name)}
    ):
        pass


def _module(path: str) -> str:
    """A kernel's name for something built in."""
    return Path(path).stem.replace("-", "_")


def _check_control(name: str, found: Installed, field: str) -> None:
    """Raises SawtoothError ``unsupported`` for a control that the kernel lacks, and names a kernel that has it."""
    from sawtooth.kernel import having

    if name in found.controls:
        return
    named = f'the kernel "{found.name}"' if found.name else "this kernel"
    others = having(name)
    if others:
        fix = f'set host.kernel to "{others[0]}", which has it'
    elif name in sim.controls():
        fix = "use --engine sim, which has it, or build a kernel with it: sawtooth kernel build --help"
    else:
        fix = suggestion(name, found.controls)
    raise InputError("unsupported", f"{named} has no {name}", field=field, fix=fix)


def _check_queues(compiled: Compiled, found: Installed) -> None:
    """Raises SawtoothError ``unsupported`` for a queue that the kernel is too old for."""

    version = tuple(int(part) for part in re.findall(r"\d+", found.version)[:2])
    if version < _DUALPI2_SINCE and any(
        one.discipline is not None and one.discipline.kind == "dualpi2" for one in compiled.transmitters
    ):
        fix = (
            "use --engine sim, or build Linux 6.17 or later (sawtooth kernel build --source) and name it in host.kernel"
        )
        raise InputError("unsupported", f"Linux {found.version} has no dualpi2", field="queue", fix=fix)


_claimed: list[int] = []
"""Bytes of the guests that run in this process."""
_changed = threading.Condition()


@contextlib.contextmanager
def _room(memory: str, poll: Callable[[], None]) -> Iterator[None]:
    """Waits until a guest of this size fits into free memory beside the guests of other threads, which may still grow
    to theirs. Raises SawtoothError ``guest-failed`` if it is alone and does not fit, and what ``poll`` raises."""
    from sawtooth.kernel.guest import size

    wanted = size(memory)
    with _changed:
        while wanted > (free := _available()) - sum(_claimed):
            if not _claimed:
                message = f"a guest of {wanted / 2**30:.1f} GiB does not fit into {free / 2**30:.1f} GiB of free memory"
                fix = "end other programs on this machine, or set a smaller memory in the scenario"
                raise SawtoothError("guest-failed", message, fix=fix)
            _changed.wait(_POLL_S)
            poll()
        _claimed.append(wanted)
    try:
        yield
    finally:
        with _changed:
            _claimed.remove(wanted)
            _changed.notify_all()


def _available() -> int:
    """Bytes of memory that programs can still get (proc(5), MemAvailable)."""
    found = re.search(r"^MemAvailable: +(\d+) kB$", Path("/proc/meminfo").read_text(), re.MULTILINE)
    return sys.maxsize if found is None else int(found[1]) << 10


@contextlib.contextmanager
def processor() -> Iterator[int | None]:
    """A processor to which no other guest of this user is pinned; None if all are taken.

    A guest that moves between processors with its traced programs takes twice the time.
    """
    cpus = sorted(os.sched_getaffinity(0), reverse=True)
    with locked([f"processor-{cpu}" for cpu in cpus]) as name:
        yield None if name is None else int(name.rpartition("-")[2])
