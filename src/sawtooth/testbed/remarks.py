"""Warnings of a run on the testbed: where the bench, not TCP, was the limit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sawtooth import meta
from sawtooth.testbed.traffic import sending_hosts

if TYPE_CHECKING:
    from pandas import DataFrame

    from sawtooth.compiled import Compiled
    from sawtooth.scenario import Scenario
    from sawtooth.testbed.place import Place

_BUSY = 0.9


def warnings(
    scenario: Scenario,
    tables: dict[str, DataFrame],
    controls: dict[str, str],
    limited: Sequence[Mapping[str, Any]],
) -> list[str]:
    """Sentences for the reader. ``controls``: the congestion control that each flow really used, by its name;
    ``limited``: what ``meta.limits`` said.
    """
    compiled, found = scenario.compile(), meta.warnings(scenario, tables, limited)
    for flow in compiled.flows:
        name, used = flow.name, controls.get(flow.name)
        if used and used != flow.cc:
            found.append(f'flow "{name}" asked for {flow.cc} and got {used}')
    senders = sending_hosts(compiled)
    for index, transmitter in enumerate(compiled.transmitters):
        starts = {link.source for link in compiled.links if link.transmitter == index}
        drops = int(tables["queues"].query("transmitter == @index")["drops"].sum())
        if drops and starts <= set(senders):
            found.append(
                f'the sending host\'s own queue "{transmitter.name}" dropped {drops} packets: is it too short?'
            )
    return found


def busy(share: float) -> list[str]:
    """For real time: the share of this host's processors that was in use."""
    if share < _BUSY:
        return []
    return [f"this host's processors were {share:.0%} busy: they, not TCP, may have been the limit"]


def real_time(place: Place, compiled: Compiled) -> list[str]:
    """How a measurement in real time on this kernel differs from the scenario."""
    found = []
    if not place.netem:
        found.append("this kernel has no netem: losses come from nftables and do not follow the seed")
        if compiled.transmitters:
            found.append("this kernel has no netem: a token bucket sends up to 0.5 ms of its rate at once")
    return found
