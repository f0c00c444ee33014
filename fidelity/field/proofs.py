"""Proofs: a table of the packets that prove why sawtooth and tshark differ on a connection, kept in ``proofs.csv``."""

from __future__ import annotations

import csv
from collections import defaultdict
from pathlib import Path

from fidelity.field.evidence import Difference
from fidelity.field.tallies import Ends

Proofs = dict[tuple[str, Ends], tuple[Difference, ...]]
"""By capture and ends."""
_COLUMNS = ("file", "ends", "packet", "counted_by", "claim", "of")


def read(path: Path) -> Proofs:
    found: dict[tuple[str, Ends], list[Difference]] = defaultdict(list)
    with path.open(newline="", encoding="utf-8") as stream:
        for row in csv.DictReader(stream):
            one, other = row["ends"].split(" ")
            of = int(row["of"]) if row["of"] else None
            difference = Difference(int(row["packet"]), row["counted_by"], row["claim"], of)
            found[row["file"], (one, other)].append(difference)
    return {key: tuple(differences) for key, differences in found.items()}


def write(path: Path, proofs: Proofs) -> None:
    with path.open("w", newline="", encoding="utf-8") as stream:
        table = csv.writer(stream, lineterminator="\n")
        table.writerow(_COLUMNS)
        for (file, ends), differences in proofs.items():
            for one in differences:
                table.writerow((file, " ".join(ends), one.frame, one.counted_by, one.claim, one.of))
