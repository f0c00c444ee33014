"""Ports: the devices of links, and their queueing disciplines. One file, because each case depends on all others.

A link direction is loss, then a tail-drop queue, then a transmitter, then a delay. netem can do all four, but then its
limit also counts packets in propagation. So there are two stages on the outgoing side of a device stack, the upper one
first, and no more devices than needed:

    queue  loss: netem, the root;
           rate and limit: netem with one packet more, because it counts the one on the wire too
           where TCP itself sends, or the queue is a table: a token bucket of one frame over it
           elsewhere, where the limit is in bytes or few packets: HTB over it, which carries over the time of what
           it has sent, so that small packets do not leave together as from a bucket that holds a full frame
    wire   the delay: netem without limit; after a token bucket also the rate, so that a frame leaves at its end

If the rate varies, a program is the transmitter (``Line``), between two veth pairs.

The token bucket keeps the kernel's back-pressure on the sender (TCP small queues), which netem breaks when it takes a
packet over. It also splits super-packets into frames. A stack of two stages is a VLAN sub-interface on a veth; a card
with several links has one more sub-interface for each, with that link's loss. Tags do not count in lengths
(``_leave_tags_out``). Loss by packet numbers, which netem cannot do, is an nftables rule before the device.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypedDict

from sawtooth.scenario.compiled import Compiled
from sawtooth.scenario.compiled_form import Jitter, Link, LossPattern, Reorder, Slots, Transmitter
from sawtooth.scenario.header_sizes import ETHERNET
from sawtooth.testbed import qdisc
from sawtooth.testbed.seed import link_seed

if TYPE_CHECKING:
    from sawtooth.testbed.target_kernel import Place

ROOT = 0xFFFFFFFF
LOSS, RATE, FIFO, WIRE, POLICE, AROUND, CUT = 0x10, 0x20, 0x30, 0x40, 0x50, 0x60, 0x70
"""Handles (major numbers) of a device's queueing disciplines."""
MAX_BANDS = 16
_STAGE_TAG, _CUT_TAG, _FIRST_LINK_TAG = 2, 3, 10
_TAG_BYTES = 4
MAX_LINKS_A_CARD = 4000
_VIRTUAL_LATENESS_S = 1e-6
_REAL_TIME_LATENESS_S = 0.0005
_FEW = 16
"""Packets. netem frees a frame's place when its timer fires, a fifo when the frame leaves. Acknowledgements that left
the same transmitter release new frames at that very instant, and in a short queue the order matters."""


@dataclass(frozen=True)
class Veth:
    near_namespace: int
    near: str
    far_namespace: int
    far: str
    far_mac: str
    tags: int = 0
    """Bytes of VLAN tags in each frame, beyond the MTU."""


@dataclass(frozen=True)
class Sub:
    """A VLAN sub-interface, or a macvlan that receives the frames for its address; made next to its parent, then
    moved."""

    kind: str
    namespace: int
    parent: str
    name: str
    target: int
    tag: int = 0
    mac: str | None = None


@dataclass(frozen=True)
class Qdisc:
    namespace: int
    device: str
    handle: int
    parent: int
    kind: str
    options: bytes
    leaf: bytes = b""
    """Options of its single class, handle | 1, to which everything below it belongs."""
    tags: int = 0
    """Bytes of VLAN tags in each incoming frame, which this root discipline excludes from lengths."""


@dataclass(frozen=True)
class Filter:
    namespace: int
    device: str
    parent: int
    options: bytes
    kind: str = "flower"


@dataclass(frozen=True)
class Merging:
    """A device with GRO, and how long its segments wait for more."""

    namespace: int
    device: str
    wait_ns: int


@dataclass(frozen=True)
class Neighbour:
    namespace: int
    device: str
    address: str
    mac: str


@dataclass(frozen=True)
class LossRule:
    """nftables: drops a share of the packets forwarded to a gateway, every n-th one, or some by their numbers, and
    counts the drops."""

    namespace: int
    gateway: str
    counter: str
    loss_ppb: int
    every: int | None = None
    packets: tuple[int, ...] = ()


@dataclass(frozen=True)
class WatchQueue:
    transmitter: int
    namespace: int
    device: str
    handle: int
    on_wire: bool
    """Whether the count includes the packet on the wire."""


@dataclass(frozen=True)
class WatchLink:
    link: int
    namespace: int
    device: str
    handle: int
    child: int
    polices: bool = False


@dataclass(frozen=True)
class Change:
    """Changes a netem's options at a time of the run."""

    at_ns: int
    namespace: int
    device: str
    handle: int
    parent: int
    options: bytes


@dataclass(frozen=True)
class Valve:
    """Passes one frame to a line each time its options are set again."""

    device: str
    handle: int
    parent: int
    options: bytes


@dataclass(frozen=True)
class Line:
    """A program that takes frames from one device and sends them on another, at a varying rate."""

    transmitter: int
    namespace: int
    come: str
    leave: str
    valve: Valve | None
    """None: the program keeps the queue itself, a tail drop."""


@dataclass
class Ports:
    """For each link: ``tops``, the device by which packets leave; ``arrivals``, the one by which they finally arrive;
    ``gateways``, the address that stands for the peer."""

    mtu: int
    veths: list[Veth] = field(default_factory=list)
    subs: list[Sub] = field(default_factory=list)
    qdiscs: list[Qdisc] = field(default_factory=list)
    filters: list[Filter] = field(default_factory=list)
    neighbours: list[Neighbour] = field(default_factory=list)
    rules: list[LossRule] = field(default_factory=list)
    queues: list[WatchQueue] = field(default_factory=list)
    losses: list[WatchLink] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    merging: list[Merging] = field(default_factory=list)
    whole: set[tuple[int, str]] = field(default_factory=set)
    """Devices, with their namespaces, that pass super-packets on."""
    tops: dict[int, str] = field(default_factory=dict)
    arrivals: dict[int, str] = field(default_factory=dict)
    gateways: dict[int, str] = field(default_factory=dict)

    @classmethod
    def build(cls, compiled: Compiled, place: Place, mtu: int) -> Ports:
        ports = cls(mtu)
        by_transmitter: dict[int, list[int]] = {}
        groups: list[list[int]] = []
        for index, link in enumerate(compiled.links):
            transmitter = link.transmitter
            if transmitter is None or transmitter not in by_transmitter:
                groups.append([index])
                if transmitter is not None:
                    by_transmitter[transmitter] = groups[-1]
            else:
                by_transmitter[transmitter].append(index)
        sending = {flow.forward[0] for flow in compiled.flows}
        whole = {index for way in compiled.whole_ways() for index in way}
        for number, links in enumerate(groups):
            _Port(compiled, place, ports, number, links, sending, whole).build()
        ports._leave_tags_out()
        return ports

    def _leave_tags_out(self) -> None:
        """A sub-interface's tag is stored beside the frame and inserted at the next device below, where the frame
        counts as longer."""
        above: dict[str, int] = {}
        for sub in reversed(self.subs):
            above[sub.parent] = max(above.get(sub.parent, 0), 1 + above.get(sub.name, 0))
        tags = {device: _TAG_BYTES * (layers - 1) for device, layers in above.items()}
        self.veths = [replace(one, tags=tags.get(one.near, 0)) for one in self.veths]
        self.qdiscs = [replace(one, tags=tags.get(one.device, 0) if one.parent == ROOT else 0) for one in self.qdiscs]

    def devices(self) -> list[tuple[int, str]]:
        """All devices, each with its final namespace."""
        both = [(veth.near_namespace, veth.near) for veth in self.veths]
        both += [(veth.far_namespace, veth.far) for veth in self.veths]
        return both + [(sub.target, sub.name) for sub in self.subs]


def loses_by_netem(link: Link, place: Place) -> bool:
    """Whether netem does the link's loss: it does not count packets."""
    return loses(link) and place.netem and not counts(link)


def loses(link: Link) -> bool:
    """Whether the loss model may lose any packet."""
    return bool(link.loss_ppb) or any(ppb for _, ppb in link.losses)


def counts(link: Link) -> bool:
    """Whether a packet's number decides its loss."""
    return link.loss_pattern is not None and link.loss_pattern.gilbert_elliott is None


def varies(link: Link) -> bool:
    """Whether the link does more to packets than a delay."""
    return bool(link.delays or link.jitter or link.reorder or link.duplicate or link.corrupt)


def delays(link: Link) -> bool:
    """Whether there is anything between a link's transmitter and its end."""
    return bool(link.delay_ns or link.aggregation_ns or varies(link) or link.policer)


def needs_bucket(transmitter: Transmitter | None, place: Place, *, sends: bool, whole: bool = False) -> bool:
    """Whether a rate needs a token bucket: where TCP itself sends, for queues in bytes, of few packets, or other than
    tail drop, and where super-packets wait whole."""
    if transmitter is None:
        return False
    packets, size = transmitter.queue_packets, transmitter.queue_bytes
    few = packets is not None and packets <= _FEW
    return sends or whole or size is not None or few or transmitter.discipline is not None or not place.netem


def needs_line(transmitter: Transmitter, links: Sequence[Link], place: Place, *, sends: bool) -> bool:
    """Whether a program must release frames: no queueing discipline has a varying rate, and netem's other effects do
    not work with a bucket."""
    if transmitter.pace is not None and transmitter.pace.slots:
        return transmitter.discipline is not None or transmitter.queue_bytes is not None
    varied = any(map(varies, links)) and needs_bucket(transmitter, place, sends=sends)
    return transmitter.pace is not None or varied


def merges(compiled: Compiled, links: Sequence[int]) -> set[int | None]:
    """The GRO waiting times of hosts that receive flows' data over these links; None: one of them does not merge."""
    last = {flow.forward[-1] for flow in compiled.flows}
    return {compiled.hosts[compiled.links[index].to].gro_ns for index in links if index in last}


def gateway(link: int) -> str:
    """The address that stands for the peer at the other end of a link (RFC 6598's shared space: never routed)."""
    number = (100 << 24) + (64 << 16) + link
    return ".".join(str(number >> shift & 255) for shift in (24, 16, 8, 0))


def mac(port: int, link: int) -> str:
    """A locally administered address."""
    return f"02:{port >> 16 & 255:02x}:{port >> 8 & 255:02x}:{port & 255:02x}:{link >> 8 & 255:02x}:{link & 255:02x}"


class _Varied(TypedDict, total=False):
    jitter: Jitter | None
    reorder: Reorder | None
    duplicate: tuple[int, int] | None
    corrupt: tuple[int, int] | None
    seed: int
    rate_bps: int
    slot_ns: int


class _Rate(TypedDict, total=False):
    rate_bps: int
    overhead_bytes: int


class _Port:
    """One veth pair, from the transmitter (or the link without one) to the link's other end."""

    def __init__(
        self,
        compiled: Compiled,
        place: Place,
        ports: Ports,
        number: int,
        links: list[int],
        sending: set[int],
        whole: set[int],
    ) -> None:
        self.place, self.ports, self.number, self.links = place, ports, number, links
        self.seed = compiled.seed
        self.all = compiled.links
        self.of = [compiled.links[index] for index in links]
        self.home = self.of[0].from_
        self.offload = compiled.hosts[self.home].offload
        self.sends = {index for index in links if index in sending}
        self.whole = not whole.isdisjoint(links)
        self.index = self.of[0].transmitter
        self.transmitter = None if self.index is None else compiled.transmitters[self.index]
        self.lined = self.transmitter is not None and needs_line(
            self.transmitter, self.of, place, sends=bool(self.sends)
        )
        # All of a card's links or none, so that all its frames have equally many tags.
        lossy = any(loses_by_netem(compiled.links[index], place) for index in self.sends)
        self.cuts = lossy and not self.offload and not self.lined
        self.near, self.far = f"x{number}", f"y{number}"
        self.on_wire = self.near
        # A card with several links ends at home; its sub-interfaces lead to the hosts.
        self.away = self.home if len(links) > 1 else self.of[0].to
        self.macs = mac(number, 0)
        self.gro_ns = next((wait for wait in merges(compiled, links) if wait is not None), None)

    def build(self) -> None:
        if self.gro_ns is not None:
            # Packets of one instant are one poll of the device, after which nothing waits.
            wait_ns = self.gro_ns if self.gro_ns > 1 else 0
            self.ports.merging.append(Merging(self.away, self.far, wait_ns))
        if self.lined:
            self._line()
            return
        self.ports.veths.append(Veth(self.home, self.near, self.away, self.far, mac(self.number, 0)))
        rated = self.transmitter is not None
        needed = needs_bucket(self.transmitter, self.place, sends=bool(self.sends), whole=self.whole)
        bucket = rated and self._slots() is None and needed
        delayed = any(delays(link) for link in self.of)
        wire = self.place.netem and (bucket or delayed)
        alone = len(self.links) == 1
        ends = self.near, self.far
        if wire:
            self._wire(bucket)
        lossy = alone and loses_by_netem(self.of[0], self.place)
        if wire and (rated or lossy):
            ends = self._layer(ends, "q", _STAGE_TAG, self.away, self.away)
        parent = ROOT
        if lossy:
            parent = self._loss(ends[0], self.links[0], LOSS, RATE if rated else 0)
        if rated:
            self._rate(ends[0], parent, bucket)
        for position, index in enumerate(self.links):
            self._link(position, index, ends)
        if self.whole and not rated:
            self.ports.whole |= {(self.home, self.near), (self.home, ends[0])}

    def _line(self) -> None:
        """Two veth pairs, and between them a program that releases frames at the varying rate."""
        assert self.index is not None
        come, leave = f"i{self.number}", f"w{self.number}"
        # Incoming frames are not for the device's own address, so IP ignores them.
        self.ports.veths.append(Veth(self.home, self.near, self.home, come, mac(self.number, 2**16 - 1)))
        self.ports.veths.append(Veth(self.home, leave, self.away, self.far, mac(self.number, 0)))
        self.on_wire = leave
        if delays(self.of[0]):
            self._wire(bucket=False)
        valve = None
        if self.transmitter is not None and (self.sends or self.transmitter.discipline is not None):
            valve = self._valve(self.transmitter)
        elif loses_by_netem(self.of[0], self.place):
            self._loss(self.near, self.links[0], LOSS, 0)
        self.ports.lines.append(Line(self.index, self.home, come, leave, valve))
        self._link(0, self.links[0], (self.near, self.far))

    def _valve(self, transmitter: Transmitter) -> Valve:
        """The queue with the valve that releases one frame at a time to the line, and the loss before it."""
        assert self.index is not None
        add, near, parent = self.ports.qdiscs.append, self.near, AROUND << 16 | 2
        add(Qdisc(self.home, near, AROUND << 16, ROOT, "prio", qdisc.around()))
        overhead, frame_bytes = self.of[0].overhead_bytes, self.ports.mtu + ETHERNET
        if loses_by_netem(self.of[0], self.place):
            if self.sends and not self.offload:
                add(Qdisc(self.home, near, CUT << 16, parent, "tbf", qdisc.cut(frame_bytes)))
                parent = CUT << 16 | 1
            parent = self._loss(near, self.links[0], LOSS, RATE, parent)
        kind, options = qdisc.discipline(transmitter, overhead)
        add(Qdisc(self.home, near, RATE << 16, parent, "tbf", qdisc.valve(frame_bytes, 0)))
        add(Qdisc(self.home, near, FIFO << 16, RATE << 16 | 1, kind, options))
        watched = RATE if transmitter.discipline is None else FIFO
        self.ports.queues.append(WatchQueue(self.index, self.home, near, watched << 16, on_wire=False))
        # A bucket also sets the limit of a fifo below it.
        limit = int.from_bytes(options, "little") if kind in ("pfifo", "bfifo") else 0
        return Valve(near, RATE << 16, parent, qdisc.valve(frame_bytes, limit))

    def _slots(self) -> Slots | None:
        pace = None if self.transmitter is None else self.transmitter.pace
        return None if pace is None else pace.slots

    def _layer(self, ends: tuple[str, str], name: str, tag: int, where: int, to: int) -> tuple[str, str]:
        """A VLAN sub-interface at each end; the far one, made in the namespace ``where``, moves to ``to``."""
        near, far = ends
        address = self.macs if to != self.away else None
        self.ports.subs.append(Sub("vlan", self.home, near, f"{near}{name}", self.home, tag))
        self.ports.subs.append(Sub("vlan", where, far, f"{far}{name}", to, tag, address))
        return f"{near}{name}", f"{far}{name}"

    def _link(self, position: int, index: int, ends: tuple[str, str]) -> None:
        """A card's link gets its own sub-interface. Loss where TCP sends needs single frames, so super-packets are
        split above it."""
        link, place = self.all[index], self.place
        by_netem = loses_by_netem(link, place)
        where, self.macs, arrival = self.away, mac(self.number, 0), ""
        if len(self.links) > 1:
            self.macs = mac(self.number, 1 + position)
            if place.vlan:
                ends = self._layer(ends, f"v{position}", _FIRST_LINK_TAG + position, self.away, link.to)
                if by_netem:
                    self._loss(ends[0], index, LOSS, 0)
            else:
                arrival = f"{ends[1]}m{position}"
                self.ports.subs.append(Sub("macvlan", self.away, ends[1], arrival, link.to, mac=self.macs))
            where = link.to
        # A policer counts frames, so super-packets not yet split by a transmitter are split above it.
        if self.cuts or (link.policer and self.transmitter is None):
            ends = self._layer(ends, "c", _CUT_TAG, where, link.to)
        if loses(link) and not by_netem:
            pattern = link.loss_pattern or LossPattern()
            name, packets = f"link{index}", pattern.packets or ()
            rule = LossRule(self.home, gateway(index), name, link.loss_ppb, pattern.every, packets)
            self.ports.rules.append(rule)
        self.ports.tops[index] = ends[0]
        self.ports.arrivals[index] = arrival or ends[1]
        self.ports.gateways[index] = gateway(index)
        self.ports.neighbours.append(Neighbour(self.home, ends[0], gateway(index), self.macs))

    def _loss(self, device: str, index: int, handle: int, child: int, parent: int = ROOT) -> int:
        """netem for the loss only. Returns the parent for the queue behind it."""
        link = self.all[index]
        model = (link.loss_pattern or LossPattern()).gilbert_elliott
        loss_ppb = 0 if model else link.loss_ppb
        options = qdisc.netem(loss_ppb=loss_ppb, gilbert_elliott=model, seed=link_seed(self.seed, index))
        self.ports.qdiscs.append(Qdisc(self.home, device, handle << 16, parent, "netem", options))
        for at_ns, ppb in link.losses:
            change = qdisc.netem(loss_ppb=ppb)
            self.ports.changes.append(Change(at_ns, self.home, device, handle << 16, parent, change))
        self.ports.losses.append(WatchLink(index, self.home, device, handle << 16, child << 16))
        return handle << 16 | 1

    def _rate(self, device: str, parent: int, bucket: bool) -> None:
        transmitter, handle = self.transmitter, RATE << 16
        assert transmitter is not None
        assert self.index is not None
        packets, watched = transmitter.queue_packets, handle
        rate_bps, overhead = transmitter.rate_bps, self.of[0].overhead_bytes
        add = self.ports.qdiscs.append
        if slots := self._slots():
            options = qdisc.netem(limit=packets or qdisc.UNLIMITED, slot_ns=slots.every_ns, slot_bytes=slots.bytes)
            add(Qdisc(self.home, device, handle, parent, "netem", options))
        elif bucket:
            add(self._shaper(device, handle, parent))
            add(Qdisc(self.home, device, FIFO << 16, handle | 1, *qdisc.discipline(transmitter, overhead)))
            watched = handle if transmitter.discipline is None else FIFO << 16
        else:
            limit = packets + 1 if packets else qdisc.UNLIMITED
            options = qdisc.netem(limit=limit, rate_bps=rate_bps, overhead_bytes=overhead)
            add(Qdisc(self.home, device, handle, parent, "netem", options))
        on_wire = not bucket and slots is None
        self.ports.queues.append(WatchQueue(self.index, self.home, device, watched, on_wire))

    def _shaper(self, device: str, handle: int, parent: int) -> Qdisc:
        """Releases the queue below at the rate. HTB asks for a packet when it may leave, and passes super-packets on; a
        token bucket looks at the next one first, and splits super-packets before they are queued. In real time, late
        timers require more than one frame at a time."""
        assert self.transmitter is not None
        late = self.transmitter.discipline is not None or not self.place.virtual
        if not self.whole and (self.sends or late):
            return Qdisc(self.home, device, handle, parent, "tbf", self._bucket())
        options, leaf = qdisc.htb(
            rate_bps=self.transmitter.rate_bps,
            ahead_ns=round(self._lateness_s() * 1e9),
            overhead_bytes=self.of[0].overhead_bytes,
        )
        return Qdisc(self.home, device, handle, parent, "htb", options, leaf)

    def _lateness_s(self) -> float:
        return _VIRTUAL_LATENESS_S if self.place.virtual else _REAL_TIME_LATENESS_S

    def _bucket(self) -> bytes:
        assert self.transmitter is not None
        overhead, rate_bps = self.of[0].overhead_bytes, self.transmitter.rate_bps
        # Timers are sometimes late, a user-mode kernel's by up to half a microsecond. A bucket of exactly one frame
        # would lose that time with each frame, so it holds as much more.
        burst = self.ports.mtu + ETHERNET + round(rate_bps / 8 * self._lateness_s())
        return qdisc.tbf(rate_bps=rate_bps, burst_bytes=burst + overhead, overhead_bytes=overhead)

    def _varied(self, link: Link) -> _Varied:
        """netem's effects besides a delay. A rate, however high, keeps packets in order."""
        varied = _Varied(slot_ns=link.aggregation_ns)
        if not varies(link):
            return varied
        varied["seed"] = link_seed(self.seed, len(self.all) + self.links[0])
        varied |= {"jitter": link.jitter, "reorder": link.reorder, "duplicate": link.duplicate, "corrupt": link.corrupt}
        if link.jitter is None or link.jitter.ordered:
            varied["rate_bps"] = qdisc.KEEPS_ORDER_BPS
        return varied

    def _police(self, link: Link) -> int:
        """A policer on the frames. Returns the parent for what follows it."""
        assert link.policer is not None
        handle = POLICE << 16
        self.ports.qdiscs.append(Qdisc(self.home, self.on_wire, handle, ROOT, "prio", qdisc.prio(2)))
        options = qdisc.police(link.policer, handle | 1, link.overhead_bytes)
        self.ports.filters.append(Filter(self.home, self.on_wire, handle, options, "matchall"))
        watch = WatchLink(self.links[0], self.home, self.on_wire, handle, WIRE << 16, polices=True)
        self.ports.losses.append(watch)
        return handle | 1

    def _wire(self, bucket: bool) -> None:
        """Propagation: one netem for each delay among the card's links. The segments of a super-packet leave together;
        then the delay has a frame's time on the line."""
        rate: _Rate = {}
        frame_ns = 0
        if bucket and self.transmitter is not None and self.whole:
            frame_ns = (self.ports.mtu + ETHERNET) * 8 * 10**9 // self.transmitter.rate_bps
        elif bucket and self.transmitter is not None:
            rate = {"rate_bps": self.transmitter.rate_bps, "overhead_bytes": self.of[0].overhead_bytes}
        delays = sorted({link.delay_ns for link in self.of})
        add, handle, parent = self.ports.qdiscs.append, WIRE << 16, ROOT
        if len(delays) == 1:
            link = self.of[0]
            if link.policer:
                parent = self._police(link)
            varied = self._varied(link)
            merged: dict[str, Any] = {**rate, **varied}
            options = qdisc.netem(delay_ns=delays[0] + frame_ns, **merged)
            add(Qdisc(self.home, self.on_wire, handle, parent, "netem", options))
            merged.pop("seed", None)
            for at_ns, delay_ns in link.delays:
                options = qdisc.netem(delay_ns=delay_ns, **merged)
                self.ports.changes.append(Change(at_ns, self.home, self.on_wire, handle, parent, options))
            return
        add(Qdisc(self.home, self.near, handle, ROOT, "prio", qdisc.prio(len(delays))))
        for band, delay_ns in enumerate(delays, 1):
            options = qdisc.netem(delay_ns=delay_ns + frame_ns, **rate)
            add(Qdisc(self.home, self.near, handle + (band << 16), handle | band, "netem", options))
        for position, link in enumerate(self.of):
            band = 1 + delays.index(link.delay_ns)
            options = qdisc.by_destination(mac(self.number, 1 + position), handle | band)
            self.ports.filters.append(Filter(self.home, self.near, handle, options))
