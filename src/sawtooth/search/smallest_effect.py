"""Smallest effect: the smallest value of a field whose effect differs measurably from 0, computed from the scenario.

A range that begins at 0 has no smallest value, so "within 10% of the answer" would narrow it forever. A loss below one
packet in the whole run, a queue below one packet, or a time below one packet's at the bottleneck has the same effect as
0.
"""

from __future__ import annotations

from sawtooth.errors import SawtoothError
from sawtooth.sanitize import plain
from sawtooth.scenario import Scenario
from sawtooth.scenario.expressions import RATE, SIZE, TIME, Amount

_PACKET = 1500
"""Bytes of a full packet, IP header included."""
_WINDOW = 10
"""Packets of the first window (RFC 6928): a rate that sends no more than these in a run has the effect of 0."""
_SHARE = 1e-3
"""As a share of the range's end, if the field cannot be compared with a packet."""


def least(scenario: Scenario | None, field: str, unit: str, high: float) -> tuple[float, str]:
    """The least value in ``unit``, with a description; a thousandth of ``high`` for a number without a unit or without
    a ``scenario``. The scenario is taken with the field at ``high``."""
    usual = high * _SHARE, "a thousandth of the range"
    if unit in ("packets", "packet", "p"):
        return 1.0, "one packet"
    if scenario is None or not unit:
        return usual
    try:
        compiled = scenario.set({field: f"{high:.12g}{unit}" if unit == "%" else f"{high:.12g} {unit}"}).compile()
    except SawtoothError:
        # Problems with the field are reported where the range is checked.
        return usual
    ways = [(compiled.transmitters_of(one.forward), [*one.forward, *one.backward]) for one in compiled.senders]
    found = [(min(one.lasting_bps for one in passed), links) for passed, links in ways if passed]
    if not found:
        return usual
    rate, links = max(found)
    packet_s = 8 * _PACKET / rate
    duration_s = compiled.duration_ns / 1e9
    if unit == "%":
        return min(100 * packet_s / duration_s, high), "one packet of the run"
    if unit == "bdp":
        rtt_s = sum(one.delay_ns for one in compiled.way(links)) / 1e9
        return (min(packet_s / rtt_s, high), "one packet") if rtt_s else usual
    amount = Amount.of_unit(1.0, unit)
    if amount.dimension == TIME:
        return min(packet_s / float(amount.value), high), "one packet's time at the bottleneck"
    if amount.dimension == SIZE:
        return min(8 * _PACKET / float(amount.value), high), "one packet"
    if amount.dimension == RATE:
        return min(_WINDOW * 8 * _PACKET / duration_s / float(amount.value), high), f"{_WINDOW} packets in the run"
    return usual


def runs_at_zero(scenario: Scenario | None, field: str, unit: str) -> bool:
    """Whether the scenario allows 0 there: a loss may be 0, a queue or a rate may not."""
    if scenario is None:
        return True
    try:
        scenario.set({field: f"0{unit}" if unit == "%" else f"0 {plain(unit)}".strip() if unit else 0}).compile()
    except SawtoothError:
        return False
    return True
