"""Evidence: the packets of a connection that one of the two counts and the other does not, and what proves it.

Everything here is read off the headers as tshark shows them, none of it out of sawtooth's analysis.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from fidelity.field.tshark import Seen

_FIN = 1


@dataclass(frozen=True)
class Difference:
    """A packet that only one counts as sent again or out of order.

    ``claim`` is what proves the one right, with the packet ``of`` that it is about: "copy" (the same packet as that
    one, by its identification and all else: tshark is wrong to count it), "repeats" (bytes of that one, which were not
    acknowledged, in another packet: tshark is wrong not to), or "" where nothing proves it.
    """

    frame: int
    counted_by: str
    claim: str = ""
    of: int | None = None


def differences(segments: Sequence[Seen], counted: Collection[int]) -> list[Difference]:
    """``segments`` of one connection in order; ``counted`` are the packets that sawtooth counts. SYNs are left out."""
    found = []
    for at, seen in enumerate(segments):
        theirs, ours = bool(seen.said), seen.frame in counted
        if theirs == ours or seen.syn:
            continue
        before = segments[:at]
        if theirs:
            of = copied(seen, before)
            found.append(Difference(seen.frame, "tshark", "" if of is None else "copy", of))
        else:
            of = repeated(seen, before)
            found.append(Difference(seen.frame, "sawtooth", "" if of is None else "repeats", of))
    return found


def copied(seen: Seen, before: Sequence[Seen]) -> int | None:
    """The earlier packet that ``seen`` is once more: all of its header, and an identification that the sender does not
    give to every packet.
    """
    if not seen.ip_id:
        return None
    own = [one for one in before if one.source == seen.source]
    if all(one.ip_id == seen.ip_id for one in own):
        return next((one.frame for one in own if _header(one) == _header(seen)), None) if _few(own) else None
    return next((one.frame for one in own if _header(one) == _header(seen)), None)


def _few(own: Sequence[Seen]) -> bool:
    """So few packets that having one identification says nothing against it."""
    return len({(one.seq, one.length, one.flags, one.ack) for one in own}) <= 1


def repeated(seen: Seen, before: Sequence[Seen]) -> int | None:
    """An earlier packet with some of the same bytes, none of them acknowledged by then, that is not the same packet."""
    low, high = _range(seen)
    if low == high:
        return None
    acks = [one.ack for one in before if one.source == seen.target and one.flags & 16]
    if acks and not _below(acks[-1], high):
        return None
    for one in before:
        start, end = _range(one)
        if one.source == seen.source and _below(start, high) and _below(low, end) and _header(one) != _header(seen):
            return one.frame
    return None


def _range(seen: Seen) -> tuple[int, int]:
    return seen.seq, (seen.seq + (seen.length or 0) + (seen.flags & _FIN)) % 2**32


def _below(one: int, other: int) -> bool:
    """Modulo 2^32 (RFC 9293 section 3.4)."""
    return 0 < (other - one) % 2**32 < 2**31


def _header(seen: Seen) -> tuple[int | None, ...]:
    return seen.seq, seen.ack, seen.length, seen.flags, seen.ip_id, seen.tsval
