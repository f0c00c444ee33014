"""Traffic: the orders for the source, a small C program that sends, receives, probes, starts other programs and
samples.

It writes one CSV per table, which ``tables`` reads. The orders are plain lines, which take little of a guest's
processor time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sawtooth.errors import InputError, SawtoothError, suggestion
from sawtooth.scenario.compiled import Compiled
from sawtooth.scenario.compiled_form import Application, Datagrams, Paced, RateSchedule
from sawtooth.scenario.header_sizes import CLIENT_PORT, FIRST_PORT, IPV4, TCP_LONGEST
from sawtooth.testbed.plan import Plan, address
from sawtooth.testbed.ports import Line, Ports

ENDLESS = -1
CLIENT_PORTS = 256
"""Ports of a flow's iperf3 client, one per connection; iperf3 uses at most 128."""
SERVER_LEAD_NS = 500_000_000
CAPTURE_LEAD_NS = 400_000_000
SNAP_BYTES = 20 + IPV4 + TCP_LONGEST
"""Bytes captured of a packet: tcpdump's header for any device, IPv4's, and the longest of TCP."""
GUEST_BUFFER_KIB, HOST_BUFFER_KIB = 4096, 65536
"""tcpdump's buffer. In virtual time it always keeps up, and each page of a buffer costs a guest a mapping."""
LEAD_NS = 1_000_000_000
WAITS = "waits.so"
"""The library for iperf3's client in a guest, next to the orders."""
MAX_FLOWS = 170
"""Most flows for which iperf3 has ports."""
_MANY_FILES = 3
"""The traffic source's exit status if a flow has more connections than files may be open."""


@dataclass(frozen=True)
class Program:
    """Another program, started in a namespace at a time of the run (negative: before it); its output goes to
    ``out``."""

    namespace: int
    start_ns: int
    out: str
    words: Sequence[str]


def orders(
    compiled: Compiled,
    plan: Plan,
    traffic: str,
    directory: Path,
    namespaces: Path,
    devices: Mapping[tuple[int, str], int],
    *,
    capture: Sequence[str],
    virtual: bool,
) -> str:
    """The source's orders for a compiled scenario. ``traffic`` is "native" or "iperf3"; ``capture`` names hosts.

    ``devices``: indices by namespace and name.
    """
    lines = [
        f"directory {directory}",
        f"duration {compiled.duration_ns}",
        f"interval {compiled.interval_ns}",
        f"seed {compiled.seed}",
        f"lead {LEAD_NS}",
    ]
    lines += [f"namespace {namespaces / namespace.name}" for namespace in plan.namespaces]
    programs: list[Program] = []
    for index, flow in enumerate(compiled.flows):
        source, target = compiled.source(flow), compiled.target(flow)
        port, first = FIRST_PORT + index, CLIENT_PORT + index * CLIENT_PORTS
        low, high = flow.lifetime_ns or (0, 0)
        ends = f"{source} {target} {address(source)} {address(target)} {port} {first}"
        times = f"{flow.start_ns} {_or_endless(flow.duration_ns)} {_or_endless(flow.bytes)} {low} {high}"
        paced = f"{_paced(flow.writes or flow.datagrams)} {_paced(flow.reads)}"
        lines.append(f"flow {int(traffic == 'native')} {flow.cc} {ends} {flow.count} {times} {paced}")
        if flow.datagrams is not None:
            lines.append(f"datagrams {index} {int(flow.datagrams.poisson)} {transfers_file(index)}")
        if flow.asks is not None:
            lines.append(_asks(index, flow.asks))
        if flow.arrivals is not None:
            lines.append(f"arrivals {index} {flow.arrivals.open} {transfers_file(index)}")
        if traffic == "iperf3":
            programs += iperf3(compiled, index, source, target, directory / WAITS if virtual else None)
    for probe in compiled.probes:
        source, target = compiled.source(probe), compiled.target(probe)
        lines.append(
            f"probe {source} {address(source)} {address(target)} {probe.start_ns} {probe.interval_ns} {probe.count}"
        )
    lines += [f"host {host}" for host in sending_hosts(compiled)]
    for queue in plan.ports.queues:
        lines.append(f"queue {queue.transmitter} {queue.namespace} {queue.device} {queue.handle} {int(queue.on_wire)}")
    for change in sorted(plan.ports.changes, key=lambda change: change.at_ns):
        where = f"{change.namespace} {change.device} {change.handle} {change.parent}"
        lines.append(f"change {change.at_ns} {where} {change.options.hex()}")
    for line in plan.ports.lines:
        lines.append(_line(compiled, line, directory))
    for link in plan.ports.losses:
        about = f"{link.namespace} {link.device} {link.handle} {link.child}"
        lines.append(f"{'policer' if link.polices else 'link'} {link.link} {about}")
    for rule in plan.ports.rules:
        lines.append(f"counter {rule.counter.removeprefix('link')} {rule.namespace} {rule.counter}")
    programs += captures(compiled, plan.ports, devices, capture, virtual=virtual)
    for program in programs:
        words = "\t".join(program.words)
        lines.append(f"run {program.namespace} {program.start_ns} {program.out}\t{words}")
    return "\n".join(lines) + "\n"


def _line(compiled: Compiled, line: Line, directory: Path) -> str:
    """The order for a transmitter with a varying rate, and the file of its times."""
    transmitter = compiled.transmitters[line.transmitter]
    pace, given = transmitter.pace or RateSchedule(), f"line-{line.transmitter}.txt"
    overhead = next(link.overhead_bytes for link in compiled.links if link.transmitter == line.transmitter)
    told, opportunity, every = list[str](), 0, 0
    if pace.trace:
        told, opportunity = [str(time) for time in pace.trace.times_ms], pace.trace.bytes
    elif pace.slots:
        opportunity, every = pace.slots.bytes, pace.slots.every_ns
    else:
        told = [f"{at_ns} {bps}" for at_ns, bps in ((0, transmitter.rate_bps), *(pace.steps or ()))]
    (directory / given).write_text("\n".join(told) + "\n", encoding="ascii")
    limits = f"{_or_endless(transmitter.queue_packets)} {_or_endless(transmitter.queue_bytes)}"
    devices = f"{line.namespace} {line.come} {line.leave}"
    order = f"line {line.transmitter} {devices} {limits} {overhead} {opportunity} {every} {given}"
    if valve := line.valve:
        order += f" {valve.device} {valve.handle} {valve.parent} {valve.options.hex()}"
    return order


def _asks(index: int, asks: Application) -> str:
    """The order for a flow's readers."""
    if video := asks.video:
        rates = " ".join(str(rate) for rate in video.rates_bps)
        times = f"{video.segment_ns} {video.buffer_ns} {int(video.rule == 'throughput')}"
        return f"asks {index} video fixed 1 0 0 0 {times} {len(video.rates_bps)} {rates}"
    sizes, think = asks.value.sizes, asks.value.think
    numbers = (sizes.fixed,) if sizes.fixed else sum(sizes.cdf, ()) if sizes.cdf else tuple(vars(sizes.value).values())
    drawn = f"{sizes.kind} {len(numbers)} {' '.join(map(str, numbers))}"
    line = f"asks {index} {asks.kind} {drawn} {think.value} {int(think.kind == 'exponential_ns')}"
    if pages := asks.pages:
        line += f" {pages.objects} {pages.connections} {int(pages.keep)}"
    return line


def transfers_file(flow: int) -> str:
    """The file with a flow's transfers: pairs of 64-bit numbers, ns since t = 0 and bytes. For a stream of datagrams,
    "-" and its number follow."""
    return f"transfers-{flow}"


def sending_hosts(compiled: Compiled) -> list[int]:
    """Hosts that send a flow's data, each once."""
    return sorted({compiled.source(flow) for flow in compiled.flows})


def iperf3(compiled: Compiled, index: int, source: int, target: int, waits: Path | None) -> list[Program]:
    """The server, started slightly earlier, and the client of one flow; both report JSON at the end.

    ``waits``: the library for the client in virtual time.
    """
    flow = compiled.flows[index]
    port, first = FIRST_PORT + index, CLIENT_PORT + index * CLIENT_PORTS
    interval = f"{max(0.1, compiled.interval_ns / 1e9):g}"
    server = ["iperf3", "-s", "-1", "-J", "-B", address(target), "-p", str(port), "-i", interval]
    client = ["iperf3", "-c", address(target), "-B", address(source), "-p", str(port), "--cport", str(first), "-J"]
    client += ["-C", flow.cc, "-P", str(flow.count), "-i", interval]
    if flow.bytes is not None:
        client += ["-n", str(flow.bytes)]
    else:
        left_ns = compiled.duration_ns - flow.start_ns
        # Whole seconds only; data sent after the run's end is not sampled.
        client += ["-t", str(-(-min(flow.duration_ns or left_ns, left_ns) // 10**9))]
    if waits is not None:
        client = ["env", f"LD_PRELOAD={waits}", *client]
    start_ns = flow.start_ns
    return [
        Program(target, start_ns - SERVER_LEAD_NS, f"iperf3-server-{index}.json", server),
        Program(source, start_ns, f"iperf3-client-{index}.json", client),
    ]


def captured_hosts(compiled: Compiled, at: Sequence[str]) -> list[str]:
    """Names of the hosts whose packets are captured: the requested ones, or both ends of every flow.

    Raises SawtoothError ``unknown-name`` for a host that the scenario does not have.
    """
    names = [host.name for host in compiled.hosts]
    for name in at:
        if name not in names:
            message = f'the scenario has no host "{name[:60]}"'
            raise InputError("unknown-name", message, field="capture-at", fix=suggestion(name, names))
    if at:
        return list(dict.fromkeys(at))
    ends = {host for flow in compiled.flows for host in (compiled.source(flow), compiled.target(flow))}
    return [names[host] for host in sorted(ends)]


def captures(
    compiled: Compiled,
    ports: Ports,
    devices: Mapping[tuple[int, str], int],
    hosts: Sequence[str],
    *,
    virtual: bool,
) -> list[Program]:
    """tcpdump at these hosts: headers only, and each packet once, on the device by which it finally arrives or first
    leaves. Forwarded packets are captured as they arrive."""
    ends = captured_hosts(compiled, ())
    numbers = {host.name: number for number, host in enumerate(compiled.hosts)}
    programs = []
    for name in hosts:
        host = numbers[name]
        seen = [ports.arrivals[index] for index, link in enumerate(compiled.links) if link.to == host]
        if name in ends:
            seen += [ports.tops[index] for index, link in enumerate(compiled.links) if link.from_ == host]
        where = " or ".join(f"ifindex {devices[host, device]}" for device in seen or ["lo"])
        wanted = f"(tcp or icmp) and ({where})"
        buffer = GUEST_BUFFER_KIB if virtual else HOST_BUFFER_KIB
        words = ["tcpdump", "-Z", "root", "-n", "-i", "any", "-s", str(SNAP_BYTES), "-B", str(buffer)]
        # Written to standard output: tcpdump would give its own file to another user, which the guest's kernel may not
        # do on the host.
        words += ["--time-stamp-precision=nano", "-w", "-", wanted]
        programs.append(Program(host, -CAPTURE_LEAD_NS, f"capture-{name}.pcap", words))
    return programs


def _paced(application: Paced | Datagrams | None) -> str:
    if application is None:
        return "0 0 0 0 0"
    on, off = application.on_off_ns or (0, 0)
    partial = int(isinstance(application, Paced) and application.partial)
    return f"{application.bytes} {application.rate_bps} {on} {off} {partial}"


def _or_endless(value: int | None) -> int:
    return ENDLESS if value is None else value


def check_source(status: int, said: str) -> None:
    """Raises OSError if the traffic source failed, SawtoothError ``testbed-failed`` if it could not open its files."""
    if status == _MANY_FILES:
        field, _, message = said.strip().partition(": ")
        fix = "lower the count of the flows, or raise the hard limit of open files (ulimit -Hn)"
        raise SawtoothError("testbed-failed", message, field=field, fix=fix)
    if status:
        raise OSError(said.strip() or f"the traffic source ended with status {status}")
