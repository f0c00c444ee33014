"""Makes the pictures of docs/gallery.md anew, and the lines in it that say how near the kernel is.

    python tools/gallery.py [--study NAME …] [--kernel]

Each study of the page is run with the engine ``sim``, as shipped, and one of its figures goes to docs/images. With
``--kernel`` a few of its points are run with both engines, as ``STUDIES`` says, and the distances are written between
the marks ``<!-- NAME: kernel -->`` and ``<!-- end -->``. The sentences of the page are written by hand, from table.csv.
"""

from __future__ import annotations

import argparse
import re
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import sawtooth
from sawtooth.study import StudyResult, run_study
from sawtooth.study.measures import TITLES

DOCS = Path(__file__).resolve().parents[1] / "docs"


@dataclass(frozen=True)
class Check:
    """One point, or a few, of a study on both engines: what is set, and which columns are compared."""

    sets: dict[str, Any]
    columns: tuple[str, ...] = ("mean_mbps", "mean_srtt_ms")


@dataclass(frozen=True)
class Shown:
    """The figure of a study that the page shows, and its points on the kernel."""

    figure: str
    checks: tuple[Check, ...] = field(default=())


LATENCY = ("mean_mbps", "latency_p50_ms", "latency_p95_ms")
STUDIES = {
    "bufferbloat": Shown("measures", (Check({"duration": "40 s", "flows.cc": "cubic"}, LATENCY),)),
    "coexistence": Shown("share", (Check({"duration": "60 s", "path.queue": "40 ms"}),)),
    "aqm-atlas": Shown(
        "trade", (Check({"flows.bulk.count": 4, "duration": "30 s"}, ("mean_mbps", "queue_delay_mean_ms")),)
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--study", nargs="*", choices=list(STUDIES), default=list(STUDIES))
    parser.add_argument("--kernel", action="store_true", help="compare with the kernel, too")
    parser.add_argument("--out", type=Path, default=Path("results"))
    given = parser.parse_args()
    for name in given.study:
        picture(name, given.out)
        if given.kernel:
            written(name, distances(name, given.out))


def picture(name: str, out: Path) -> None:
    """Runs a study and copies its figure."""
    result = sawtooth.run(name, out=out)
    assert isinstance(result, StudyResult)
    page = sawtooth.report(result)
    shutil.copy(page.parent / "plots" / f"{STUDIES[name].figure}.png", DOCS / "images" / f"{name}.png")


def distances(name: str, out: Path) -> str:
    """How far the simulator is from the kernel at a study's points, in a sentence each check."""
    sentences = []
    study = sawtooth.load(name)
    assert isinstance(study, sawtooth.Study)
    for check in STUDIES[name].checks:
        ours, theirs = (
            run_study(study, engine=engine, overrides=check.sets, seeds=[1], out=out / "gallery")
            for engine in ("sim", "kernel")
        )
        told = [compared(ours, theirs, column) for column in check.columns]
        if not ours.shares.empty:
            apart = (ours.shares["share_percent"] - theirs.shares["share_percent"]).abs()
            told.append(f"each flow's share {apart.median():.1f} ({apart.max():.1f}) percentage points")
        sets = ", ".join(f"`{field}` {value}" for field, value in check.sets.items())
        points = f"{len(ours.pooled)} points" if len(ours.pooled) > 1 else "one point"
        sentences.append(f"Sim and kernel at {points} with {sets}; median difference (largest): {'; '.join(told)}.")
    return "\n".join(sentences)


def compared(ours: StudyResult, theirs: StudyResult, column: str) -> str:
    """The median and the largest difference of a column, in percent of the kernel's."""
    off = (100 * (ours.pooled[column] / theirs.pooled[column] - 1)).abs().dropna()
    return f"{TITLES[column].rpartition(', ')[0]} {off.median():.1f}% ({off.max():.1f}%)"


def written(name: str, text: str) -> None:
    """Puts ``text`` between the study's marks in the page."""
    page = DOCS / "gallery.md"
    marks = re.compile(rf"(<!-- {name}: kernel -->\n).*?(<!-- end -->)", re.DOTALL)
    before = page.read_text()
    assert marks.search(before), f"docs/gallery.md has no marks for {name}"
    page.write_text(marks.sub(lambda found: f"{found[1]}{text}\n{found[2]}", before))


if __name__ == "__main__":
    main()
