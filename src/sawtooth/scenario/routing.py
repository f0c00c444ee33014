"""Which links a packet takes: the explicit route if there is one, else the fewest hops.

Among ways of equally many hops the one whose first differing link comes first in the file is taken, so that a scenario
has one meaning.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from sawtooth.errors import InputError, suggestion
from sawtooth.scenario.network import Network, Wire
from sawtooth.scenario.parts import Route


class Router:
    """Finds ways through one network, and remembers them."""

    def __init__(self, network: Network) -> None:
        self._wires = network.wires
        self._found = dict(network.routes)
        self._leaving: dict[str, list[int]] = {host: [] for host in network.hosts}
        for index, wire in enumerate(network.wires):
            self._leaving[wire.source].append(index)

    def way(self, source: str, target: str, field: str) -> tuple[int, ...]:
        """Indices of the wires from ``source`` to ``target``.

        Raises SawtoothError at ``field``: ``route-loop`` when both are the same host, ``no-route`` without a way.
        """
        if source == target:
            fix = "name two different hosts"
            raise InputError("route-loop", f'"{source}" cannot send to itself', field=field, fix=fix)
        if (source, target) not in self._found:
            self._found[source, target] = self._fewest_hops(source, target, field)
        return self._found[source, target]

    def _fewest_hops(self, source: str, target: str, field: str) -> tuple[int, ...]:
        came_by: dict[str, int | None] = {source: None}
        waiting = deque([source])
        while waiting and target not in came_by:
            for index in self._leaving[waiting.popleft()]:
                if (reached := self._wires[index].target) not in came_by:
                    came_by[reached] = index
                    waiting.append(reached)
        if target not in came_by:
            fix = "add the link that is missing"
            raise InputError("no-route", f'there is no way from "{source}" to "{target}"', field=field, fix=fix)
        way: list[int] = []
        step = came_by[target]
        while step is not None:
            way.append(step)
            step = came_by[self._wires[step].source]
        return tuple(reversed(way))


def explicit(
    routes: Sequence[Route], hosts: Sequence[str], wires: Sequence[Wire]
) -> dict[tuple[str, str], tuple[int, ...]]:
    """Wires of each [[routes]] table, by its ends.

    Raises SawtoothError: ``unknown-name`` (host or link), ``no-route`` (a step without a link), ``route-loop`` (a host
    passed twice), ``conflict`` (two routes for the same ends).
    """
    found: dict[tuple[str, str], tuple[int, ...]] = {}
    for number, route in enumerate(routes):
        at = f"routes.{number}"
        for end, field in ((route.from_, f"{at}.from"), (route.to, f"{at}.to")):
            _known_host(end, hosts, field)
        if route.from_ == route.to:
            fix = "name two different hosts"
            raise InputError("route-loop", f'a route from "{route.to}" to itself', field=f"{at}.to", fix=fix)
        if (route.from_, route.to) in found:
            message = f'there already is a route from "{route.from_}" to "{route.to}"'
            raise InputError("conflict", message, field=at, fix="remove one of the two")
        found[route.from_, route.to] = _follow(route, at, hosts, wires)
    return found


def _follow(route: Route, at: str, hosts: Sequence[str], wires: Sequence[Wire]) -> tuple[int, ...]:
    here, passed, way = route.from_, [route.from_], []
    steps = list(route.via)
    last_link = steps[-1] if steps and steps[-1].startswith("link:") else None
    if last_link is None or not _leads_to(last_link, route.to, wires):
        steps.append(route.to)
    for step in steps:
        index = _step(here, step, at, hosts, wires)
        here = wires[index].target
        if here in passed:
            message = f'the route passes "{here}" twice: {" → ".join([*passed, here])}'
            raise InputError("route-loop", message, field=f"{at}.via", fix=f'name "{here}" once')
        passed.append(here)
        way.append(index)
    return tuple(way)


def _leads_to(step: str, target: str, wires: Sequence[Wire]) -> bool:
    return any(wire.link == step.removeprefix("link:") and wire.target == target for wire in wires)


def _step(here: str, step: str, at: str, hosts: Sequence[str], wires: Sequence[Wire]) -> int:
    """The wire from ``here`` that ``step`` names: a host, or ``link:NAME``. The first in the file if there are two."""
    field = f"{at}.via"
    leaving = [(index, wire) for index, wire in enumerate(wires) if wire.source == here]
    if step.startswith("link:"):
        link = step.removeprefix("link:")
        known = dict.fromkeys(wire.link for wire in wires)
        if link not in known:
            message = f'no link is named "{link}"'
            raise InputError("unknown-name", message, field=field, fix=suggestion(link, known))
        for index, wire in leaving:
            if wire.link == link:
                return index
        fix = f"links that leave it: {', '.join(wire.link for _, wire in leaving) or 'none'}"
        raise InputError("no-route", f'link "{link}" does not leave "{here}"', field=field, fix=fix)
    _known_host(step, hosts, field)
    for index, wire in leaving:
        if wire.target == step:
            return index
    fix = (
        f'name every host on the way; "{here}" is joined to: {", ".join(wire.target for _, wire in leaving) or "none"}'
    )
    raise InputError("no-route", f'no link joins "{here}" and "{step}"', field=field, fix=fix)


def _known_host(host: str, hosts: Sequence[str], field: str) -> None:
    if host not in hosts:
        raise InputError("unknown-name", f'no host is named "{host}"', field=field, fix=suggestion(host, hosts))
