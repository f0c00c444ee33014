"""Evidence: the packets of a connection that only one of the two programs counts, and what proves it. Everything here
comes from the headers as tshark shows them, nothing from sawtooth's analysis.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from fidelity.field.tshark import Seen

_FIN, _SYN, _ACK = 1, 2, 16
AT_ONCE_S, SOON_S, TIMER_S = 1e-3, 3e-3, 0.02
"""No retransmission is sent this soon: without an identification; with one, if no round trip was seen; and if one was,
before the shortest timers of senders.
"""
SYN_S = 0.2
"""A SYN is retransmitted after a second (RFC 6298 section 2.1), by some senders after a quarter of it."""


@dataclass(frozen=True)
class Difference:
    """A packet that only one counts as sent again or out of order.

    ``claim`` is what proves the one right, with the packet ``of`` that it is about: "copy" (the same packet as that
    one, by its identification and all else: tshark is wrong to count it), "first" (no packet before had any of its
    bytes, and the acknowledgement in that one, captured ahead of it, is less than a round trip older: tshark is wrong
    again), "repeats" (bytes of that one, which were not acknowledged, in another packet: tshark is wrong not to count
    it), or "" where nothing proves it.
    """

    frame: int
    counted_by: str
    claim: str = ""
    of: int | None = None


def differences(segments: Sequence[Seen], counted: Collection[int]) -> list[Difference]:
    """``segments`` of one connection in order; ``counted`` are the packets that sawtooth counts, without SYNs. Returns
    the copies among them that tshark counts.
    """
    found = []
    trip_s = least_trip_s(segments)
    for at, seen in enumerate(segments):
        theirs, ours = bool(seen.said), seen.frame in counted
        if theirs == ours:
            continue
        before = segments[:at]
        claims = [("repeats", repeated(seen, before))]
        if theirs:
            claims = [("copy", copied(seen, before, trip_s)), ("first", first(seen, before, trip_s))]
        claim, of = next(((name, of) for name, of in claims if of is not None), ("", None))
        if claim or not seen.syn:
            found.append(Difference(seen.frame, "tshark" if theirs else "sawtooth", claim, of))
    return found


def first(seen: Seen, before: Sequence[Seen], trip_s: float | None) -> int | None:
    """The packet that acknowledged all of ``seen`` shortly before it, if no packet had any of its bytes."""
    low, high = _range(seen)
    if trip_s is None or any(one.source == seen.source and _below(low, _range(one)[1]) for one in before):
        return None
    acks = (one for one in before if one.source == seen.target and one.flags & _ACK and not _below(one.ack, high))
    earliest = next(acks, None)
    return earliest.frame if earliest is not None and seen.t_s - earliest.t_s < 0.8 * trip_s else None


def copied(seen: Seen, before: Sequence[Seen], trip_s: float | None) -> int | None:
    """The earlier packet of which ``seen`` is a copy: the same header with its own identification, seen at another
    place or sooner than any retransmission is sent; without identification, in the same millisecond.
    """
    own = [one for one in before if one.source == seen.source]
    ids = {one.ip_id for one in own}
    identified = bool(seen.ip_id) and (len(ids) > 1 or len({one.seq for one in own}) <= 2)
    soon_s = min(0.8 * trip_s, TIMER_S) if trip_s is not None else SOON_S
    soon_s = soon_s if identified else min(soon_s, AT_ONCE_S)
    if seen.syn and identified:
        soon_s = SYN_S
    for one in own:
        if _header(one) == _header(seen) and (seen.t_s - one.t_s < soon_s or (identified and one.way != seen.way)):
            return one.frame
    return None


def least_trip_s(segments: Sequence[Seen]) -> float | None:
    """From data, or a SYN, to the first acknowledgement of all of it: the minimum of each direction, added."""
    least: dict[tuple[str, int], float] = {}
    waiting: dict[tuple[str, int], dict[int, float]] = {}
    for one in segments:
        if one.flags & _ACK:
            sent = waiting.setdefault(one.target, {})
            for end in [end for end in sent if not _below(one.ack, end)]:
                trip_s = one.t_s - sent.pop(end)
                least[one.target] = min(trip_s, least.get(one.target, trip_s))
        if one.length or one.syn:
            waiting.setdefault(one.source, {}).setdefault(_range(one)[1], one.t_s)
    return sum(least.values()) if least else None


def repeated(seen: Seen, before: Sequence[Seen]) -> int | None:
    """An earlier packet with some of the same bytes, none of them acknowledged yet, that is not the same packet."""
    low, high = _range(seen)
    if low == high:
        return None
    acks = [one.ack for one in before if one.source == seen.target and one.flags & _ACK]
    if acks and not _below(acks[-1], high):
        return None
    for one in before:
        start, end = _range(one)
        if one.source == seen.source and _below(start, high) and _below(low, end) and _header(one) != _header(seen):
            return one.frame
    return None


def _range(seen: Seen) -> tuple[int, int]:
    return seen.seq, (seen.seq + (seen.length or 0) + bool(seen.flags & _FIN) + bool(seen.flags & _SYN)) % 2**32


def _below(one: int, other: int) -> bool:
    """Modulo 2^32 (RFC 9293 section 3.4)."""
    return 0 < (other - one) % 2**32 < 2**31


def _header(seen: Seen) -> tuple[int | None, ...]:
    return seen.seq, seen.ack, seen.length, seen.flags, seen.ip_id, seen.tsval, seen.window
