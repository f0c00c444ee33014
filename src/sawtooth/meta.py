"""Meta: what every engine that sends packets says of its run in the same words: names, limits, warnings."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sawtooth.compiled import Compiled
from sawtooth.rows import groups

if TYPE_CHECKING:
    from pandas import DataFrame

    from sawtooth.scenario import Direction, Link, Path, Scenario

_LIMITED_SHARE = 0.1
_MOST_LINES = 8
"""Flows whose limits are told one by one."""
_BY_MARKS = {("dctcp", None), ("prague", None), ("bbr3", "ecn")}
"""Controls, with their variants, that are what they are by ECN's marks."""


def names(compiled: Compiled) -> dict[str, list[str]]:
    """For ``meta["names"]``: of each column of indices in a run's tables, the names behind the numbers."""
    return {
        "flow": [one.name for one in compiled.flows],
        "transmitter": [one.name for one in compiled.transmitters],
        "link": [one.name for one in compiled.links],
        "probe": [one.name for one in compiled.probes],
    }


def limits(compiled: Compiled, tables: Mapping[str, DataFrame]) -> list[dict[str, Any]]:
    """For ``meta["limits"]``: what limits each flow of the scenario (docs/explanation/measures.md), by the rule of the
    core (``crates/limits``), which the page of the laboratory has too.
    """
    import numpy as np

    from sawtooth._core import FlowLimits

    found = FlowLimits(compiled.to_json())
    for name, columns in FlowLimits.tables():
        for part in groups(tables, name, columns) if name in tables else ():
            # What an engine does not count is not known, and limits nothing.
            known = part.reindex(columns=columns).to_numpy(float)
            found.add(name, np.ascontiguousarray(known.T).reshape(-1))
    told: list[dict[str, Any]] = json.loads(found.told(compiled.duration_ns / 1e9))
    return told


def limit_lines(limited: Sequence[Mapping[str, Any]]) -> list[str]:
    """What ``limits`` said, a line a flow."""
    lines = [
        f"{one['flow']}: {one['words']}" + (f", {one['share']:.0%} of the time" if one["share"] else "")
        for one in limited[:_MOST_LINES]
    ]
    more = len(limited) - len(lines)
    return lines + [f"… and {more} more flows"] * bool(more)


def warnings(scenario: Scenario, tables: Mapping[str, DataFrame], limited: Sequence[Mapping[str, Any]]) -> list[str]:
    """Sentences, what makes the figures meaningless first: nothing limits a flow's rate, a control that lives by marks
    gets none, what is given does nothing, a socket buffer was the limit, a flow delivered nothing, a loss took whole
    super-packets. ``limited`` is what ``limits`` said.
    """
    compiled = scenario.compile()
    return [
        *_unlimited(compiled),
        *_unmarked(compiled),
        *idle(scenario),
        *_limited(limited),
        *_silent(compiled, tables),
        *_offloaded(compiled),
    ]


def idle(scenario: Scenario) -> list[str]:
    """What is given and does nothing: changes when the run is over, reordering where there is no delay."""
    tables: dict[str, Path | Direction | Link] = {} if scenario.path is None else {"path": scenario.path}
    for index, drawn in enumerate(scenario.links):
        at = f"links.{index}"
        tables |= {at: drawn, f"{at}.forward": drawn.forward, f"{at}.backward": drawn.backward}
    found = [
        f'{field}.changes.{number} comes at "{change.at}" and does nothing: the run ends at "{scenario.duration}"'
        for field, table in tables.items()
        for number, change in enumerate(table.changes or ())
        if change.at >= scenario.duration
    ]
    for link in scenario.compile().links:
        delayed = link.delay_ns or link.jitter or any(delay_ns for _, delay_ns in link.delays)
        if link.reorder is not None and not delayed:
            found.append(f'reorder does nothing on the link "{link.name}": without a delay no packet can be overtaken')
    return found


def _unlimited(compiled: Compiled) -> list[str]:
    """Flows whose data passes no transmitter: what they get says how the engine computes, not what a path gives."""
    found = []
    for flow in compiled.flows:
        if not compiled.transmitters_of(flow.forward):
            ends = f"{compiled.hosts[compiled.source(flow)].name} to {compiled.hosts[compiled.target(flow)].name}"
            found.append(
                f'flow "{flow.name}" sends from {ends}, where no link has a rate: its throughput is no path\'s '
                "(path.reverse_rate limits the way back of a path, rate a link)"
            )
    return found


def _unmarked(compiled: Compiled) -> list[str]:
    """Flows whose control needs ECN, to which the receiving host does not agree (``tcp_ecn`` 0)."""
    return [
        f'flow "{flow.name}": without ECN {flow.cc} comes down only after losses, because the receiving host does not '
        "take part in it: set host.ecn = 2, Linux's default"
        for flow in compiled.flows
        if (flow.cc, flow.variant) in _BY_MARKS and compiled.hosts[compiled.target(flow)].ecn == 0
    ]


def _limited(limited: Sequence[Mapping[str, Any]]) -> list[str]:
    found = []
    for buffer, limit in (("receive", "receive window"), ("send", "send buffer")):
        for one in limited:
            share = dict(one["shares"]).get(limit, 0.0)
            if share >= _LIMITED_SHARE:
                name = one["flow"]
                found.append(
                    f'the {buffer} buffer limited flow "{name}" {share:.0%} of the time: see host.{buffer}_buffer'
                )
    return found


def _silent(compiled: Compiled, tables: Mapping[str, DataFrame]) -> list[str]:
    import pandas as pd

    each = [group.groupby("flow")["goodput_bps"].sum() for group in groups(tables, "intervals")]
    delivered = pd.concat(each).groupby("flow").sum()
    return [f'flow "{compiled.flows[flow].name}" delivered nothing' for flow in delivered.index[delivered == 0]]


def _offloaded(compiled: Compiled) -> list[str]:
    """TCP hands whole super-packets to its own host's queueing discipline."""
    found = []
    for flow in compiled.flows:
        first = compiled.links[flow.forward[0]]
        if compiled.hosts[first.source].offload and first.loss_ppb:
            found.append(
                f'flow "{flow.name}": with segmentation offload, loss on the sending host\'s own link drops whole '
                "super-packets, not single ones"
            )
    return found
