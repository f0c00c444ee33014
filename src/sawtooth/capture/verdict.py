"""The verdict on a transfer, one sentence each: goodput, limit, losses, congestion control."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sawtooth.capture.identify.classifier import Identification
from sawtooth.capture.marks import quantity, rate
from sawtooth.capture.summary import Judgement
from sawtooth.figures.palette import shown

_LIMITED = {
    "sender": "the application had nothing to send",
    "receiver_window": "the receiver's window was full: its application reads too slowly, or its buffer is too small",
    "congestion_window": "the sender's congestion window was full while the bottleneck's queue was empty",
    "path": "the path was full: packets waited in the bottleneck's queue",
    "idle": "nothing was in flight",
    "unknown": "the limit is unknown, because no round trip had been seen yet",
}
_SHORT = {
    "sender": "nothing to send",
    "receiver_window": "the receiver's window",
    "congestion_window": "the congestion window",
    "path": "the path",
    "idle": "idle",
    "unknown": "unknown",
}
_PLACES = {
    "data before": "between the sender and the capture point",
    "data after": "between the capture point and the receiver",
    "data both": "on both sides of the capture point",
    "acknowledgements": "as acknowledgements, on the way back",
}
_TOLD = 0.05
"""Share of the time from which a further limit is mentioned."""


def verdict(judged: Judgement, identified: Identification) -> list[tuple[str, str]]:
    """Pairs of question and answer, in the order in which a reader asks."""
    return [
        ("What did it get?", _got(judged)),
        ("What limited it?", _limited(judged.limits)),
        ("What was lost, and where?", _lost(judged) + _marked(judged.facts)),
        ("Which congestion control?", _control(identified)),
    ]


def _got(judged: Judgement) -> str:
    facts, trip = judged.facts, judged.round_trip
    told = f"{quantity(facts['acknowledged_bytes'], 'B')} in {quantity(facts['duration_s'], 's')}"
    told += f", {rate(facts['goodput_bps'])}" if facts["goodput_bps"] is not None else ""
    if trip is None:
        return f"{told}; no round trip was seen."
    least, median = quantity(trip["min_s"], "s"), quantity(trip["median_s"], "s")
    return f"{told}, with a minimum RTT of {least} and a median of {median}."


def _limited(limits: Mapping[str, float]) -> str:
    if not limits:
        return "All data was sent at once, so nothing limited it."
    (first, share), *others = limits.items()
    told = f"For {share:.0%} of the time {_LIMITED[first]}"
    more = [f"{_SHORT[name]} for {part:.0%}" for name, part in others if part >= _TOLD]
    return f"{told}; {', '.join(more)}." if more else f"{told}."


def _lost(judged: Judgement) -> str:
    facts = judged.facts
    loss, again = facts["loss"], judged.retransmits
    sent = f"{again:,} of {judged.segments:,} segments were retransmitted"
    if loss["rate"] is None:
        return f"Unknown; {sent}."
    if not loss["lost"]:
        return f"Nothing was lost; {sent}." if again else "Nothing was lost or retransmitted."
    where = f" {_PLACES[loss['where']]} ({loss['sure']})" if loss["where"] in _PLACES else ", it is unknown where"
    told = f"{loss['lost']:,} of {loss['segments']:,} segments, {_percent(loss['rate'])}, were lost{where}"
    bursts = f", in {loss['bursts']:,} bursts" if loss["largest_burst"] > loss["longest_run"] else ""
    return f"{told}{bursts}; {sent}, {facts['timeout_retransmits']:,} of them after timeouts."


def _marked(facts: Mapping[str, Any]) -> str:
    """What ECN said (RFC 3168, section 6.1), where it said something."""
    echoes, reductions = facts["ecn_echoes"], facts["window_reductions"]
    if not echoes:
        return ""
    return (
        f" {echoes:,} acknowledgements echoed an ECN mark, and {reductions:,} segments reported a reduced window (CWR)."
    )


def _control(identified: Identification) -> str:
    if identified.best is None:
        guess = identified.names[0] if identified.names else None
        likeliest = f" Best guess: {shown(guess[0])}, {guess[1]:.0%}." if guess else ""
        return f"Unknown: {identified.unknown}.{likeliest}"
    group, share = identified.ranked[0]
    return f"{' or '.join(map(shown, group))} with {share:.0%} probability, from the sender's window over time."


def _percent(part: float) -> str:
    return f"{100 * part:.3g}%"
