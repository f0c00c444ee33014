"""Makes docs/gallery.md: pictures of studies, the numbers in its sentences, and how near the kernel is.

    python tools/gallery.py [--study NAME …] [--kernel] [--again] [--jobs N]

Each study of the page is run with the engine ``sim``, as shipped, and one of its figures goes to docs/images. The
sentences are docs/gallery.in.md, where a number is written ``@COLUMN; KEY=VALUE; …; FORMAT@``: the column of table.csv,
or of shares.csv where a flow is given, at the point with these keys (of several values ``KEY=ONE|OTHER``, of several
points ``@least COLUMN; …@`` or ``@most COLUMN; …@``). With ``--kernel`` a few points are run with both engines, as
``STUDIES`` says, and the distances are written between ``<!-- NAME: kernel -->`` and ``<!-- end -->``. Sections of
studies that were not run stay as they are.
"""

from __future__ import annotations

import argparse
import re
import textwrap
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sawtooth
from sawtooth.study import StudyResult, run_study
from sawtooth.study.mean_counts import COUNTS
from sawtooth.study.measures import TITLES
from sawtooth.study.shares import ALL

if TYPE_CHECKING:
    from pandas import DataFrame

DOCS = Path(__file__).resolve().parents[1] / "docs"
NUMBER = re.compile(r"@([^@]+)@")
_WIDTH = 100
"""Width of the page's lines in characters."""
UNKNOWN = "Not compared with the kernel yet."
_COLOURS = 128
"""Colours of a picture: lines on white need no more, and the file is a third of the size."""


@dataclass(frozen=True)
class Check:
    """Points of a study that are run on both engines: the fields that are set, and the columns that are compared."""

    sets: dict[str, Any]
    columns: tuple[str, ...] = ("mean_mbps", "mean_srtt_ms")


@dataclass(frozen=True)
class Shown:
    """The figure of a study on the page, and the points that are also run on the kernel."""

    figure: str
    checks: tuple[Check, ...] = field(default=())


LATENCY = ("mean_mbps", "latency_p50_ms", "latency_p95_ms")
STUDIES = {
    "bufferbloat": Shown("measures", (Check({"duration": "40 s", "flows.cc": "cubic"}, LATENCY),)),
    "coexistence": Shown("share", (Check({"duration": "60 s", "path.queue": "40 ms"}),)),
    "rtt-unfairness": Shown("share", (Check({"duration": "60 s", "dumbbell.queue": "20 ms"}),)),
    "late-comers": Shown("measures", (Check({"duration": "80 s", "path.queue": "40 ms"}),)),
    "aqm-atlas": Shown(
        "trade", (Check({"flows.bulk.count": 4, "duration": "30 s"}, ("mean_mbps", "queue_delay_mean_ms")),)
    ),
    "ecn": Shown(
        "measures",
        (
            Check(
                {"flows.cc": "cubic", "duration": "40 s"},
                ("mean_mbps", "queue_delay_mean_ms", "fct_ms_p50", "queue_drops"),
            ),
        ),
    ),
    # The default kernel has neither DualPI2 nor Prague.
    "l4s": Shown("share"),
    "shallow-buffer": Shown("mean-log", (Check({"path.queue": "0.1 bdp", "duration": "12 s"}),)),
    "policer": Shown(
        "mean-log", (Check({"path.policer.burst": "64 KiB", "duration": "30 s"}, ("mean_mbps", "retransmits")),)
    ),
    "wifi": Shown("measures", (Check({"path.queue": "200 packets", "duration": "40 s"}, LATENCY),)),
    "lte": Shown("measures", (Check({"path.queue": "200 packets", "duration": "40 s"}, LATENCY),)),
    "starlink": Shown("throughput-over-time", (Check({"flows.bulk.count": 1, "duration": "45 s"}, LATENCY),)),
    "web": Shown("measures", (Check({"path.loss": "1%", "duration": "300 s"}, ("page_ms_p50", "page_ms_p90")),)),
    "video": Shown(
        "measures",
        (
            Check(
                {"path.rate": "4 Mbit/s", "flows.bulk.cc": "cubic", "duration": "100 s"},
                ("video_mbps", "video_startup_s"),
            ),
        ),
    ),
    "call": Shown(
        "measures",
        (Check({"path.rate": "5 Mbit/s", "duration": "25 s"}, ("call_mos", "udp_delay_mean_ms", "mean_mbps")),),
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--study", nargs="*", choices=list(STUDIES), default=list(STUDIES))
    parser.add_argument("--kernel", action="store_true", help="compare with the kernel, too")
    parser.add_argument("--jobs", type=int, help="worker processes; one a core by default")
    parser.add_argument("--again", action="store_true", help="from the last results below --out: run nothing")
    parser.add_argument("--out", type=Path, default=Path("results"))
    given = parser.parse_args()
    for name in given.study:
        if given.again:
            result = StudyResult.load(given.out / name / "latest")
        else:
            result = run_study(sawtooth.load(name), out=given.out, jobs=given.jobs)
        picture(name, result)
        near = distances(name, given.out, given.jobs) if given.kernel else None
        write(name, result, near)


def picture(name: str, result: StudyResult) -> None:
    """The study's figure, as docs/images/NAME.png."""
    from PIL import Image

    page = sawtooth.report(result)
    with Image.open(page.parent / "plots" / f"{STUDIES[name].figure}.png") as drawn:
        few = drawn.convert("RGB").quantize(_COLOURS, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
        few.save(DOCS / "images" / f"{name}.png", optimize=True)


def write(name: str, result: StudyResult, near: str | None) -> None:
    """Write the study's section of the page. If ``near`` is None, the old comparison with the kernel is kept."""
    page, template = DOCS / "gallery.md", DOCS / "gallery.in.md"
    head, sections = parted(template.read_text())
    _, before = parted(page.read_text()) if page.exists() else ("", {})
    old = before.get(name, "")
    sections[name] = "\n\n".join(filled(paragraph, result) for paragraph in sections[name].split("\n\n"))
    marks = re.compile(rf"(<!-- {name}: kernel -->\n).*?(<!-- end -->)", re.DOTALL)
    assert marks.search(sections[name]), f"docs/gallery.in.md has no marks for {name}"
    known = marks.search(old)
    told = known[0] if near is None and known else f"<!-- {name}: kernel -->\n{near or UNKNOWN}\n<!-- end -->"
    sections[name] = marks.sub(lambda _: told, sections[name])
    # A section without results yet is left as it is.
    kept = {one: text if one == name else before.get(one, "") for one, text in sections.items()}
    page.write_text(head + "".join(kept.values()))


def filled(paragraph: str, result: StudyResult) -> str:
    """A paragraph with its numbers filled in, wrapped to the page's width."""
    if NUMBER.search(paragraph) is None:
        return paragraph
    text = NUMBER.sub(lambda found: number(" ".join(found[1].split()), result), paragraph)
    return _wrapped(text)


def _wrapped(text: str) -> str:
    return textwrap.fill(" ".join(text.split()), _WIDTH, break_long_words=False, break_on_hyphens=False)


def parted(text: str) -> tuple[str, dict[str, str]]:
    """The text above the first section, and the sections by heading."""
    head, *parts = re.split(r"(?m)^(?=## )", text)
    return head, {part.partition("\n")[0].removeprefix("## "): part.rstrip("\n") + "\n\n" for part in parts}


def number(written: str, result: StudyResult) -> str:
    """The value for a number in the template. Raises LookupError if no point, or more than one, has these keys."""
    column, *keys, form = (part.strip() for part in written.split(";"))
    which, _, column = column.rpartition(" ")
    table: DataFrame = result.pooled
    wanted = dict(key.split("=", 1) for key in keys)
    if "flow" in wanted:
        table = result.shares[result.shares["seed"] == ALL]
    for key, values in wanted.items():
        table = table[[_plain(value) in values.split("|") for value in table[key]]]
    found = table[column]
    if len(found) == 0 or (not which and len(found) > 1):
        raise LookupError(f"@{written}@ is of {len(found)} points")
    value = {"least": found.min, "most": found.max, "": found.mean}[which]()
    return format(float(value), form)


def _plain(value: Any) -> str:
    return f"{value:g}" if isinstance(value, (int, float)) else str(value)


def distances(name: str, out: Path, jobs: int | None) -> str:
    """The difference between simulator and kernel at a study's points, one sentence per check."""
    sentences = []
    study = sawtooth.load(name)
    assert isinstance(study, sawtooth.Study)
    for check in STUDIES[name].checks:
        ours, theirs = (
            run_study(study, engine=engine, overrides=check.sets, seeds=[1], out=out / "gallery", jobs=jobs)
            for engine in ("sim", "kernel")
        )
        sentences.append(sentence(check, ours, theirs))
    return "\n".join(sentences)


def sentence(check: Check, ours: StudyResult, theirs: StudyResult) -> str:
    """The result of a check as a sentence."""
    told = [compared(ours, theirs, column) for column in check.columns]
    if not ours.shares.empty:
        apart = (ours.shares["share_percent"] - theirs.shares["share_percent"]).abs()
        told.append(f"each flow's share {apart.median():.1f} ({apart.max():.1f}) percentage points")
    sets = ", ".join(f"`{field}` {value}" for field, value in check.sets.items())
    points = f"{len(ours.pooled)} points" if len(ours.pooled) > 1 else "one point"
    near = "Median difference between `sim` and `kernel` (the largest in brackets)"
    return _wrapped(f"Compared at {points} with {sets}. {near}: {'; '.join(told)}.")


def compared(ours: StudyResult, theirs: StudyResult, column: str) -> str:
    """The median and the largest difference of a column, in percent of the kernel's value. Counts are used only where
    the kernel has at least ten."""
    known = theirs.pooled[column] >= (10 if column in COUNTS else 0)
    off = (100 * (ours.pooled[column] / theirs.pooled[column] - 1))[known].abs().dropna()
    title = TITLES[column].removesuffix(" per run")
    unit = title.rpartition(", ")[2]
    name = title.removesuffix(f", {unit}") if unit in ("Mbit/s", "ms", "s", "%") else title
    return f"{name} {off.median():.1f}% ({off.max():.1f}%)"


if __name__ == "__main__":
    main()
