"""The topologies by name, each built into a ``Network`` from its table of the scenario file.

``path``             sender – router – loss – delay – receiver; the bottleneck is router – loss
``chain``            h1 – h2 – h3 – h4 – h5, one card a host, loss on h3 → h4
``chain-asymmetric`` the same, but acknowledgements go from h5 straight to h1
``parking-lot``      a – n0 – n1 – … – b, a bottleneck between routers, each also crossed from cK to dK
``home``             server – line – router – device; an access line with a long queue, and Wi-Fi
``dumbbell``         s1 … sN – left – right – r1 … rN; the bottleneck is left – right
``custom``           hosts, cards, links and routes as the file gives them
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from sawtooth.compiled import Opportunities
from sawtooth.errors import InputError, SawtoothError, suggestion
from sawtooth.scenario.loss import NO_LOSS, LossPattern
from sawtooth.scenario.network import Network, Transmitter, Wire
from sawtooth.scenario.parts import Card, Chain, Direction, Dumbbell, Home, Host, Link, ParkingLot, Path, Route
from sawtooth.scenario.routing import explicit
from sawtooth.scenario.traces import read_trace
from sawtooth.scenario.units import Loss, Queue, Rate
from sawtooth.scenario.varying import Steps

_DEFAULT_QUEUE = Queue.parse("1000 packets")


def path(given: Path) -> Network:
    """One bottleneck, the link between router and loss: a queue and a rate there, in the other direction where that has
    a rate; every other transmitter is unlimited.

    Loss follows the bottleneck, and half the RTT follows that; the way back passes them in the other order.
    """
    hosts = ("sender", "router", "loss", "delay", "receiver")
    back_ns = given.rtt.ns // 2
    traced = trace(given.trace, "path.trace")
    varying: dict[str, Any] = {"changes": given.changes or (), "trace": traced, "where": "path"}
    on_way = {name: getattr(given, name) for name in ("jitter", "reorder", "duplicate", "corrupt")}
    bottleneck = [Transmitter("router>loss", traced_rate(traced) or given.rate.bps, given.queue, "path.queue")]
    if given.reverse_rate is not None:
        bottleneck.append(Transmitter("loss>router", given.reverse_rate.bps, given.queue, "path.queue"))
    wires = (
        _wire("sender", "router", None),
        replace(_wire("router", "loss", 0), changing=("rate",), **varying),
        replace(_wire("loss", "delay", None, loss=given.loss), changing=("loss",), policer=given.policer, **varying),
        replace(
            _wire("delay", "receiver", None, delay_ns=given.rtt.ns - back_ns), changing=("delay",), **varying, **on_way
        ),
        _wire("receiver", "delay", None, delay_ns=back_ns),
        _wire("delay", "loss", None, loss=given.ack_loss),
        _wire("loss", "router", None if given.reverse_rate is None else 1),
        _wire("router", "sender", None),
    )
    return Network(hosts, tuple(bottleneck), wires, ends=("sender", "receiver"))


def chain(given: Chain) -> Network:
    """Five hosts that forward, the published study's symmetric network: data and acknowledgements take the same links.

    Each host has one card, so what it forwards out and what it sends back share a transmitter. The RTT is spread evenly
    over the eight directions.
    """
    hosts, cards = _chain_hosts(given)
    out_ns, back_ns = given.rtt.ns - given.rtt.ns // 2, given.rtt.ns // 2
    cards, first = _chain_back(cards, hosts, given)
    back = [
        _wire(hosts[i], hosts[i - 1], first + i, delay_ns=part, loss=_or_none(given.ack_loss) if i == 3 else NO_LOSS)
        for i, part in zip(range(4, 0, -1), _shares(back_ns, 4), strict=True)
    ]
    return Network(hosts, cards, (*_chain_forward(hosts, given, out_ns), *back), ends=("h1", "h5"))


def chain_asymmetric(given: Chain) -> Network:
    """The chain with another way back, the published study's asymmetric network.

    The study sends the way back through other VLANs and does not print which hosts they pass. Here h5 sends straight to
    h1, from its own card; that link's delay is half the RTT, so that the base RTT is the symmetric network's.
    """
    hosts, cards = _chain_hosts(given)
    out_ns, back_ns = given.rtt.ns - given.rtt.ns // 2, given.rtt.ns // 2
    cards, first = _chain_back(cards, hosts, given)
    back = _wire("h5", "h1", first + 4, delay_ns=back_ns, loss=_or_none(given.ack_loss))
    return Network(hosts, cards, (*_chain_forward(hosts, given, out_ns), back), ends=("h1", "h5"))


def dumbbell(given: Dumbbell) -> Network:
    """Pairs around one bottleneck, which has the rate and queue in both directions, the loss towards the receivers.

    The shortest RTT is on the bottleneck link, what a pair has more on its receiver's access link; those are unlimited
    unless ``access_rate`` is given, then each has a queue of 1000 packets.
    """
    pairs = given.number
    shortest = min(time.ns for time in given.rtt)
    reverse = given.reverse_rate or given.rate
    transmitters = [
        Transmitter("left>right", given.rate.bps, given.queue, "dumbbell.queue"),
        Transmitter("right>left", reverse.bps, given.queue, "dumbbell.queue"),
    ]
    back_ns = shortest // 2
    wires = [
        _wire("left", "right", 0, delay_ns=shortest - back_ns, loss=given.loss),
        _wire("right", "left", 1, delay_ns=back_ns, loss=_or_none(given.ack_loss)),
    ]

    def access(source: str, target: str, delay_ns: int = 0) -> int:
        transmitter = None
        if given.access_rate is not None:
            transmitter = len(transmitters)
            name = f"{source}>{target}"
            transmitters.append(Transmitter(name, given.access_rate.bps, _DEFAULT_QUEUE, "dumbbell.access_rate"))
        wires.append(_wire(source, target, transmitter, delay_ns=delay_ns))
        return len(wires) - 1

    routes = {}
    for number in range(pairs):
        sender, receiver = f"s{number + 1}", f"r{number + 1}"
        more = given.rtt[number % len(given.rtt)].ns - shortest
        routes[sender, receiver] = (access(sender, "left"), 0, access("right", receiver, more - more // 2))
        routes[receiver, sender] = (access(receiver, "right", more // 2), 1, access("left", sender))
    ends = [f"{side}{number}" for side in "sr" for number in range(1, pairs + 1)]
    return Network(("left", "right", *ends), tuple(transmitters), tuple(wires), ends=("s*", "r*"), routes=routes)


def parking_lot(given: ParkingLot) -> Network:
    """Routers in a row, a bottleneck between each two; a and b at its ends, cK and dK around the K-th."""
    routers = [f"n{i}" for i in range(given.hops + 1)]
    out_ns, back_ns = given.rtt.ns - given.rtt.ns // 2, given.rtt.ns // 2
    ways = [
        *((here, there, given.rate) for here, there in pairwise(routers)),
        *((here, there, given.reverse_rate or given.rate) for there, here in pairwise(routers)),
    ]
    transmitters = [
        Transmitter(f"{here}>{there}", rate.bps, given.queue, "parking-lot.queue") for here, there, rate in ways
    ]
    delays = [*_shares(out_ns, given.hops), *_shares(back_ns, given.hops)]
    losses = {0: given.loss, given.hops: _or_none(given.ack_loss)}
    wires = [
        _wire(here, there, index, delay_ns=delays[index], loss=losses.get(index, NO_LOSS))
        for index, (here, there, _) in enumerate(ways)
    ]
    ends = [("a", routers[0]), (routers[-1], "b")]
    for number in range(1, given.hops + 1):
        ends += [(f"c{number}", routers[number - 1]), (routers[number], f"d{number}")]
    wires += [_wire(*way, None) for here, there in ends for way in ((here, there), (there, here))]
    hosts = ("a", "b", *routers, *(f"{side}{number}" for number in range(1, given.hops + 1) for side in "cd"))
    return Network(hosts, tuple(transmitters), tuple(wires), ends=("a", "b"))


def home(given: Home) -> Network:
    """server – line – router – device: all delay, the access line's rates and queue, then Wi-Fi, which aggregates."""
    out_ns = given.rtt.ns - given.rtt.ns // 2
    transmitters = (
        Transmitter("line>router", given.down.bps, given.queue, "home.queue"),
        Transmitter("router>line", given.up.bps, given.queue, "home.queue"),
        Transmitter("router>device", given.wifi.bps, _DEFAULT_QUEUE, "home.wifi"),
        Transmitter("device>router", given.wifi.bps, _DEFAULT_QUEUE, "home.wifi"),
    )
    gathers = given.aggregation.ns
    wires = (
        _wire("server", "line", None, delay_ns=out_ns),
        _wire("line", "router", 0),
        replace(_wire("router", "device", 2, loss=given.loss), aggregation_ns=gathers),
        replace(_wire("device", "router", 3, loss=_or_none(given.ack_loss)), aggregation_ns=gathers),
        _wire("router", "line", 1),
        _wire("line", "server", None, delay_ns=given.rtt.ns // 2),
    )
    return Network(("server", "line", "router", "device"), transmitters, wires, ends=("server", "device"))


def custom(
    hosts: Mapping[str, Host], cards: Mapping[str, Card], links: Sequence[Link], routes: Sequence[Route]
) -> Network:
    """What the file draws itself.

    Raises SawtoothError: ``missing-field``, ``unknown-name``, ``duplicate-name``, ``route-loop``, ``conflict``,
    ``no-route``, each at its field.
    """
    if not hosts or not links:
        missing = "hosts" if not hosts else "links"
        fix = 'add [hosts.a], [hosts.b] and [[links]] with from = "a" and to = "b"'
        raise InputError("missing-field", f"a custom topology needs {missing}", field=missing, fix=fix)
    transmitters: list[Transmitter] = []
    card_of: dict[str, int] = {}
    for name, card in cards.items():
        _known(name, hosts, f"cards.{name}")
        card_of[name] = len(transmitters)
        transmitters.append(Transmitter(name, card.rate.bps, card.queue, f"cards.{name}.queue"))
    wires: list[Wire] = []
    names: set[str] = set()
    joined = Counter(frozenset((link.from_, link.to)) for link in links)
    for number, link in enumerate(links):
        at = f"links.{number}"
        _known(link.from_, hosts, f"{at}.from")
        _known(link.to, hosts, f"{at}.to")
        if link.from_ == link.to:
            message = f'a link cannot join "{link.to}" to itself'
            raise InputError("route-loop", message, field=f"{at}.to", fix="name another host")
        name = link_name(link)
        if name in names:
            message = f'two links are named "{name}"'
            raise InputError("duplicate-name", message, field=f"{at}.name", fix=f'name this one, like "{name}-2"')
        names.add(name)
        _queue_has_a_rate(link, card_of, at)
        twin = joined[frozenset((link.from_, link.to))] > 1
        for source, target, way in ((link.from_, link.to, "forward"), (link.to, link.from_, "backward")):
            own: Direction = getattr(link, way)
            shown = f"{name}:{source}>{target}" if twin else f"{source}>{target}"
            named, where = (link.trace, at) if own.trace is None else (own.trace, f"{at}.{way}")
            traced = trace(named, f"{where}.trace")
            transmitter = _transmitter(link, own, source, shown, card_of, transmitters, at, way, traced_rate(traced))
            wires.append(
                Wire(
                    name=shown,
                    link=name,
                    source=source,
                    target=target,
                    transmitter=transmitter,
                    delay_ns=(link.delay if own.delay is None else own.delay).ns,
                    loss=link.loss if own.loss is None else own.loss,
                    overhead_bytes=(link.overhead if own.overhead is None else own.overhead).bytes,
                    aggregation_ns=(link.aggregation if own.aggregation is None else own.aggregation).ns,
                    opportunity_bytes=_opportunity(link, own, transmitter, source in card_of, f"{at}.{way}"),
                    changes=(link.changes if own.changes is None else own.changes) or (),
                    trace=traced,
                    where=at,
                    **{
                        name: _own(link, own, name) for name in ("jitter", "reorder", "duplicate", "corrupt", "policer")
                    },
                )
            )
    found = explicit(routes, hosts, wires)
    return Network(tuple(hosts), tuple(transmitters), tuple(wires), routes=found)


def trace(name: str | None, field: str) -> Opportunities | Steps | None:
    """What a file of that name says. Raises SawtoothError as ``read_trace`` does, at the field."""
    try:
        return None if name is None else read_trace(name)
    except SawtoothError as error:
        raise error.at(field=field) from None


def traced_rate(traced: Opportunities | Steps | None) -> int | None:
    """bit/s: the mean of opportunities, the first of steps; None where it says nothing of rates."""
    if isinstance(traced, Opportunities):
        return traced.rate_bps
    return max(1, traced.rates[0][1]) if traced is not None and traced.rates else None


def _own(link: Link, own: Direction, name: str) -> Any:
    return getattr(link, name) if getattr(own, name) is None else getattr(own, name)


def link_name(link: Link) -> str:
    """Its name, or "FROM-TO"."""
    return link.name if link.name is not None else f"{link.from_}-{link.to}"


def _queue_has_a_rate(link: Link, card_of: Mapping[str, int], at: str) -> None:
    """Refuses a link's queue that no direction would use."""
    if link.queue is None:
        return
    if any(
        (own.rate or link.rate or own.trace or link.trace) is not None and source not in card_of
        for source, own in ((link.from_, link.forward), (link.to, link.backward))
    ):
        return
    other = "move the queue to the card" if card_of else "remove the queue"
    fix = f'add rate = "50 Mbit/s" to the link, or {other}'
    message = "a link without a rate of its own sends at once: its queue would never fill"
    raise InputError("conflict", message, field=f"{at}.queue", fix=fix)


def _transmitter(
    link: Link,
    own: Direction,
    source: str,
    shown: str,
    card_of: Mapping[str, int],
    transmitters: list[Transmitter],
    at: str,
    way: str,
    traced_bps: int | None,
) -> int | None:
    """The transmitter of one direction: the host's card, one of its own (appended), or none."""
    rate = own.rate if own.rate is not None else link.rate
    if traced_bps is not None and source not in card_of:
        rate = Rate(traced_bps)
    if source in card_of:
        field = f"{at}.{way}.rate" if own.rate is not None else f"{at}.rate" if link.rate is not None else None
        field = f"{at}.{way}.queue" if own.queue is not None else field
        if field is not None:
            message = f'"{source}" sends on its card, so this link has no transmitter of its own in that direction'
            fix = f"set cards.{source}, or give the rate and queue to the other direction only"
            raise InputError("conflict", message, field=field, fix=fix)
        return card_of[source]
    if rate is None:
        if own.queue is not None:
            message = "a link without a rate sends at once: its queue would never fill"
            fix = 'add rate = "50 Mbit/s" to the link, or remove the queue'
            raise InputError("conflict", message, field=f"{at}.{way}.queue", fix=fix)
        return None
    queue = own.queue or link.queue or _DEFAULT_QUEUE
    where = f"{at}.{way}.queue" if own.queue is not None else f"{at}.queue"
    transmitters.append(Transmitter(shown, rate.bps, queue, where))
    return len(transmitters) - 1


def _opportunity(link: Link, own: Direction, transmitter: int | None, card: bool, at: str) -> int:
    """Bytes. Refuses what no transmitter of the direction's own serves."""
    size = link.opportunity if own.opportunity is None else own.opportunity
    if size.bytes and (transmitter is None or card):
        if own.opportunity is None and own.rate is None and link.rate is None:
            at = at.rsplit(".", 1)[0]
        message = "opportunity needs a rate, and this direction has none of its own"
        fix = 'add rate = "50 Mbit/s" to the link, or remove opportunity'
        raise InputError("conflict", message, field=f"{at}.opportunity", fix=fix)
    return size.bytes


def _known(host: str, hosts: Mapping[str, Host], field: str) -> None:
    if host not in hosts:
        raise InputError("unknown-name", f'no host is named "{host}"', field=field, fix=suggestion(host, hosts))


def _chain_hosts(given: Chain) -> tuple[tuple[str, ...], tuple[Transmitter, ...]]:
    hosts = ("h1", "h2", "h3", "h4", "h5")
    return hosts, tuple(Transmitter(host, given.rate.bps, given.queue, "chain.queue") for host in hosts)


def _chain_back(
    cards: tuple[Transmitter, ...], hosts: Sequence[str], given: Chain
) -> tuple[tuple[Transmitter, ...], int]:
    """All cards, and the index of h1's on the way back."""
    if given.reverse_rate is None:
        return cards, 0
    back = (Transmitter(f"{host}-back", given.reverse_rate.bps, given.queue, "chain.queue") for host in hosts)
    return (*cards, *back), len(cards)


def _or_none(loss: Loss | LossPattern | None) -> Loss | LossPattern:
    return NO_LOSS if loss is None else loss


def _chain_forward(hosts: Sequence[str], given: Chain, out_ns: int) -> list[Wire]:
    return [
        _wire(hosts[i], hosts[i + 1], i, delay_ns=part, loss=given.loss if i == 2 else NO_LOSS)
        for i, part in enumerate(_shares(out_ns, 4))
    ]


def _shares(total: int, parts: int) -> list[int]:
    """``total`` in whole parts that differ by at most one and add up to it."""
    return [total * (i + 1) // parts - total * i // parts for i in range(parts)]


def _wire(
    source: str, target: str, transmitter: int | None, *, delay_ns: int = 0, loss: Loss | LossPattern = NO_LOSS
) -> Wire:
    return Wire(f"{source}>{target}", f"{source}-{target}", source, target, transmitter, delay_ns, loss)
