"""Metadata: what every packet-level engine records about a run in the same form: names, limits, warnings."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sawtooth.io.table_store import groups
from sawtooth.scenario import CONTROLS
from sawtooth.scenario.compiled import Compiled

if TYPE_CHECKING:
    from pandas import DataFrame

    from sawtooth.scenario import Direction, Link, Path, Scenario

_LIMITED_SHARE = 0.1
_MOST_LINES = 8
"""Flows whose limits are listed one by one."""


def names(compiled: Compiled) -> dict[str, list[str]]:
    """For ``meta["names"]``: the names behind the numbers in each index column of a run's tables."""
    return {
        "flow": [one.name for one in compiled.flows],
        "transmitter": [one.name for one in compiled.transmitters],
        "link": [one.name for one in compiled.links],
        "probe": [one.name for one in compiled.probes],
    }


def limits(compiled: Compiled, tables: Mapping[str, DataFrame]) -> list[dict[str, Any]]:
    """For ``meta["limits"]``: what limits each flow (docs/explanation/measures.md). The rule is in the core
    (``crates/limits``); the laboratory's page uses the same one."""
    import numpy as np

    from sawtooth._core import FlowLimits

    found = FlowLimits(compiled.to_json())
    for name, columns in FlowLimits.tables():
        for part in groups(tables, name, columns) if name in tables else ():
            # A limit that the engine does not count is unknown and limits nothing.
            unknown = np.full(len(part), np.nan)
            known = [part[column].astype(float) if column in part else unknown for column in columns]
            found.add(name, np.concatenate(known))
    flow_limits: list[dict[str, Any]] = json.loads(found.report(compiled.duration_ns / 1e9))
    return flow_limits


def limit_lines(limited: Sequence[Mapping[str, Any]]) -> list[str]:
    """The result of ``limits`` in words, one line per flow."""
    lines = [
        f"{one['flow']}: {one['words']}" + (f", {one['share']:.0%} of the time" if one["share"] else "")
        for one in limited[:_MOST_LINES]
    ]
    more = len(limited) - len(lines)
    return lines + [f"… and {more} more flows"] * bool(more)


def warnings(scenario: Scenario, tables: Mapping[str, DataFrame], limited: Sequence[Mapping[str, Any]]) -> list[str]:
    """Warning sentences, the most serious first: nothing limits a flow's rate; a control that depends on marks gets
    none; a setting has no effect; a socket buffer was the limit; a flow delivered nothing; losses took whole
    super-packets, or a queue held them. ``limited`` is the result of ``limits``.
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
    """Settings without effect: changes after the run's end, reordering on a link without delay."""
    tables: dict[str, Path | Direction | Link] = {} if scenario.path is None else {"path": scenario.path}
    for index, drawn in enumerate(scenario.links):
        at = f"links.{index}"
        tables |= {at: drawn, f"{at}.forward": drawn.forward, f"{at}.backward": drawn.backward}
    found = [
        f'{field}.changes.{number} is at "{change.at}" and has no effect: the run ends at "{scenario.duration}"'
        for field, table in tables.items()
        for number, change in enumerate(table.changes or ())
        if change.at >= scenario.duration
    ]
    for link in scenario.compile().links:
        delayed = link.delay_ns or link.jitter or any(delay_ns for _, delay_ns in link.delays)
        if link.reorder is not None and not delayed:
            found.append(
                f'reorder has no effect on the link "{link.name}": a packet can only be overtaken on a link '
                "with a delay"
            )
    return found


def _unlimited(compiled: Compiled) -> list[str]:
    """Flows whose data crosses no transmitter. Their goodput depends on how the engine computes, not on a path."""
    found = []
    for flow in compiled.flows:
        if not compiled.transmitters_of(flow.forward):
            ends = f"{compiled.hosts[compiled.source(flow)].name} to {compiled.hosts[compiled.target(flow)].name}"
            found.append(
                f'flow "{flow.name}" sends from {ends}, and no link on the way has a rate, so its goodput '
                "says nothing about a path: set path.reverse_rate, or the rate of a link"
            )
    return found


def _unmarked(compiled: Compiled) -> list[str]:
    """Flows whose control needs ECN although the receiving host does not agree to it (``tcp_ecn`` 0)."""
    return [
        f'flow "{flow.name}": without ECN, {flow.cc} slows down only after losses. The receiving host '
        "does not negotiate ECN: set host.ecn = 2, Linux's default"
        for flow in compiled.flows
        if flow.cc in CONTROLS
        and flow.variant in CONTROLS[flow.cc].by_marks
        and compiled.hosts[compiled.target(flow)].ecn == 0
    ]


def _limited(limited: Sequence[Mapping[str, Any]]) -> list[str]:
    found = []
    for buffer, limit in (("receive", "receive window"), ("send", "send buffer")):
        for one in limited:
            share = dict(one["shares"]).get(limit, 0.0)
            if share >= _LIMITED_SHARE:
                name = one["flow"]
                found.append(
                    f'the {buffer} buffer limited flow "{name}" {share:.0%} of the time; change host.{buffer}_buffer'
                )
    return found


def _silent(compiled: Compiled, tables: Mapping[str, DataFrame]) -> list[str]:
    seen: set[int] = set()
    delivered: set[int] = set()
    for part in groups(tables, "intervals", ("flow", "goodput_bps")):
        seen |= set(part["flow"].tolist())
        delivered |= set(part["flow"][part["goodput_bps"] > 0].tolist())
    return [f'flow "{compiled.flows[flow].name}" delivered nothing' for flow in sorted(seen - delivered)]


def _offloaded(compiled: Compiled) -> list[str]:
    """Flows that hand whole super-packets to their own host's queueing discipline, where loss drops all of one at
    once, or to the queue of a forwarding host."""
    found = []
    for flow, whole in zip(compiled.flows, compiled.whole_ways(), strict=True):
        first = compiled.links[flow.forward[0]]
        if compiled.hosts[first.from_].offload and first.loss_ppb:
            found.append(
                f'flow "{flow.name}": with segmentation offload, loss on the sending host\'s own link drops whole '
                "super-packets, not single packets"
            )
        if whole:
            found.append(
                f'flow "{flow.name}": with segmentation offload, the queue of "{compiled.links[whole[-1]].name}" holds '
                "and drops super-packets of up to 64 KiB as one packet, as a forwarding Linux host does"
            )
    return found
