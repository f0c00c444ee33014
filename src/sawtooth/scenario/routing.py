"""Which links a packet takes: the explicit route if there is one, else the fewest hops.

Among ways of equally many hops the one whose first differing link comes first in the file is taken, so that a scenario
has one meaning.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping, Sequence

from sawtooth.errors import InputError, suggestion
from sawtooth.scenario.network import Network, Wire
from sawtooth.scenario.parts import Route

MOST_HOPS = 255
"""IP counts them in eight bits."""


class Router:
    """Finds ways through one network, and remembers them."""

    def __init__(self, network: Network) -> None:
        self._wires = network.wires
        self._found = dict(network.routes)
        self._leaving: dict[str, list[int]] = {host: [] for host in network.hosts}
        for index, wire in enumerate(network.wires):
            self._leaving[wire.source].append(index)
        self._tree: _Tree | None = None

    def way(self, source: str, target: str, field: str) -> tuple[int, ...]:
        """Indices of the wires from ``source`` to ``target``.

        Raises SawtoothError at ``field``: ``route-loop`` when both are the same host, ``no-route`` without a way of at
        most 255 hops.
        """
        if source == target:
            fix = "choose two different hosts"
            raise InputError("route-loop", f'"{source}" cannot send to itself', field=field, fix=fix)
        if (source, target) not in self._found:
            self._found[source, target] = self._fewest_hops(source, target, field)
        return self._found[source, target]

    def _fewest_hops(self, source: str, target: str, field: str) -> tuple[int, ...]:
        way: list[int] = []
        here = source
        # Whoever has one neighbour sends by it; many flows then search from the same place, and once.
        while here != target and len(way) < MOST_HOPS and (only := self._only_way(here, back=way)) is not None:
            way.append(only)
            here = self._wires[only].target
        if here != target:
            if self._tree is None or self._tree.root != here:
                self._tree = _Tree(here, self._wires, self._leaving)
            rest = self._tree.way(target)
            if rest is None:
                message = f'there is no route from "{source}" to "{target}"'
                fix = f'add a link: from = "{source}", to = "{target}"'
                raise InputError("no-route", message, field=field, fix=fix)
            way += rest
        _is_survived(way, source, target, field)
        return tuple(way)

    def _only_way(self, host: str, back: list[int]) -> int | None:
        """The first wire of a host with one neighbour, beside the one that the way came from."""
        came_from = self._wires[back[-1]].source if back else None
        first: int | None = None
        for index in self._leaving[host]:
            if self._wires[index].target == came_from:
                continue
            if first is not None and self._wires[index].target != self._wires[first].target:
                return None
            first = index if first is None else first
        return first


class _Tree:
    """Ways from one host with the fewest hops, found as far as they were asked for."""

    def __init__(self, root: str, wires: Sequence[Wire], leaving: Mapping[str, list[int]]) -> None:
        self.root = root
        self._wires = wires
        self._leaving = leaving
        self._came_by: dict[str, int | None] = {root: None}
        self._waiting = deque([root])

    def way(self, target: str) -> list[int] | None:
        """Indices of the wires; None: there is none."""
        while self._waiting and target not in self._came_by:
            for index in self._leaving[self._waiting.popleft()]:
                if (reached := self._wires[index].target) not in self._came_by:
                    self._came_by[reached] = index
                    self._waiting.append(reached)
        if target not in self._came_by:
            return None
        way: list[int] = []
        step = self._came_by[target]
        while step is not None:
            way.append(step)
            step = self._came_by[self._wires[step].source]
        return way[::-1]


def _is_survived(way: Sequence[int], source: str, target: str, field: str) -> None:
    if len(way) > MOST_HOPS:
        message = (
            f'the way from "{source}" to "{target}" has more than {MOST_HOPS} hops, and no packet survives that many'
        )
        raise InputError("no-route", message, field=field, fix="join them by fewer links")


def explicit(
    routes: Sequence[Route], hosts: Collection[str], wires: Sequence[Wire]
) -> dict[tuple[str, str], tuple[int, ...]]:
    """Wires of each [[routes]] table, by its ends.

    Raises SawtoothError: ``unknown-name`` (host or link), ``no-route`` (a step without a link), ``route-loop`` (a host
    passed twice), ``conflict`` (two routes for the same ends).
    """
    found: dict[tuple[str, str], tuple[int, ...]] = {}
    steps = _Steps(hosts, wires) if routes else None
    for number, route in enumerate(routes):
        at = f"routes.{number}"
        assert steps is not None
        for end, field in ((route.from_, f"{at}.from"), (route.to, f"{at}.to")):
            steps.known_host(end, field)
        if route.from_ == route.to:
            fix = "choose two different hosts"
            raise InputError("route-loop", f'a route from "{route.to}" to itself', field=f"{at}.to", fix=fix)
        if (route.from_, route.to) in found:
            message = f'there is already a route from "{route.from_}" to "{route.to}"'
            raise InputError("conflict", message, field=at, fix="remove this route or the other")
        found[route.from_, route.to] = steps.follow(route, at)
    return found


class _Steps:
    """What leads where, by name: the first in the file where there are two."""

    def __init__(self, hosts: Collection[str], wires: Sequence[Wire]) -> None:
        self._hosts = hosts
        self._wires = wires
        self._links = dict.fromkeys(wire.link for wire in wires)
        self._by_link: dict[tuple[str, str], int] = {}
        self._by_target: dict[tuple[str, str], int] = {}
        self._reached = {(wire.link, wire.target) for wire in wires}
        for index, wire in enumerate(wires):
            self._by_link.setdefault((wire.source, wire.link), index)
            self._by_target.setdefault((wire.source, wire.target), index)

    def follow(self, route: Route, at: str) -> tuple[int, ...]:
        here, passed, way = route.from_, {route.from_: None}, []
        steps = list(route.via)
        last_link = steps[-1] if steps and steps[-1].startswith("link:") else None
        if last_link is None or (last_link.removeprefix("link:"), route.to) not in self._reached:
            steps.append(route.to)
        for step in steps:
            index = self._step(here, step, at)
            here = self._wires[index].target
            if here in passed:
                message = f'the route passes "{here}" twice: {" → ".join([*passed, here])}'
                raise InputError("route-loop", message, field=f"{at}.via", fix=f'name "{here}" once')
            passed[here] = None
            way.append(index)
        _is_survived(way, route.from_, route.to, f"{at}.via")
        return tuple(way)

    def known_host(self, host: str, field: str) -> None:
        if host not in self._hosts:
            fix = suggestion(host, self._hosts)
            raise InputError("unknown-name", f'no host is named "{host}"', field=field, fix=fix)

    def _step(self, here: str, step: str, at: str) -> int:
        """The wire from ``here`` that ``step`` names: a host, or ``link:NAME``."""
        field = f"{at}.via"
        if step.startswith("link:"):
            link = step.removeprefix("link:")
            if link not in self._links:
                fix = suggestion(link, self._links)
                raise InputError("unknown-name", f'no link is named "{link}"', field=field, fix=fix)
            if (here, link) in self._by_link:
                return self._by_link[here, link]
            fix = f"choose a link that leaves it, as link:NAME: {self._leaving(here, 'link')}"
            raise InputError("no-route", f'link "{link}" does not leave "{here}"', field=field, fix=fix)
        self.known_host(step, field)
        if (here, step) in self._by_target:
            return self._by_target[here, step]
        fix = f'name every host on the way; "{here}" is joined to: {self._leaving(here, "target")}'
        raise InputError("no-route", f'no link joins "{here}" and "{step}"', field=field, fix=fix)

    def _leaving(self, here: str, what: str) -> str:
        return ", ".join(getattr(wire, what) for wire in self._wires if wire.source == here) or "none"
