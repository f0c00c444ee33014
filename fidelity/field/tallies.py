"""Tallies: the counts of sawtooth and tshark for each connection, side by side."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fidelity.field.tshark import Seen

Ends = tuple[str, str]
"""Addresses and ports of a connection in order, or only ports if a file of counts has no more."""


@dataclass(frozen=True)
class Tally:
    """For one connection. ``again``: retransmissions without SYNs; ``copies``: the same packet captured twice, which
    tshark counts as a retransmission.
    """

    again: int = 0
    out_of_order: int = 0
    syns: int = 0
    copies: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(*(getattr(self, name) + getattr(other, name) for name in vars(self)))

    def apart(self, other: Tally) -> int:
        """The difference between two tallies. Retransmissions and segments out of order count together, because tshark
        distinguishes them only by the first round trip.
        """
        below = self.again + self.out_of_order - other.again - other.out_of_order
        return max(abs(below), abs(self.syns - other.syns))


@dataclass(frozen=True)
class Pair:
    """Connections between the same two ends in both programs, matched as far as possible. ``indices`` are sawtooth's
    and ``streams`` tshark's numbers.
    """

    ends: Ends
    ours: Tally
    theirs: Tally
    indices: tuple[int, ...]
    streams: tuple[int, ...]

    @property
    def apart(self) -> int:
        return self.ours.apart(self.theirs)


@dataclass
class _Told:
    """One connection as one of the two programs reports it."""

    number: int
    start_s: float
    tally: Tally = field(default_factory=Tally)


def of_facts(facts: dict[str, Any]) -> dict[Ends, list[_Told]]:
    """The contents of ``sawtooth.read_capture(…).facts``."""
    found: dict[Ends, list[_Told]] = defaultdict(list)
    for one in facts["connections"]:
        ways = one["directions"]
        offers = (one["handshake"][end] or {} for end in ("client", "server"))
        tally = Tally(
            again=sum(way.get("retransmits", 0) for way in ways),
            out_of_order=sum(way.get("out_of_order", 0) for way in ways),
            syns=sum(offer.get("retransmits", 0) for offer in offers),
            copies=sum(way.get("duplicated_packets", 0) for way in ways),
        )
        found[_ends(one["client"], one["server"])].append(_Told(one["index"], one["start_s"], tally))
    return found


def of_segments(segments: Iterable[Seen]) -> dict[Ends, list[_Told]]:
    """tshark's analysis of each segment, summed by stream."""
    streams: dict[int, tuple[Ends, _Told]] = {}
    for seen in segments:
        ends = _ends(_text(seen.source), _text(seen.target))
        _, told = streams.setdefault(seen.stream, (ends, _Told(seen.stream, seen.t_s)))
        told.tally += Tally(
            again=int(seen.again and not seen.syn),
            out_of_order=int("out_of_order" in seen.said and not seen.syn),
            syns=int(bool(seen.said) and seen.syn),
        )
    found: dict[Ends, list[_Told]] = defaultdict(list)
    for ends, told in streams.values():
        found[ends].append(told)
    return found


def of_counts(path: Path) -> dict[str, dict[Ends, list[_Told]]]:
    """A file of counts, by the names of the captures: ``file, stream, ends`` (ports, joined by -),
    ``retransmissions``, ``out_of_order``, ``syn_retransmissions``; other columns are ignored.
    """
    found: dict[str, dict[Ends, list[_Told]]] = defaultdict(lambda: defaultdict(list))
    with path.open(newline="", encoding="utf-8") as stream:
        for row in csv.DictReader(stream):
            tally = Tally(int(row["retransmissions"]), int(row["out_of_order"]), int(row["syn_retransmissions"]))
            number = int(row["stream"])
            found[row["file"]][_ends(*row["ends"].split("-"))].append(_Told(number, float(number), tally))
    return found


def paired(ours: dict[Ends, list[_Told]], theirs: dict[Ends, list[_Told]]) -> list[Pair]:
    """Connections with the same ends in order of time; summed if the two programs do not report equally many."""
    if theirs and all(":" not in end for ends in theirs for end in ends):
        by_ports: dict[Ends, list[_Told]] = defaultdict(list)
        for ends, told in ours.items():
            by_ports[ports(ends)] += told
        ours = by_ports
    pairs = []
    for ends in [*ours, *(ends for ends in theirs if ends not in ours)]:
        left = sorted(ours.get(ends, []), key=lambda one: one.start_s)
        right = sorted(theirs.get(ends, []), key=lambda one: one.start_s)
        if len(left) == len(right):
            pairs += [_pair(ends, [one], [other]) for one, other in zip(left, right, strict=True)]
        else:
            pairs.append(_pair(ends, left, right))
    return pairs


def ports(ends: Ends) -> Ends:
    """The same ends by their ports alone."""
    return _ends(*(end.rpartition(":")[2] for end in ends))


def _pair(ends: Ends, ours: list[_Told], theirs: list[_Told]) -> Pair:
    return Pair(
        ends,
        sum((one.tally for one in ours), Tally()),
        sum((one.tally for one in theirs), Tally()),
        tuple(one.number for one in ours),
        tuple(one.number for one in theirs),
    )


def _ends(one: str, other: str) -> Ends:
    return (one, other) if one <= other else (other, one)


def _text(end: tuple[str, int]) -> str:
    address, port = end
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
