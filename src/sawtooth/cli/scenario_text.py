"""A scenario in words: where its flows go, how fast, how far, and what may wait."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

from sawtooth.sanitize import plain
from sawtooth.scenario import Loss, Rate, Scenario, Size, Span
from sawtooth.scenario.compiled import Compiled
from sawtooth.scenario.compiled_form import (
    Application,
    Datagrams,
    Flow,
    Link,
    LossPattern,
    Paced,
    Probe,
    RateSchedule,
    Transmitter,
)
from sawtooth.scenario.record import Choice
from sawtooth.scenario.tables import Program

_LONGEST_COMMAND = 200
_FEW = 3
"""Up to this number, changes are listed one by one."""


def describe(scenario: Scenario) -> str:
    """Several lines of text: the run, then each flow and probe with its path, its base RTT and its bottleneck, and the
    programs."""
    compiled = scenario.compile()
    lines = [
        f"{scenario.name}: topology {scenario.topology}, {scenario.duration} sampled every {scenario.interval}, "
        f"warm-up {scenario.warmup}, seed {scenario.seed}",
        *_traces(scenario),
    ]
    ways = _Ways(compiled)
    for flow in compiled.flows:
        lines += ["", f"flow {flow.name}: {_who(flow)}, {_time(flow)}"]
        lines += ways.of(flow)
    for probe in compiled.probes:
        lines += ["", f"probe {probe.name}: {probe.count} packets, one every {Span(probe.interval_ns)}"]
        lines += ways.of(probe)
    if scenario.programs:
        lines += ["", "programs"]
        lines += [f"  {_program(one)}" for one in scenario.programs]
    if compiled.transmitters:
        lines += ["", "transmitters"]
        lines += [f"  {one.name}: {_rate(one)}, queue of {_queue(one)}" for one in compiled.transmitters]
    return "\n".join(lines)


def _traces(scenario: Scenario) -> list[str]:
    given = {} if scenario.path is None else {"path": scenario.path.trace}
    for number, link in enumerate(scenario.links):
        at = f"links.{number}"
        given |= {at: link.trace, f"{at}.forward": link.forward.trace, f"{at}.backward": link.backward.trace}
    return [f"{at}: rate from the trace {Path(name).name}" for at, name in given.items() if name is not None]


def _program(program: Program) -> str:
    command = program.command if isinstance(program.command, str) else shlex.join(program.command)
    ready = "" if program.ready is None else f" (a server, ready when: {program.ready})"
    return f"on {program.host}: {plain(command, _LONGEST_COMMAND)}{ready}"


def _who(flow: Flow) -> str:
    if flow.arrivals is not None:
        return f"transfers of {flow.cc}, at most {flow.arrivals.open} at once"
    number = "" if flow.count == 1 else "s"
    return (
        f"{flow.count} sender{number} of datagrams"
        if flow.datagrams
        else f"{flow.count} connection{number} of {flow.cc}"
    )


def _time(flow: Flow) -> str:
    if flow.bytes is not None:
        ends = f"{Size(flow.bytes)} each"
    elif flow.duration_ns is not None:
        ends = f"for {Span(flow.duration_ns)}"
    else:
        ends = "to the end"
    if flow.lifetime_ns is not None:
        low, high = flow.lifetime_ns
        ends += f", each for {Span(low)} to {Span(high)}, then replaced"
    if flow.arrivals is not None:
        times = flow.arrivals.times
        listed = f"{len(times.at_ns or ())} at listed times"
        each = f"one every {Span(times.poisson_ns)} on average" if times.poisson_ns else listed
        ends += f"; {each}, sizes {flow.arrivals.sizes.kind}"
    if flow.asks is not None:
        ends += f"; requested by the receiver: {_asks(flow.asks)}"
    if flow.writes is not None:
        ends += f"; {_paced(flow.writes)}"
    if flow.datagrams is not None:
        ends += f"; {_paced(flow.datagrams)}{', at random times' if flow.datagrams.poisson else ''}"
    if flow.reads is not None:
        ends += f"; read {_paced(flow.reads)}"
    return f"from {Span(flow.start_ns)}, {ends}"


def _paced(application: Paced | Datagrams) -> str:
    text = f"{Size(application.bytes)} at a time at {Rate(application.rate_bps)}"
    if application.on_off_ns is not None:
        on, off = application.on_off_ns
        text += f", {Span(on)} on, {Span(off)} off"
    return text


def _asks(asks: Application) -> str:
    if video := asks.video:
        rates = ", ".join(str(Rate(bps)) for bps in video.rates_bps)
        return f"video, segments of {Span(video.segment_ns)} at {rates}, buffer of {Span(video.buffer_ns)}"
    sizes, think = asks.value.sizes, asks.value.think
    drawn = f"of {Size(sizes.fixed)}" if sizes.fixed else f"of {sizes.kind} sizes"
    after = f"{Span(think.value)} after each" + (" on average" if think.kind == "exponential_ns" else "")
    if pages := asks.pages:
        again = "kept" if pages.keep else "new ones for each"
        return f"pages of {pages.objects} objects {drawn} over {pages.connections} connections, {again}, {after}"
    return f"responses {drawn}, {after}"


class _Ways:
    """The lines that describe a flow's path. Flows with the same path share them."""

    def __init__(self, compiled: Compiled) -> None:
        self._compiled = compiled
        self._texts: dict[tuple[int, ...], list[str]] = {}

    def of(self, item: Flow | Probe) -> list[str]:
        key = (*item.forward, -1, *item.backward)
        if key not in self._texts:
            self._texts[key] = _ways(item, self._compiled)
        return self._texts[key]


def _ways(item: Flow | Probe, compiled: Compiled) -> list[str]:
    rtt_ns = sum(link.delay_ns for link in compiled.way((*item.forward, *item.backward)))
    rates = [one.lasting_bps for one in compiled.transmitters_of(item.forward)]
    rates += [link.policer.rate_bps for link in compiled.way(item.forward) if link.policer]
    lines = [f"  out   {_way(item.forward, compiled)}", f"  back  {_way(item.backward, compiled)}"]
    lines.append(f"  base RTT {Span(rtt_ns)}")
    if rates:
        bdp = min(rates) * rtt_ns // 8 // 10**9
        lines[-1] += f", bottleneck {Rate(min(rates))}, bandwidth-delay product {Size(bdp)}"
    else:
        lines[-1] += ", no rate limit on the way"
    return lines


def _way(indices: Sequence[int], compiled: Compiled) -> str:
    hosts, way = compiled.hosts, compiled.way(indices)
    text = hosts[way[0].from_].name
    for link in way:
        met = [f"loss {_loss(link)}"] if link.loss_ppb else []
        met += _changes("loss", link.losses, Loss)
        met += [f"policed to {Rate(link.policer.rate_bps)}"] if link.policer else []
        met += _changes("delay", link.delays, Span)
        met += [f"jitter {Span(link.jitter.ns)}"] if link.jitter else []
        met += [f"reorder {Loss(link.reorder.ppb)}"] if link.reorder else []
        met += [f"duplicate {Loss(link.duplicate[0])}"] if link.duplicate else []
        met += [f"corrupt {Loss(link.corrupt[0])}"] if link.corrupt else []
        arrow = f"–[{', '.join(met)}]→" if met else "→"
        text += f" {arrow} {hosts[link.to].name}"
    return text


def _loss(link: Link) -> str:
    pattern = link.loss_pattern or LossPattern()
    if pattern.every is not None:
        return f"every {pattern.every} packets"
    if packets := pattern.packets:
        more = f" and {len(packets) - _FEW} more" if len(packets) > _FEW else ""
        return f"of packet{'s' * (len(packets) > 1)} {', '.join(map(str, packets[:_FEW]))}{more}"
    return f"{Loss(link.loss_ppb)}{' in bursts' if pattern.gilbert_elliott else ''}"


def _changes(what: str, steps: Sequence[tuple[int, int]], kind: Callable[[int], object]) -> list[str]:
    if len(steps) > _FEW:
        values = [value for _, value in steps]
        return [f"{what} changes {len(steps)} times, {kind(min(values))} to {kind(max(values))}"]
    return [f"{what} {kind(value)} from {Span(at_ns)}" for at_ns, value in steps]


def _rate(transmitter: Transmitter) -> str:
    rate, pace = str(Rate(transmitter.rate_bps)), transmitter.pace or RateSchedule()
    if pace.steps:
        steps = [step for step in pace.steps if step != (0, transmitter.rate_bps)]
        return ", ".join([rate, *_changes("rate", steps, Rate)])
    if pace.slots:
        return f"{rate}, {Size(pace.slots.bytes)} at a time"
    return f"{rate} on average" if pace.trace else rate


def _queue(transmitter: Transmitter) -> str:
    packets = transmitter.queue_packets
    if transmitter.discipline is not None and transmitter.discipline.kind == "cake":
        return _discipline(transmitter.discipline)
    if packets is not None:
        limit = "1 packet" if packets == 1 else f"{packets} packets"
    else:
        limit = str(Size(transmitter.queue_bytes or 0))
    return limit if transmitter.discipline is None else f"{_discipline(transmitter.discipline)}, limit {limit}"


def _discipline(discipline: Choice) -> str:
    """A queueing discipline's name and parameters. Parameters that are absent or off are omitted, as in tc."""
    words = []
    for field, value in vars(discipline.value).items():
        name, _, unit = field.rpartition("_")
        if value is None or value is False:
            continue
        if value is True:
            words.append(field)
        elif unit == "ns":
            words.append(f"{name} {Span(value)}")
        elif unit == "bytes":
            words.append(f"{name} {Size(value)}")
        elif unit == "bps":
            words.append(f"{name} {Rate(value)}")
        elif unit == "256":
            words.append(f"{name} {value / 256:.3g}")
        elif unit == "ppb":
            words.append(f"{name} {Loss(value)}")
        else:
            words.append(f"{field} {value}")
    return " ".join([discipline.kind, *words])
