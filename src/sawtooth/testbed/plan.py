"""Plan: everything that a scenario becomes on Linux, as plain values. ``build`` decides; nothing here touches a system.

Each host is a namespace with one address. A transmitter shared by links (a network card) is a veth pair, and so is a
link without one; links of one card are VLAN sub-interfaces. A link's loss, queue, rate and delay are each at one place
on the outgoing side (``ports``). Packets find their link by routes to host addresses, without ARP and without rounding.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from sawtooth.scenario.compiled import Compiled
from sawtooth.scenario.compiled_form import Flow, Host
from sawtooth.scenario.header_sizes import IPV4, TCP, UDP, packet_bytes
from sawtooth.testbed.ports import Ports
from sawtooth.testbed.target_kernel import Place

MAIN_TABLE = 254
_FIRST_TABLE = 1000


@dataclass(frozen=True)
class Namespace:
    name: str
    address: str
    sysctls: dict[str, str]


@dataclass(frozen=True)
class Route:
    """A route to one host's address through one link. ``source`` is set where packets originate; metrics are those of
    TCP there."""

    namespace: int
    destination: str
    gateway: str
    device: str
    source: str | None = None
    table: int = MAIN_TABLE
    metrics: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Rule:
    """Packets from one source to one destination use a separate routing table."""

    namespace: int
    source: str
    destination: str
    table: int


@dataclass(frozen=True)
class Plan:
    namespaces: list[Namespace]
    ports: Ports
    routes: list[Route]
    rules: list[Rule]

    def namespace_of(self, host: int) -> str:
        return self.namespaces[host].name


def build(compiled: Compiled, place: Place, prefix: str) -> Plan:
    """The plan of a compiled scenario with namespaces named ``prefix`` + host. A pure function."""
    namespaces = [
        Namespace(prefix + host.name, address(index), sysctls(host)) for index, host in enumerate(compiled.hosts)
    ]
    ports = Ports.build(compiled, place, largest_packet(compiled))
    routes, rules = _routes(compiled, ports)
    return Plan(namespaces, ports, routes, rules)


def address(host: int) -> str:
    """The single address of a host, on its loopback device."""
    number = (10 << 24) + host + 1
    return ".".join(str(number >> shift & 255) for shift in (24, 16, 8, 0))


def sysctls(host: Host) -> dict[str, str]:
    """A host's settings. Everything else keeps the kernel's default, such as CUBIC's and the timers' parameters."""
    receive, send = host.receive_buffer, host.send_buffer
    older = {} if host.adv_win_scale is None else {"net/ipv4/tcp_adv_win_scale": str(host.adv_win_scale)}
    return {
        **older,
        "net/ipv4/tcp_rmem": f"{min(4096, receive)} {min(131072, receive)} {receive}",
        "net/ipv4/tcp_wmem": f"{min(4096, send)} {min(16384, send)} {send}",
        "net/ipv4/tcp_sack": str(int(host.sack)),
        "net/ipv4/tcp_timestamps": str(int(host.timestamps)),
        "net/ipv4/tcp_ecn": str(host.ecn),
        "net/ipv4/tcp_ecn_fallback": str(int(not host.ecn_insists)),
        "net/ipv4/tcp_no_metrics_save": "1",
        "net/ipv4/tcp_max_syn_backlog": "65536",
        "net/core/somaxconn": "65535",
        # Otherwise a closed connection would keep its port for a minute.
        "net/ipv4/tcp_max_tw_buckets": "0",
        "net/ipv4/ip_local_port_range": "1024 65535",
        "net/ipv4/ip_forward": "1",
        "net/ipv4/conf/all/rp_filter": "0",
        "net/ipv4/conf/default/rp_filter": "0",
        "net/ipv4/conf/all/send_redirects": "0",
        "net/ipv4/conf/default/send_redirects": "0",
        "net/ipv6/conf/all/disable_ipv6": "1",
        "net/ipv6/conf/default/disable_ipv6": "1",
    }


def segment(one: Host, other: Host) -> tuple[int, int]:
    """Payload bytes of a full segment between two hosts, and the size of its IP packet."""
    mss = min(one.mss, other.mss)
    return mss, packet_bytes(mss, timestamps=one.timestamps and other.timestamps)


def largest_packet(compiled: Compiled) -> int:
    """Bytes of the largest IP packet: the MTU of all devices."""
    hosts = compiled.hosts
    pairs = [(hosts[compiled.source(one)], hosts[compiled.target(one)]) for one in compiled.senders]
    datagrams = [datagram_bytes(flow) for flow in compiled.flows]
    return max([84, *(segment(one, other)[1] for one, other in pairs), *datagrams])


def datagram_bytes(flow: Flow) -> int:
    """The size of a datagram's IP packet; 0 if the flow sends none."""
    return 0 if flow.datagrams is None else flow.datagrams.bytes + IPV4 + UDP


def _routes(compiled: Compiled, ports: Ports) -> tuple[list[Route], list[Rule]]:
    """Hosts forward by destination; if sources take different paths to one destination, also by source."""
    links = compiled.links
    hops: dict[tuple[int, int], dict[int, int]] = defaultdict(dict)
    for one in compiled.senders:
        for path in (one.forward, one.backward):
            source, target = links[path[0]].from_, links[path[-1]].to
            for link in path:
                hops[links[link].from_, target][source] = link
    mtu = largest_packet(compiled)
    routes: list[Route] = []
    rules: list[Rule] = []
    for (here, target), by_source in sorted(hops.items()):
        tables: dict[int, int] = {}
        for source, link in sorted(by_source.items(), key=lambda item: (item[0] != here, item[0])):
            metrics = _metrics(compiled, here, target, mtu) if source == here else {}
            if link not in tables:
                table = MAIN_TABLE if not tables else _FIRST_TABLE + len(rules)
                tables[link] = table
                origin = address(here) if source == here else None
                gateway, device = ports.gateways[link], ports.tops[link]
                routes.append(Route(here, address(target), gateway, device, origin, table, metrics))
            if tables[link] != MAIN_TABLE:
                rules.append(Rule(here, address(source), address(target), tables[link]))
    return routes, rules


def _metrics(compiled: Compiled, here: int, target: int, mtu: int) -> dict[str, int]:
    """The TCP settings of a route: initial window, no delayed acknowledgements, a smaller segment. It does not limit
    datagrams."""
    host, other = compiled.hosts[here], compiled.hosts[target]
    sent = [flow for flow in compiled.flows if (compiled.source(flow), compiled.target(flow)) == (here, target)]
    metrics = {"initcwnd": host.initial_window}
    if not host.delayed_ack:
        metrics["quickack"] = 1
    packet = segment(host, other)[1]
    if packet != mtu:
        metrics["mtu"] = max([packet, *(datagram_bytes(flow) for flow in sent)])
        metrics["advmss"] = packet - IPV4 - TCP
    return metrics
