"""Batches: which points one worker runs in a row and saves in one pack: many short ones (``sawtooth.run.pack``).

Only the study decides this, never the clock, so its results have the same files on every machine.
"""

from __future__ import annotations

from collections.abc import Set

from sawtooth.run.pack import MOST_ROWS, RUNS
from sawtooth.scenario import CONTROLS, Scenario

LEAST = 256
"""A study of fewer points has a directory for each."""
ENGINES = ("sim", "model")
"""Engines that take no time besides that of the packets. A kernel boots for each point."""
_MOST_BITS = 100_000_000
"""Bits that the links of a short run can carry: 8,000 packets of 1,500 bytes, a few milliseconds of computation. A
batch then takes a fraction of a second, which is all that is lost if its worker is killed."""


def groups(points: int, long: Set[int], engine: object) -> list[list[int]]:
    """The points, by number, that one worker runs in a row: the batches, and other points one by one. ``long`` has
    those that are not short, whose neighbours are run alone too."""
    if points < LEAST or engine not in ENGINES:
        return [[number] for number in range(points)]
    found: list[list[int]] = []
    for start in range(0, points, RUNS):
        batch = list(range(start, min(start + RUNS, points)))
        found += [batch] if long.isdisjoint(batch) else [[number] for number in batch]
    return found


def is_short(scenario: Scenario) -> bool:
    """Whether a run takes a few milliseconds at most, and has few rows."""
    compiled = scenario.compile()
    senders = compiled.senders
    if any(not compiled.transmitters_of(one.forward) for one in compiled.flows):
        # Nothing limits the number of its packets.
        return False
    if any(flow.cc not in CONTROLS for flow in compiled.flows) or any(one.pace for one in compiled.transmitters):
        return False
    connections = sum(flow.count for flow in compiled.flows)
    intervals = -(-compiled.duration_ns // compiled.interval_ns)
    rows = (len(senders) + connections + len(compiled.transmitters) + len(compiled.links)) * intervals
    rows += sum(one.count for one in compiled.probes)
    bits = sum(one.rate_bps for one in compiled.transmitters) * compiled.duration_ns / 1e9
    return rows <= MOST_ROWS and bits <= _MOST_BITS and not compiled.programs
