"""Engine ``sim``: the packet-level simulator of the Rust core, run in slices so that progress and Ctrl-C work."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sawtooth import _core
from sawtooth.engines import agents, steady
from sawtooth.errors import InputError, SawtoothError
from sawtooth.io.atomic_io import ASIDE, writing
from sawtooth.io.table_store import GrowingTables
from sawtooth.run import Run, metadata
from sawtooth.scenario.compiled import Compiled
from sawtooth.scenario.header_sizes import CLIENT_PORT, PORTS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sawtooth.engines import Engine, Progress, Stop
    from sawtooth.engines.cc_module import Module
    from sawtooth.scenario import Scenario

    Columns = Mapping[str, Mapping[str, NDArray[Any]]]

EVENTS_A_SLICE = 200_000
"""Most events between two checks of progress and stop. With a control in Python, ``agents.DECISIONS_A_SLICE``."""
SLICE_S = 0.05
"""Target time of a slice; if it takes longer, the next has fewer events. Slicing never changes a result."""
_PORTS = PORTS - CLIENT_PORT
"""Client ports in captures: each connection of a flow has its own."""


@dataclass(frozen=True)
class Sim:
    """Answers every scenario whose congestion controls the core has. Its memory does not grow with the duration: long
    tables are in a file, except the rows between two decisions of a control in Python. ``capture``: a directory for
    packet headers, from both ends or from the hosts ``capture_at``; captures change nothing else. ``played``: Python
    functions that replace flows' congestion controls, by the flow's place.
    """

    capture: Path | None = None
    capture_at: tuple[str, ...] = ()
    name: str = "sim"
    played: Mapping[int, agents.Control] = field(default_factory=dict)

    def capturing(self, directory: Path, at: Sequence[str] = ()) -> Sim:
        """This engine with captures."""
        return replace(self, capture=directory, capture_at=tuple(at))

    def check(self, scenario: Scenario) -> None:
        """Raises SawtoothError: ``unsupported`` as ``Scenario.check_simulated`` does, and for more connections than
        captures have ports; ``unknown-name`` for a host in ``capture_at``; for files of congestion controls
        ``file-not-found``, ``file-unreadable``, ``tool-missing``, ``compile-failed``, ``bad-policy`` and ``conflict``.
        """
        from sawtooth.testbed.traffic import captured_hosts

        compiled = scenario.compile()
        scenario.check_simulated()
        captured_hosts(compiled, self.capture_at)
        if self.played:
            agents.check_alone(compiled, self.played)
        _check_modules(compiled)
        if (played := self.played or agents.controls(compiled)) and self.capture is not None:
            message = "a run with a control in Python writes no captures"
            raise InputError("unsupported", message, field=f"flows.{min(played)}.cc", fix="remove --capture")
        agents.policies(compiled)
        for index, flow in enumerate(compiled.flows):
            if self.capture is not None and flow.count > _PORTS:
                message = f"{flow.count} connections: a capture has ports for {_PORTS} of each flow"
                raise InputError(
                    "unsupported", message, field=f"flows.{index}.count", fix="remove --capture, or lower the count"
                )

    def run(self, scenario: Scenario, *, progress: Progress | None = None, stop: Stop | None = None) -> Run:
        """Simulates to the end. The tables depend only on the scenario and its seed.

        Modules run in a separate process. Raises SawtoothError: as ``check`` does; ``core-failed``, ``module-refused``,
        ``module-failed``, ``policy-failed``, ``interrupted`` (``stop`` returned true); ``unwritable-output`` and
        ``disk-full`` for captures, and for tables too long for memory, which are in the temporary directory.
        """
        self.check(scenario)
        with self._captures(scenario.compile()) as files:
            return self._run(scenario, files, progress, stop)

    def _run(
        self, scenario: Scenario, files: dict[int, str] | None, progress: Progress | None, stop: Stop | None
    ) -> Run:
        compiled = scenario.compile()
        begun = time.perf_counter()
        growing = GrowingTables()
        with contextlib.ExitStack() as ending:
            simulation, fast = self._advanced(scenario, files, growing.add, progress, stop, ending)
            counted = {"events": simulation.events, "delivered_packets": simulation.delivered_packets}
            if not fast and _is_exact(scenario):
                counted["skipped_packets"] = simulation.skipped_packets
                fast = "" if simulation.skipped_packets else "no packets repeat others exactly"
        tables = growing.finish()
        limited = metadata.limits(compiled, tables)
        said = [f"fast: the whole run was simulated: {fast}"] if isinstance(fast, str) and fast else []
        if isinstance(fast, steady.Steady):
            said = [fast.words()]
        if "skipped_packets" in counted and not fast:
            said = ["fast: {skipped_packets:,} of {delivered_packets:,} packets were skipped".format_map(counted)]
        described: dict[str, Any] = {
            "names": metadata.names(compiled),
            **counted,
            **({"fast": dataclasses.asdict(fast)} if isinstance(fast, steady.Steady) else {}),
            "limits": limited,
            "warnings": [*said, *metadata.warnings(scenario, tables, limited)],
            # Differs from run to run, unlike everything else.
            "wall_s": time.perf_counter() - begun,
        }
        return Run(scenario=scenario, engine=self.name, tables=tables, meta=described)

    def _advanced(
        self,
        scenario: Scenario,
        files: dict[int, str] | None,
        take: Callable[[Columns], None],
        progress: Progress | None,
        stop: Stop | None,
        ending: contextlib.ExitStack,
    ) -> tuple[Any, steady.Steady | str]:
        """The core's simulation at its end, and what of its rows is repeated, or why nothing is; ``take`` gets the rows
        of each slice."""
        compiled = scenario.compile()
        watch: steady.Watch | str = ""
        if scenario.fast is not None and files:
            watch = "captures have every packet"
        elif scenario.fast is not None and (self.played or agents.controls(compiled)):
            # It may not behave the same again.
            watch = "a control is in Python"
        elif _is_exact(scenario):
            watch = "a control is in C" if _modules(compiled) else ""
        elif scenario.fast is not None:
            watch = steady.Watch.of(scenario)
        try:
            simulation = ending.enter_context(_simulation(compiled, files, self.played))
            if not watch and _is_exact(scenario):
                simulation.skip_repeated()
            finished, repeated = False, None
            watched = watch if isinstance(watch, steady.Watch) else None
            events = EVENTS_A_SLICE // 10
            while not finished:
                if stop is not None and stop():
                    fix = "run it again"
                    raise SawtoothError("interrupted", "stopped before the end of the scenario", fix=fix)
                before = time.perf_counter()
                until_ns = compiled.duration_ns if watched is None else watched.next_ns
                finished = simulation.advance(until_ns, events)
                slower = (time.perf_counter() - before) / SLICE_S
                events = min(EVENTS_A_SLICE, max(1_000, int(events / max(slower, 0.5))))
                rows = simulation.take()
                take(rows)
                if progress is not None:
                    progress(min(1.0, simulation.now_ns / compiled.duration_ns))
                if watched is None or finished:
                    continue
                watched.add(rows)
                if watched.is_due and (repeated := watched.judge()) is not None:
                    while not finished:
                        finished = simulation.advance(until_ns, events, True)
                    for part in watched.repeated(repeated, simulation.take()):
                        take(part)
                    if progress is not None:
                        progress(1.0)
        except SawtoothError:
            raise
        except ValueError as error:
            raise SawtoothError("core-failed", f"the core refused the scenario: {error}", fix=_REPORT_IT) from error
        except BaseException as error:
            # PyO3 raises a panic of the core as a BaseException, so that it is not caught by accident.
            if type(error).__name__ != "PanicException":
                raise
            raise SawtoothError("core-failed", f"the core failed: {error}", fix=_REPORT_IT) from error
        return simulation, repeated or (watch if isinstance(watch, str) else watch.words())

    @contextlib.contextmanager
    def _captures(self, compiled: Compiled) -> Iterator[dict[int, str] | None]:
        """Capture files by the index of their host. They get their final names when the run has ended."""
        from sawtooth.testbed.traffic import captured_hosts

        if self.capture is None:
            yield None
            return
        numbers = {host.name: number for number, host in enumerate(compiled.hosts)}
        final = {
            numbers[name]: self.capture / f"capture-{name}.pcap" for name in captured_hosts(compiled, self.capture_at)
        }
        aside = {number: path.with_name(path.name + ASIDE) for number, path in final.items()}
        with writing(self.capture):
            self.capture.mkdir(parents=True, exist_ok=True)
            try:
                yield {number: str(path) for number, path in aside.items()}
                for number, path in aside.items():
                    path.replace(final[number])
            finally:
                for path in aside.values():
                    path.unlink(missing_ok=True)


ENGINE: Engine = Sim()

_REPORT_IT = "this is a defect of sawtooth: please report it with the scenario"


def _is_exact(scenario: Scenario) -> bool:
    """Whether only packets that repeat others exactly are skipped, which changes no row."""
    return scenario.fast is not None and scenario.fast.ppb == 0


def _modules(compiled: Compiled) -> dict[int, Module]:
    """The modules of flows, by flow number."""
    from sawtooth.engines.cc_module import Module

    return {
        index: Module(module.sources, compiled.hosts[compiled.source(flow)].hz, module.parameters, module.name)
        for index, flow in enumerate(compiled.flows)
        if (module := flow.module) is not None and not module.is_agent
    }


def _check_modules(compiled: Compiled) -> None:
    """Compiles what is not in the cache, so that errors in a source are reported before anything runs."""
    for index, wanted in _modules(compiled).items():
        from sawtooth.engines.cc_module import build

        try:
            build(wanted.sources, wanted.hz)
        except SawtoothError as error:
            raise error.at(field=f"flows.{index}.cc.source") from None


@contextlib.contextmanager
def _simulation(
    compiled: Compiled, files: dict[int, str] | None, played: Mapping[int, agents.Control]
) -> Iterator[Any]:
    """The core's simulation; with modules in a separate process, which ends with this block."""
    wanted = _modules(compiled)
    if not wanted:
        if played := played or agents.controls(compiled):
            yield agents.AgentSimulation(compiled.to_json(), played)
            return
        own = {index: policy.core for index, policy in agents.policies(compiled).items()}
        yield _core.Simulation(compiled.to_json(), files, own)
        return
    from sawtooth.engines.cc_module import IsolatedSimulation

    with IsolatedSimulation(compiled.to_json(), files, wanted) as apart:
        yield apart


def controls() -> tuple[str, ...]:
    """The congestion controls of the simulator, as the core lists them (``crates/tcp/src/cc/list.rs``)."""
    return tuple(_core.congestion_controls())
