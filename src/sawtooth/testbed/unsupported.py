"""Refuses what a testbed cannot do, with the field's name, before anything starts."""

from __future__ import annotations

import re
import shutil
from collections import defaultdict
from collections.abc import Callable

from sawtooth.errors import InputError, SawtoothError
from sawtooth.scenario import CONTROLS
from sawtooth.scenario.compiled import Compiled
from sawtooth.scenario.compiled_form import Link
from sawtooth.scenario.header_sizes import PACKET_LARGEST, packet_bytes
from sawtooth.testbed.plan import Plan, largest_packet
from sawtooth.testbed.ports import MAX_BANDS, MAX_LINKS_A_CARD, counts, loses, loses_by_netem, merges, varies
from sawtooth.testbed.target_kernel import Place
from sawtooth.testbed.traffic import MAX_FLOWS

MAX_HOSTS = 1000
MAX_CONNECTIONS = 10_000
MAX_IPERF3_STREAMS = 128
_MEASURES_WINDOW = (6, 6)
"""From this version on Linux ignores tcp_adv_win_scale, and measures the window's share of a receive buffer."""
RED_BITS = 32
"""``max`` times the inverse of the average's weight must be below 2^31 (``red_check_params`` in Linux)."""


def check(compiled: Compiled, traffic: str, place: Place, *, where: str) -> None:
    """Raises SawtoothError ``unsupported``; ``where`` names the engine or its kernel in the message."""
    _hosts(compiled, where)
    _links(compiled, place, where)
    _flows(compiled, traffic, where)


def check_kinds(compiled: Compiled, plan: Plan, lacking: Callable[[set[str]], set[str]], *, where: str) -> None:
    """Raises SawtoothError ``unsupported`` for a queueing discipline that the kernel lacks; ``lacking`` selects the
    missing ones from a set."""
    missing = lacking({one.kind for one in plan.ports.qdiscs})
    for kind in sorted(missing):
        fix = f"modprobe sch_{kind}, or use --engine kernel"
        for transmitter in compiled.transmitters:
            if transmitter.discipline is not None and transmitter.discipline.kind == kind:
                message = f'the queue of "{transmitter.name}" is of kind {kind}, which {where} does not have'
                raise _no("links.queue", message, fix)
        raise _no("links", f"{where} has no queueing discipline {kind}", fix)


def check_version(compiled: Compiled, version: str, *, where: str) -> None:
    """Raises SawtoothError ``unsupported`` for a setting that this version of Linux, like "6.12.3", ignores."""
    if tuple(int(part) for part in re.findall(r"\d+", version)[:2]) < _MEASURES_WINDOW:
        return
    for host in compiled.hosts:
        if host.adv_win_scale is not None:
            message = f"{where} is Linux {version}, which ignores tcp_adv_win_scale since 6.6"
            fix = "leave it out, use --engine sim, or --engine kernel with a host.kernel of Linux 6.1 to 6.5"
            raise _no("host.adv_win_scale", message, fix)


def check_tools(traffic: str, *, capture: bool) -> None:
    """Raises SawtoothError ``tool-missing`` for a program needed by the traffic or the capture."""
    if traffic == "iperf3" and shutil.which("iperf3") is None:
        fix = 'install it (on Debian: apt install iperf3), or set traffic = "native"'
        raise SawtoothError("tool-missing", "iperf3 is not installed", fix=fix)
    if capture and shutil.which("tcpdump") is None:
        raise SawtoothError("tool-missing", "a capture needs tcpdump", fix="on Debian: apt install tcpdump")


def _hosts(compiled: Compiled, where: str) -> None:
    hosts = compiled.hosts
    if len(hosts) > MAX_HOSTS:
        raise _no("topology", f"{where} takes at most {MAX_HOSTS} hosts, not {len(hosts)}", "use fewer pairs or hosts")
    for host in hosts:
        if host.hz != hosts[0].hz:
            message = f"one kernel runs all hosts in {where}, so that they share one timer tick"
            raise _no(f"hosts.{host.name}.hz", message, f"set it to {hosts[0].hz}, as on {hosts[0].name}")
        if host.unpaced:
            fix = "leave it out, or use --engine sim"
            raise _no("host.pacing", f"the kernel of {where} paces by itself, as Linux since 4.13", fix)
    packet = largest_packet(compiled)
    if packet > PACKET_LARGEST:
        most = PACKET_LARGEST - packet_bytes(0, timestamps=True)
        raise _no("host.mss", f"a packet of {packet} bytes does not exist", f"choose at most {most}")


def _links(compiled: Compiled, place: Place, where: str) -> None:
    by_card: dict[int, list[int]] = defaultdict(list)
    for index, link in enumerate(compiled.links):
        if link.transmitter is not None:
            by_card[link.transmitter].append(index)
    for card, members in by_card.items():
        links = [compiled.links[index] for index in members]
        name = compiled.transmitters[card].name
        if len({link.overhead_bytes for link in links}) > 1:
            message = f'the links of the card "{name}" have different overheads, which {where} cannot count'
            raise _no("links.overhead", message, "give them the same overhead")
        if len(merges(compiled, members)) > 1:
            message = f'hosts that the card "{name}" leads to merge what they receive differently'
            raise _no("host.gro", message, "give them the same gro")
        if len(links) > MAX_LINKS_A_CARD:
            raise _no(f"cards.{name}", f"more than {MAX_LINKS_A_CARD} links share it", "use several cards")
        if len({link.delay_ns for link in links}) > MAX_BANDS:
            raise _no("links.delay", f'links of the card "{name}" have more than {MAX_BANDS} delays', "use fewer")
        if len(links) > 1 and not (place.vlan or place.macvlan):
            message = f'several links share the card "{name}", and {where} has neither VLAN nor macvlan sub-interfaces'
            raise _no(f"cards.{name}", message, "modprobe 8021q, or give each link a separate rate")
    sending = {flow.forward[0] for flow in compiled.flows}
    starting = {way[0] for one in compiled.senders for way in (one.forward, one.backward)}
    for index, link in enumerate(compiled.links):
        name = link.name
        _varying(link, compiled, _shared(link, by_card), place, where)
        if loses(link) and not loses_by_netem(link, place):
            _rule(link, index in starting, place, where)
        queue = None if link.transmitter is None else compiled.transmitters[link.transmitter].discipline
        if queue is not None and queue.kind == "dualpi2" and not place.dualpi2:
            message = f'the queue of the link "{name}" is a dualpi2, and {where} has none'
            raise _no("queue", message, "modprobe sch_dualpi2 (Linux 6.17 or later), or use --engine sim")
        if queue is not None and queue.kind == "red":
            law = queue.value
            if law.max_bytes.bit_length() + law.weight_log >= RED_BITS:
                message = f'RED on the link "{name}" has a max of {law.max_bytes} bytes and a weight of '
                message += f"1/{2**law.weight_log}, and Linux cannot compute such an average"
                raise _no("queue.burst", message, "use --engine sim, or write a smaller burst in the queue")
        if place.netem and not place.vlan:
            lossy, rated = loses_by_netem(link, place), link.transmitter is not None
            if lossy or (rated and (link.delay_ns or index in sending)):
                message = f'the link "{name}" needs a VLAN sub-interface, which {where} does not have'
                raise _no("links", message, "modprobe 8021q")
        if link.aggregation_ns and (_shared(link, by_card) or not place.netem):
            lacks = "shares a card with others" if place.netem else f"sends in bursts, and {where} has no netem"
            raise _no("links.aggregation", f'the link "{name}" {lacks}', "leave it out")
        pace = None if link.transmitter is None else compiled.transmitters[link.transmitter].pace
        if pace is not None and pace.slots and not place.netem:
            raise _no(
                "links.opportunity", f'the link "{name}" sends in bursts, and {where} has no netem', "leave it out"
            )
        if place.netem:
            continue
        if link.delay_ns:
            message = f'the link "{name}" has a delay, and {where} has no netem'
            raise _no("delay", message, 'modprobe sch_netem, set the delays (rtt) to "0 s", or use --engine kernel')


def _varying(link: Link, compiled: Compiled, shared: bool, place: Place, where: str) -> None:
    """Changes at given times, and netem's effects besides a delay."""
    transmitter = None if link.transmitter is None else compiled.transmitters[link.transmitter]
    pace = None if transmitter is None else transmitter.pace
    timed = bool(link.delays or link.losses or (pace and pace.steps))
    if timed and not place.virtual:
        message = f'"{link.name}" changes at exact times, which {where} cannot keep to in real time'
        raise _no("links.changes", message, "use --engine kernel or sim")
    if (timed or varies(link)) and not place.netem:
        raise _no("links", f'the link "{link.name}" varies, and {where} has no netem', "modprobe sch_netem")
    if link.policer is not None and not place.netem:
        raise _no("policer", f'the link "{link.name}" has a policer, and {where} has no netem', "modprobe sch_netem")
    if link.losses and (link.loss_pattern is not None):
        raise _no("links.changes", f'a pattern of losses that changes, on "{link.name}"', "give a share")
    if shared and (varies(link) or link.losses or link.policer):
        message = f'the link "{link.name}" varies or has a policer, and shares a card'
        raise _no("links", message, "give it a separate rate; if hosts have processing, use --engine sim")


def _shared(link: Link, by_card: dict[int, list[int]]) -> bool:
    return link.transmitter is not None and len(by_card[link.transmitter]) > 1


def _rule(link: Link, starts: bool, place: Place, where: str) -> None:
    """Loss that netem cannot do here. nftables drops forwarded packets only: TCP would notice a packet dropped where it
    originates."""
    name, counted = link.name, counts(link)
    other = "use --engine sim" if counted else "use --engine kernel"
    if link.loss_pattern and link.loss_pattern.gilbert_elliott:
        message = f'the link "{name}" loses packets in bursts, and {where} has no netem'
        raise _no("loss", message, f"modprobe sch_netem, or {other}")
    if not place.nftables:
        lacks = "no nftables to count them" if counted else "neither netem nor nftables"
        raise _no(
            "loss", f'the link "{name}" loses packets, and {where} has {lacks}', f"modprobe nf_tables, or {other}"
        )
    if starts:
        lacks = "can count packets only where they are forwarded" if counted else "has no netem to do that with"
        message = f'the link "{name}" loses packets where they are sent; {where} {lacks}'
        raise _no("loss", message, f"put the loss on a link that forwards, or {other}")


def _flows(compiled: Compiled, traffic: str, where: str) -> None:
    flows = compiled.flows
    if len(flows) > MAX_FLOWS:
        raise _no("flows", f"{where} takes at most {MAX_FLOWS} flows", "give some a count instead")
    for index, flow in enumerate(flows):
        if flow.arrivals is not None and flow.arrivals.open > MAX_CONNECTIONS:
            message = f"{where} takes at most {MAX_CONNECTIONS} connections"
            raise _no(f"flows.{index}.source.open", message, "let fewer be open at once")
    if sum(flow.count for flow in flows) > MAX_CONNECTIONS:
        raise _no("flows.count", f"{where} takes at most {MAX_CONNECTIONS} connections", "lower the counts")
    for index, flow in enumerate(flows):
        if flow.module is not None and flow.module.is_agent:
            raise _no(f"flows.{index}.cc", f"{where} runs no policy and no Python file", "use --engine sim")
        if flow.variant is not None:
            message = f"{where} does not have the variant {flow.variant} of {flow.cc}"
            raise _no(f"flows.{index}.cc.variant", message, "use --engine sim")
    if traffic != "iperf3":
        return
    fix = 'set traffic = "native"'
    for index, flow in enumerate(flows):
        at = f"flows.{index}"
        if flow.cc in CONTROLS and None in CONTROLS[flow.cc].by_marks and compiled.hosts[compiled.target(flow)].ecn:
            raise _no(f"{at}.cc", f"iperf3's receiving end has not the sender's control, which {flow.cc} needs", fix)
        if flow.lifetime_ns:
            raise _no(f"{at}.replace", "iperf3 does not replace flows that end", fix)
        if flow.writes is not None:
            raise _no(f"{at}.source", "iperf3 keeps to no times of writing", fix)
        if flow.datagrams is not None:
            raise _no(f"{at}.source", "iperf3's datagrams keep to no times", fix)
        if flow.asks is not None:
            raise _no(f"{at}.source", "iperf3's receivers ask for nothing", fix)
        if flow.arrivals is not None:
            raise _no(f"{at}.source", "iperf3 has no transfers that come by themselves", fix)
        if flow.reads is not None:
            raise _no(f"{at}.reader", "iperf3 keeps to no times of reading", fix)
        if flow.count > MAX_IPERF3_STREAMS:
            raise _no(f"{at}.count", f"iperf3 has at most {MAX_IPERF3_STREAMS} connections in a flow", fix)
        if flow.bytes is not None and flow.count > 1:
            raise _no(f"{at}.bytes", "iperf3 counts the bytes of all connections of a flow together", fix)
        ends = [flow.start_ns, *([flow.duration_ns] if flow.duration_ns else [])]
        if flow.duration_ns and ends[1] % 10**9:
            raise _no(f"{at}.duration", "iperf3 runs for whole seconds", fix)


def _no(field: str, message: str, fix: str) -> InputError:
    return InputError("unsupported", message, field=field, fix=fix)
