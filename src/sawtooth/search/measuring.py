"""Measuring: the values of a goal's measures in a run, and the runs needed for each value of the unknown."""

from __future__ import annotations

import functools
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from sawtooth.engines import Engine
from sawtooth.errors import InputError, SawtoothError, suggestion
from sawtooth.io.parallel import Workers, fan_out, stop_requested
from sawtooth.run import Run
from sawtooth.sanitize import plain
from sawtooth.scenario import Scenario
from sawtooth.scenario.expressions import Amount, Comparison, Measure
from sawtooth.search.control_variate import ExcessLosses, excess_losses
from sawtooth.stats import COUNTERS, STATISTICS, counters, describe, throughput
from sawtooth.stats.throughput import throughput_by_flow
from sawtooth.study.application import KINDS
from sawtooth.study.goodput_ceiling import unattainable
from sawtooth.study.measures import ALIASES, LATENCY, MEASURES, RPM, Measured, columns, measured

if TYPE_CHECKING:
    from sawtooth.search.ranges import Ranges
    from sawtooth.search.space import Space
    from sawtooth.search.unknown import Unknown

NAMES = (*STATISTICS, *COUNTERS, *MEASURES)
"""Measures that a goal may use: the columns of a study's table."""
FLOW = "flow"
"""The setting that selects one flow: ``mean_mbps(flow='video')``."""
_INCLUSIVE = 1e-12
"""A margin of exactly 0 holds if the goal includes equality; the search needs a sign."""


@dataclass(frozen=True)
class ResolvedMeasure:
    """A measure of a goal, resolved: ``name`` in NAMES for ``flow`` or for all flows, or the scenario's field
    ``place``; in the scenario with ``changes``."""

    name: str
    changes: tuple[tuple[str, Any], ...]
    flow: str | None = None
    place: tuple[str, ...] = ()


def resolve(measure: Measure, scenario: Scenario) -> ResolvedMeasure:
    """Resolves a measure. Raises SawtoothError: ``unknown-name``, ``bad-expression``."""
    changes, flow = [], None
    for name, value in measure.settings:
        if name == FLOW:
            flow = str(value)
        else:
            changes.append((_field(name, scenario), value))
    where = f"at character {measure.at}: "
    if "." in measure.name:
        if flow is not None:
            raise InputError("bad-expression", f"{where}a field does not take flow", fix="remove flow")
        return ResolvedMeasure(measure.name, tuple(changes), place=tuple(measure.name.split(".")))
    name = ALIASES.get(measure.name, measure.name)
    columns_known = (*NAMES, *measured(scenario))
    if name not in columns_known:
        message = f"{where}there is no measure called {plain(measure.name, 60)}"
        fix = suggestion(measure.name, [*ALIASES, *columns_known])
        raise InputError("unknown-name", message, fix=fix)
    if flow is not None:
        if name != "mean_mbps":
            raise InputError("bad-expression", f"{where}only mean_mbps takes flow", fix="remove flow")
        known = scenario.flow_names
        if flow not in known:
            message = f"{where}no flow is named {plain(flow, 60)}"
            raise InputError("unknown-name", message, fix=suggestion(flow, known))
    return ResolvedMeasure(name, tuple(changes), flow)


def _field(name: str, scenario: Scenario) -> str:
    """Expands short names: ``cc`` is every flow's, others are the topology's: ``loss`` is ``path.loss``."""
    if "." in name or name in ("duration", "warmup", "interval", "ip"):
        return name
    return "flows.cc" if name == "cc" else f"{scenario.topology.removesuffix('-asymmetric')}.{name}"


def of_field(place: Sequence[str], scenario: Scenario) -> Amount:
    """The value of a dotted field in the scenario. Raises SawtoothError ``unknown-name``, ``wrong-type``."""
    here: Any = scenario.to_dict()
    for step in place:
        if isinstance(here, list):
            names = scenario.flow_names if place[0] == "flows" else []
            at = int(step) if step.isdigit() and len(step) < 10 else names.index(step) if step in names else -1
            here = here[at] if 0 <= at < len(here) else None
        else:
            known = here if isinstance(here, dict) else {}
            if step not in known:
                message = f"the scenario does not set the field {plain('.'.join(place), 80)}"
                raise InputError("unknown-name", message, fix=suggestion(step, known))
            here = known[step]
    if isinstance(here, (int, float)) and not isinstance(here, bool):
        return Amount(float(here))
    if isinstance(here, str):
        number, _, unit = here[:-1].partition("%") if here.endswith("%") else here.partition(" ")
        try:
            return Amount.of_unit(float(number), "%" if here.endswith("%") else unit)
        except (ValueError, InputError):
            pass
    message = f"{plain('.'.join(place), 80)} is {plain(here, 40)}, which is not an amount"
    raise InputError("wrong-type", message, fix="compare with a rate, a time, a size, a share or a number")


def answers(run: Run, wanted: Sequence[tuple[str, str | None]]) -> dict[tuple[str, str | None], float]:
    """Columns of one run, by name and flow; computes only what is requested."""
    names = {name for name, flow in wanted if flow is None}
    row: dict[str, float] = {}
    if names & set(STATISTICS):
        row |= describe(throughput(run).to_numpy())
    if names & set(COUNTERS):
        row |= counters(run)
    if names & set(MEASURES):
        row |= columns([Measured.of(run)])
    row |= run.measured
    found: dict[tuple[str, str | None], float] = {(name, None): float(row[name]) for name in names}
    flows = [flow for _, flow in wanted if flow is not None]
    if flows:
        means, known = throughput_by_flow(run).mean(), run.scenario.flow_names
        found |= {("mean_mbps", flow): float(means.get(known.index(flow), 0.0)) for flow in flows}
    return found


@dataclass
class Measuring:
    """Computes margins of the goal ``want`` in ``scenario`` on an engine; every run is made once. A value has one
    number per unknown."""

    scenario: Scenario
    unknown: Unknown | Space | Ranges
    want: Comparison
    engine: Engine
    jobs: int | None = None
    executor: Executor | Workers | None = None
    ran: Callable[[int], None] = lambda _: None
    """Called with the number of runs made."""
    seconds: float = 0.0
    """Seconds of work, summed over runs."""
    runs: int = 0
    sides: dict[tuple[Any, int], tuple[float, float]] = field(default_factory=dict)
    """By value and seed: the left and right side of the comparison."""
    _known: dict[tuple[str, int], dict[tuple[str, str | None], float]] = field(default_factory=dict)
    _excess_losses: dict[tuple[str, int], ExcessLosses] = field(default_factory=dict)
    _stop: threading.Event = field(default_factory=threading.Event)

    def check(self) -> None:
        """Checks everything that is known before the first run: names, units, the scenarios at both ends, the
        engine."""
        for value in self.unknown.corners:
            for one in self.resolved.values():
                scenario = self._scenario(value, one.changes)
                self.engine.check(scenario)
                if one.place:
                    of_field(one.place, scenario)
                elif (wrong := _lacking(one.name, scenario)) is not None:
                    raise wrong

        def amount(measure: Measure) -> Amount:
            import numpy as np

            one = self.resolved[measure]
            if one.place:
                return of_field(one.place, self._scenario(self.unknown.corners[0], one.changes))
            return Amount.of_column(one.name, np.ones(1))

        self.want.sides(amount)
        if not any(not one.place for one in self.resolved.values()):
            fix = 'write it like "goodput >= 90% of path.rate"'
            raise InputError("bad-expression", "it names no measure", fix=fix)
        self._refuse_unattainable()

    def _refuse_unattainable(self) -> None:
        """Raises SawtoothError if the goal wants a goodput above the ceiling that headers leave, at every corner."""
        measured = [one for one, how in self.resolved.items() if not how.place]
        if len(measured) != 1 or self.resolved[measured[0]].name != "mean_mbps":
            return
        wrong = None
        for value in self.unknown.corners:

            def field(measure: Measure, value: Any = value) -> Amount:
                one = self.resolved[measure]
                return of_field(one.place, self._scenario(value, one.changes))

            scenario = self._scenario(value, self.resolved[measured[0]].changes)
            wrong = unattainable(self.want, measured[0], scenario, field)
            if wrong is None:
                return
        if wrong is not None:
            raise wrong

    @functools.cached_property
    def resolved(self) -> dict[Measure, ResolvedMeasure]:
        return {measure: resolve(measure, self.scenario) for measure in self.want.measures}

    def margins(self, tasks: Sequence[tuple[Any, int]]) -> list[float]:
        """How clearly the goal holds, for values and seeds. Raises SawtoothError as the engine does, and ``too-short``
        if a run has nothing to measure by."""
        self.measure(tasks)
        found = []
        for value, seed in tasks:
            left, right = self.want.sides(functools.partial(self.amount, value, seed))
            self.sides[value, seed] = float(left.value), float(right.value)
            margin = float(left.value - right.value) * (1 if self.want.sign.startswith(">") else -1)
            if math.isnan(margin):
                message = f"it cannot be computed at {self.unknown.named(value)}, seed {seed}"
                fix = "ask for a measure that this scenario has, choose a longer duration, or narrow the range"
                raise InputError("too-short", message, field="want", fix=fix)
            found.append(margin or (_INCLUSIVE if self.want.sign.endswith("=") else -_INCLUSIVE))
        return found

    def measure(self, tasks: Sequence[tuple[Any, int]]) -> None:
        """Makes the runs for values and seeds. Raises SawtoothError as the engine does."""
        needed: dict[tuple[str, int], tuple[Scenario, set[tuple[str, str | None]]]] = {}
        for value, seed in tasks:
            for one in self.resolved.values():
                if not one.place:
                    scenario = self._scenario(value, one.changes)
                    key = scenario.digest(), seed
                    if (one.name, one.flow) not in self._known.get(key, {}):
                        needed.setdefault(key, (scenario, set()))[1].add((one.name, one.flow))
        self._run(needed)

    def excess_losses(self, value: Any, seed: int) -> ExcessLosses:
        """The excess losses of all runs of a margin."""
        changes = {one.changes for one in self.resolved.values() if not one.place}
        keys = dict.fromkeys((self._scenario(value, one).digest(), seed) for one in sorted(changes, key=str))
        return tuple(part for key in keys for part in self._excess_losses[key])

    def amount(self, value: Any, seed: int, measure: Measure) -> Amount:
        """The measured value for a value and a seed that were run."""
        one = self.resolved[measure]
        scenario = self._scenario(value, one.changes)
        if one.place:
            return of_field(one.place, scenario)
        return Amount.of_column(one.name, self._known[scenario.digest(), seed][one.name, one.flow])

    def _scenario(self, value: Any, changes: tuple[tuple[str, Any], ...]) -> Scenario:
        return _changed(self.scenario, self.unknown.settings(value), changes)

    def _run(self, needed: Mapping[tuple[str, int], tuple[Scenario, set[tuple[str, str | None]]]]) -> None:
        keys = list(needed)
        tasks = [
            _Task(self.engine, scenario.set({"seed": seed}), tuple(sorted(names, key=str)))
            for (_, seed), (scenario, names) in needed.items()
        ]

        def done(number: int, found: _Answer) -> None:
            self._known.setdefault(keys[number], {}).update(found.columns)
            self._excess_losses[keys[number]] = found.excess_losses
            self.seconds += found.took_s
            self.runs += 1
            self.ran(self.runs)

        fan_out(
            _run_on_cluster if self.executor is not None else partial(_run_task, self._stop.is_set),
            tasks,
            done=done,
            stop=self._stop.set,
            poll=lambda: self.ran(self.runs),
            jobs=self.jobs,
            threads=self.executor is None,
            executor=self.executor,
        )


@dataclass(frozen=True)
class _Task:
    engine: Engine
    scenario: Scenario
    names: tuple[tuple[str, str | None], ...]


@dataclass(frozen=True)
class _Answer:
    columns: dict[tuple[str, str | None], float]
    excess_losses: ExcessLosses
    took_s: float


def _run_on_cluster(task: _Task) -> _Answer:
    """On a cluster, which forwards the request to stop."""
    return _run_task(stop_requested, task)


def _run_task(stop: Callable[[], bool], task: _Task) -> _Answer:
    """The requested measures of one run."""
    begun = time.perf_counter()
    made = task.engine.run(task.scenario, stop=stop)
    return _Answer(answers(made, task.names), excess_losses(made), time.perf_counter() - begun)


def _changed(scenario: Scenario, settings: Mapping[str, Any], changes: tuple[tuple[str, Any], ...]) -> Scenario:
    """A measure's own settings take precedence over the unknown's value."""
    try:
        return scenario.set({**settings} | dict(changes))
    except SawtoothError as error:
        raise error.at(file=scenario.source) from None


def _lacking(name: str, scenario: Scenario) -> InputError | None:
    """The error for asking a scenario for ``name``, a column of a study's table; None if it may have it."""
    kind = next((kind for kind, application in KINDS.items() if name in application.columns), None)
    kinds = {flow.source.kind for flow in scenario.flows if flow.source is not None}
    if kind is not None and kind not in kinds:
        fix = f'give a flow source = {{ kind = "{kind}" }}, or ask for another measure'
        return InputError(
            "unknown-name", f"{name} needs a flow with a source of kind {kind}, and this scenario has none", fix=fix
        )
    if name in (*LATENCY, *RPM) and not scenario.probes:
        fix = 'add probes = [{ interval = "100 ms" }], or ask for another measure'
        return InputError("unknown-name", f"{name} needs a probe, and this scenario has none", fix=fix)
    return None
