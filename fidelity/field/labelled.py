"""Labelled traces of others: is the congestion control told, and do its probabilities mean what they say?

    python fidelity/field/labelled.py FOLDER [--json FILE]

A trace is a file LINK/CONTROL.csv (or .pcap, .pcapng), at any depth: its name is what sent it, its folder the link.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sawtooth.capture.identify.captured import identify_file
from sawtooth.capture.identify.classifier import SAME, Identification
from sawtooth.scenario import CONGESTION_CONTROLS

KINDS = {".csv", ".pcap", ".pcapng"}
THREE = ("reno", "cubic", "bbr")
SURE = 0.9


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
        """Right by the likeliest control alone; ``dctcp`` and ``lp`` count as the Reno that they are."""
        return self.answered and self.answer.names[0][0] == SAME.get(self.control, self.control)

    @property
    def grouped(self) -> bool:
        return self.answered and self.control in (self.answer.best or ())

    @property
    def mark(self) -> str:
        return "=" if self.named and self.grouped else "g" if self.grouped else "x" if self.answered else "?"

    def row(self) -> dict[str, Any]:
        return {"link": self.link, "control": self.control} | self.answer.to_dict()


def trials(folder: Path) -> list[Trial]:
    """Of every trace below ``folder`` that is named after a congestion control of Linux."""
    files = [file for file in sorted(folder.rglob("*")) if file.suffix in KINDS and file.stem in CONGESTION_CONTROLS]
    return [Trial(str(file.parent.relative_to(folder)), file.stem, identify_file(file)) for file in files]


def table(found: list[Trial]) -> str:
    """Counts a link and over all, then what became of each trace, then each wrong answer."""
    links = sorted({trial.link for trial in found})
    width = max(len(link) for link in (*links, "all links"))
    lines = [_heading(width)]
    lines += [_line(link, width, [trial for trial in found if trial.link == link]) for link in links]
    lines += [_line("all links", width, found), "", "= right by name, g right by group, x wrong, ? unknown", ""]
    lines.append(" " * width + " " + " ".join(f"{control[:5]:>5}" for control in CONGESTION_CONTROLS))
    for link in links:
        marks = {trial.control: trial.mark for trial in found if trial.link == link}
        lines.append(f"{link:{width}} " + " ".join(f"{marks.get(control, ''):>5}" for control in CONGESTION_CONTROLS))
    wrong = [trial for trial in found if trial.mark == "x"]
    lines += ["", *(_said(trial, width) for trial in wrong)]
    return "\n".join(lines)


def _heading(width: int) -> str:
    names = ("traces", "answered", "by name", "by group", "of three", "by group", "large w.", "p > 0.9", "group")
    return " " * width + " " + " ".join(f"{name:>9}" for name in names)


def _line(title: str, width: int, found: list[Trial]) -> str:
    """Right of answered; of reno, cubic and bbr, the same; of those, in large windows; of the sure answers."""
    answered = [trial for trial in found if trial.answered]
    three = [trial for trial in answered if trial.control in THREE]
    large = [trial for trial in three if trial.answer.path.endswith("large windows")]
    sure = [trial for trial in answered if trial.answer.ranked[0][1] > SURE]
    sizes = [len(trial.answer.ranked[0][0]) for trial in answered]
    cells = [
        str(len(found)),
        _of(found, lambda trial: trial.answered),
        _of(answered, lambda trial: trial.named),
        _of(answered, lambda trial: trial.grouped),
        _of([trial for trial in found if trial.control in THREE], lambda trial: trial.answered),
        _of(three, lambda trial: trial.grouped),
        _of(large, lambda trial: trial.grouped),
        _of(sure, lambda trial: trial.grouped),
        f"{sum(sizes) / len(sizes):.1f}" if sizes else "",
    ]
    return f"{title:{width}} " + " ".join(f"{cell:>9}" for cell in cells)


def _of(found: list[Trial], right: Callable[[Trial], bool]) -> str:
    return f"{sum(map(right, found))}/{len(found)}"


def _said(trial: Trial, width: int) -> str:
    said = ", ".join(f"{' or '.join(group)} {probability:.2f}" for group, probability in trial.answer.ranked[:2])
    return f"{trial.link:{width}} {trial.control:9} taken for {said}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--json", type=Path, help="the answers, a trace a row")
    asked = parser.parse_args()
    found = trials(asked.folder)
    if not found:
        print(f"{asked.folder}: no file below it is named after a congestion control", file=sys.stderr)
        return 2
    print(table(found))
    if asked.json is not None:
        asked.json.write_text(json.dumps([trial.row() for trial in found], indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
