"""The trial of labelled traces: is the congestion control identified, and are the probabilities calibrated?"""

from __future__ import annotations

import functools
import json
import lzma
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from sawtooth.capture.csv import read_csv
from sawtooth.capture.identify.captured import identify_file
from sawtooth.capture.identify.classifier import SAME, Classifier, Identification
from sawtooth.scenario import LINUX_CONTROLS

ENDINGS = (".csv", ".pcap", ".pcapng")
THREE = ("reno", "cubic", "bbr")
SURE = 0.9
LEFT_OUT = Path(__file__).with_name("left-out.json.xz")
"""For each link, a classifier that was trained and calibrated without it (experiments/train_identify.py)."""


@dataclass(frozen=True)
class Trial:
    """One labelled trace and its answer."""

    link: str
    control: str
    answer: Identification

    @property
    def answered(self) -> bool:
        return self.answer.unknown is None

    @property
    def named(self) -> bool:
        """Right by the likeliest control alone; ``dctcp`` and ``lp`` count as Reno, which they equal without marks."""
        return self.answered and self.answer.names[0][0] == SAME.get(self.control, self.control)

    @property
    def grouped(self) -> bool:
        return self.control in (self.answer.best or ())

    @property
    def mark(self) -> str:
        return "=" if self.named and self.grouped else "g" if self.grouped else "x" if self.answered else "?"

    @property
    def sure(self) -> bool:
        return self.answered and self.answer.ranked[0][1] > SURE

    @property
    def large(self) -> bool:
        return self.answer.path.endswith("large windows")


@dataclass(frozen=True)
class Count:
    """``right`` of ``of``, and the share that is required."""

    name: str
    right: int
    of: int
    bar: float | None = None

    @property
    def missed(self) -> bool:
        return self.bar is not None and self.right < self.bar * self.of

    def __str__(self) -> str:
        return f"{self.right}/{self.of}"


@click.command()
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--json", "rows", type=click.Path(path_type=Path), metavar="FILE", help="Every answer, as JSON.")
@click.option("--left-out", is_flag=True, help="Links that were trained on: by the classifier that had not seen them.")
def labelled(directory: Path, rows: Path | None, left_out: bool) -> None:
    """Ask what sent each trace LINK/CONTROL.csv (or .pcap, .pcapng) in DIRECTORY, at any depth, and compare.

    Ends with status 1 if a threshold is missed: 60% answered; of those 80% right, 95% of reno, cubic and bbr, 95% of
    these in windows above 40 segments; 97% of the answers with more than 90%.
    """
    found = trials(directory, by_left_out if left_out else identify_file)
    if not found:
        raise click.UsageError(f"{directory}: no file below it is named after a congestion control")
    click.echo(table(found))
    if rows is not None:
        rows.write_text(json.dumps([row(trial) for trial in found], indent=1) + "\n", encoding="utf-8")
    sys.exit(1 if any(one.missed for one in counts(found)) else 0)


def trials(directory: Path, ask: Callable[[Path], Identification] = identify_file) -> list[Trial]:
    """Every trace below ``directory`` that is named after a congestion control of Linux."""
    files = [file for file in sorted(directory.rglob("*")) if file.suffix in ENDINGS and file.stem in LINUX_CONTROLS]
    return [Trial(str(file.parent.relative_to(directory)), file.stem, ask(file)) for file in files]


def by_left_out(file: Path) -> Identification:
    """By the classifier without the file's link; by the bundled one for links that it was not trained on."""
    classifier = _left_out().get(file.parent.name) if file.suffix == ".csv" else None
    return identify_file(file) if classifier is None else classifier.identify(read_csv(file))


@functools.cache
def _left_out() -> dict[str, Classifier]:
    kept = json.loads(lzma.decompress(LEFT_OUT.read_bytes()))
    return {link: Classifier.read(one) for link, one in kept.items()}


def row(trial: Trial) -> dict[str, Any]:
    return {"link": trial.link, "control": trial.control} | trial.answer.to_dict()


def counts(found: Sequence[Trial]) -> tuple[Count, ...]:
    """The counts with thresholds, and how often the likeliest control alone is right."""
    answered = [trial for trial in found if trial.answered]
    three = [trial for trial in answered if trial.control in THREE]
    large = [trial for trial in three if trial.large]
    sure = [trial for trial in answered if trial.sure]
    return (
        Count("answered", len(answered), len(found), 0.6),
        Count("by name", sum(trial.named for trial in answered), len(answered)),
        Count("by group", sum(trial.grouped for trial in answered), len(answered), 0.8),
        Count("reno, cubic, bbr", sum(trial.grouped for trial in three), len(three), 0.95),
        Count("… by name", sum(trial.named for trial in three), len(three)),
        Count("… large windows", sum(trial.grouped for trial in large), len(large), 0.95),
        Count("p > 0.9", sum(trial.grouped for trial in sure), len(sure), 0.97),
    )


def table(found: Sequence[Trial]) -> str:
    """Markdown: right of answered, by link and over all; what became of each trace; each wrong answer."""
    links = sorted({trial.link for trial in found})
    every = counts(found)
    lines = [_cells("link", "traces", *(one.name for one in every), "controls in a group"), "|---" * 10 + "|"]
    for link in links:
        own = [trial for trial in found if trial.link == link]
        lines.append(_cells(link, len(own), *counts(own), _size(own)))
    lines.append(_cells("all", len(found), *every, _size(found)))
    bars = ["" if one.bar is None else f"{one.bar:.0%}{', missed' if one.missed else ''}" for one in every]
    lines += [_cells("bar", "", *bars, ""), "", "= right by name, g by group, x wrong, ? unknown:", ""]
    lines += [_cells("link", *LINUX_CONTROLS), "|---" * (1 + len(LINUX_CONTROLS)) + "|"]
    for link in links:
        marks = {trial.control: trial.mark for trial in found if trial.link == link}
        lines.append(_cells(link, *(marks.get(control, "") for control in LINUX_CONTROLS)))
    return "\n".join([*lines, "", *(_said(trial) for trial in found if trial.mark == "x")])


def _cells(*cells: object) -> str:
    return "| " + " | ".join(map(str, cells)) + " |"


def _size(found: Sequence[Trial]) -> str:
    sizes = [len(trial.answer.ranked[0][0]) for trial in found if trial.answered]
    return f"{sum(sizes) / len(sizes):.1f}" if sizes else ""


def _said(trial: Trial) -> str:
    said = ", ".join(f"{' or '.join(group)} {probability:.2f}" for group, probability in trial.answer.ranked[:2])
    return f"- {trial.link} {trial.control}: taken for {said}"
