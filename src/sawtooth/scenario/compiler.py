"""From a scenario to what engines take: names resolved, ways found, queues and counts as numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from sawtooth import compiled
from sawtooth.compiled import Compiled, Opportunities
from sawtooth.errors import InputError, suggestion
from sawtooth.frames import IPV6_MORE, frame_bytes
from sawtooth.scenario import topology
from sawtooth.scenario.arrivals import Arrivals
from sawtooth.scenario.asks import Asking
from sawtooth.scenario.control import Module, Variant
from sawtooth.scenario.datagrams import Udp
from sawtooth.scenario.loss import LossPattern
from sawtooth.scenario.network import Network, Transmitter, Wire
from sawtooth.scenario.parts import MAX_CONNECTIONS, MAX_SAMPLES, Flow, Host, Probe
from sawtooth.scenario.policer import check_burst
from sawtooth.scenario.queue import DEFAULT_FRAMES, Cake, Red, Tbf
from sawtooth.scenario.routing import Router
from sawtooth.scenario.units import Queue, Size, Span
from sawtooth.scenario.varying import Steps, steps_of
from sawtooth.scenario.writer import OnOff, Steady

if TYPE_CHECKING:
    from sawtooth.scenario.scenario import Scenario

_MAX_QUEUE_PACKETS = 10**9


@dataclass(frozen=True)
class Placed:
    """A flow or probe with its ends decided: wires there and wires back."""

    name: str
    source: str
    target: str
    count: int
    forward: tuple[int, ...]
    backward: tuple[int, ...]
    index: int
    """Position of the [[flows]] or [[probes]] table that it comes from."""


def build(scenario: Scenario) -> Network:
    """The network of the scenario's topology. Raises SawtoothError as ``topology.custom`` does."""
    if scenario.topology == "path":
        network = topology.path(scenario.path_table)
    elif scenario.topology == "dumbbell":
        network = topology.dumbbell(scenario.dumbbell_table)
    elif scenario.topology == "parking-lot":
        network = topology.parking_lot(scenario.parking_lot_table)
    elif scenario.topology == "home":
        network = topology.home(scenario.home_table)
    elif scenario.topology == "chain":
        network = topology.chain(scenario.chain_table)
    elif scenario.topology == "chain-asymmetric":
        network = topology.chain_asymmetric(scenario.chain_table)
    else:
        return topology.custom(scenario.hosts, scenario.cards, scenario.links, scenario.routes)
    for name in scenario.hosts:
        if name not in network.known:
            message = f'topology "{scenario.topology}" has no host "{name}"'
            raise InputError("unknown-name", message, field=f"hosts.{name}", fix=suggestion(name, network.hosts))
    return network


def host_settings(scenario: Scenario, name: str) -> Host:
    """[host] with what [hosts.NAME] sets laid over it."""
    own = scenario.hosts.get(name)
    if own is None:
        return scenario.host
    return scenario.host.model_copy(update={field: getattr(own, field) for field in own.model_fields_set})


def compile_scenario(scenario: Scenario) -> Compiled:
    """The compiled scenario. Raises SawtoothError for what only the whole can tell: names, routes, queues, totals."""
    network = build(scenario)
    router = Router(network)
    flows = place_flows(scenario, network, router)
    probes = place_probes(scenario, network, router)
    index_of = {name: index for index, name in enumerate(network.hosts)}
    crossing = _first_crossing(network, flows)
    varying = [_steps(wire, scenario) for wire in network.wires]
    paces = _paces(network, varying)
    return Compiled(
        duration_ns=scenario.duration.ns,
        interval_ns=scenario.interval.ns,
        seed=scenario.seed,
        hosts=tuple(_host(name, host_settings(scenario, name)) for name in network.hosts),
        transmitters=tuple(
            _transmitter(transmitter, crossing.get(index), scenario, network, paces.get(index))
            for index, transmitter in enumerate(network.transmitters)
        ),
        links=tuple(
            compiled.Link(
                name=wire.name,
                source=index_of[wire.source],
                target=index_of[wire.target],
                transmitter=wire.transmitter,
                delay_ns=_first(steps.delays, wire.delay_ns),
                loss_ppb=_first(steps.losses, wire.loss.ppb),
                loss_pattern=wire.loss.compile() if isinstance(wire.loss, LossPattern) else None,
                overhead_bytes=wire.overhead_bytes + (IPV6_MORE if scenario.ip == 6 else 0),
                aggregation_ns=wire.aggregation_ns,
                losses=_later(steps.losses),
                delays=_later(steps.delays),
                jitter=None if wire.jitter is None else wire.jitter.compile(),
                reorder=None if wire.reorder is None else wire.reorder.compile(),
                duplicate=None if wire.duplicate is None else wire.duplicate.compile(),
                corrupt=None if wire.corrupt is None else wire.corrupt.compile(),
                policer=_policer(index, wire, flows, scenario),
            )
            for index, (wire, steps) in enumerate(zip(network.wires, varying, strict=True))
        ),
        flows=tuple(_flow(placed, scenario.flows[placed.index], network) for placed in flows),
        probes=tuple(_probe(placed, scenario.probes[placed.index]) for placed in probes),
        kernel=_kernel(scenario, network),
        queue_delays=scenario.queue_delays,
    )


def _frame(host: Host, scenario: Scenario) -> int:
    """Bytes of the largest that it sends."""
    return frame_bytes(host.mss, timestamps=host.timestamps) + (IPV6_MORE if scenario.ip == 6 else 0)


def _policer(index: int, wire: Wire, flows: Sequence[Placed], scenario: Scenario) -> compiled.Policer | None:
    if wire.policer is None:
        return None
    frames = [_frame(host_settings(scenario, one.source), scenario) for one in flows if index in one.forward]
    least = max(frames, default=0) + wire.overhead_bytes
    check_burst(wire.policer.burst, least, f"{wire.where}.policer.burst")
    return wire.policer.compile()


def _steps(wire: Wire, scenario: Scenario) -> Steps:
    """What of a wire changes when: by its trace, or by its changes."""
    found = steps_of(wire.changes, scenario.duration.ns, scenario.seed, wire.name, wire.where)
    if isinstance(wire.trace, Steps):
        found = Steps(
            *(ours or traced for ours, traced in zip(vars(found).values(), vars(wire.trace).values(), strict=True))
        )
    found = Steps(
        *(
            steps if what in wire.changing else ()
            for what, steps in zip(("rate", "delay", "loss"), vars(found).values(), strict=True)
        )
    )
    if found.losses and isinstance(wire.loss, LossPattern):
        message = f'the losses of "{wire.name}" are a pattern, and change'
        raise InputError("conflict", message, field=f"{wire.where}.loss", fix='write it as a share, like "1%"')
    return found


def _first(steps: Sequence[tuple[int, int]], otherwise: int) -> int:
    """What holds at the beginning."""
    return steps[0][1] if steps and steps[0][0] == 0 else otherwise


def _later(steps: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
    return steps[1:] if steps and steps[0][0] == 0 else steps


def _paces(
    network: Network, varying: Sequence[Steps]
) -> dict[int, compiled.RateSteps | compiled.Slots | Opportunities]:
    """Of the transmitters whose rate is not constant."""
    found: dict[int, compiled.RateSteps | compiled.Slots | Opportunities] = {}
    for wire, steps in zip(network.wires, varying, strict=True):
        traced = wire.trace if isinstance(wire.trace, Opportunities) and "rate" in wire.changing else None
        given = [bool(steps.rates), traced is not None, bool(wire.opportunity_bytes)]
        if not any(given):
            continue
        what = next(name for name, one in zip(("changes", "trace", "opportunity"), given, strict=True) if one)
        if sum(given) > 1:
            fix = f"remove {what}, or the others"
            message = f'of "{wire.name}", changes of the rate, a trace and opportunities exclude each other'
            raise InputError("conflict", message, field=f"{wire.where}.{what}", fix=fix)
        index = wire.transmitter
        if (
            index is None
            or sum(other.transmitter == index for other in network.wires) > 1
            or network.transmitters[index].name == wire.source
        ):
            message = f'"{wire.name}" has no rate of its own to change'
            raise InputError(
                "conflict",
                message,
                field=f"{wire.where}.{what}",
                fix="add a rate to the link, and remove its host's card",
            )
        rate_bps = network.transmitters[index].rate_bps
        if traced is not None:
            found[index] = traced
        elif steps.rates:
            found[index] = compiled.RateSteps(steps.rates)
        else:
            every_ns = max(1, round(wire.opportunity_bytes * 8 * 10**9 / rate_bps))
            found[index] = compiled.Slots(every_ns, wire.opportunity_bytes)
    return found


def _kernel(scenario: Scenario, network: Network) -> str | None:
    """The name of the one that all hosts run."""
    names = {host: host_settings(scenario, host).kernel for host in network.hosts}
    first, *others = names
    for host in others:
        if names[host] != names[first]:
            ours, theirs = (f'"{one}"' if one else "Linux without additions" for one in (names[host], names[first]))
            message = f"all hosts of a run share one kernel, but {first} asks for {theirs}, and {host} for {ours}"
            fix = 'remove kernel from each [hosts.NAME], and set it once: [host] kernel = "NAME"'
            raise InputError("conflict", message, field=f"hosts.{host}.kernel", fix=fix)
    return names[first]


def base_rtt_ns(network: Network, placed: Placed) -> int:
    """Propagation there and back, without any transmission or queue."""
    return sum(network.wires[index].delay_ns for index in (*placed.forward, *placed.backward))


def place_flows(scenario: Scenario, network: Network, router: Router) -> list[Placed]:
    """Each flow between its hosts. One between ``s*`` and ``r*`` becomes one for every pair that gets a connection."""
    names = flow_names(scenario)
    placed: list[Placed] = []
    taken = 0
    for index, (name, flow) in enumerate(zip(names, scenario.flows, strict=True)):
        at = f"flows.{index}"
        source, target = _ends(flow.from_, flow.to, at, scenario, network)
        if source != "s*":
            way, back = router.way(source, target, at), router.way(target, source, at)
            placed.append(Placed(name, source, target, flow.count, way, back, index))
            continue
        pairs = scenario.dumbbell_table.number
        used = min(pairs, flow.count)
        for turn in range(used):
            # Flows take pairs in turn, the next flow going on where the last one stopped.
            pair = (taken + turn) % pairs + 1
            source, target = f"s{pair}", f"r{pair}"
            count = flow.count // used + (turn < flow.count % used)
            shown = name if used == 1 else f"{name}@{source}"
            way, back = router.way(source, target, at), router.way(target, source, at)
            placed.append(Placed(shown, source, target, count, way, back, index))
        taken += used
    if sum(one.count for one in placed) > MAX_CONNECTIONS:
        message = f"more than {MAX_CONNECTIONS} connections in all"
        raise InputError("out-of-range", message, field="flows", fix="lower the count of the flows")
    return placed


def place_probes(scenario: Scenario, network: Network, router: Router) -> list[Placed]:
    """Each probe between its hosts."""
    names = probe_names(scenario)
    placed = []
    for index, (name, probe) in enumerate(zip(names, scenario.probes, strict=True)):
        at = f"probes.{index}"
        source, target = _ends(probe.from_, probe.to, at, scenario, network)
        if source == "s*":
            source, target = "s1", "r1"
        way, back = router.way(source, target, at), router.way(target, source, at)
        placed.append(Placed(name, source, target, _probe_count(probe, scenario.duration, at), way, back, index))
    return placed


def _probe_count(probe: Probe, duration: Span, at: str) -> int:
    if probe.count is not None:
        return probe.count
    count = -(-(duration.ns - probe.start.ns) // probe.interval.ns)
    if count > MAX_SAMPLES:
        message = f"{count} probes are more than {MAX_SAMPLES}"
        raise InputError(
            "out-of-range", message, field=f"{at}.interval", fix="choose a longer interval, or add count = 1000"
        )
    return count


def _names(table: str, items: Sequence[Flow | Probe], bases: Sequence[str]) -> list[str]:
    """Given names, and for the others their base, numbered from 2 when it is taken."""
    given = [item.name for item in items if item.name is not None]
    used = set(given)
    if len(used) < len(given):
        counted = Counter(given)
        index = next(i for i, item in enumerate(items) if item.name is not None and counted[item.name] > 1)
        message = f'two {table} are named "{items[index].name}"'
        fix = f'name this one, like "{items[index].name}-2"'
        raise InputError("duplicate-name", message, field=f"{table}.{index}.name", fix=fix)
    names: list[str] = []
    numbers: dict[str, int] = {}
    for item, base in zip(items, bases, strict=True):
        name = item.name or base
        while item.name is None and name in used:
            numbers[base] = numbers.get(base, 1) + 1
            name = f"{base}-{numbers[base]}"
        used.add(name)
        names.append(name)
    return names


def flow_names(scenario: Scenario) -> list[str]:
    """The name of each [[flows]] table: its own, or the one it gets."""
    return _names("flows", scenario.flows, [flow.control for flow in scenario.flows])


def probe_names(scenario: Scenario) -> list[str]:
    """The name of each [[probes]] table: its own, or the one it gets."""
    return _names("probes", scenario.probes, ["probe"] * len(scenario.probes))


def _ends(
    given_from: str | None, given_to: str | None, at: str, scenario: Scenario, network: Network
) -> tuple[str, str]:
    """Where a flow or probe begins and ends: as given, else the topology's ends; ``sK`` goes with ``rK``."""
    source, target = given_from, given_to
    if network.ends is None:
        for end, field in ((source, "from"), (target, "to")):
            if end is None:
                message = "a custom topology has no default sender and receiver"
                hosts = list(network.hosts)[:20]
                fix = f'add {field} = "{hosts[0]}", or another of: {", ".join(hosts)}'
                raise InputError("missing-field", message, field=f"{at}.{field}", fix=fix)
    elif source is None and target is None:
        source, target = network.ends
    elif scenario.topology == "dumbbell":
        source = source if source is not None else _other_end(target or "", "r", "s", network.ends[0])
        target = target if target is not None else _other_end(source, "s", "r", network.ends[1])
    source = source if source is not None else (network.ends or ("", ""))[0]
    target = target if target is not None else (network.ends or ("", ""))[1]
    if (source, target) == network.ends:
        return source, target
    for end, field in ((source, "from"), (target, "to")):
        if end in ("s*", "r*") and scenario.topology == "dumbbell":
            message = f'"{end}" means every host of one side, so the other end must be every host of the other side'
            raise InputError("conflict", message, field=f"{at}.{field}", fix='write from = "s*" and to = "r*"')
        if end not in network.known:
            message = f'no host is named "{end}"'
            raise InputError("unknown-name", message, field=f"{at}.{field}", fix=suggestion(end, network.hosts))
    return source, target


def _other_end(end: str, side: str, other: str, otherwise: str) -> str:
    """``r3`` for ``s3``, ``r*`` for ``s*``; the topology's own end for anything else."""
    return other + end[1:] if end[:1] == side and (end[1:].isdigit() or end[1:] == "*") else otherwise


def _first_crossing(network: Network, flows: Sequence[Placed]) -> dict[int, Placed]:
    """The first flow of the file through each transmitter, data or acknowledgements: bdp queues go by its base RTT."""
    first: dict[int, Placed] = {}
    for placed in flows:
        for index in (*placed.forward, *placed.backward):
            transmitter = network.wires[index].transmitter
            if transmitter is not None:
                first.setdefault(transmitter, placed)
    return first


@contextmanager
def _within(where: str) -> Iterator[None]:
    """Errors name fields of the table at ``where``."""
    try:
        yield
    except InputError as error:
        field = f"{where}.{error.field}" if error.field else where
        raise InputError(error.code, error.message, field=field, fix=error.fix) from None


def _transmitter(
    transmitter: Transmitter,
    crossing: Placed | None,
    scenario: Scenario,
    network: Network,
    pace: compiled.RateSteps | compiled.Slots | Opportunities | None,
) -> compiled.Transmitter:
    given = transmitter.queue
    sender = scenario.host if crossing is None else host_settings(scenario, crossing.source)
    frame = _frame(sender, scenario)
    if isinstance(given, Tbf):
        with _within(transmitter.where):
            shaped = given.compile(frame, transmitter.rate_bps)
        if pace is not None:
            message = f'the rate of "{transmitter.name}" varies, and a token bucket needs a constant one'
            raise InputError(
                "conflict",
                message,
                field=transmitter.where,
                fix="split the link in two with a host between them, and give the token bucket to the other one",
            )
        waiting = given.waiting_bytes(frame)
        return compiled.Transmitter(transmitter.name, transmitter.rate_bps, None, waiting, shaped)
    if isinstance(given, Cake):
        # Its limit is of memory.
        return compiled.Transmitter(transmitter.name, transmitter.rate_bps, None, None, given.compile(frame), pace)
    queue = given if isinstance(given, Queue) else given.limit or Queue("bytes", Fraction(DEFAULT_FRAMES * frame))
    packets: int | None = None
    limit: int | None = None
    if queue.unit == "packets":
        packets = int(queue.amount)
    elif queue.unit == "bdp":
        if crossing is None:
            message = f'no flow crosses "{transmitter.name}", so the bandwidth-delay product of its queue is not known'
            raise InputError("conflict", message, field=transmitter.where, fix='write it in packets: "1000 packets"')
        bits = Fraction(transmitter.rate_bps * base_rtt_ns(network, crossing), 10**9)
        packets = max(1, int(queue.amount * bits / 8 / frame + Fraction(1, 2)))
        if packets > _MAX_QUEUE_PACKETS:
            message = f'"{queue}" is {packets} packets, more than {_MAX_QUEUE_PACKETS}'
            fix = f'choose at most "{_MAX_QUEUE_PACKETS} packets"'
            raise InputError("out-of-range", message, field=transmitter.where, fix=fix)
    elif queue.unit == "ns":
        limit = max(frame, int(transmitter.rate_bps * queue.amount / 8 / 10**9))
    else:
        limit = int(queue.amount)
        if limit < frame:
            message = f'"{Size(limit)}" does not hold one full frame of {frame} bytes'
            fix = f'choose at least "{frame} bytes", or "1 packet"'
            raise InputError("zero-queue", message, field=transmitter.where, fix=fix)
    discipline: compiled.Discipline | None = None
    if isinstance(given, Red):
        with _within(transmitter.where):
            discipline = given.compile(limit or 0)
    elif not isinstance(given, Queue):
        discipline = given.compile()
    return compiled.Transmitter(transmitter.name, transmitter.rate_bps, packets, limit, discipline, pace)


_SEGMENT_OVERHEAD = 936
"""Bytes of kernel memory that a received segment takes beyond its payload."""


def _host(name: str, host: Host) -> compiled.Host:
    # With less than two segments of window the sender could wait for ever: the simulator has no window probes.
    least = 2 * (host.mss + _SEGMENT_OVERHEAD)
    if host.receive_buffer.bytes < least:
        message = f'host {name}: "{host.receive_buffer}" does not hold two segments of {host.mss} bytes'
        raise InputError("out-of-range", message, field="host.receive_buffer", fix=f'choose at least "{least} bytes"')
    return compiled.Host(
        name=name,
        hz=host.hz,
        mss=host.mss,
        initial_window=host.initial_window,
        receive_buffer=host.receive_buffer.bytes,
        send_buffer=host.send_buffer.bytes,
        delayed_ack=host.delayed_ack,
        sack=host.sack,
        timestamps=host.timestamps,
        offload=host.offload,
        ecn=host.ecn,
        ecn_insists=not host.ecn_fallback,
        gro_ns=None if host.gro is None else max(1, host.gro.ns),
    )


def _flow(placed: Placed, flow: Flow, network: Network) -> compiled.Flow:
    return compiled.Flow(
        name=placed.name,
        cc=flow.cc.name if isinstance(flow.cc, Variant) else flow.control,
        count=placed.count * (flow.source.connections if isinstance(flow.source, Asking) else 1),
        start_ns=flow.start.ns,
        duration_ns=None if flow.duration is None else flow.duration.ns,
        bytes=None if flow.bytes is None else flow.bytes.bytes,
        lifetime_ns=None if flow.replace is None else (flow.replace.lifetime[0].ns, flow.replace.lifetime[1].ns),
        forward=placed.forward,
        backward=placed.backward,
        module=_module(flow.cc) if isinstance(flow.cc, Module) else None,
        variant=flow.cc.variant if isinstance(flow.cc, Variant) else None,
        writes=flow.source.compile() if isinstance(flow.source, (Steady, OnOff)) else None,
        datagrams=flow.source.compile() if isinstance(flow.source, Udp) else None,
        arrivals=_arrivals(placed, flow.source, network) if isinstance(flow.source, Arrivals) else None,
        reads=None if flow.reader is None else flow.reader.compile(),
        asks=flow.source.compile() if isinstance(flow.source, Asking) else None,
    )


def _arrivals(placed: Placed, source: Arrivals, network: Network) -> compiled.Arrivals:
    if placed.count > 1:
        message = "a source of arrivals opens its own connections, so count does not apply"
        fix = "remove count, and set how many start with load or every; for s*, count is at most the number of pairs"
        raise InputError("conflict", message, field=f"flows.{placed.index}.count", fix=fix)
    crossed = [network.wires[index].transmitter for index in placed.forward]
    rates = [network.transmitters[index].rate_bps for index in crossed if index is not None]
    try:
        return source.compile(min(rates, default=None))
    except InputError as error:
        field = f"flows.{placed.index}.source.{error.field}"
        raise InputError(error.code, error.message, field=field, fix=error.fix) from None


def _module(module: Module) -> compiled.Module:
    given = {name: str(int(value)) if isinstance(value, int) else value for name, value in module.parameters.items()}
    return compiled.Module(sources=module.source, parameters=tuple(given.items()), name=module.name)


def _probe(placed: Placed, probe: Probe) -> compiled.Probe:
    return compiled.Probe(
        name=placed.name,
        start_ns=probe.start.ns,
        interval_ns=probe.interval.ns,
        count=placed.count,
        forward=placed.forward,
        backward=placed.backward,
    )
