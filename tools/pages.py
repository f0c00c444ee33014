"""Makes pictures of pages: docs/images/page-NAME.png.

    python tools/pages.py [capture] [report] [link]

Each page is made again, from shipped studies on the engine ``sim``, and seen by Chromium without a screen, in light
colours. Takes a minute.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from PIL import Image

import sawtooth
from sawtooth.capture.busiest_connection import read_busiest
from sawtooth.capture.page import write_page
from sawtooth.capture.zoom import Zoom
from sawtooth.link_estimate import read_series
from sawtooth.link_estimate.model import CongestionModel
from sawtooth.link_estimate.report import Assumed
from sawtooth.link_estimate.report import write_report as write_link
from sawtooth.report import write_report

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"
PROBED = ROOT / "fidelity" / "field" / "kernel-probes" / "kernel-00003.csv"
_COLOURS = 128
"""Colours of a picture: lines and text need no more, and the file is a third of the size."""


@dataclass(frozen=True)
class Picture:
    """``page`` makes the page in a directory; ``size`` is the visible part in CSS pixels."""

    page: Callable[[Path], Path]
    size: tuple[int, int]


def capture(home: Path) -> Path:
    """The tutorial's two transfers, compared on the same axes."""
    study = sawtooth.load("fiber-in-paris")
    found = sawtooth.run(
        study, out=home / "results", seeds=[1], capture=True, jobs=1, overrides={"duration": "15 s", "warmup": "0 s"}
    )
    files = sorted((found.directory / "captures").glob("*/capture-sender.pcap"))
    return write_page([read_busiest(file) for file in files], home / "capture.html", Zoom(0, 2))


def report(home: Path) -> Path:
    """The study whose published figures the README quotes."""
    return write_report(sawtooth.run("one-percent-loss", out=home / "results"))


def link(home: Path) -> Path:
    """A link congested by the kernel's TCP."""
    # Show only the file's name, without its directory.
    series = [replace(one, source="link.csv") for one in read_series(PROBED)]
    return write_link(series, home / "link", CongestionModel.default(), Assumed(rate_bps=241e6))


PICTURES = {
    "capture": Picture(capture, (1280, 925)),
    "report": Picture(report, (1280, 1300)),
    "link": Picture(link, (1280, 1065)),
}


def seen(page: Path, file: Path, size: tuple[int, int]) -> None:
    """Save a picture of the page as Chromium shows it, with few colours."""
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        raise SystemExit("pages are seen by chromium: apt install chromium")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--virtual-time-budget=15000"]
    options += [f"--user-data-dir={page.parent}/chromium", f"--screenshot={file}", f"--window-size={size[0]},{size[1]}"]
    subprocess.run([browser, *options, page.as_uri()], check=True, capture_output=True, timeout=300)
    with Image.open(file) as picture:
        picture.convert("RGB").quantize(_COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(
            file, optimize=True
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[*PICTURES, []], help="of all, if none is named")
    for name in parser.parse_args().names or PICTURES:
        with tempfile.TemporaryDirectory() as home:
            file = IMAGES / f"page-{name}.png"
            seen(PICTURES[name].page(Path(home)), file, PICTURES[name].size)
            print(f"{file.relative_to(ROOT)}: {file.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
