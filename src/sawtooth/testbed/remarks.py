"""Warnings of a run on the testbed: where the testbed, not TCP, was the limit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sawtooth.programs import Finished
from sawtooth.run import metadata
from sawtooth.testbed.traffic import sending_hosts

if TYPE_CHECKING:
    from pandas import DataFrame

    from sawtooth.scenario import Scenario
    from sawtooth.scenario.compiled import Compiled
    from sawtooth.testbed.target_kernel import Place

_BUSY = 0.9


def _of_programs(scenario: Scenario, tables: dict[str, DataFrame]) -> list[str]:
    """Programs that did not do what they were started for, and what ended before the warm-up."""
    found = []
    rows = tables["programs"].to_dict("records") if "programs" in tables else []
    for program, row in zip(scenario.programs, rows, strict=bool(rows)):
        one = Finished.of({str(name): value for name, value in row.items()})
        if one.status not in (0, None) or (one.status is None and program.ready is None):
            found.append(f'program "{one.name}": {one.describe()}')
    return found


def warnings(
    scenario: Scenario,
    tables: dict[str, DataFrame],
    controls: dict[str, str],
    limited: Sequence[Mapping[str, Any]],
) -> list[str]:
    """Sentences for the reader. ``controls``: the congestion control that each flow really used; ``limited``: the
    result of ``meta.limits``."""
    compiled, found = scenario.compile(), metadata.warnings(scenario, tables, limited)
    found += _of_programs(scenario, tables)
    for flow in compiled.flows:
        name, used = flow.name, controls.get(flow.name)
        if used and used != flow.cc:
            found.append(f'flow "{name}" asked for {flow.cc}, but the kernel used {used}')
    senders = sending_hosts(compiled)
    for index, transmitter in enumerate(compiled.transmitters):
        starts = {link.from_ for link in compiled.links if link.transmitter == index}
        drops = int(tables["queues"].query("transmitter == @index")["drops"].sum())
        if drops and starts <= set(senders):
            found.append(
                f'the sending host\'s own queue "{transmitter.name}" dropped {drops} packets: is it too short?'
            )
    return found


def busy(share: float) -> list[str]:
    """For real time: warns if this share of the host's processors was in use."""
    if share < _BUSY:
        return []
    return [f"this host's processors were {share:.0%} busy, so the host rather than TCP may have been the limit"]


def real_time(place: Place, compiled: Compiled) -> list[str]:
    """How a real-time measurement on this kernel differs from the scenario."""
    found = []
    if not place.netem:
        found.append("this kernel has no netem, so nftables drops packets, which do not follow the seed")
        if compiled.transmitters:
            found.append("this kernel has no netem, so a token bucket shapes the rate and sends bursts of up to 0.5 ms")
    return found
