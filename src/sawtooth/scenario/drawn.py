"""Drawn: a ready topology's scenario written out as ``custom``: hosts, cards, links and routes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from sawtooth.errors import InputError
from sawtooth.scenario.compiler import Placed, build, place_flows, place_probes
from sawtooth.scenario.loss import NO_LOSS
from sawtooth.scenario.network import Network, Transmitter, Wire
from sawtooth.scenario.queue import written
from sawtooth.scenario.routing import Router
from sawtooth.scenario.topology import custom
from sawtooth.scenario.units import Rate, Span

if TYPE_CHECKING:
    from sawtooth.scenario.scenario import Scenario

_DRAWN_BY = ("path", "chain", "dumbbell", "parking-lot", "home")
_HELD_BY_DIRECTION = ("forward", "backward")


def as_custom(scenario: Scenario) -> Scenario:
    """The same network and flows as a ``custom`` scenario; one that is ``custom`` as it is.

    What is random differs by its draws: links are in another order. A flow that is spread over pairs is one for each.
    Raises SawtoothError ``unsupported`` for a path with a trace.
    """
    if scenario.topology == "custom":
        return scenario
    if scenario.topology == "path" and scenario.path_table.trace is not None:
        message = "path.trace describes three links at once, and a custom topology has one trace per link"
        raise InputError(
            "unsupported",
            message,
            field="path.trace",
            fix="remove path.trace, draw the topology, then add the trace to a link",
        )
    network = build(scenario)
    router = Router(network)
    flows, probes = place_flows(scenario, network, router), place_probes(scenario, network, router)
    given = scenario.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_unset=True)
    tables: dict[str, Any] = {key: value for key, value in given.items() if key not in _DRAWN_BY}
    tables["topology"] = "custom"
    tables["hosts"] = {host: given.get("hosts", {}).get(host, {}) for host in network.hosts}
    cards = _cards(network)
    tables["cards"] = {host: {"rate": _rate(card), "queue": written(card.queue)} for host, card in cards.items()}
    tables["links"] = _links(network, cards)
    said = [flow.model_dump(mode="json", by_alias=True, exclude_none=True) for flow in scenario.flows]
    tables["flows"] = [_placed(one, said[one.index]) | {"count": one.count} for one in flows]
    said = [probe.model_dump(mode="json", by_alias=True, exclude_none=True) for probe in scenario.probes]
    tables["probes"] = [_placed(one, said[one.index]) for one in probes]
    made = type(scenario).from_dict({key: value for key, value in tables.items() if value or key == "flows"})
    routes = _routes(network, [*flows, *probes], made)
    return type(scenario).from_dict(made.to_dict() | {"routes": routes}) if routes else made


def _cards(network: Network) -> dict[str, Transmitter]:
    """Of the hosts all of whose wires leave by one transmitter that has the host's name."""
    found: dict[str, Transmitter] = {}
    for host in network.hosts:
        used = {wire.transmitter for wire in network.wires if wire.source == host}
        index = used.pop() if len(used) == 1 else None
        if index is not None and network.transmitters[index].name == host:
            found[host] = network.transmitters[index]
    return found


def _links(network: Network, cards: dict[str, Transmitter]) -> list[dict[str, Any]]:
    """Wires in pairs; where both directions say the same, the link does."""
    pairs: dict[frozenset[str], list[Wire]] = {}
    for wire in network.wires:
        pairs.setdefault(frozenset((wire.source, wire.target)), []).append(wire)
    links = []
    for pair in pairs.values():
        said = [_said(network, wire, cards) for wire in pair]
        common = {key: value for key, value in said[0].items() if all(other.get(key) == value for other in said)}
        if len(pair) == 1:
            # The other direction is nobody's way, and has no rate.
            common = {key: value for key, value in common.items() if key not in ("rate", "queue")}
        link: dict[str, Any] = {"from": pair[0].source, "to": pair[0].target} | common
        for way, own in zip(_HELD_BY_DIRECTION, said, strict=False):
            if rest := {key: value for key, value in own.items() if key not in common}:
                link[way] = rest
        links.append(link)
    return links


def _said(network: Network, wire: Wire, cards: dict[str, Transmitter]) -> dict[str, Any]:
    said: dict[str, Any] = {}
    if wire.transmitter is not None and wire.source not in cards:
        transmitter = network.transmitters[wire.transmitter]
        said |= {"rate": _rate(transmitter), "queue": written(transmitter.queue)}
    if wire.delay_ns:
        said["delay"] = str(Span(wire.delay_ns))
    if wire.aggregation_ns:
        said["aggregation"] = str(Span(wire.aggregation_ns))
    said |= _varying(wire)
    if wire.loss != NO_LOSS:
        loss = wire.loss
        said["loss"] = str(loss) if not hasattr(loss, "model_dump") else loss.model_dump(mode="json", exclude_none=True)
    return said


def _varying(wire: Wire) -> dict[str, Any]:
    """What changes, of a path: each of its links has a part of it."""
    said: dict[str, Any] = {}
    changes = [change.model_dump(mode="json", exclude_none=True) for change in wire.changes]
    mine = [{key: one for key, one in change.items() if key in ("at", "every", *wire.changing)} for change in changes]
    if mine := [change for change in mine if set(change) - {"at", "every"}]:
        said["changes"] = mine
    for name in ("jitter", "reorder", "duplicate", "corrupt", "policer"):
        if (one := getattr(wire, name)) is not None:
            said[name] = one.model_dump(mode="json")
    return said


def _rate(transmitter: Transmitter) -> str:
    return str(Rate(transmitter.rate_bps))


def _placed(one: Placed, written: dict[str, Any]) -> dict[str, Any]:
    return written | {"name": one.name.replace("@", "-"), "from": one.source, "to": one.target}


def _routes(network: Network, placed: Iterable[Placed], made: Scenario) -> list[dict[str, Any]]:
    """Those that the fewest hops would not be, by the hosts between."""
    drawn = custom(made.hosts, made.cards, made.links, ())
    router = Router(drawn)
    routes: dict[tuple[str, str], list[str]] = {}
    for one in placed:
        for source, target, way in ((one.source, one.target, one.forward), (one.target, one.source, one.backward)):
            hosts = [network.wires[index].target for index in way]
            if [drawn.wires[index].target for index in router.way(source, target, "flows")] != hosts:
                routes[source, target] = hosts[:-1]
    return [{"from": source, "to": target, "via": via} for (source, target), via in routes.items()]
