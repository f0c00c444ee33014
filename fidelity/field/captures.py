"""The trial of captures: sawtooth's counts beside tshark's, connection by connection."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click

from fidelity.field import tshark
from fidelity.field.evidence import Difference, differences
from fidelity.field.proofs import Proofs, read, write
from fidelity.field.tallies import Pair, Tally, of_counts, of_facts, of_segments, paired, ports

ENDINGS = (".pcap", ".pcapng", ".cap", ".trace", ".dmp", ".gz", ".zst")
WITHIN = 1
COPY = 11
COUNTED = (1, 2, 3, 4, 5, 6)
"""Kinds of the table ``segments`` (docs/reference/capture.md) that are retransmissions, or out of order."""
GOAL = 0.98


@dataclass(frozen=True)
class Judged:
    """A pair of tallies of the capture ``file``; if they differ, with the packets that differ."""

    file: str
    pair: Pair
    differing: tuple[Difference, ...] = ()

    @property
    def within(self) -> bool:
        return self.pair.apart <= WITHIN

    @property
    def proven(self) -> bool:
        """They differ, but packets prove all of the difference but one."""
        open_ = sum(not one.claim for one in self.differing)
        return not self.within and open_ <= WITHIN and len(self.differing) - open_ >= self.pair.apart - WITHIN


@click.command()
@click.argument("directory", type=click.Path(exists=True, path_type=Path))
@click.option("--counts", type=click.Path(exists=True, path_type=Path), metavar="FILE", help="A witness' counts, CSV.")
@click.option("--proofs", type=click.Path(exists=True, path_type=Path), metavar="FILE", help="Proofs, with --counts.")
@click.option("--write-proofs", type=click.Path(path_type=Path), metavar="FILE", help="Keep the proofs found, as CSV.")
@click.option("--all", "every", is_flag=True, help="A row for every connection, not only for those that differ.")
@click.option("--packets", type=click.IntRange(0), default=6, help="Packets named of each difference.  [6]")
def captures(
    directory: Path, counts: Path | None, proofs: Path | None, write_proofs: Path | None, every: bool, packets: int
) -> None:
    """Compare what is counted of every connection of the captures in DIRECTORY with tshark's analysis.

    Retransmissions and segments out of order are compared together, SYNs by themselves. Of connections further apart
    than 1 the packets are named that only one of the two counts, with what proves it where that can be shown. Without
    tshark, give its counts of an earlier time. Ends with status 1 where fewer than 98% of the connections without a
    proof are within 1.
    """
    if counts is None and tshark.version() is None:
        raise click.UsageError("tshark is not installed: apt-get install tshark, or give --counts FILE")
    judged = []
    known = {} if proofs is None else read(proofs)
    for path in files(directory):
        try:
            judged += list(judge(path) if counts is None else judge_by_counts(path, counts, known))
        except Exception as error:  # the first broken file must not end the collection
            click.echo(f"{path.name}: {error}", err=True)
    if write_proofs is not None:
        write(write_proofs, {(one.file, one.pair.ends): one.differing for one in judged if one.proven})
    click.echo(table(judged, every=every, packets=packets))
    sys.exit(0 if share(judged) >= GOAL else 1)


def files(directory: Path) -> list[Path]:
    """The captures below a directory, or a single one."""
    if directory.is_file():
        return [directory]
    found = (path for path in directory.rglob("*") if path.suffix in ENDINGS and ".tar" not in path.suffixes)
    return sorted(path for path in found if path.is_file())


def judge(path: Path) -> Iterator[Judged]:
    """Every connection of a capture, with tshark's counts. Raises like ``read_capture`` and ``tshark.segments``."""
    from sawtooth import read_capture

    try:
        seen = list(tshark.segments(path))
    except subprocess.CalledProcessError as error:
        raise ValueError(f"tshark does not read it: {(error.stderr or '').strip()}") from error
    for pair in paired(of_facts(read_capture(path).facts), of_segments(seen)):
        found: list[Difference] = []
        if pair.apart > WITHIN:
            counted: set[int] = set()
            for index in pair.indices:
                kinds = read_capture(path, connection=index).segments
                counted |= set(kinds[kinds["kind"].isin(COUNTED)]["frame"].astype(int))
            found = differences([one for one in seen if one.stream in pair.streams], counted)
        yield Judged(path.name, pair, tuple(found))


def judge_by_counts(path: Path, counts: Path, proofs: Proofs) -> Iterator[Judged]:
    """The same without tshark: its counts, and the proofs for packets, are read from files."""
    from sawtooth import read_capture

    by_ports = {(file, ports(ends)): found for (file, ends), found in proofs.items()}
    for pair in paired(of_facts(read_capture(path).facts), of_counts(counts).get(path.name, {})):
        yield Judged(path.name, pair, () if pair.apart <= WITHIN else by_ports.get((path.name, pair.ends), ()))


def share(judged: list[Judged]) -> float:
    """Of the connections without a proof, those that differ by at most 1."""
    open_ = [one for one in judged if not one.proven]
    return sum(one.within for one in open_) / len(open_) if open_ else 1.0


def table(judged: list[Judged], *, every: bool = False, packets: int = 6) -> str:
    """Markdown: a row for each connection that differs, or for each; then the sums."""
    lines = ["| capture | ends | sawtooth: again, out of order, SYNs (copies) | tshark: the same | apart | packets |"]
    lines.append("|---|---|---|---|---|---|")
    for one in judged:
        if every or not one.within:
            ours, theirs = one.pair.ours, one.pair.theirs
            copies = f" ({ours.copies})" if ours.copies else ""
            count = len(one.pair.indices), len(one.pair.streams)
            split = "" if count[0] == count[1] else f", {count[0]} connections for {count[1]}"
            lines.append(
                f"| {one.file} | {' – '.join(one.pair.ends)}{split} | {_counts(ours)}{copies} | {_counts(theirs)} "
                f"| {one.pair.apart}{', proven' if one.proven else ''} | {_named(one.differing, packets)} |"
            )
    within, proven = sum(one.within for one in judged), sum(one.proven for one in judged)
    lines.append("")
    lines.append(
        f"{len(judged)} connections of {len({one.file for one in judged})} captures: {within} within {WITHIN}, "
        f"{proven} apart with a proof, {len(judged) - within - proven} apart without: "
        f"{share(judged):.2%} of those without a proof are within {WITHIN}."
    )
    return "\n".join(lines)


def _counts(tally: Tally) -> str:
    return f"{tally.again}, {tally.out_of_order}, {tally.syns}"


def _named(found: tuple[Difference, ...], most: int) -> str:
    named = [
        f"{one.frame} ({one.claim} of {one.of})" if one.claim else f"{one.frame} ({one.counted_by} only)"
        for one in sorted(found, key=lambda one: bool(one.claim))[:most]
    ]
    return ", ".join(named) + (f" and {len(found) - most} more" if len(found) > most else "")
